//! A project's configuration counts only after somebody looked at it, and only as it was then.

use crate::Env;
use serde_json::json;

const LOOSE: &str = "approval:\n  auto_approve: [\"$default\"]\n";

fn write(env: &Env) -> i32 {
    env.call("file.write", json!({"path": "a.txt", "content": "x"}), &["--no-input"]).1
}

#[test]
fn an_untrusted_project_cannot_loosen() {
    let env = Env::new();
    env.file(".haft/config.yml", LOOSE);
    assert_eq!(write(&env), 4);
    let warned = env.run(&["tools"]);
    assert!(warned.stderr.contains("haft trust"), "{}", warned.stderr);
}

#[test]
fn a_trusted_project_counts_until_it_changes() {
    let env = Env::new();
    env.file(".haft/config.yml", LOOSE);
    let looked = env.run(&["trust"]);
    assert_eq!((looked.code, write(&env)), (2, 4), "whoever cannot be asked has not said yes");
    assert!(looked.stderr.contains("auto_approve"), "it shows what would be trusted: {}", looked.stderr);
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(write(&env), 0);
    env.file(".haft/config.yml", format!("{LOOSE}autonomy: standard\n"));
    assert_eq!(env.call("file.write", json!({"path": "b.txt", "content": "x"}), &["--no-input"]).1, 4);
    assert!(env.run(&["tools"]).stderr.contains("changed"), "{}", env.run(&["tools"]).stderr);
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(env.call("file.write", json!({"path": "b.txt", "content": "x"}), &["--no-input"]).1, 0);
    assert_eq!(env.run(&["trust", "--revoke"]).code, 0);
    assert_eq!(env.call("file.write", json!({"path": "c.txt", "content": "x"}), &["--no-input"]).1, 4);
}

#[test]
fn an_untrusted_project_may_tighten() {
    let env = Env::new();
    env.file(".haft/config.yml", "deny: [\"file.*\"]\n");
    assert_eq!(env.err("file.read", json!({"path": "a"}), &[]).2, 3);
}

#[test]
fn a_trusted_project_cannot_lift_the_users_floor() {
    let env = Env::new();
    env.config("deny: [\"file.write\"]\n");
    env.file(".haft/config.yml", LOOSE);
    env.run(&["trust", "--yes"]);
    assert_eq!(write(&env), 3);
}
