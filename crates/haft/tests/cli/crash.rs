//! A process that dies at any stage loses nothing and hides nothing.

use crate::{Env, Ran, snapshot};
use serde_json::json;

/// Runs a write that dies at `stage`.
fn die(env: &Env, stage: &str) {
    let args = json!({"path": "a.txt", "content": "new"}).to_string();
    let output = env.command(&["call", "file.write", &args, "--yes"]).env("HAFT_CRASH_AT", stage).output().unwrap();
    assert_eq!(output.status.code(), None, "it should have died at {stage}: {output:?}");
}

fn prepared() -> Env {
    let env = Env::new();
    env.file("a.txt", "old");
    env.ok("file.read", json!({"path": "a.txt"}));
    env
}

#[test]
fn before_the_intent_nothing_is_known_and_nothing_has_happened() {
    let env = prepared();
    let before = snapshot(&env.root());
    die(&env, "admitted");
    assert_eq!(snapshot(&env.root()), before);
    assert_eq!(env.run(&["log", "verify"]).code, 0);
    assert!(!env.records().iter().any(|record| record["body"]["tool"] == "file.write"));
}

#[test]
fn after_the_intent_the_next_start_says_so_and_the_change_can_be_taken_back() {
    for (stage, content) in [("opened", "old"), ("kept", "old"), ("drafted", "old"), ("applied", "new"), ("ran", "new")]
    {
        let env = prepared();
        let before = snapshot(&env.root());
        die(&env, stage);
        assert_eq!(env.read("a.txt"), content, "{stage}");
        let next = env.run(&["log", "verify"]);
        assert_eq!(next.code, 0, "{stage}: {}", next.stdout);
        assert!(next.stderr.contains("(file.write) was interrupted"), "{stage}: {}", next.stderr);
        assert!(!env.run(&["log", "verify"]).stderr.contains("interrupted"), "reported once");
        let interrupted: Vec<_> =
            env.records().into_iter().filter(|record| record["body"]["kind"] == "interrupted").collect();
        assert_eq!(interrupted.len(), 1, "{stage}");
        let id = interrupted[0]["body"]["call"].as_str().unwrap();
        let undo = env.run(&["undo", id]);
        match stage {
            "opened" => {
                assert!(next.stderr.contains("No change of it is kept"), "{}", next.stderr);
                assert!(undo.stderr.contains("changed no files"), "{}", undo.stderr);
            }
            _ => assert_eq!(undo.code, 0, "{stage}: {}", undo.stderr),
        }
        assert_eq!(snapshot(&env.root()), before, "{stage}");
    }
}

#[test]
fn an_approval_whose_process_died_is_not_run_again() {
    let env = Env::new();
    let (outcome, _) = env.call("file.write", json!({"path": "a.txt", "content": "x"}), &["--no-input"]);
    let id = outcome["call_id"].as_str().unwrap();
    let died = env.command(&["approvals", "approve", id]).env("HAFT_CRASH_AT", "approved").output().unwrap();
    assert_eq!(died.status.code(), None);
    assert_eq!(env.run(&["approvals", "show", id, "--json"]).json()["state"], "approved");
    assert_eq!(env.run(&["approvals", "approve", id]).code, 1);
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn a_killed_call_is_reported_too() {
    let env = Env::new();
    let args = json!({"session": "other"}).to_string();
    env.ok("calc.eval", json!({"expression": "1"}));
    let mut command = env.command(&["call", "session.delete", &args, "--yes"]);
    let died = Ran::from(command.env("HAFT_CRASH_AT", "opened").output().unwrap());
    assert_eq!(died.code, -1);
    assert!(env.run(&["log"]).stderr.contains("(session.delete) was interrupted"));
}
