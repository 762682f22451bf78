//! Whose conversation a call belongs to when it does not say.

use crate::{Env, Gateway};
use serde_json::json;

/// The session of a call that names none.
fn session(gateway: &Gateway) -> String {
    let id = gateway.call("calc.eval", json!({"expression": "1"})).json()["call_id"].as_str().unwrap().to_owned();
    gateway.get(&format!("/v1/calls/{id}")).json()["session"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_allowed_for_a_session_is_for_one_gateway_and_not_the_next() {
    let env = Env::new();
    let gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "session"})).status, 200);
    let again = |gateway: &Gateway| {
        std::fs::remove_file(env.root().join("a.txt")).unwrap_or_default();
        gateway.call("file.write", json!({"path": "a.txt", "content": "x"})).status
    };
    assert_eq!(again(&gateway), 200, "it is allowed where it was allowed");
    std::fs::remove_file(env.root().join("a.txt")).unwrap();
    let other = env.run(&["call", "file.write", r#"{"path": "a.txt", "content": "x"}"#, "--no-input", "--json"]);
    assert_eq!(other["error"]["kind"], "approval_required", "not on the command line: {other:#}");
    drop(gateway);
    assert_eq!(again(&env.serve()), 202, "not at the next start");
}

#[test]
fn a_session_that_is_named_is_kept_and_another_is_new_at_every_start() {
    let env = Env::new();
    let (first, second) = (session(&env.serve()), session(&env.serve()));
    assert!(first.starts_with("serve-") && second.starts_with("serve-") && first != second, "{first} {second}");
    assert_eq!(session(&env.serve_with(&["--session", "work"])), "work");
}

#[test]
fn a_client_of_mcp_without_a_session_is_apart_from_other_doors_and_hears_that_a_yes_runs_its_call() {
    let env = Env::new();
    env.config("mcp: {wait_ms: 0}\n");
    let gateway = env.serve();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "file_write", "arguments": {"path": "a.txt", "content": "x"}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "alice", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let mut headers = gateway.bearer();
    headers.extend([
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("MCP-Protocol-Version", "2026-07-28".to_owned()),
        ("Mcp-Method", "tools/call".to_owned()),
        ("Mcp-Name", "file_write".to_owned()),
    ]);
    let said = gateway.server.ask("POST", "/mcp", &headers, Some(&body.to_string()));
    assert!(said.text().contains("Approval runs the call; do not call the tool again"), "{}", said.text());
    let asked = gateway.get("/v1/approvals").json()["approvals"][0]["session"].as_str().unwrap().to_owned();
    assert!(asked.starts_with("mcp-"), "{asked}");
}
