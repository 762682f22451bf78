//! Questions that nobody could answer at once, and what was allowed beforehand.

use crate::Env;
use serde_json::{Value, json};

fn ask(env: &Env) -> String {
    let (outcome, code) = env.call("file.write", json!({"path": "a.txt", "content": "hello"}), &["--no-input"]);
    assert_eq!(code, 4);
    assert_eq!(outcome["error"]["kind"], "approval_required");
    outcome["error"]["details"]["approval_id"].as_str().unwrap().to_owned()
}

#[test]
fn an_unanswered_question_is_approved_later_by_another_process_exactly_once() {
    let env = Env::new();
    let id = ask(&env);
    assert!(!env.root().join("a.txt").exists());
    let listed = env.run(&["approvals", "--json"]).json();
    assert_eq!(listed[0]["id"], id.as_str());
    let tries: Vec<i32> = std::thread::scope(|scope| {
        let tries: Vec<_> =
            (0..5).map(|_| scope.spawn(|| env.run(&["approvals", "approve", &id, "--json"]).code)).collect();
        tries.into_iter().map(|attempt| attempt.join().unwrap()).collect()
    });
    assert_eq!(tries.iter().filter(|code| **code == 0).count(), 1, "{tries:?}");
    assert_eq!(env.read("a.txt"), "hello");
    let shown = env.run(&["approvals", "show", &id, "--json"]).json();
    assert_eq!((shown["state"].as_str(), &shown["outcome"]["success"]), (Some("done"), &Value::Bool(true)));
    assert_eq!(shown["outcome"]["call_id"], id.as_str());
}

#[test]
fn a_waiting_call_is_shown_with_its_effect() {
    let env = Env::new();
    let id = ask(&env);
    let shown = env.run(&["approvals", "show", &id]).stdout;
    assert!(shown.contains("file.write: a.txt") && shown.contains("+hello"), "{shown}");
}

#[test]
fn a_request_that_waits_is_shown_with_its_body_but_not_with_its_keys() {
    let env = Env::new();
    let key = format!("AKIA{}", "Z7Q3M5N2K8R4T6W1");
    let body = json!({"order": "apples\u{1b}[2J", "key": key, "note": "x".repeat(300)});
    let args = json!({"method": "POST", "url": "https://shop.example/orders", "body": body});
    let (asked, code) = env.call("web.request", args, &["--no-input"]);
    assert_eq!(code, 4, "{asked:#}");
    let id = asked["error"]["details"]["approval_id"].as_str().unwrap();
    let shown = env.run(&["approvals", "show", id]).stdout;
    assert!(shown.contains("it sends:") && shown.contains("apples"), "{shown}");
    assert!(shown.matches('x').count() >= 300, "a long line is broken, not cut: {shown}");
    assert!(!shown.contains("    at \n"), "{shown}");
    let value = env.run(&["approvals", "show", id, "--json"]).json();
    assert!(value["body"].as_str().unwrap().contains("apples"), "{value:#}");
    for text in [shown, value.to_string()] {
        assert!(!text.contains(&key) && !text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn a_rejected_question_never_runs() {
    let env = Env::new();
    let id = ask(&env);
    assert_eq!(env.run(&["approvals", "reject", &id, "--message", "not now"]).code, 0);
    let late = env.run(&["approvals", "approve", &id]);
    assert_eq!(late.code, 1);
    assert!(late.stderr.contains("has been decided already"), "{}", late.stderr);
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn a_deny_that_came_in_the_meantime_still_counts() {
    let env = Env::new();
    let id = ask(&env);
    env.config("deny: [\"file.write\"]\n");
    let ran = env.run(&["approvals", "approve", &id, "--json"]);
    assert_eq!((ran.code, ran.json()["error"]["kind"].as_str().unwrap()), (3, "denied"));
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn an_approval_belongs_to_its_project() {
    let env = Env::new();
    let id = ask(&env);
    let elsewhere = env.dir.path().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let ran = env.run(&["approvals", "approve", &id, "--root", elsewhere.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("belongs to the project"), "{}", ran.stderr);
}

#[test]
fn a_grant_covers_its_pattern_and_is_used_up() {
    let env = Env::new();
    assert_eq!(env.run(&["approvals", "grant", "file.write", "notes/*", "--uses", "2"]).code, 0);
    let write = |path: &str| env.call("file.write", json!({"path": path, "content": "x"}), &["--no-input"]);
    let (outcome, code) = write("notes/a.md");
    assert_eq!((code, outcome["verdict"]["by"].as_str().unwrap()), (0, "grant"));
    assert_eq!(write("other.md").1, 4, "another place");
    assert_eq!(write("notes/deep/b.md").1, 4, "* stays within a segment");
    assert_eq!(write("notes/b.md").1, 0);
    assert_eq!(write("notes/c.md").1, 4, "used up");
    assert!(env.records().iter().any(|record| record["body"]["said"] == "exhausted"), "and the log says so");
}

#[test]
fn a_grant_expires() {
    let env = Env::new();
    env.run(&["approvals", "grant", "file.write", "a.txt", "--for", "1s"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(env.call("file.write", json!({"path": "a.txt", "content": "x"}), &["--no-input"]).1, 4);
}

#[test]
fn a_grant_that_is_too_broad_is_refused() {
    let env = Env::new();
    let ran = env.run(&["approvals", "grant", "file.write", "**"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("is too broad: it would also allow `/etc/passwd`"), "{}", ran.stderr);
}

#[test]
fn a_grant_for_a_place_outside_the_project_counts_there() {
    let env = Env::new();
    env.config("approval:\n  auto_approve: [\"$default\"]\n");
    let outside = env.dir.path().join("outside.txt");
    let args = json!({"path": outside, "content": "x"});
    assert_eq!(env.call("file.write", args.clone(), &["--no-input"]).1, 4, "a list is for the project");
    env.run(&["approvals", "grant", "file.write", outside.canonicalize().unwrap_or(outside).to_str().unwrap()]);
    assert_eq!(env.call("file.write", args, &["--no-input"]).1, 0);
}
