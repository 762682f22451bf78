//! Calls that become tasks, message by message.

use crate::{Client, Env, newest, text};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LONG: &str = "mcp: {wait_ms: 60000}\n";

/// The metadata of a client that knows tasks.
fn with_tasks(mut capabilities: Value) -> Value {
    capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    newest(capabilities)
}

/// A call that has become a task.
fn begin(client: &mut Client, capabilities: Value) -> Value {
    let arguments = json!({"path": "a.txt", "content": "hello"});
    let params = json!({"name": "file_write", "arguments": arguments, "_meta": with_tasks(capabilities)});
    let answer = client.ask("tools/call", params);
    assert_eq!(answer["result"]["resultType"], "task", "{answer:#}");
    answer["result"].clone()
}

fn ask(client: &mut Client, method: &str, task: &Value, more: Value) -> Value {
    let mut params = json!({"taskId": task["taskId"], "_meta": with_tasks(json!({}))});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    client.ask(method, params)
}

/// Asks how a task is until it is over.
fn end(client: &mut Client, task: &Value) -> Value {
    for _ in 0..600 {
        let state = ask(client, "tasks/get", task, json!({}))["result"].clone();
        if !["working", "input_required"].contains(&state["status"].as_str().unwrap()) {
            return state;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the task does not end")
}

#[test]
fn instant_answer_to_a_task_is_not_a_person_and_its_question_stays() {
    let env = Env::with(LONG);
    let mut client = env.spawn(&[]);
    let task = begin(&mut client, json!({"elicitation": {}}));
    // It counts from when the client was given the question, not from when the call asked it.
    std::thread::sleep(crate::READING_TIME);
    let yes = json!({"action": "accept", "content": {"decision": "approve once"}});
    for _ in 0..2 {
        let state = ask(&mut client, "tasks/get", &task, json!({}))["result"].clone();
        let (key, request) = state["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert!(request["params"]["message"].as_str().unwrap().contains("+hello"), "{state:#}");
        let given = json!({"taskId": task["taskId"], "_meta": with_tasks(json!({})), "inputResponses": {key: yes}});
        client.next += 1;
        let id = client.next;
        client.send_instantly(json!({"jsonrpc": "2.0", "id": id, "method": "tasks/update", "params": given}));
        assert_eq!(client.answer(id)["result"]["resultType"], "complete");
        std::thread::sleep(Duration::from_millis(100));
    }
    let state = ask(&mut client, "tasks/get", &task, json!({}))["result"].clone();
    assert_eq!(state["status"], "working", "{state:#}");
    let id = env.json(&["approvals", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert!(state["statusMessage"].as_str().unwrap().contains(&id), "{state:#}");
    assert!(!env.root().join("a.txt").exists());
    assert!(env.run(&["approvals", "approve", &id]).status.success());
    let state = end(&mut client, &task);
    assert_eq!((&state["status"], &state["result"]["isError"]), (&json!("completed"), &json!(false)), "{state:#}");
    assert_eq!(std::fs::read_to_string(env.root().join("a.txt")).unwrap(), "hello");
}

#[test]
fn call_that_runs_longer_than_thirty_seconds_becomes_a_task() {
    let env = Env::with("approval: {auto_approve: [shell.exec]}\nshell: {background_after_ms: 120000}\n");
    let mut client = env.spawn(&[]);
    let arguments = json!({"command": "sleep 34; echo slept-well", "timeout_ms": 120_000});
    let meta = with_tasks(json!({"elicitation": {}}));
    let began_at = Instant::now();
    let created = client.ask("tools/call", json!({"name": "shell_exec", "arguments": arguments, "_meta": meta}));
    let task = created["result"].clone();
    assert_eq!(task["resultType"], "task", "{created:#}");
    assert!(began_at.elapsed() >= Duration::from_secs(30), "it became a task after {:?}", began_at.elapsed());
    assert_eq!(task["status"], "working", "{task:#}");
    assert!(task["statusMessage"].as_str().unwrap().starts_with("running: shell_exec: $ sleep 34"), "{task:#}");
    let state = end(&mut client, &task);
    assert_eq!((&state["status"], &state["result"]["isError"]), (&json!("completed"), &json!(false)), "{state:#}");
    assert!(text(&state["result"]).contains("slept-well"), "{state:#}");

    // One that is over sooner never is one.
    let arguments = json!({"command": "echo at-once"});
    let meta = with_tasks(json!({"elicitation": {}}));
    let short = client.ask("tools/call", json!({"name": "shell_exec", "arguments": arguments, "_meta": meta}));
    assert!(text(&short["result"]).contains("at-once"), "{short:#}");
}

#[test]
fn rejected_task_completes_with_the_refusal() {
    let env = Env::with(LONG);
    let mut client = env.spawn(&[]);
    let task = begin(&mut client, json!({"elicitation": {}}));
    let key = "approval";
    ask(&mut client, "tasks/get", &task, json!({}));
    ask(&mut client, "tasks/update", &task, json!({"inputResponses": {key: {"action": "decline"}}}));
    let state = end(&mut client, &task);
    assert_eq!((&state["status"], &state["result"]["isError"]), (&json!("completed"), &json!(true)), "{state:#}");
    assert!(text(&state["result"]).contains("rejected"), "{state:#}");
    let late = json!({"inputResponses": {key: {"action": "accept", "content": {"decision": "approve once"}}}});
    assert_eq!(ask(&mut client, "tasks/update", &task, late)["result"]["resultType"], "complete");
    assert_eq!(ask(&mut client, "tasks/cancel", &task, json!({}))["result"]["resultType"], "complete");
    assert_eq!(end(&mut client, &task)["status"], "completed", "what is over stays as it is");
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn task_ends_with_its_connection_over_stdio() {
    let env = Env::with(LONG);
    let mut client = env.spawn(&[]);
    begin(&mut client, json!({"elicitation": {}}));
    assert_eq!(client.leave(), 0);
    assert_eq!(env.json(&["approvals", "--json"]), json!([]));
    assert!(env.records().iter().any(|record| record["body"]["error"]["kind"] == "cancelled"));
}

#[test]
fn task_is_offered_only_to_clients_that_know_tasks() {
    let env = Env::with(LONG);
    let mut client = env.spawn(&[]);
    let mut params = json!({"taskId": "made-up", "_meta": newest(json!({}))});
    assert_eq!(client.ask("tasks/get", params.clone())["error"]["code"], -32021);
    params["_meta"] = with_tasks(json!({}));
    for method in ["tasks/get", "tasks/cancel"] {
        assert_eq!(client.ask(method, params.clone())["error"]["code"], -32602);
    }
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(client.ask(method, params.clone())["error"]["code"], -32601);
    }
    let older = env.spawn(&[]).initialize("2025-11-25", json!({}));
    assert_eq!(older["capabilities"].get("extensions"), None, "{older:#}");
}
