//! `haft session`: who was there, what they did, and forgetting one.

use crate::Env;
use serde_json::json;

#[test]
fn sessions_are_listed_shown_and_forgotten() {
    let env = Env::new();
    for (session, expression) in [("red", "1 + 1"), ("red", "2 +"), ("blue", "3")] {
        env.call("calc.eval", json!({ "expression": expression }), &["--session", session]);
    }
    let listed = env.run(&["session"]);
    let rows: Vec<&str> = listed.stdout.lines().collect();
    assert!(rows[0].starts_with("SESSION  CALLS  SINCE"), "{}", listed.stdout);
    assert!(rows.iter().any(|row| row.starts_with("red") && row.contains("  2  ")), "{}", listed.stdout);
    let shown = env.run(&["session", "show", "red"]);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("red  since "), "{}", shown.stdout);
    assert!(lines[1].contains("calc.eval  failed") && lines[2].contains("calc.eval  done"), "{}", shown.stdout);
    let told = env.run(&["session", "show", "red", "--limit", "1", "--json"]).json();
    assert_eq!((&told["session"]["calls"], told["calls"].as_array().map(Vec::len)), (&json!(2), Some(1)), "{told:#}");
    let odd = env.run(&["session", "show", "rad"]);
    assert!(odd.code == 1 && odd.stderr.contains("did you mean `red`?"), "{} {}", odd.code, odd.stderr);
    assert_eq!(env.run(&["session", "delete", "red"]).code, 0);
    let left = env.run(&["session", "list", "--json"]).json();
    let ids: Vec<&str> = left["sessions"].as_array().unwrap().iter().filter_map(|one| one["id"].as_str()).collect();
    assert!(ids.contains(&"blue") && !ids.contains(&"red"), "{left:#}");
    assert_ne!(env.run(&["session", "delete", "red"]).code, 0);
}
