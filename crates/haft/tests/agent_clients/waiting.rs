//! A call that waits for approval tells the client so, every few seconds: the client asks for progress and gets it.

use crate::beside::recorded;
use crate::client::{AgentClient, HaftEntry, ModelCall};
use crate::project::Project;
use crate::trials::for_clients;
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub(crate) fn trials() -> Vec<Trial> {
    // Claude Code gets an MCP task instead, and asks how it is (`tests/agent_screens/tasks.rs`).
    let clients = [AgentClient::Codex, AgentClient::GeminiCli, AgentClient::Opencode, AgentClient::Goose];
    for_clients(&clients, "waiting_call_is_told_as_progress", waiting_call_is_told)
}

/// Longer than the five seconds after which haft says again that the call waits.
const WAIT_MS: u64 = 6500;

fn waiting_call_is_told(client: AgentClient) {
    let project = Project::new(1);
    project.write("home/.config/haft/config.yml", &format!("mcp: {{wait_ms: {WAIT_MS}, elicitation: false}}\n"));
    let write = ModelCall { tool: "file_write", args: json!({"path": "new.txt", "content": "x"}) };
    let transcript = client.run_with(&project, &[write], HaftEntry::Recorded);
    let (sent, received) = recorded(&project);
    let call =
        sent.iter().find(|message| message["method"] == "tools/call" && message["params"]["name"] == "file_write");
    let call = call.unwrap_or_else(|| panic!("no call: {}", transcript.printed));
    let token = &call["params"]["_meta"]["progressToken"];
    assert!(!token.is_null(), "{client:?} asks for no progress: {call:#}");

    let id = project.haft(&["approvals", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let is_told = |message: &&Value| {
        message["method"] == "notifications/progress" && message["params"]["progressToken"] == *token
    };
    let told: Vec<&Value> = received.iter().filter(is_told).map(|message| &message["params"]).collect();
    let waits = format!("waiting for approval {id}: ");
    assert!(told.iter().all(|told| told["message"].as_str().unwrap().starts_with(&waits)), "{told:#?}");
    let numbers: Vec<f64> = told.iter().map(|told| told["progress"].as_f64().unwrap()).collect();
    assert!(numbers.len() >= 2 && numbers.is_sorted_by(|one, next| one < next), "at once, and again: {told:#?}");
    // The client waited all that time for the result, and gave it to its model.
    let answer = received.iter().position(|message| message["id"] == call["id"]).unwrap();
    let last = received.iter().rposition(|message| is_told(&message)).unwrap();
    assert!(last < answer, "no progress after the result");
    assert!(transcript.requests.get(1).is_some_and(|asked| asked.says(&id)), "{}", transcript.printed);
}
