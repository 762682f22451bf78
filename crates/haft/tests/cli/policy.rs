//! Profiles, denies, hooks and levels, at listing and at execution.

use crate::Env;
use serde_json::json;

fn tools(env: &Env, flags: &[&str]) -> Vec<String> {
    let listed = env.run(&[&["tools", "--json"], flags].concat()).json();
    listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_tool_that_is_not_listed_cannot_be_called() {
    let env = Env::new();
    assert_eq!(tools(&env, &["--profile", "minimal"]), ["system.info"]);
    let (kind, message, code) = env.err("calc.eval", json!({"expression": "1"}), &["--profile", "minimal", "--yes"]);
    assert_eq!((kind.as_str(), code), ("denied", 3));
    assert!(message.contains("not available here") && message.contains("profile minimal"), "{message}");
}

#[test]
fn the_users_floor_outranks_yes_and_grants() {
    let env = Env::new();
    env.config("floor:\n  - tool: file.write\n    args: prod\n    reason: production is not written by agents\n");
    let (kind, message, code) = env.err("file.write", json!({"path": "prod.txt", "content": "x"}), &["--yes"]);
    assert_eq!((kind.as_str(), code), ("denied", 3));
    assert!(message.contains("production is not written by agents"), "{message}");
    env.ok("file.write", json!({"path": "other.txt", "content": "x"}));
}

#[test]
fn a_list_approves_and_a_hook_confirms() {
    let env = Env::new();
    env.config("approval:\n  auto_approve: [\"$default\"]\nhooks:\n  confirm: [\"file.edit\"]\n");
    let (outcome, code) = env.call("file.write", json!({"path": "a.txt", "content": "x"}), &["--no-input"]);
    assert_eq!((code, outcome["verdict"]["by"].as_str().unwrap()), (0, "config list"));
    let (_, _, code) =
        env.err("file.edit", json!({"path": "a.txt", "old_string": "x", "new_string": "y"}), &["--no-input"]);
    assert_eq!(code, 4);
}

#[test]
fn autonomy_and_levels() {
    let env = Env::new();
    let write = |name: &str| env.call("file.write", json!({"path": name, "content": "x"}), &["--no-input"]).1;
    env.config("autonomy: autonomous\n");
    assert_eq!(write("a"), 3, "nobody is asked");
    env.config("autonomy: conservative\napproval:\n  auto_approve: [\"$default\"]\n");
    assert_eq!(write("a"), 4, "everything that writes is asked");
    env.config("approval:\n  level: supervised\n");
    assert_eq!(write("a"), 0, "medium is below what supervised asks");
    env.config("approval:\n  level: hitl\n");
    let read = env.call("file.read", json!({"path": "a"}), &["--no-input"]).1;
    assert_eq!(read, 4, "hitl asks reading, too");
    env.config("approval:\n  level: yolo\n");
    assert_eq!(write("b"), 0, "yolo asks nothing of what only returns changes");
}

#[test]
fn agents_are_narrowed_by_name() {
    let env = Env::new();
    env.config("agents:\n  reader:\n    deny: [\"file.write\", \"file.edit\", \"file.batch\"]\n");
    assert!(!tools(&env, &["--agent", "reader"]).contains(&"file.write".to_owned()));
    assert!(tools(&env, &[]).contains(&"file.write".to_owned()));
    let args = json!({"path": "a", "content": "x"});
    assert_eq!(env.err("file.write", args, &["--yes", "--agent", "reader"]).2, 3);
}

#[test]
fn sensitive_places_are_asked_and_hafts_own_state_is_out_of_reach() {
    let env = Env::new();
    env.file(".env", "A=1");
    env.file("id_rsa", "key");
    std::os::unix::fs::symlink(".env", env.root().join("harmless.txt")).unwrap();
    for path in [".env", "id_rsa", "harmless.txt", ".git/config"] {
        assert_eq!(env.err("file.read", json!({"path": path}), &["--no-input"]).2, 4, "{path}");
    }
    env.ok("calc.eval", json!({"expression": "1"}));
    let store = env.store();
    let (kind, message, code) = env.err("file.write", json!({"path": store, "content": "x"}), &["--yes"]);
    assert_eq!((kind.as_str(), code), ("denied", 3), "{message}");
    let config = env.dir.path().join("home/.config/haft/config.yml");
    assert_eq!(env.err("file.write", json!({"path": config, "content": "x"}), &["--yes"]).2, 3);
    assert_eq!(env.err("file.write", json!({"path": ".haft/config.yml", "content": "x"}), &["--yes"]).2, 3);
}

#[test]
fn explain_names_every_voice() {
    let env = Env::new();
    let explained = env.run(&["explain", "file.write", "path=a.txt", "content=x", "--json"]).json();
    assert_eq!(explained["verdict"]["decision"], "ask");
    let voices: Vec<&str> =
        explained["votes"].as_array().unwrap().iter().map(|vote| vote["by"].as_str().unwrap()).collect();
    assert!(voices.contains(&"floor") && voices.contains(&"grant") && voices.contains(&"reading"), "{voices:?}");
    assert!(explained["diff"].as_str().unwrap().contains("+x"));
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn a_bad_config_is_named_by_file_line_and_column() {
    let env = Env::new();
    env.config("profile: full\nhoks: {}\n");
    let ran = env.run(&["tools"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("config.yml:2:1") && ran.stderr.contains("did you mean `hooks`"), "{}", ran.stderr);
}

#[test]
fn a_deny_for_a_tool_that_is_not_there_yet_is_a_warning() {
    let env = Env::new();
    env.config("deny: [\"gmail.send\", \"group:runtime\"]\n");
    let ran = env.run(&["call", "calc.eval", "expression=1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("no tool is named `gmail.send` in this version"), "{}", ran.stderr);
}
