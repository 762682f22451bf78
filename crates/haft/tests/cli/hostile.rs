//! What somebody would try who wants more than they were given.

use crate::{Env, Ran};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::process::Command;

fn ask(env: &Env, args: serde_json::Value) -> String {
    let (outcome, code) = env.call("file.write", args, &["--no-input"]);
    assert_eq!(code, 4, "{outcome:#}");
    outcome["call_id"].as_str().unwrap().to_owned()
}

#[test]
fn an_approval_holds_only_for_what_was_asked() {
    let env = Env::new();
    let id = ask(&env, json!({"path": "notes.md", "content": "hello"}));
    let outside = env.dir.path().join("pwned.txt");
    symlink(&outside, env.root().join("notes.md")).unwrap();
    let ran = env.run(&["approvals", "approve", &id]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("no longer what was asked about"), "{}", ran.stderr);
    assert!(!outside.exists());
    assert_eq!(env.run(&["approvals", "approve", &id]).code, 1, "trying again does not make it another question");
    let shown = env.run(&["approvals", "show", &id]).stdout;
    assert!(shown.contains("pwned.txt"), "what is shown is where it would go: {shown}");
    std::fs::remove_file(env.root().join("notes.md")).unwrap();
    assert_eq!(env.run(&["approvals", "approve", &id]).code, 1, "what was looked at last is what counts");
    env.run(&["approvals", "show", &id]);
    assert_eq!(env.run(&["approvals", "approve", &id]).code, 0);
    assert_eq!(env.read("notes.md"), "hello");
    let bytes = |suffix: &str| std::fs::read(format!("{}{suffix}", env.store().display())).unwrap_or_default();
    let kept = String::from_utf8_lossy(&[bytes(""), bytes("-wal")].concat()).contains("\"hello\"");
    assert!(!kept, "once decided, the arguments are gone");
}

#[test]
fn a_floor_rule_sees_where_a_path_leads_and_what_would_change() {
    let env = Env::new();
    env.config("floor:\n  - tool: \"file.*\"\n    args: \"migrations/\"\n    reason: written by people\n");
    env.file("migrations/1.sql", "x");
    symlink("migrations", env.root().join("mlink")).unwrap();
    let batch = |path: &str, pattern: &str| json!({"path": path, "pattern": pattern, "operation": "rename", "rename_to": "$1.bak"});
    for (tool, args) in [
        ("file.write", json!({"path": "migrations/2.sql", "content": "x"})),
        ("file.write", json!({"path": "migrations//2.sql", "content": "x"})),
        ("file.write", json!({"path": "mlink/2.sql", "content": "x"})),
        ("file.batch", batch("migrations", "*.sql")),
        ("file.batch", json!({"pattern": "**/*.sql", "operation": "transform", "find": "x", "replace": "y"})),
    ] {
        let (kind, message, code) = env.err(tool, args.clone(), &["--yes"]);
        assert_eq!((kind.as_str(), code), ("denied", 3), "{args}: {message}");
    }
    assert_eq!(env.read("migrations/1.sql"), "x");
    env.ok("file.write", json!({"path": "notes.md", "content": "see migrations/"}));
}

#[test]
fn a_trap_in_an_ignore_file_takes_nothing_down() {
    let env = Env::new();
    env.file("a.txt", "needle");
    env.file("trap/b.txt", "needle");
    env.file("trap/.gitignore", "x\n".repeat(150_000));
    env.file("braces/.gitignore", "{".repeat(60_000) + "a" + &"}".repeat(60_000) + "\n" + &"*a".repeat(50_000) + "b\n");
    env.file(&format!("braces/{}", "a".repeat(200)), "");
    let found = env.ok("file.grep", json!({"pattern": "needle", "output_mode": "files_with_matches"}));
    assert_eq!(found["output"].as_str().unwrap().trim(), "a.txt");
    assert!(found["warnings"][0].as_str().unwrap().contains("trap: left out"), "{found:#}");
    env.file("gd/HEAD", "");
    symlink("/dev/zero", env.root().join("gd/commondir")).unwrap();
    env.file("sub/.git", "gitdir: ../gd\n");
    env.ok("file.glob", json!({"pattern": "**/*"}));
    symlink("/dev/zero", env.root().join(".ignore")).unwrap();
    let (kind, message, _) = env.err("file.glob", json!({"pattern": "**/*"}), &[]);
    assert_eq!(kind, "failed", "{message}");
    for (tool, args) in [
        ("file.glob", json!({"pattern": "{".repeat(5000)})),
        ("file.grep", json!({"pattern": "x", "glob": "{".repeat(60) + &"}".repeat(60)})),
    ] {
        assert_eq!(env.err(tool, args, &[]).0, "invalid_input", "{tool}");
    }
    assert_eq!(env.run(&["approvals", "grant", "file.write", &"{".repeat(300)]).code, 2);
}

