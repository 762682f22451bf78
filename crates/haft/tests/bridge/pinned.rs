//! What was accepted of a tool is what it is: anything else is asked about first.

use super::{Env, said};
use serde_json::json;

pub(crate) fn a_changed_description_asks_again_whatever_rules_say() {
    let env = Env::new().hostile("rug", "");
    let config = env.config() + "approval:\n  auto_approve: [\"mcp:rug:*\"]\n";
    std::fs::write(env.config_file(), config).unwrap();
    let call = || env.call("mcp:rug:add", json!({}), &["--no-input"]).0;
    assert_eq!(said(&call()), "called add", "the rule lets it run");
    std::fs::write(env.root().join("pulled"), "").unwrap();
    // The first call meets what has changed, and is not made.
    let met = call();
    assert_eq!(met["error"]["kind"], "conflict", "{met:#}");
    let status = env.run(&["mcp", "test", "rug", "--json"]).json();
    let altered = status["altered"].to_string();
    assert!(altered.contains("mcp:rug:add: its description changed since you accepted it"), "{altered}");
    assert!(altered.contains("mcp:rug:extra: the server offers it since you accepted its tools"), "{altered}");
    let shown = env.run(&["mcp", "test", "rug", "--accept"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert_eq!(said(&call()), "called add");
    let records = env.run(&["log", "--json", "-n", "1000"]).stdout;
    assert_eq!(records.lines().filter(|line| line.contains("\"kind\":\"pin\"")).count(), 3, "{records}");
}

pub(crate) fn a_yes_accepts_what_has_changed() {
    let env = Env::new().hostile("rug", "");
    let config = env.config() + "approval:\n  auto_approve: [\"mcp:rug:*\"]\n";
    std::fs::write(env.config_file(), config).unwrap();
    assert_eq!(said(&env.ok("mcp:rug:add", json!({}))), "called add");
    std::fs::write(env.root().join("pulled"), "").unwrap();
    // One process meets the change, is asked about it, and then not any more.
    let outcomes =
        env.batch(&[json!({"tool": "mcp:rug:add"}), json!({"tool": "mcp:rug:add"}), json!({"tool": "mcp:rug:add"})]);
    assert_eq!(outcomes[0]["error"]["kind"], "conflict", "{}", outcomes[0]);
    let why = |at: usize| outcomes[at]["verdict"]["reason"].as_str().unwrap().to_owned();
    assert!(outcomes[1]["success"] == true && why(1).contains("its description changed"), "{}", outcomes[1]);
    assert!(outcomes[2]["success"] == true && !why(2).contains("changed"), "{}", outcomes[2]);
}
