//! Calls that become tasks (2026-07-28), in the hands of the Python SDK 2.x.

use crate::run::{gateway, within};
use crate::{Env, HAFT, real_program, script};
use serde_json::{Value, json};

/// Lets the SDK carry out a plan.
pub(crate) fn carry_out(env: &Env, door: Value, rest: Value) -> Value {
    let mut plan = json!({ "name": "one", "act": "answer" });
    for (name, value) in door.as_object().unwrap().iter().chain(rest.as_object().unwrap()) {
        plan[name] = value.clone();
    }
    let mut command = env.command(real_program("HAFT_TEST_PYTHON"), &[]);
    let said = within(90, command.arg(script("python/tasks.py")).arg(plan.to_string()));
    assert_eq!(said.code, Some(0), "{} {}", said.stdout, said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

fn write() -> Value {
    json!({ "tool": "file_write", "args": { "path": "made.txt", "content": "by a task\n" } })
}

fn made(env: &Env) -> Option<String> {
    std::fs::read_to_string(env.root().join("made.txt")).ok()
}

pub(crate) fn waiting_call_becomes_a_task_that_the_person_answers() {
    let env = Env::new();
    let came = carry_out(&env, json!({ "stdio": [HAFT, "mcp"] }), json!({ "call": write() }));
    assert_eq!((&came["version"], &came["created"]["resultType"]), (&json!("2026-07-28"), &json!("task")), "{came:#}");
    assert!(came["created"]["statusMessage"].as_str().unwrap().contains("waiting for approval"), "{came:#}");
    assert_eq!(came["states"], json!(["input_required", "completed"]), "{came:#}");
    assert_eq!(came["end"]["result"]["isError"], false, "{came:#}");
    assert_eq!(made(&env).as_deref(), Some("by a task\n"));
}

pub(crate) fn cancelled_task_takes_its_question_back() {
    let env = Env::new();
    let (door, rest) = (json!({ "stdio": [HAFT, "mcp"] }), json!({ "call": write(), "act": "cancel" }));
    let came = carry_out(&env, door, rest);
    assert_eq!(came["states"], json!(["input_required", "cancelled"]), "{came:#}");
    let listed = within(30, &mut env.command(HAFT, &["approvals", "--json"]));
    assert_eq!((listed.stdout.trim(), made(&env)), ("[]", None));
}

/// Over HTTP a client may go and come back: the task goes on, and somebody else who knows its id learns nothing.
pub(crate) fn task_survives_its_connection_and_belongs_to_its_owner() {
    let env = Env::new();
    let (_server, url, token) = gateway(&env);
    let door = json!({ "http": url, "token": token });
    let came = carry_out(&env, door.clone(), json!({ "call": write(), "act": "leave" }));
    let task = &came["created"]["taskId"];
    let other = carry_out(&env, door.clone(), json!({ "name": "two", "task": task }));
    assert_eq!(other["error"]["code"], -32602, "{other:#}");
    let listed = within(30, &mut env.command(HAFT, &["approvals", "--json"]));
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    assert!(task.as_str().unwrap().len() > id.len() + 30, "an id that cannot be guessed: {task}");
    assert_eq!(within(30, &mut env.command(HAFT, &["approvals", "approve", id])).code, Some(0));
    let end = carry_out(&env, door, json!({ "task": task, "act": "wait" }));
    assert_eq!(
        (&end["end"]["status"], &end["end"]["result"]["isError"]),
        (&json!("completed"), &json!(false)),
        "{end:#}"
    );
    assert_eq!(made(&env).as_deref(), Some("by a task\n"));
}
