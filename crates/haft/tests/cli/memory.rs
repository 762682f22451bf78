//! `haft memory` as people use it.

use crate::Env;
use serde_json::json;
use std::io::Write;
use std::process::Stdio;

/// Writes a document by way of stdin.
fn write(env: &Env, namespace: &str, text: &[u8]) -> (i32, String) {
    let mut command = env.command(&["memory", "write", namespace]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Whoever has read enough hangs up.
    let _ = child.stdin.take().unwrap().write_all(text);
    let output = child.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap(), said)
}

#[test]
fn what_is_kept_is_listed_shown_found_and_forgotten() {
    let env = Env::new();
    assert!(env.run(&["memory"]).stderr.contains("nothing is kept yet"));
    assert_eq!(write(&env, "user", b"# Me\n\nLikes tea.\nLives in Rome.\n").0, 0);
    assert_eq!(env.run(&["memory", "store", "knowledge", "The", "build", "needs", "cmake.", "--tag", "build"]).code, 0);
    let again = env.run(&["memory", "store", "knowledge", "The build needs cmake."]);
    assert!(again.code == 0 && again.stdout.contains("holds that already"), "{}", again.stdout);
    let listed = env.run(&["memory", "list"]);
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.stdout);
    assert_eq!(env.run(&["memory", "show", "user"]).stdout.trim(), "# Me\n\nLikes tea.\nLives in Rome.");
    let found = env.run(&["memory", "search", "where", "does", "she", "live"]);
    assert!(found.stdout.starts_with("user:4  "), "{}", found.stdout);
    let data = env.run(&["memory", "search", "cmake", "--tag", "build", "--since", "1d", "--json"]).json();
    let hit = &data["data"]["results"][0];
    assert_eq!((&hit["namespace"], &hit["line"], &hit["tags"]), (&json!("knowledge"), &json!(1), &json!(["build"])));
    assert!(env.run(&["memory", "recall", "knowledge", "build"]).stdout.contains("cmake"));
    assert_eq!(env.run(&["memory", "reindex"]).code, 0);
    assert_eq!(env.run(&["memory", "forget", "user"]).code, 0);
    assert_eq!(env.run(&["memory", "forget", "user"]).code, 1);
    assert!(env.run(&["memory", "search", "Rome"]).stderr.contains("nothing was found"));
}

#[test]
fn a_change_is_recorded_and_taken_back() {
    let env = Env::new();
    write(&env, "user", b"first\n");
    let done = env.run(&["memory", "store", "user", "second", "--json"]).json();
    let call = done["call_id"].as_str().unwrap();
    assert!(env.run(&["log", "--json"]).stdout.contains(call));
    let undone = env.run(&["undo", call]);
    assert!(undone.code == 0 && undone.stdout.contains("memory user"), "{}{}", undone.stdout, undone.stderr);
    assert_eq!(env.run(&["memory", "show", "user"]).stdout.trim(), "first");
    // What is kept is not in the log.
    assert!(!env.run(&["log", "--json"]).stdout.contains("second"));
}

#[test]
fn a_hundred_megabytes_and_odd_names_are_refused() {
    let env = Env::new();
    let (code, said) = write(&env, "user", &vec![b'x'; 100 << 20]);
    assert!(code == 2 && said.contains("more than 8 MiB"), "{said}");
    assert_eq!(write(&env, "user", b"\xff\xfe").0, 2);
    assert_eq!(write(&env, "../user", b"x").0, 2);
    assert_eq!(env.run(&["memory", "show", "a/../../b"]).code, 2);
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let refused = env.run(&["memory", "store", "user", &key]);
    assert!(refused.code == 2 && !refused.stderr.contains(&key), "{}", refused.stderr);
    let bad = env.run(&["memory", "setup", "--from", "/dev/null"]);
    assert!(bad.code == 1 && bad.stderr.contains("cannot be used"), "{}", bad.stderr);
    assert!(env.run(&["memory", "list", "--json"]).json()["data"]["namespaces"].as_array().unwrap().is_empty());
}

#[test]
fn documents_speak_of_memory_in_their_own_words() {
    let env = Env::new();
    let nodyn = |tool: &str, args: &str| env.run(&["call", tool, args, "--dialect", "nodyn", "--yes"]);
    assert_eq!(nodyn("memory_store", r#"{"namespace": "knowledge", "content": "water is wet"}"#).code, 0);
    let recalled = nodyn("memory_recall", r#"{"namespace": "knowledge"}"#);
    assert!(recalled.stdout.contains("water is wet"), "{}", recalled.stderr);
    let flynn = env.run(&[
        "call",
        "memory.search",
        r#"{"query": "water", "keywordOnly": true, "limit": 3}"#,
        "--dialect",
        "flynn",
    ]);
    assert!(flynn.code == 0 && flynn.stdout.contains("knowledge:1 (keyword"), "{}{}", flynn.stdout, flynn.stderr);
}

#[test]
fn the_real_word_vectors_find_by_meaning() {
    let Some(wheel) = crate::needs::need("HAFT_TEST_WORDLLAMA") else { return };
    let env = Env::new();
    let made = env.run(&["memory", "setup", "--from", wheel.to_str().unwrap()]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    for (name, text) in [
        ("transport", "Drives an old car to the office every day."),
        ("food", "Cooks pasta with tomatoes."),
        ("work", "The compiler reports a type error."),
    ] {
        assert_eq!(write(&env, name, text.as_bytes()).0, 0);
    }
    let first = |query: &str| {
        let data = env.run(&["memory", "search", query, "--json"]).json();
        assert_eq!(data["warnings"], serde_json::Value::Null, "{data}");
        let hit = &data["data"]["results"][0];
        format!("{} {}", hit["namespace"].as_str().unwrap_or("-"), hit["source"].as_str().unwrap_or("-"))
    };
    assert_eq!(first("automobile vehicle"), "transport vector");
    assert_eq!(first("recipe for spaghetti dinner"), "food vector");
    assert_eq!(first("pasta"), "food both");
    // Its words are not those of any word, and still nothing is an error.
    assert_eq!(first("zzzzqqq"), "- -");
}
