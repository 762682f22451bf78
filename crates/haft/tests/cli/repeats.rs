//! Lines of a batch whose calls have ids of the caller's own: sent again, from whatever process, they are made once.

use crate::{Env, Ran};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Child, Stdio};

/// Starts a batch of one line.
fn start(env: &Env, line: &Value, crash_at: Option<&str>) -> Child {
    let mut command = env.command(&["batch", "-", "--yes"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(stage) = crash_at {
        command.env("HAFT_CRASH_AT", stage);
    }
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    child
}

fn ended(child: Child) -> Value {
    let ran = Ran::from(child.wait_with_output().unwrap());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("no outcome: {} {}", ran.stdout, ran.stderr))
}

fn send(env: &Env, line: &Value) -> Value {
    ended(start(env, line, None))
}

fn writing(content: &str) -> Value {
    json!({"tool": "file.write", "args": {"path": "a.txt", "content": content}, "call_id": "mine-1"})
}

fn intents(env: &Env) -> usize {
    env.records().iter().filter(|record| record["body"]["kind"] == "intent").count()
}

#[test]
fn line_that_is_sent_again_gives_the_first_outcome() {
    let env = Env::new();
    let first = send(&env, &writing("one"));
    assert_eq!((&first["success"], &first["call_id"]), (&json!(true), &json!("mine-1")), "{first:#}");
    env.file("a.txt", "mine");
    assert_eq!(send(&env, &writing("one")), first);
    let other = send(&env, &writing("two"));
    assert_eq!(other["error"]["kind"], "conflict", "{other:#}");
    assert_eq!((env.read("a.txt").as_str(), intents(&env)), ("mine", 1));
    let log = env.run(&["log", "mine-1"]);
    assert!(log.code == 0 && log.stdout.contains("file.write"), "{}", log.stdout);
    assert_eq!(env.run(&["log", "verify"]).code, 0);
}

#[test]
fn id_that_is_none_or_looks_like_one_of_hafts_is_refused() {
    let env = Env::new();
    let generated = env.ok("calc.eval", json!({"expression": "1"}))["call_id"].clone();
    for id in [&generated, &json!("run-1"), &json!("a b"), &json!("")] {
        let line = json!({"tool": "calc.eval", "args": {"expression": "1"}, "call_id": id});
        let outcome = send(&env, &line);
        assert_eq!((&outcome["error"]["kind"], &outcome["success"]), (&json!("invalid_input"), &json!(false)), "{id}");
    }
}

#[test]
fn two_processes_that_send_the_same_line_at_once_make_one_call() {
    let env = Env::new();
    let line = json!({"tool": "calc.eval", "args": {"expression": "6 * 7", "delay_ms": 1500}, "call_id": "mine-1"});
    let both = [start(&env, &line, None), start(&env, &line, None)].map(ended);
    assert_eq!(both[0], both[1]);
    assert_eq!((&both[0]["output"], intents(&env)), (&json!("42"), 1));
}

#[test]
fn call_whose_process_died_is_interrupted_and_not_made_again() {
    for (stage, content) in [("admitted", None), ("opened", None), ("ran", Some("one"))] {
        let env = Env::new();
        let died = start(&env, &writing("one"), Some(stage)).wait_with_output().unwrap();
        assert_eq!(died.status.code(), None, "it should have died at {stage}: {died:?}");
        for _ in 0..2 {
            let again = send(&env, &writing("one"));
            assert_eq!(again["error"]["details"], json!({"interrupted": true}), "{stage}: {again:#}");
            let there = std::fs::read_to_string(env.root().join("a.txt")).ok();
            assert_eq!(there.as_deref(), content, "{stage}");
        }
    }
}

#[test]
fn redacted_call_is_not_made_again() {
    let env = Env::new();
    send(&env, &writing("one"));
    std::fs::remove_file(env.root().join("a.txt")).unwrap();
    assert_eq!(env.run(&["log", "redact", "mine-1"]).code, 0);
    let again = send(&env, &writing("one"));
    assert_eq!((&again["error"]["kind"], env.root().join("a.txt").exists()), (&json!("conflict"), false), "{again:#}");
    assert_eq!(env.run(&["log", "verify"]).code, 0);
}
