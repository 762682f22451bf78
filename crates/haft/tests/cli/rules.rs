//! Rules about shell commands: one-off, configured, explained, suggested and replayed.

use crate::Env;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// What would be decided about a command, under one-off rules.
fn explain(env: &Env, command: &str, flags: &[&str]) -> Value {
    let args = json!({ "command": command }).to_string();
    let ran = env.run(&[&["explain", "shell.exec", &args, "--json"], flags].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json()
}

fn decision(env: &Env, command: &str, flags: &[&str]) -> String {
    explain(env, command, flags)["verdict"]["decision"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn one_off_rules_decide_by_what_is_run() {
    let env = Env::new();
    for (command, flags, wanted) in [
        ("mkdir a", &[][..], "ask"),
        ("mkdir a", &["--allow", "mkdir"], "allow"),
        ("mkdir a && touch b", &["--allow", "mkdir"], "ask"),
        ("mkdir a && touch b", &["--allow", "mkdir", "--allow", "touch"], "allow"),
        ("mkdir a && touch b", &["--allow", "*"], "allow"),
        ("mkdir a > b", &["--allow", "*"], "ask"),
        ("mkdir /opt/a", &["--allow", "mkdir"], "ask"),
        ("rm -rf /", &["--allow", "*"], "deny"),
        ("mkdir 'a", &["--allow", "*"], "ask"),
        ("git log --output=x", &["--allow", "git log"], "ask"),
        ("cat a.txt", &[], "allow"),
        ("cat a.txt", &["--deny", "cat"], "deny"),
        ("sudo sh -c 'rm a'", &["--deny", "rm"], "deny"),
        ("ls | xargs rm", &["--deny", "rm", "--allow", "*"], "deny"),
        ("$x a", &["--deny", "rm"], "ask"),
        ("ls", &["--deny", "*"], "deny"),
        ("cat .env", &["--allow", "cat"], "ask"),
        ("touch .git/hooks/x", &["--allow", "touch"], "ask"),
    ] {
        assert_eq!(decision(&env, command, flags), wanted, "{command} {flags:?}");
    }
}

#[test]
fn an_explanation_shows_the_commands_and_the_rules_that_match() {
    let env = Env::new();
    env.file("a.txt", "a");
    let command = "cat a.txt | sudo tee b.txt; ls > /dev/null";
    let flags = ["--allow", "tee", "--deny", "sudo"];
    let explained = explain(&env, command, &flags);
    let shell = &explained["shell"];
    let names: Vec<&str> =
        shell["commands"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["cat", "sudo", "tee", "ls"]);
    assert_eq!(shell["commands"][2]["through"], json!(["sudo"]));
    assert_eq!((&shell["class"], &shell["reads"]), (&json!("general"), &json!([".", "a.txt"])));
    assert_eq!(shell["writes"], json!(["b.txt"]));
    assert!(!shell["doubts"].as_array().unwrap().is_empty());
    let rules = shell["rules"].as_array().unwrap();
    let said: Vec<_> =
        rules.iter().map(|one| (one["rule"].as_str(), one["command"].as_str(), one["holds"].as_bool())).collect();
    assert_eq!(
        said,
        [(Some("allow: tee"), Some("tee b.txt"), Some(true)), (Some("deny: sudo"), Some("sudo tee b.txt"), Some(true)),]
    );
    assert_eq!(explained["verdict"]["by"], "command rules");
    assert_eq!(explained["verdict"]["reason"], "`deny: sudo` matches `sudo tee b.txt`");
    let args = json!({ "command": "cat a.txt | sudo tee b.txt; echo '\u{1b}[2J'" }).to_string();
    let text = env.run(&[&["explain", "shell.exec", &args], &flags[..]].concat()).stdout;
    for line in [
        "deny by command rules: `deny: sudo` matches `sudo tee b.txt`",
        "    cat a.txt (read)",
        "    | sudo tee b.txt (general)",
        "      tee b.txt (write, through sudo)",
        "    writes   b.txt",
        "`deny: sudo` holds for `sudo tee b.txt`",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn many_are_explained_in_order_and_an_error_is_a_line() {
    let env = Env::new();
    let lines = [
        r#"{"tool": "shell.exec", "args": {"command": "ls"}}"#,
        "nonsense",
        "",
        r#"{"tool": "no.tool"}"#,
        r#"{"tool": "shell.exec", "args": {"command": "touch a"}}"#,
        r#"{"tool": "shell.exec", "args": {"command": 5}}"#,
        r#"{"tool": "shell.exec", "args": {"command": "rm b"}, "dialect": "haft"}"#,
    ];
    let mut child = env
        .command(&["explain", "--batch", "-", "--allow", "touch", "--deny", "rm"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.join("\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answers: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<&str> = answers
        .iter()
        .map(|one| one["verdict"]["decision"].as_str().or_else(|| one["error"]["kind"].as_str()).unwrap_or("?"))
        .collect();
    assert_eq!(said, ["allow", "invalid_input", "unknown_tool", "allow", "invalid_input", "deny"]);
    assert!(output.status.success());
    assert!(env.records().iter().all(|record| record["body"]["tool"] != "shell.exec"), "explaining leaves no record");
    let file = env.file("calls.jsonl", lines.join("\n"));
    let ran = env.run(&["explain", "--batch", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 6));
}

#[test]
fn a_rule_and_its_examples_are_checked_where_they_are_written() {
    let env = Env::new();
    let said = |config: &str| {
        env.config(config);
        let ran = env.run(&["explain", "shell.exec", r#"{"command": "ls"}"#]);
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        ran.stderr.lines().next().unwrap_or_default().to_owned()
    };
    let at = |rest: &str| format!("error: ~/.config/haft/config.yml:{rest}");
    assert_eq!(
        said("rules:\n  - allow: git log; rm\n"),
        at("2:12: `git log; rm` is not a rule: `;` belongs to a shell: a rule is one command; write a rule for each")
    );
    assert_eq!(
        said("rules:\n  - deny: rm\n    matches: [sudo rm a, ls]\n"),
        at("3:26: the example does not hold: `deny: rm` does not match `ls`")
    );
    assert_eq!(
        said("rules:\n  - allow: mkdir\n    not_matches:\n      - mkdir a\n"),
        at("4:9: the example does not hold: `allow: mkdir` matches `mkdir a`")
    );
    assert_eq!(said("rules:\n  - {allow: a, deny: b}\n"), at("2:13: a rule either allows or denies; write two rules"));
    assert_eq!(
        said("commands:\n  mytool: {class: read, operands: read*, examples: ['mytool -o x']}\n"),
        at(
            "2:3: what `mytool` does cannot be read: the example `mytool -o x` does not hold: the option `-o` is not known to be harmless"
        )
    );
    let ran = env.run(&["explain", "shell.exec", r#"{"command": "ls"}"#, "--allow", "-x"]);
    assert!(ran.code == 2, "{}", ran.stderr);
    env.config("");
    let ran = env.run(&["explain", "shell.exec", r#"{"command": "ls"}"#, "--allow", "a; b"]);
    assert!(ran.stderr.starts_with("error: --allow: `a; b` is not a rule"), "{}", ran.stderr);
}

#[test]
fn what_a_program_does_can_be_told() {
    let env = Env::new();
    env.file("a.txt", "a");
    assert_eq!(decision(&env, "mytool a.txt", &[]), "ask");
    env.config(
        "commands:\n  mytool: {class: read, options: -v, writes: -o=, operands: read*, examples: ['mytool -v a', '!mytool -o b a']}\n",
    );
    assert_eq!(decision(&env, "mytool -v a.txt", &[]), "allow");
    assert_eq!(decision(&env, "mytool -o b a.txt", &[]), "ask");
    assert_eq!(explain(&env, "mytool -o b a.txt", &[])["shell"]["writes"], json!(["b"]));
    assert_eq!(decision(&env, "mytool -o b a.txt", &["--allow", "mytool"]), "ask");
    assert_eq!(decision(&env, "mytool -o b a.txt", &["--allow", "mytool -o"]), "allow");
}

#[test]
fn a_project_may_only_deny_until_it_is_trusted() {
    let env = Env::new();
    env.config("rules: [{deny: rm}]\n");
    env.file(
        ".haft/config.yml",
        "rules: [{deny: touch}, {allow: mkdir}, {allow: rm}]\ncommands: {ls: {class: general}}\n",
    );
    let ran = env.run(&["explain", "shell.exec", r#"{"command": "mkdir a"}"#, "--json"]);
    assert!(ran.stderr.contains("ignored: rules.*.allow, commands"), "{}", ran.stderr);
    let said = |command| decision(&env, command, &[]);
    assert_eq!([said("mkdir a"), said("touch a"), said("ls"), said("rm a")], ["ask", "deny", "allow", "deny"]);
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    let said = |command| decision(&env, command, &[]);
    assert_eq!([said("mkdir a"), said("touch a"), said("ls"), said("rm a")], ["allow", "deny", "ask", "deny"]);
}

#[test]
fn a_remembered_pattern_covers_commands_and_not_text() {
    let env = Env::new();
    let granted = env.run(&["approvals", "grant", "shell.exec", "git add *"]);
    assert_eq!(granted.code, 0, "{}", granted.stderr);
    let said = |command| decision(&env, command, &[]);
    assert_eq!(said("git add a.txt b.txt"), "allow");
    for command in ["git add a; rm -rf b", "git add $(rm b)", "git add a > b", "git add a && ls", "git add \"$x\""] {
        assert_eq!(said(command), "ask", "{command}");
    }
    let refused = env.run(&["approvals", "grant", "shell.exec", "git add *; rm *"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("a pattern is for one command"), "{}", refused.stderr);
    assert_eq!(env.run(&["approvals", "grant", "shell.exec", "cd a; make"]).code, 0, "without wildcards it is exact");
}

#[test]
fn approving_a_command_suggests_a_rule() {
    let env = Env::new();
    if !crate::shell::confines(&env) {
        return;
    }
    let asked = |command: &str| {
        let (outcome, code) = env.call("shell.exec", json!({ "command": command }), &["--no-input"]);
        assert_eq!(code, 4, "{outcome:#}");
        let id = outcome["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
        env.run(&["approvals", "approve", &id]).stderr
    };
    let hint = "to allow this from now on: add `- allow: mkdir` to `rules:` in ~/.config/haft/config.yml";
    let said = asked("mkdir -p a/b");
    assert!(said.contains(hint), "{said}");
    let said = asked("rm -rf a");
    assert!(!said.contains("to allow this"), "{said}");
}

#[test]
fn rules_are_replayed_over_the_log() {
    let env = Env::new();
    if !crate::shell::confines(&env) {
        return;
    }
    for command in ["mkdir a", "touch b", "ls", "mkdir c; touch d"] {
        env.call("shell.exec", json!({ "command": command }), &["--yes"]);
    }
    env.call("shell.exec", json!({ "command": "mkdir e" }), &["--no-input"]);
    env.call("shell.exec", json!({ "command": "rm -rf /" }), &["--yes"]);
    let replay = |flags: &[&str]| env.run(&[&["policy", "replay"], flags].concat());
    let replayed = replay(&["--rule", "allow: mkdir", "--rule", "deny: touch", "--json"]).json();
    let said: Vec<[&str; 3]> = replayed["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| ["command", "then", "with"].map(|key| one[key].as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            ["mkdir a", "ask", "allow"],
            ["touch b", "ask", "deny"],
            ["ls", "allow", "allow"],
            ["mkdir c; touch d", "ask", "deny"],
            ["mkdir e", "ask", "allow"],
            ["rm -rf /", "deny", "deny"],
        ]
    );
    assert_eq!(replayed["then"], json!({"allow": 1, "ask": 4, "deny": 1}));
    assert_eq!(replayed["now"], json!({"allow": 3, "ask": 0, "deny": 3}));
    assert_eq!((&replayed["total"], &replayed["changed"]), (&json!(6), &json!(4)));
    let text = replay(&["--rule", "allow: mkdir"]).stdout;
    assert!(text.contains("6 shell commands; then: 1 allow, 4 ask, 1 deny; with the rule: 3 allow"), "{text}");
    assert_eq!(replay(&["--rule", "mkdir"]).code, 2);
    assert_eq!(replay(&["--rule", "allow: a; b"]).code, 2);
    assert_eq!(replay(&["--rule", "allow: a", "--since", "soon"]).code, 2);
    let none = replay(&["--rule", "allow: mkdir", "--since", "1d", "--json"]).json();
    assert_eq!(none["total"], 6);
}
