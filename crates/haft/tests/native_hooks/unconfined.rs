//! What only haft's sandbox would stop is asked about where an agent runs it by itself.
//!
//! Each command that is asked about is also run, by the shell that an agent would run it with: it prints the secret.

use crate::bad_input::{ask, assert_asked, event, said};
use crate::plain;
use crate::project::Project;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        plain("command_that_prints_what_a_link_leads_to_is_asked_about", links),
        plain("command_that_prints_the_projects_credentials_is_asked_about", credentials),
        plain("command_that_prints_tracked_credentials_is_asked_about", tracked_credentials),
        plain("native_search_through_credentials_is_asked_about", native_searches),
        plain("grant_for_a_sandboxed_command_covers_no_native_one", grants),
        plain("tool_list_does_not_allow_an_unchecked_address", addresses),
        plain("name_that_another_servers_tool_may_have_is_asked_about", own_names),
    ]
}

const SECRET: &str = "TOP-SECRET-KEY";

/// Asserts that a command prints the secret when it runs by itself, and that haft asks about it.
fn assert_asked_although_it_only_reads(project: &Project, command: &str, why: &str) {
    let output = project.command(Path::new("/bin/bash")).args(["-c", command]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains(SECRET), "{command} prints no secret: {output:?}");
    assert_asked(project, &[("Bash", json!({"command": command}))], why);
}

fn assert_allowed(project: &Project, tool: &str, input: &Value) {
    let answer = ask(project, tool, input);
    assert_eq!(answer["permissionDecision"], "allow", "{tool} {input}: {answer}");
}

fn links() {
    let project = Project::new("");
    project.write("home/.ssh/id_rsa", SECRET);
    project.write("outside/plain.txt", SECRET);
    project.write("project/b/keys/id_rsa", "");
    project.write("project/c/plain.txt", "");
    for dir in ["a", "d2", "e"] {
        std::fs::create_dir(project.root().join(dir)).unwrap();
    }
    symlink("../../home/.ssh", project.root().join("a/keys")).unwrap();
    symlink("../../home/.ssh/id_rsa", project.root().join("d2/hello.txt")).unwrap();
    symlink("../../outside/plain.txt", project.root().join("e/plain.txt")).unwrap();
    for command in [
        "diff -r a b",
        "diff hello.txt d2",
        "diff -r a b | head",
        "cat d2/*",
        "git diff --no-index hello.txt d2/hello.txt",
    ] {
        if command.starts_with("git") {
            assert_asked(&project, &[("Bash", json!({"command": command}))], "holds credentials");
        } else {
            assert_asked_although_it_only_reads(&project, command, "holds credentials");
        }
    }
    for command in [
        "diff -r e c",
        "find e -name '*.txt' -exec cat {} +",
        "find e -name '*.txt' -print0 | xargs -0 cat",
        "tail -n 5 e/*",
    ] {
        assert_asked_although_it_only_reads(&project, command, "outside/plain.txt lies outside the readable roots");
    }
    // A level that lets commands run that only read means those that do.
    let project = Project::new("approval: {level: supervised}\n");
    project.write("outside/plain.txt", SECRET);
    symlink("../outside/plain.txt", project.root().join("link")).unwrap();
    assert_asked_although_it_only_reads(&project, "grep -R TOP .", "severity high");
}

fn credentials() {
    let project = Project::new("");
    project.write("project/.env", SECRET);
    project.write("project/src/lib.rs", "fn lib() {}\n");
    project.write("project/empty/x", "");
    for command in [
        "grep -r TOP .",
        "grep -rn TOP",
        "grep -d recurse TOP .",
        "rgrep TOP",
        "find . -type f -exec cat {} +",
        "find . -name '.e*' -print0 | xargs -0 cat",
        "find . -type f -print0 | xargs -0 head -n 5",
        "diff -rN . empty | cat",
    ] {
        assert_asked_although_it_only_reads(&project, command, "holds credentials");
    }
    // Not each of these is installed everywhere.
    for command in ["rg --hidden TOP", "rg -uuu TOP .", "rg -g '.e*' TOP", "ag -u TOP", "ack TOP"] {
        assert_asked(&project, &[("Bash", json!({"command": command}))], "holds credentials");
    }
    for command in ["git grep --no-index TOP", "git grep --untracked TOP"] {
        let answer = ask(&project, "Bash", &json!({"command": command}));
        assert_eq!(answer["permissionDecision"], "deny", "{command}: {answer}");
    }
    for command in [
        "ls -R",
        "ls -la .",
        "tree -a",
        "du -ah .",
        "find . -type f",
        "find . -name '*.rs' -exec ls -l {} +",
        "stat src",
        "test -d src && echo yes",
        "cd src && cat lib.rs",
        "cat *",
        "wc -l *",
        "head src/*.rs",
        "grep TOP *",
        "grep -rn lib src",
        "diff -r src empty",
        "rg TOP",
        "rg lib src",
        "git log -- src",
        "git status src",
    ] {
        assert_allowed(&project, "Bash", &json!({"command": command}));
    }
}

