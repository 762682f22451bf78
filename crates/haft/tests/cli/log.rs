//! The audit log: everything is in it, and nothing that must not be.

use crate::Env;
use serde_json::json;

#[test]
fn every_call_leaves_its_records_and_the_chain_holds() {
    let env = Env::new();
    env.ok("calc.eval", json!({"expression": "1"}));
    env.ok("file.write", json!({"path": "a.txt", "content": "x"}));
    env.call("file.write", json!({"path": "b.txt"}), &[]);
    env.call("no.such", json!({}), &[]);
    let kinds: Vec<String> = env
        .records()
        .iter()
        .map(|record| {
            format!("{} {}", record["body"]["kind"].as_str().unwrap(), record["body"]["tool"].as_str().unwrap())
        })
        .collect();
    insta::assert_snapshot!(kinds.join("\n"), @r"
    intent calc.eval
    outcome calc.eval
    intent file.write
    outcome file.write
    refused file.write
    refused no.such
    ");
    let verified = env.run(&["log", "verify", "--json"]).json();
    assert_eq!((verified["ok"].as_bool(), verified["head"]["seq"].as_i64()), (Some(true), Some(6)));
}

#[test]
fn bodies_and_secrets_are_not_in_the_store() {
    let env = Env::new();
    let key = format!("ghp_{}", "a1B2".repeat(10));
    env.ok("file.write", json!({"path": "a.txt", "content": "the body of the file"}));
    env.ok("file.read", json!({"path": "a.txt"}));
    env.call("file.grep", json!({"pattern": key, "path": "a.txt"}), &[]);
    env.call("calc.eval", json!({"expression": key}), &[]);
    let text: String = env.records().iter().map(ToString::to_string).collect();
    assert!(text.contains("a.txt"));
    assert!(!text.contains("the body of the file") && !text.contains(&key), "{text}");
}

#[test]
fn a_changed_record_is_named() {
    let env = Env::new();
    for number in 0..3 {
        env.ok("calc.eval", json!({"expression": number.to_string()}));
    }
    let database = rusqlite::Connection::open(env.store()).unwrap();
    database.execute("UPDATE journal SET text = replace(text, 'calc', 'kalk') WHERE seq = 4", []).unwrap();
    let ran = env.run(&["log", "verify"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("broken at record 4"), "{}", ran.stdout);
    assert_eq!(env.run(&["doctor"]).code, 1);
}

#[test]
fn a_noted_head_betrays_a_log_that_was_cut_short() {
    let env = Env::new();
    env.ok("calc.eval", json!({"expression": "1"}));
    let head = env.run(&["log", "head"]).stdout.trim().to_owned();
    let database = rusqlite::Connection::open(env.store()).unwrap();
    database.execute("DELETE FROM journal WHERE seq = 2", []).unwrap();
    assert_eq!(env.run(&["log", "verify"]).code, 0);
    let ran = env.run(&["log", "verify", "--expect", &head]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("the log ends at 1, but went on to 2"), "{}", ran.stdout);
}

#[test]
fn the_records_of_one_call() {
    let env = Env::new();
    let outcome = env.ok("calc.eval", json!({"expression": "1"}));
    let ran = env.run(&["log", outcome["call_id"].as_str().unwrap(), "--json"]);
    assert_eq!(ran.stdout.lines().count(), 2);
    assert_eq!(env.run(&["log", "nothing-such"]).code, 1);
}

#[test]
fn a_store_of_a_newer_version_is_refused_with_a_hint() {
    let env = Env::new();
    env.ok("calc.eval", json!({"expression": "1"}));
    rusqlite::Connection::open(env.store()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let ran = env.run(&["call", "calc.eval", "expression=1"]);
    assert_eq!(ran.code, 7);
    assert!(ran.stderr.contains("written by a newer haft") && ran.stderr.contains("upgrade haft"), "{}", ran.stderr);
}

#[test]
fn a_locked_store_stops_a_call_with_effects() {
    let env = Env::new();
    env.ok("calc.eval", json!({"expression": "1"}));
    let other = rusqlite::Connection::open(env.store()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (kind, message, code) = env.err("file.write", json!({"path": "a.txt", "content": "x"}), &["--yes"]);
    assert_eq!((kind.as_str(), code), ("internal", 7));
    assert!(message.contains("locked by another process"), "{message}");
    assert!(!env.root().join("a.txt").exists(), "what cannot be recorded is not run");
}
