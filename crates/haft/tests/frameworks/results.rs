//! What haft's tools give arrives in the model's next request, in every framework and through both doors.

use crate::framework::{Door, Framework, ModelCall, examples, for_every_framework, repository};
use crate::project::{PIXEL, Project, serve_page};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = for_every_framework("results_reach_the_model", results_reach_the_model);
    trials.push(Trial::test("documentation_shows_the_examples_that_are_tested", || {
        documentation_shows_examples();
        Ok(())
    }));
    trials
}

fn documentation_shows_examples() {
    let page = std::fs::read_to_string(repository().join("docs/frameworks.md")).unwrap();
    for framework in Framework::ALL {
        let example = framework.example();
        let text = std::fs::read_to_string(examples().join(example)).unwrap();
        assert!(page.contains(&text), "docs/frameworks.md does not show {example} as it is");
    }
}

fn call(tool: &'static str, args: Value) -> ModelCall {
    ModelCall { tool, args }
}

fn results_reach_the_model(framework: Framework, door: Door) {
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
        call("file_write", json!({"path": "new.txt", "content": "x"})),
    ];
    let Some(transcript) = framework.run(&project, door, &calls) else { return };
    let tools = transcript.request_after(0).tools();
    for tool in ["file_read", "file_edit", "shell_exec", "tool_search"] {
        assert!(tools.iter().any(|name| name == tool), "{framework:?} does not offer {tool}: {tools:?}");
    }
    transcript.assert_told(1, &["hello from a file"]);
    transcript.assert_told(2, &["printed-42", "exit status 1"]);
    transcript.assert_told(3, &["notes.txt:2:a needle-3381"]);
    transcript.assert_told(4, &["a page about quokkas"]);
    transcript.assert_told(5, &["Error (denied)"]);
    transcript.assert_told(6, &["Error (not_found)", "nowhere.txt"]);
    transcript.assert_told(7, &["dot.png", "image/png"]);
    let has_image = has_image(&transcript.request_after(7).body);
    assert_eq!(has_image, framework.shows_images(), "{:#}", transcript.request_after(7).body);
    // Nobody is there who could approve: the call waits, and the model is told where.
    let waiting = project.haft(&["approvals", "--json"]);
    let id = waiting[0]["id"].as_str().unwrap_or_else(|| panic!("nothing waits: {waiting:#}"));
    transcript.assert_told(8, &[&format!("approval {id}")]);
    assert!(!project.root().join("new.txt").exists());
}

/// Whether the request shows the pixel as an image, and not as text.
fn has_image(body: &Value) -> bool {
    let is_image = |kind: &Value| kind == "input_image" || kind == "image_url";
    match body {
        Value::Object(fields) if fields.get("type").is_some_and(is_image) => body.to_string().contains(PIXEL),
        Value::Object(fields) => fields.values().any(has_image),
        Value::Array(items) => items.iter().any(has_image),
        _ => false,
    }
}
