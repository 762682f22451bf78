//! What is listed in a dialect is what its document declares, and a call in it behaves as it says.

use crate::Env;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn contract(dialect: &str) -> BTreeMap<String, Value> {
    let path = format!("{}/../haft-core/dialects/{dialect}.json", env!("CARGO_MANIFEST_DIR"));
    let parsed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let tools = parsed["tools"].as_array().unwrap();
    tools.iter().map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool.clone())).collect()
}

#[test]
fn a_dialect_lists_its_contract() {
    let env = Env::new();
    let mut shown = Vec::new();
    for dialect in ["flynn", "flyto", "flemma", "nodyn", "glee"] {
        let listed = env.run(&["tools", "--dialect", dialect, "--json"]).json();
        let contract = contract(dialect);
        let tools = listed["tools"].as_array().unwrap();
        for tool in tools {
            assert_eq!(Some(tool), contract.get(tool["name"].as_str().unwrap()), "{dialect}");
        }
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        shown.push(format!("{dialect}: {}", names.join(" ")));
    }
    insta::assert_snapshot!(shown.join("\n"), @r"
    flynn: file.read file.write file.edit file.list shell.exec process.start process.status process.kill process.output process.list web.fetch web.search memory.read memory.write memory.search media.send image.analyze audio.transcribe browser.navigate browser.screenshot system.info sessions.list sessions.delete
    flyto: Bash Read Edit Write Glob Grep WebFetch WebSearch TaskCreate TaskUpdate TaskList Gitignore Agent ToolSearch
    flemma: calculator calculator_async bash read edit write
    nodyn: bash read_file write_file batch_files memory_store memory_recall http_request ask_user api_setup task_create task_update task_list web_research run_pipeline plan_task capture_process promote_process spawn_agent
    glee: glee_tool glee_tool_create glee_tools_list glee_task
    ");
}

fn said(env: &Env, dialect: &str, tool: &str, args: Value) -> Value {
    let (outcome, _) = env.call(tool, args, &["--yes", "--dialect", dialect]);
    outcome
}

#[test]
fn a_call_in_a_dialect_behaves_as_its_document_says() {
    let env = Env::new();
    let path = env.file("a.txt", "one\ntwo\nthree\n");
    // Flyto: absolute paths, lines counted from zero, numbered like cat -n.
    let read = said(&env, "flyto", "Read", json!({"file_path": path, "offset": 1, "limit": 1}));
    assert!(read["output"].as_str().unwrap().starts_with("     2\ttwo\n"), "{read:#}");
    let relative = said(&env, "flyto", "Read", json!({"file_path": "a.txt"}));
    assert_eq!(relative["error"]["kind"], "invalid_input");
    // Flynn: the text as it is.
    assert_eq!(said(&env, "flynn", "file.read", json!({"path": "a.txt"}))["output"], "one\ntwo\nthree\n");
    // Flemma: strict, nullable, labelled, lines counted from one.
    let read = said(&env, "flemma", "read", json!({"label": "why", "path": "a.txt", "offset": 2, "limit": 1}));
    assert!(read["output"].as_str().unwrap().starts_with("two\n"), "{read:#}");
    let missing = said(&env, "flemma", "read", json!({"path": "a.txt"}));
    assert!(
        missing["error"]["message"].as_str().unwrap().contains("/label: expected string, got nothing"),
        "{missing:#}"
    );
    // Each dialect's words for an edit.
    said(&env, "flynn", "file.edit", json!({"path": "a.txt", "search": "one", "replace": "1"}));
    said(&env, "flemma", "edit", json!({"label": "", "path": "a.txt", "oldText": "two", "newText": "2"}));
    said(&env, "flyto", "Edit", json!({"file_path": path, "old_string": "three", "new_string": "3"}));
    assert_eq!(env.read("a.txt"), "1\n2\n3\n");
    // nodyn renames in bulk.
    said(
        &env,
        "nodyn",
        "batch_files",
        json!({"pattern": "*.txt", "directory": ".", "operation": "rename", "rename_to": "$1.md"}),
    );
    assert_eq!(env.read("a.md"), "1\n2\n3\n");
    assert_eq!(said(&env, "flemma", "calculator", json!({"expression": "6*7"}))["output"], "42");
}

#[test]
fn a_foreign_name_is_understood_under_the_canonical_dialect() {
    let env = Env::new();
    let path = env.file("a.txt", "one\ntwo\n");
    for (tool, args) in [
        ("Read", json!({"file_path": path})),
        ("Read", json!({"path": "a.txt"})),
        ("read_file", json!({"path": "a.txt"})),
        ("file_read", json!({"path": "a.txt"})),
    ] {
        assert_eq!(env.ok(tool, args)["tool"], "file.read", "{tool}");
    }
}

#[test]
fn providers_are_told_in_their_own_form() {
    let env = Env::new();
    let form = |provider: &str| env.run(&["tools", "calc.eval", "--provider", provider]).json()[0].clone();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&form("anthropic")), "name description input_schema");
    assert_eq!(keys(&form("gemini")), "name description parameters");
    assert_eq!(keys(&form("openai-chat")["function"]), "name description parameters");
    let openai = form("openai");
    assert_eq!(keys(&openai), "type name description parameters strict");
    assert_eq!(openai["name"], "calc_eval");
    assert_eq!(openai["parameters"]["required"], json!(["expression", "delay_ms"]));
    let all = env.run(&["tools", "--provider", "anthropic"]).json();
    let names: Vec<&str> = all.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted(), "sorted, for the prompt cache: {names:?}");
}
