//! Progress of a long MCP call over HTTP: the stream of its answer carries it until the result comes.

use crate::client::{Stream, read_answer};
use crate::{Env, Gateway};
use serde_json::{Value, json};
use std::io::BufReader;
use std::time::{Duration, Instant};

/// How often a client is told.
const INTERVAL: Duration = Duration::from_secs(5);

/// One stream of server-sent events, which are MCP messages.
struct Messages(Stream);

impl Messages {
    fn next(&mut self) -> Value {
        loop {
            let block = self.0.block().unwrap_or_else(|| panic!("the stream ended before the result"));
            let data = block.lines().find_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
            if let Some(data) = data {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

/// Sends an MCP message with these headers, and gives the stream of the answer.
fn send(gateway: &Gateway, headers: &[(&'static str, String)], message: &Value) -> Messages {
    let mut stream = gateway.server.connect();
    gateway.server.send(&mut stream, "POST", "/mcp", &all_headers(gateway, headers), Some(&message.to_string()));
    Messages(Stream::new(stream))
}

fn all_headers(gateway: &Gateway, more: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let mut headers = gateway.bearer();
    headers.push(("Accept", "application/json, text/event-stream".to_owned()));
    headers.extend_from_slice(more);
    headers
}

fn long_call(mut meta: Value) -> Value {
    meta["progressToken"] = "mine".into();
    let arguments = json!({"command": "touch begun; sleep 13; echo slept-well"});
    let params = json!({"name": "shell_exec", "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
}

/// Hears the whole stream of a call that is asked about: it waits at first, is approved after the first interval, and runs
/// for two intervals and more: so long that two messages come while it runs, however late it begins.
fn assert_heartbeats(gateway: &Gateway, headers: &[(&'static str, String)], meta: Value) {
    let sent_at = Instant::now();
    let mut messages = send(gateway, headers, &long_call(meta));
    let mut heard: Vec<(String, f64)> = Vec::new();
    let result = loop {
        let message = messages.next();
        if message["method"] != "notifications/progress" {
            break message;
        }
        let (text, number) = (message["params"]["message"].as_str(), message["params"]["progress"].as_f64());
        if text == Some("slept-well") {
            // What the command prints is told as it comes.
            continue;
        }
        assert_eq!(message["params"]["progressToken"], "mine", "{message:#}");
        heard.push((text.unwrap().to_owned(), number.unwrap()));
        let (at, due) = (sent_at.elapsed(), INTERVAL * u32::try_from(heard.len() - 1).unwrap());
        assert!(at >= due, "{heard:?}: the last came after {at:?} instead of {due:?}");
        if heard.len() == 2 {
            let waiting = gateway.get("/v1/approvals").json();
            let id = waiting["approvals"][0]["id"].as_str().unwrap();
            let begin = format!("waiting for approval {id}: shell_exec: $ touch begun");
            assert!(heard.iter().all(|(text, _)| text.starts_with(&begin)), "{heard:?}");
            assert!(!heard[0].0.ends_with(" s)") && heard[1].0.ends_with(" s)"), "{heard:?}");
            let approved = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
            assert_eq!(approved.status, 200, "{approved:?}");
        }
    };
    assert!(result["result"]["content"].to_string().contains("slept-well"), "{result:#}");
    assert!(heard.windows(2).all(|pair| pair[0].1 < pair[1].1), "the numbers grow: {heard:?}");
    let running = heard.iter().filter(|(text, _)| text.starts_with("running: shell_exec: $ touch begun")).count();
    assert!(running >= 2, "{heard:?}");
}

#[test]
fn long_call_in_a_session_is_told_of_every_five_seconds() {
    let env = Env::new();
    env.config("mcp: {wait_ms: 60000}\n");
    let gateway = env.serve();
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    let opened = gateway.server.ask("POST", "/mcp", &all_headers(&gateway, &[]), Some(&hello));
    let session = opened.header("mcp-session-id").unwrap_or_else(|| panic!("no session: {opened:?}")).to_owned();
    let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25".to_owned())];
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let mut stream = gateway.server.connect();
    gateway.server.send(&mut stream, "POST", "/mcp", &all_headers(&gateway, &headers), Some(&ready));
    assert_eq!(read_answer(&mut BufReader::new(stream)).status, 202);
    assert_heartbeats(&gateway, &headers, json!({}));
}

#[test]
fn long_call_without_a_session_is_told_of_every_five_seconds() {
    let env = Env::new();
    env.config("mcp: {wait_ms: 60000}\n");
    let gateway = env.serve();
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28".to_owned()),
        ("Mcp-Method", "tools/call".to_owned()),
        ("Mcp-Name", "shell_exec".to_owned()),
    ];
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    assert_heartbeats(&gateway, &headers, meta);
}
