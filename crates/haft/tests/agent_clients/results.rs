//! What haft's tools give arrives in the model's next request, in every client.

use crate::client::{AgentClient, ModelCall, Transcript};
use crate::project::{PIXEL, Project, serve_page};
use haft_stub::Asked;
use serde_json::{Value, json};

fn call(tool: &'static str, args: Value) -> ModelCall {
    ModelCall { tool, args }
}

/// The request after the call with this number, counted from one.
fn request_after(transcript: &Transcript, call: usize) -> &Asked {
    transcript.requests.get(call).unwrap_or_else(|| {
        panic!("the model was asked {} times only:\n{}", transcript.requests.len(), transcript.printed)
    })
}

/// Asserts that the request after a call contains these texts.
fn assert_told(transcript: &Transcript, call: usize, texts: &[&str]) {
    let request = request_after(transcript, call);
    for text in texts {
        assert!(request.says(text), "{text:?} is not in the request after call {call}:\n{:#}", request.body);
    }
}

fn results_reach_the_model(client: AgentClient) {
    let port = serve_page();
    let project = Project::new(port);
    let url = format!("http://127.0.0.1:{port}/");
    let calls = [
        call("file_read", json!({"path": "hello.txt"})),
        call("shell_exec", json!({"command": "echo printed-by-echo; false"})),
        call("file_grep", json!({"pattern": "needle"})),
        call("tool_call", json!({"name": "web.fetch", "args": {"url": url}})),
        call("tool_call", json!({"name": "system.info", "args": {}})),
        call("file_read", json!({"path": "nowhere.txt"})),
        call("file_read", json!({"path": "dot.png"})),
    ];
    let Some(transcript) = client.run(&project, &calls) else { return };
    for tool in ["file_read", "file_edit", "shell_exec", "tool_search"] {
        let tools = request_after(&transcript, 0).body["tools"].to_string();
        assert!(tools.contains(tool), "{client:?} does not offer {tool}: {tools}");
    }
    assert_told(&transcript, 1, &["hello from a file"]);
    assert_told(&transcript, 2, &["printed-by-echo", "exit status 1"]);
    assert_told(&transcript, 3, &["notes.txt:2:a needle-3381 \"here\""]);
    assert_told(&transcript, 4, &["a page about quokkas"]);
    assert_told(&transcript, 5, &["Error (denied)"]);
    assert_told(&transcript, 6, &["Error (not_found)"]);
    assert_told(&transcript, 7, &[PIXEL]);
}

/// A write that nobody can approve in a headless run: it waits in the inbox, and the model is told so.
fn unanswered_question_waits(client: AgentClient) {
    let project = Project::new(1);
    let write = call("file_write", json!({"path": "new.txt", "content": "x"}));
    let Some(transcript) = client.run(&project, &[write]) else { return };
    let waiting = project.haft(&["approvals", "--json"]);
    let id = waiting[0]["id"].as_str().unwrap_or_else(|| panic!("nothing waits: {}", transcript.printed));
    assert_told(&transcript, 1, &[&format!("approval {id}")]);
    assert!(!project.root().join("new.txt").exists());
}

mod claude_code {
    use super::{AgentClient, results_reach_the_model, unanswered_question_waits};

    #[test]
    fn results_of_every_kind_reach_the_model() {
        results_reach_the_model(AgentClient::ClaudeCode);
    }

    #[test]
    fn headless_question_waits_in_the_inbox() {
        unanswered_question_waits(AgentClient::ClaudeCode);
    }
}

mod gemini_cli {
    use super::{AgentClient, results_reach_the_model, unanswered_question_waits};

    #[test]
    fn results_of_every_kind_reach_the_model() {
        results_reach_the_model(AgentClient::GeminiCli);
    }

    #[test]
    fn headless_question_waits_in_the_inbox() {
        unanswered_question_waits(AgentClient::GeminiCli);
    }
}

mod opencode {
    use super::{AgentClient, results_reach_the_model, unanswered_question_waits};

    #[test]
    fn results_of_every_kind_reach_the_model() {
        results_reach_the_model(AgentClient::Opencode);
    }

    #[test]
    fn headless_question_waits_in_the_inbox() {
        unanswered_question_waits(AgentClient::Opencode);
    }
}

mod goose {
    use super::{AgentClient, results_reach_the_model};

    #[test]
    fn results_of_every_kind_reach_the_model() {
        results_reach_the_model(AgentClient::Goose);
    }
}