#[test]
fn nothing_private_is_in_the_database_file() {
    let env = Env::new();
    let body = "a body that must not be kept";
    env.ok("file.write", json!({"path": "a.txt", "content": body}));
    env.file("b.txt", "line one of a private file\n");
    env.ok("file.read", json!({"path": "b.txt"}));
    env.call(
        "file.edit",
        json!({"path": "b.txt", "old_string": "line one of a privat file", "new_string": "x"}),
        &["--yes"],
    );
    env.call("file.write", json!({"path": "c.txt", "contents": "a typo with hunter2"}), &["--yes"]);
    env.call("file.read", json!({"path": "postgres://user:hunter3@db/x"}), &["--no-input"]);
    let mut bytes = Vec::new();
    for suffix in ["", "-wal"] {
        let mut path = env.store().into_os_string();
        path.push(suffix);
        bytes.extend(std::fs::read(path).unwrap_or_default());
    }
    let text = String::from_utf8_lossy(&bytes);
    // The one call that waits for an answer keeps its arguments until it has one.
    for hidden in [body, "line one of a private file", "hunter2"] {
        assert!(!text.contains(hidden), "{hidden}");
    }
    let log: String = env.records().iter().map(ToString::to_string).collect();
    assert!(!log.contains("hunter3"), "{log}");
}

#[test]
fn a_broken_project_file_keeps_nobody_from_looking_back() {
    let env = Env::new();
    env.ok("file.write", json!({"path": "a.txt", "content": "x"}));
    env.file(".haft/config.yml", "nonsense: [");
    assert_eq!(env.run(&["call", "calc.eval", "expression=1"]).code, 2, "nothing new runs");
    for args in [&["log"][..], &["changes"], &["undo", "--last"]] {
        let ran = env.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("config.yml"), "{}", ran.stderr);
    }
    std::fs::remove_dir_all(env.root().join(".haft")).unwrap();
    env.file(".haft", "a file where the directory should be");
    assert_eq!(env.run(&["call", "calc.eval", "expression=1"]).code, 0);
}

#[test]
fn hafts_own_directory_is_not_for_agents() {
    let env = Env::new();
    env.config("approval:\n  auto_approve: [\"$default\"]\n");
    for path in [".haft", ".haft/tools/x/tool.yml", "sub/.haft/notes", ".glee/tools/x"] {
        assert_eq!(env.err("file.write", json!({"path": path, "content": "x"}), &["--yes"]).2, 3, "{path}");
    }
}

#[test]
fn a_yes_for_the_session_is_for_exactly_that() {
    let env = Env::new();
    env.file("a/x.txt", "one");
    let asked = "file.batch path=a pattern=x.txt operation=transform find=one replace=SECRET";
    let (screen, code) = crate::terminal::typed(&env, asked, "s\n");
    assert_eq!(code, 0, "{screen}");
    let log: String = env.records().iter().map(ToString::to_string).collect();
    assert!(log.contains("given") && !log.contains("SECRET"), "{log}");
    let other = json!({"path": "a", "pattern": "**/*", "operation": "transform", "find": "one", "replace": "two"});
    assert_eq!(env.call("file.batch", other, &["--no-input"]).1, 4);
}

#[test]
fn undo_steps_back_call_by_call() {
    let env = Env::new();
    for name in ["a.txt", "b.txt"] {
        env.ok("file.write", json!({"path": name, "content": "x"}));
    }
    env.call("file.write", json!({"path": "/proc/nothing", "content": "x"}), &["--yes"]);
    assert_eq!(env.run(&["undo", "--last"]).code, 0);
    assert!(!env.root().join("b.txt").exists() && env.root().join("a.txt").exists());
    assert_eq!(env.run(&["undo", "--last"]).code, 0);
    assert!(!env.root().join("a.txt").exists());
    assert_eq!(env.run(&["undo", "--last"]).code, 1);
}

#[test]
fn what_cannot_be_printed_is_a_failure() {
    let env = Env::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = Ran::from(env.command(&["tools"]).stdout(full).output().unwrap());
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    let piped =
        Command::new("sh").arg("-c").arg(format!("{} man | head -1", env!("CARGO_BIN_EXE_haft"))).output().unwrap();
    assert!(piped.status.success());
}