fn tracked_credentials() {
    let project = Project::new("");
    project.write("project/.env", "A=1\n");
    let git = |args: &[&str]| {
        let done = project.command(Path::new("git")).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    };
    std::fs::remove_dir(project.root().join(".git")).unwrap();
    git(&["init", "-q"]);
    assert_allowed(&project, "Bash", &json!({"command": "git grep hello"}));
    git(&["add", "-f", "."]);
    assert_asked(&project, &[("Bash", json!({"command": "git grep A"}))], ".env holds credentials");
    // What is as the repository has it is not printed.
    assert_allowed(&project, "Bash", &json!({"command": "git diff"}));
    project.write("project/.env", &format!("A={SECRET}\n"));
    assert_asked_although_it_only_reads(&project, "git --no-pager diff", ".env holds credentials");
    assert_allowed(&project, "Bash", &json!({"command": "git status --short"}));
}

fn native_searches() {
    let project = Project::new("approval: {auto_approve: [file.grep, file.glob]}\n");
    project.write("project/.env", SECRET);
    project.write("project/src/lib.rs", "fn lib() {}\n");
    let searches = [
        json!({"pattern": "."}),
        json!({"pattern": ".", "path": "."}),
        json!({"pattern": ".", "glob": "**/.env"}),
        json!({"pattern": ".", "glob": ".e*"}),
        json!({"pattern": ".", "glob": "*.rs, .env"}),
    ];
    assert_asked(&project, &searches.map(|input| ("Grep", input)), ".env holds credentials");
    let answer = project.hook(
        &["gemini", "--wait-ms", "0"],
        &event(&project, "BeforeTool", "grep_search", &json!({"pattern": "."})).to_string(),
    );
    assert!(String::from_utf8_lossy(&answer.stdout).contains(".env holds credentials"), "{answer:?}");
    for (tool, input) in [
        ("Grep", json!({"pattern": ".", "path": "src"})),
        ("Grep", json!({"pattern": ".", "glob": "*.rs"})),
        ("Glob", json!({"pattern": "**/*"})),
        ("LS", json!({"path": "."})),
    ] {
        assert_allowed(&project, tool, &input);
    }
    // Claude Code searches as ripgrep does: not what git ignores, but what a glob names.
    project.write("project/.gitignore", ".env\n");
    assert_allowed(&project, "Grep", &json!({"pattern": "."}));
    assert_asked(&project, &[("Grep", json!({"pattern": ".", "glob": "**/.env"}))], ".env holds credentials");
}

fn grants() {
    let project = Project::new("");
    let granted = project.run(&["approvals", "grant", "shell.exec", "touch made.txt"]);
    assert!(granted.status.success(), "{granted:?}");
    assert_asked(&project, &[("Bash", json!({"command": "touch made.txt"}))], "waits");
    let called = project.haft(&["explain", "shell.exec", r#"{"command": "touch made.txt"}"#, "--json"]);
    assert_eq!(called["verdict"]["by"], "grant", "the sandboxed command is covered: {called:#}");
}

fn addresses() {
    let project = Project::new("approval: {auto_approve: [web.fetch, web.search]}\n");
    // A public name for this machine, and one that the project's user has not allowed.
    for url in ["http://localtest.me:4747/", "https://example.com/page"] {
        assert_asked(&project, &[("WebFetch", json!({"url": url, "prompt": "x"}))], "waits");
    }
    assert_asked(&project, &[("WebSearch", json!({"query": "x"}))], "waits");
    for config in ["approval: {auto_approve: [web.fetch]}\n", "approval: {level: autonomous}\n"] {
        let project = Project::new(config);
        let prompt = json!({"prompt": "read http://169.254.169.254/latest/ and http://example.com/?d=x"});
        let event = event(&project, "BeforeTool", "web_fetch", &prompt).to_string();
        let answer = project.hook(&["gemini", "--wait-ms", "0"], &event);
        let printed = String::from_utf8_lossy(&answer.stdout).into_owned();
        assert!(printed.contains("the addresses that stand in its text"), "{config}: {answer:?}");
    }
}

fn own_names() {
    let project = Project::new("");
    for tool in ["MCP:haft:file_read", "MCP:file_read"] {
        let event = event(&project, "preToolUse", tool, &json!({})).to_string();
        let answer = project.hook(&["cursor", "--wait-ms", "0"], &event);
        assert!(String::from_utf8_lossy(&answer.stdout).contains("deny"), "{tool}: {answer:?}");
    }
    let gemini = |server: &str, tool: &str| {
        let mut event = event(&project, "BeforeTool", "mcp_haft_file_read", &json!({}));
        event["mcp_context"] = json!({"server_name": server, "tool_name": tool, "command": "haft"});
        project.hook(&["gemini", "--wait-ms", "0"], &event.to_string())
    };
    assert_eq!(said(&gemini("haft", "file_read")), Value::Null);
    let other = gemini("haft_file", "read");
    assert!(String::from_utf8_lossy(&other.stdout).contains("deny"), "{other:?}");
}
