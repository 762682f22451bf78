//! What haft's tools give arrives in the model's next request, in every client.

use crate::beside::Page;
use crate::client::{AgentClient, ModelCall, Transcript};
use crate::project::{PIXEL, Project, serve_page};
use crate::trials::for_every_client;
use haft_stub::Asked;
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = for_every_client("results_of_every_kind_reach_the_model", results_reach_the_model);
    trials.extend(for_every_client("headless_question_waits_in_the_inbox", unanswered_question_waits));
    trials
}

fn call(tool: &'static str, args: Value) -> ModelCall {
    ModelCall { tool, args }
}

/// The request after the call with this number, counted from one.
pub(crate) fn request_after(transcript: &Transcript, call: usize) -> &Asked {
    transcript.requests.get(call).unwrap_or_else(|| {
        panic!("the model was asked {} times only:\n{}", transcript.requests.len(), transcript.printed)
    })
}

/// Asserts that the request after a call contains these texts.
pub(crate) fn assert_told(transcript: &Transcript, call: usize, texts: &[&str]) {
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
        call("shell_exec", json!({"command": "printf 'printed-%s\\n' $((40+2)); false"})),
        call("file_grep", json!({"pattern": "needle"})),
        call("tool_call", json!({"name": "web.fetch", "args": {"url": url}})),
        call("tool_call", json!({"name": "system.info", "args": {}})),
        call("file_read", json!({"path": "nowhere.txt"})),
        call("file_read", json!({"path": "dot.png"})),
    ];
    let transcript = client.run(&project, &calls);
    let offered = request_after(&transcript, 0).tools();
    for tool in ["file_read", "file_edit", "shell_exec", "tool_search"] {
        let tool = client.tool_name(tool);
        assert!(offered.contains(&tool), "{client:?} does not offer {tool}: {offered:?}");
    }
    for tool in client.native_tools() {
        assert!(offered.iter().any(|offered| offered == tool), "{client:?} has its own {tool}: {offered:?}");
    }
    assert_told(&transcript, 1, &["hello from a file"]);
    assert_told(&transcript, 2, &["printed-42", "exit status 1"]);
    assert_told(&transcript, 3, &["notes.txt:2:a needle-3381 \"here\""]);
    assert_told(&transcript, 4, &["a page about quokkas"]);
    assert_told(&transcript, 5, &["Error (denied)", "its deny list holds `system.info`"]);
    assert_told(&transcript, 6, &["Error (not_found)", "nowhere.txt does not exist"]);
    let request = &request_after(&transcript, 7).body;
    assert!(has_image(request), "{client:?} does not show the model an image: {request:#}");
}

/// Whether a request shows the pixel as an image of its wire format, and not as text.
fn has_image(body: &Value) -> bool {
    let is_image = |kind: &Value| kind == "image" || kind == "input_image" || kind == "image_url";
    match body {
        Value::Object(fields) if fields.get("type").is_some_and(is_image) => body.to_string().contains(PIXEL),
        Value::Object(fields) if fields.contains_key("inlineData") => fields["inlineData"]["data"] == PIXEL,
        Value::Object(fields) => fields.values().any(has_image),
        Value::Array(items) => items.iter().any(has_image),
        _ => false,
    }
}

/// A write that nobody can approve in a headless run: it waits in the inbox, and the model is told so, with the address of the
/// question on the page.
fn unanswered_question_waits(client: AgentClient) {
    let project = Project::new(1);
    let page = Page::serve(&project);
    let write = call("file_write", json!({"path": "new.txt", "content": "x"}));
    let transcript = client.run(&project, &[write]);
    let waiting = project.haft(&["approvals", "--json"]);
    let id = waiting[0]["id"].as_str().unwrap_or_else(|| panic!("nothing waits: {}", transcript.printed));
    assert_told(&transcript, 1, &[&format!("approval {id}"), &format!("{}#/inbox/{id}", page.address)]);
    assert!(!project.root().join("new.txt").exists());
}
