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

#[test]
fn redacted_call_is_gone_and_the_log_still_holds() {
    let env = Env::new();
    let text = "a customer's name";
    for number in 0..3000 {
        env.file(&format!("file-{number:05}-with-quite-a-long-name.txt"), "");
    }
    let outcome = env.ok("file.grep", json!({"pattern": text}));
    let read = env.ok("file.list", json!({}));
    let write = env.ok("file.write", json!({"path": "b.txt", "content": "x"}));
    let [call, read, write] = [&outcome, &read, &write].map(|outcome| outcome["call_id"].as_str().unwrap());
    let outputs = |call: &str| env.store().parent().unwrap().join(format!("outputs/{call}.txt")).exists();
    assert!(outputs(read), "long output is kept whole");
    let head = env.run(&["log", "head"]).stdout.trim().to_owned();
    let done = env.run(&["log", "redact", call, "--why", "a request of theirs", "--json"]).json();
    assert_eq!((&done["records"], &done["outputs"], &done["before_images"]), (&json!(2), &json!(0), &json!(0)));
    assert_eq!(env.run(&["log", "redact", read, "--json"]).json()["outputs"], 1);
    assert!(!outputs(read));
    let verified = env.run(&["log", "verify", "--expect", &head]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    assert!(
        verified.stdout.contains("2 records of") && verified.stdout.contains("a request of theirs"),
        "{}",
        verified.stdout
    );
    let redactions = env.run(&["log", "verify", "--json"]).json()["redactions"].clone();
    assert_eq!((&redactions[0]["call"], &redactions[0]["why"]), (&json!(call), &json!("a request of theirs")));
    let shown = env.run(&["log", call]).stdout;
    assert!(shown.contains("file.grep") && shown.contains("redacted") && !shown.contains(text), "{shown}");
    let mut bytes = std::fs::read(env.store()).unwrap();
    bytes.extend(std::fs::read(env.store().with_extension("db-wal")).unwrap_or_default());
    assert!(!String::from_utf8_lossy(&bytes).contains(text), "the text is gone from the file");
    assert_eq!(env.run(&["undo", write]).code, 0, "before-images stay unless they are named");
    let again = env.run(&["log", "redact", call]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("nothing of"), "{}", again.stderr);
    let database = rusqlite::Connection::open(env.store()).unwrap();
    database.execute("UPDATE journal SET body = '{}', salt = x'00' WHERE seq = 1", []).unwrap();
    assert_eq!(env.run(&["log", "verify"]).code, 1, "what is put back has to be what was there");
}

#[test]
fn before_images_go_if_they_are_named() {
    let env = Env::new();
    env.file("a.txt", "before");
    env.ok("file.read", json!({"path": "a.txt"}));
    let outcome = env.ok("file.write", json!({"path": "a.txt", "content": "after"}));
    let call = outcome["call_id"].as_str().unwrap();
    let done = env.run(&["log", "redact", call, "--before-images", "--json"]).json();
    assert_eq!(done["before_images"], 1, "{done:#}");
    assert_eq!(env.run(&["undo", call]).code, 1);
}

#[test]
fn call_that_waits_for_an_answer_keeps_its_records() {
    let env = Env::new();
    let write = |path: &str| {
        let (outcome, code) = env.call("file.write", json!({"path": path, "content": "x"}), &["--no-input"]);
        assert_eq!(code, 4, "{outcome:#}");
        outcome["call_id"].as_str().unwrap().to_owned()
    };
    let (approved, pending) = (write("a.txt"), write("b.txt"));
    assert_eq!(env.run(&["approvals", "approve", &approved]).code, 0);
    assert_eq!(env.run(&["log", "redact", &approved]).code, 0);
    let shown = env.run(&["approvals", "show", &approved, "--json"]).json();
    assert_eq!((&shown["state"], &shown["outcome"]), (&json!("done"), &json!({"redacted": true})), "{shown:#}");
    let refused = env.run(&["log", "redact", &pending]);
    assert!(refused.code != 0 && refused.stderr.contains("waits for an answer"), "{}", refused.stderr);
    assert!(env.run(&["log", &pending]).stdout.contains("b.txt"));
    assert_eq!(env.run(&["approvals", "reject", &pending]).code, 0);
    assert_eq!(env.run(&["log", "redact", &pending]).code, 0);
}

#[test]
fn trial_is_listed_as_a_trial() {
    let env = Env::new();
    env.call("file.write", json!({"path": "a.txt", "content": "x"}), &["--dry-run"]);
    let listed = env.run(&["log"]).stdout;
    assert!(listed.contains("trial") && !listed.contains("outcome"), "{listed}");
}

#[test]
fn one_record_is_redacted_by_its_number() {
    let env = Env::new();
    env.ok("calc.eval", json!({"expression": "6 * 7"}));
    let done = env.run(&["log", "redact", "1", "--json"]);
    assert_eq!((done.code, &done.json()["records"]), (0, &json!(1)), "{}", done.stderr);
    assert_eq!(env.run(&["log", "verify", "--json"]).json()["ok"], true);
    let none = env.run(&["log", "redact", "4711"]);
    assert!(none.code != 0 && none.stderr.contains("4711"), "{}", none.stderr);
}

#[test]
fn retention_redacts_what_is_older_and_says_so() {
    let env = Env::new();
    env.ok("file.grep", json!({"pattern": "an old secret of ours"}));
    env.config("kept:\n  log_days: 0\n");
    env.ok("calc.eval", json!({"expression": "1"}));
    let verified = env.run(&["log", "verify", "--json"]).json();
    assert_eq!(
        (&verified["ok"], &verified["redactions"][0]["by"]),
        (&json!(true), &json!("retention")),
        "{verified:#}"
    );
    let log: String = env.records().iter().map(ToString::to_string).collect();
    assert!(log.contains("file.grep") && !log.contains("an old secret of ours"), "{log}");
    let none = env.run(&["log", "redact"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("--older-than"), "{}", none.stderr);
}
