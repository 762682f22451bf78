//! Questions over HTTP, with the official SDKs: an open one holds up nobody else, and an agent approves nothing for itself.

use crate::run::{agent_token, gateway, haft};
use crate::tour::Client;
use crate::{Env, real_program};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A client that is ended when this is dropped.
struct ClientProcess(Child);

impl Drop for ClientProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a client that leaves the question that it is asked open, and waits until it was asked.
fn leave_question_open(command: &mut Command) -> ClientProcess {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "asked");
    ClientProcess(child)
}

/// A configuration that bridges the reference server with everything, and approves its calls.
fn bridging(env: &Env) {
    let (node, modules) = (real_program("HAFT_TEST_NODE"), real_program("HAFT_TEST_NODE_MODULES"));
    let (node, modules) = (node.display(), modules.display());
    let script = format!("{modules}/@modelcontextprotocol/server-everything/dist/index.js");
    let server = format!("{{command: {node}, args: [{script}, stdio], read: [{modules}]}}");
    env.config(&format!(
        "tools: {{budget_tokens: 0}}\napproval: {{auto_approve: ['mcp:every:*']}}\nmcp: {{servers: {{every: {server}}}}}\n"
    ));
}

/// The name by which a client calls a bridged tool.
fn bridged(tool: &str) -> String {
    format!("mcp__every__{tool}")
}

pub(crate) fn open_questions_of_sessionless_clients_do_not_hold_up_another() {
    let env = Env::new();
    bridging(&env);
    haft(&env, &["mcp", "test", "every", "--json"]);
    let (_server, url, token) = gateway(&env);
    let plan = |answer: Value, calls: Value| json!({ "http": url, "token": token, "answer": answer, "calls": calls });
    let asking = json!({ "tool": bridged("trigger-elicitation-request"), "args": {} });
    let client = Client::Python("auto");
    // More than one conversation may leave open.
    let leave_open = |_| {
        let mut open = client.command(&env, plan("never".into(), json!([asking])));
        leave_question_open(open.env("PYTHONUNBUFFERED", "1"))
    };
    let _open: Vec<ClientProcess> = (0..5).map(leave_open).collect();
    let begun = Instant::now();
    let echo = json!({ "tool": bridged("echo"), "args": { "message": "still here" } });
    let came = client.carry_out(&env, plan(json!({ "name": "Ada" }), json!([echo, asking])));
    assert!(begun.elapsed().as_secs() < 30, "it waited for another client's question");
    assert!(came["calls"][0]["text"].as_str().unwrap().contains("still here"), "{came:#}");
    // Its own question reaches it, and not the client whose question is open.
    assert_eq!(came["asked"].as_array().unwrap().len(), 1, "{came:#}");
    assert!(came["calls"][1]["text"].as_str().unwrap().contains("Ada"), "{came:#}");
}

pub(crate) fn agent_that_offers_forms_does_not_approve_its_own_call() {
    for client in [Client::Python("auto"), Client::Python("legacy"), Client::TypeScript] {
        let env = Env::new();
        env.config("tools: {budget_tokens: 0}\nmcp: {wait_ms: 300}\n");
        let (_server, url, _) = gateway(&env);
        let write = json!({ "tool": "file_write", "args": { "path": "made.txt", "content": "x" } });
        let answer = json!({ "decision": "approve once" });
        let plan = json!({ "http": url, "token": agent_token(&env), "answer": answer, "calls": [write] });
        let came = client.carry_out(&env, plan);
        assert_eq!(came["asked"], json!([]), "{client:?}: {came:#}");
        assert_eq!(came["calls"][0]["error"], true, "{client:?}: {came:#}");
        let waiting = haft(&env, &["approvals", "--json"]);
        let id = waiting[0]["id"].as_str().unwrap_or_else(|| panic!("nothing waits: {waiting:#}"));
        assert!(came["calls"][0]["text"].as_str().unwrap().contains(&format!("approval {id}")), "{came:#}");
        assert!(!env.root().join("made.txt").exists());
    }
}
