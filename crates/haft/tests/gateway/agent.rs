//! agent.send: a conversation with a model through the gateway.

use crate::{Env, until};
use haft_stub::{Reply, Stub, Wire};
use serde_json::{Value, json};
use std::time::Duration;

fn scene(stub: &Stub) -> Env {
    let env = Env::new();
    let url = stub.base(Wire::Responses);
    env.config(&format!(
        "models:\n  use: [stub/stub-1]\n  providers:\n    stub: {{wire: responses, url: \"{url}\"}}\n"
    ));
    env
}

fn names(events: &[Value]) -> Vec<String> {
    let mut names: Vec<String> =
        events.iter().map(|event| event["event"].as_str().unwrap_or_default().to_owned()).collect();
    names.dedup();
    names
}

#[test]
fn what_happens_is_told_as_it_happens_and_what_is_asked_is_in_the_inbox() {
    let stub = Stub::start(vec![
        Reply::say("I write.").and_call("file_write", json!({"path": "a.txt", "content": "written\n"})),
        Reply::say("It is written."),
    ]);
    let env = scene(&stub);
    let gateway = env.serve();
    let mut socket = gateway.socket();
    socket.send(json!({"id": 1, "method": "agent.send", "params": {"session": "mine", "message": "Write it."}}));
    let id = until(|| {
        let waiting = gateway.get("/v1/approvals").json();
        waiting["approvals"][0]["id"].as_str().map(str::to_owned)
    });
    let decided =
        gateway.rpc(json!({"id": 2, "method": "approvals.resolve", "params": {"id": id, "decision": "once"}}));
    assert_eq!(decided["result"]["success"], true, "{decided:#}");
    let (events, answer) = socket.answered(1);
    assert_eq!(answer["result"]["text"], "It is written.", "{answer:#}");
    assert_eq!((&answer["result"]["ended"]["end"], env.read("a.txt").as_str()), (&json!("done"), "written\n"));
    let all = names(&events);
    for name in ["start", "content", "tool_start", "tool_end", "usage", "done"] {
        assert!(all.iter().any(|one| one == name), "{name} in {all:?}");
    }
    assert!(events.iter().all(|event| event["id"] == 1));
    let words: String = events
        .iter()
        .filter(|event| event["event"] == "content")
        .filter_map(|event| event["data"]["text"].as_str())
        .collect();
    assert_eq!(words, "I write.It is written.");
    assert_eq!(stub.faults(), Vec::<String>::new());
}

#[test]
fn one_session_is_one_conversation_and_others_do_not_wait() {
    let stub = Stub::with(|asked| {
        let slow = if asked.says("slowly") { 40 } else { 0 };
        Reply::say(format!("{} heard", asked.body["input"].as_array().map_or(0, Vec::len)))
            .slow(Duration::from_millis(slow))
    });
    let env = scene(&stub);
    let gateway = env.serve();
    let mut socket = gateway.socket();
    for (id, session, message) in [(1, "a", "slowly"), (2, "a", "and then"), (3, "b", "quickly")] {
        socket.send(json!({"id": id, "method": "agent.send", "params": {"session": session, "message": message}}));
    }
    let mut ends = Vec::new();
    while ends.len() < 3 {
        let value = socket.next();
        if value.get("event").is_none() {
            ends.push((value["id"].as_i64().unwrap(), value["result"]["text"].as_str().unwrap_or_default().to_owned()));
        }
    }
    let order: Vec<i64> = ends.iter().map(|(id, _)| *id).collect();
    assert_eq!(order, [3, 1, 2], "{ends:?}");
    assert_eq!(ends[2].1, "3 heard", "the second one knows what was said before");
}

#[test]
fn it_is_cancelled_and_can_go_on() {
    let stub = Stub::with(|asked| {
        if asked.says("once more") {
            Reply::say("Here I am.")
        } else {
            Reply::say("word ".repeat(400)).slow(Duration::from_millis(50))
        }
    });
    let env = scene(&stub);
    let gateway = env.serve();
    let mut socket = gateway.socket();
    socket.send(json!({"id": 1, "method": "agent.send", "params": {"session": "mine", "message": "Talk."}}));
    while socket.next()["event"] != "content" {}
    let cancelled = gateway.rpc(json!({"id": 2, "method": "agent.cancel", "params": {"session": "mine"}}));
    assert_eq!(cancelled["result"]["conversation"], true, "{cancelled}");
    let (_, answer) = socket.answered(1);
    assert_eq!(answer["result"]["ended"]["end"], "cancelled", "{answer:#}");
    let again =
        gateway.rpc(json!({"id": 3, "method": "agent.send", "params": {"session": "mine", "message": "once more"}}));
    assert_eq!(again["result"]["text"], "Here I am.", "{again:#}");
    assert_eq!(stub.faults(), Vec::<String>::new());
}

#[test]
fn nonsense_is_said_to_be_some_and_agents_cannot_spend_the_owners_money() {
    let stub = Stub::start(Vec::new());
    let env = scene(&stub);
    let gateway = env.serve();
    let ask = |params: Value| gateway.rpc(json!({"id": 1, "method": "agent.send", "params": params}));
    assert_eq!(ask(json!({"message": "  "}))["error"]["code"], -32602);
    assert_eq!(ask(json!({}))["error"]["code"], -32602);
    assert_eq!(ask(json!({"message": "x", "model": "gpt"}))["error"]["code"], -32602);
    assert!(stub.asked().is_empty());
}
