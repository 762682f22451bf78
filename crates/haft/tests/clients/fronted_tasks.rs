//! Tasks of a server that haft is in front of (2026-07-28), in the hands of the Python SDK 2.x. The server is haft's own
//! example, because no other server speaks the extension yet.

use crate::Env;
use crate::conformance::Example;
use crate::run::{Server, gateway, within};
use crate::tasks::carry_out;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A server, and haft in front of it.
struct Fronted {
    env: Env,
    server: Example,
    _gateway: Server,
    /// How a client reaches haft.
    door: Value,
}

impl Fronted {
    fn serve() -> Self {
        let env = Env::new();
        let server = Example::serve(&env);
        env.config(&format!(
            "approval: {{auto_approve: ['mcp:ref:*']}}\nmcp: {{servers: {{ref: {{url: '{}', start: eager}}}}}}\n",
            server.url
        ));
        let (gateway, url, token) = gateway(&env);
        let door = json!({ "http": format!("{url}/ref"), "token": token });
        Self { env, server, _gateway: gateway, door }
    }

    /// Carries out a plan at haft.
    fn carry_out(&self, plan: Value) -> Value {
        carry_out(&self.env, self.door.clone(), plan)
    }

    /// The same at the server itself.
    fn carry_out_directly(&self, plan: Value) -> Value {
        carry_out(&self.env, json!({ "http": self.server.url }), plan)
    }
}

pub(crate) fn task_of_a_fronted_server_is_for_its_client_alone() {
    let fronted = Fronted::serve();
    let call = json!({ "tool": "slow_compute", "args": { "seconds": 2 } });
    let came = fronted.carry_out(json!({ "call": call, "act": "leave" }));
    assert_eq!((&came["version"], &came["created"]["resultType"]), (&json!("2026-07-28"), &json!("task")), "{came:#}");
    let task = &came["created"]["taskId"];
    let other = fronted.carry_out(json!({ "name": "two", "task": task }));
    assert_eq!(other["error"]["code"], -32602, "{other:#}");
    let direct = fronted.carry_out_directly(json!({ "task": task }));
    assert_eq!(direct["error"]["code"], -32602, "the id is haft's own, not the server's: {direct:#}");
    let end = fronted.carry_out(json!({ "task": task, "act": "wait" }));
    assert_eq!(end["end"]["status"], "completed", "{end:#}");
    let labels = &end["end"]["result"]["_meta"]["haft"]["labels"];
    assert_eq!(labels, &json!(["untrusted"]), "what comes of it goes the way of every result: {end:#}");
    let log = within(30, &mut fronted.env.command(crate::HAFT, &["log", "--json"])).stdout;
    assert!(log.contains("mcp:ref:slow_compute"), "{log}");
}

pub(crate) fn question_of_a_fronted_servers_task_reaches_its_client() {
    let fronted = Fronted::serve();
    let call = json!({ "tool": "confirm_delete", "args": { "filename": "a.txt" } });
    let came = fronted.carry_out(json!({ "call": call }));
    let states: Vec<&Value> = came["states"].as_array().unwrap().iter().filter(|state| **state != "working").collect();
    assert_eq!(states, ["input_required", "completed"], "{came:#}");
    assert!(came["form"].to_string().contains("MCP server `ref`"), "it says who asks: {came:#}");
}

pub(crate) fn cancelled_task_is_cancelled_at_the_fronted_server() {
    let fronted = Fronted::serve();
    let call = json!({ "tool": "slow_compute", "args": { "seconds": 600 } });
    let came = fronted.carry_out(json!({ "call": call, "act": "stop" }));
    assert_eq!(came["states"], json!(["working", "cancelled"]), "{came:#}");
    let server = fronted.server.url.strip_prefix("http://").unwrap();
    let calls: Value = serde_json::from_str(&read_resource(server, "haft://log")).unwrap();
    let records = calls[0]["records"].as_str().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let log = read_resource(server, records);
        if log.contains("the call was cancelled") {
            return;
        }
        assert!(Instant::now() < until, "the server's own call goes on: {log}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A resource of the server's: the records that the example keeps of its calls.
fn read_resource(server: &str, uri: &str) -> String {
    let (authority, path) = server.split_once('/').unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "reader", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "uri": uri, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params }).to_string();
    let mut stream = TcpStream::connect(authority).unwrap();
    write!(
        stream,
        "POST /{path} HTTP/1.0\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: resources/read\r\nMcp-Name: {uri}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let json = answer.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let result = json.filter_map(|line| serde_json::from_str::<Value>(line).ok()).find(Value::is_object);
    let result = result.unwrap_or_else(|| panic!("no answer: {answer}"));
    result["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{result:#}")).to_owned()
}
