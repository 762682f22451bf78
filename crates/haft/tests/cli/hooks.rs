//! Hooks as people configure them: real programs, a real address, the log, and whose configuration counts.

use crate::Env;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Writes a program of the user's, and gives its path.
fn program(env: &Env, name: &str, script: &str) -> String {
    let path = env.dir.path().join("home").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn sum() -> Value {
    json!({"expression": "1 + 1"})
}

#[test]
fn a_program_of_the_users_tightens_and_explain_says_which() {
    let env = Env::new();
    let check = program(&env, "check-sums", r#"cat >/dev/null; echo '{"decision": "deny", "reason": "no sums"}'"#);
    env.config(&format!("hooks: {{before: [{{tools: ['calc.*'], command: [{check}]}}]}}\n"));
    let (outcome, code) = env.call("calc.eval", sum(), &["--yes"]);
    assert_eq!((code, outcome["verdict"]["by"].as_str()), (3, Some("hook")), "{outcome:#}");
    let explained = env.run(&["explain", "calc.eval", &sum().to_string()]).stdout;
    assert!(explained.contains("hook") && explained.contains("the hook `check-sums` says: no sums"), "{explained}");
    assert_eq!(env.call("file.list", json!({}), &[]).1, 0, "it is not about others");
}

#[test]
fn a_rewrite_is_in_the_log_and_what_runs_is_what_it_says() {
    let env = Env::new();
    let quiet = program(&env, "quiet", r#"cat >/dev/null; echo '{"args": {"command": "echo rewritten"}}'"#);
    env.config(&format!("hooks: {{before: [{{tools: [shell.exec], command: [{quiet}]}}]}}\n"));
    let (outcome, code) = env.call("shell.exec", json!({"command": "rm -rf /"}), &[]);
    assert_eq!((code, outcome["output"].as_str().map(str::trim)), (0, Some("rewritten")), "{outcome:#}");
    let shown = env.run(&["log"]).stdout;
    let line = shown.lines().find(|line| line.contains("hook ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("rewrote") && line.contains("by quiet") && line.contains(" → "), "{line}");
    let records = env.records();
    let record = records.iter().map(|record| &record["body"]).find(|body| body["kind"] == "hook").unwrap();
    assert_eq!((record["before"].as_str().unwrap().len(), &record["call"]), (64, &outcome["call_id"]), "{record:#}");
    let worse = program(&env, "quiet", r#"cat >/dev/null; echo '{"args": {"command": "rm -rf /"}}'"#);
    assert_eq!(worse, quiet);
    let (outcome, code) = env.call("shell.exec", json!({"command": "echo hi"}), &["--yes"]);
    assert_eq!((code, outcome["verdict"]["decision"].as_str()), (3, Some("deny")), "{outcome:#}");
}

#[test]
fn a_project_that_nobody_trusts_starts_no_program() {
    let env = Env::new();
    let mark = env.dir.path().join("home/ran");
    let spy = program(&env, "spy", &format!("touch {}", mark.display()));
    env.file(".haft/config.yml", format!("hooks: {{before: [{{command: [{spy}]}}], after: [{{command: [{spy}]}}]}}\n"));
    let ran = env.run(&["call", "calc.eval", &sum().to_string()]);
    assert!(ran.stderr.contains("ignored: hooks.before, hooks.after"), "{}", ran.stderr);
    assert!(!mark.exists());
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(env.call("calc.eval", sum(), &[]).1, 0);
    assert!(mark.exists(), "a trusted project's counts");
}

#[test]
fn a_call_of_a_pipeline_is_hooked_and_an_after_hook_redacts() {
    let env = Env::new();
    env.file("a.txt", "hunter2\n");
    let redact =
        program(&env, "redact", r#"sed -n 's/.*"output":"\([^"]*\)".*/{"output": "\1"}/p' | sed 's/hunter2/[gone]/g'"#);
    env.config(&format!("hooks: {{after: [{{tools: [file.read], command: [{redact}]}}]}}\n"));
    let (outcome, _) = env.call("file.read", json!({"path": "a.txt"}), &[]);
    assert!(outcome["output"].as_str().unwrap().contains("[gone]"), "{outcome:#}");
    let args = json!({"steps": [{"id": "a", "tool": "file.read", "args": {"path": "a.txt"}}]});
    let (outcome, code) = env.call("pipeline.run", args, &["--yes"]);
    assert_eq!(code, 0, "{outcome:#}");
    assert!(!outcome.to_string().contains("hunter2") && outcome.to_string().contains("[gone]"), "{outcome:#}");
}

#[test]
fn an_address_is_asked() {
    let env = Env::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    env.config(&format!("hooks: {{before: [{{url: 'http://{}/'}}]}}\n", listener.local_addr().unwrap()));
    let asked = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while !text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.ends_with('}')) {
            let read = stream.read(&mut piece).unwrap();
            text.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        let body = r#"{"decision": "ask", "reason": "over the wire"}"#;
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        text
    });
    let (outcome, code) = env.call("calc.eval", sum(), &["--no-input"]);
    assert_eq!((code, outcome["verdict"]["by"].as_str()), (4, Some("hook")), "{outcome:#}");
    assert!(asked.join().unwrap().contains(r#""tool":"calc.eval""#));
}
