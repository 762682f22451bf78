//! Agents: those that are files, taken from elsewhere and accepted as they stand; and those that work for an agent.

use crate::{Env, snapshot};
use haft_stub::{Asked, Reply, Stub, Wire};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// As Claude Code writes them.
const REVIEWER: &str = "---\n\
name: code-reviewer\n\
description: Expert code review specialist. Use proactively after writing or modifying code.\n\
tools: Read, Grep, Glob, Bash, TodoWrite\n\
model: sonnet\n\
color: blue\n\
permissionMode: plan\n\
---\n\
\n\
You are a senior code reviewer.\n\
\n\
1. Run git diff to see recent changes\n\
2. Begin review immediately\n\
\n\
Checklist: \"quoted\", 'single', # no comment, {braces}\n";

const DEBUGGER: &str = "---\nname: debugger\ndescription: |\n  Debugging specialist: errors, test failures.\n  Use it early.\nmodel: inherit\n---\nYou debug.\n";

/// As Gemini's are written in TOML.
const RESEARCH: &str = r#"# An agent for looking things up
name = "web_researcher"
display_name = "Web researcher"
description = "Researches topics on the web"
model = "gemini-2.5-pro"
temperature = 0.2
tools = [
  "google_web_search",
  "web_fetch",  # pages
  "read_file",
  "run_shell_command",
]
prompt = """
You research.
Quote your sources: "like this".
"""

[run_config]
max_turns = 12
"#;

#[test]
fn agents_of_others_become_files_to_review() {
    let env = Env::new();
    env.file(".claude/agents/code-reviewer.md", REVIEWER);
    env.file(".claude/agents/debugger.md", DEBUGGER);
    env.file(".claude/agents/README.md", "How we use agents\n");
    env.file(".gemini/agents/research.toml", RESEARCH);
    env.file(".gemini/agents/broken.toml", "name = \"x\n");
    let dry = env.run(&["import", "agents", "--dry-run"]);
    assert!(dry.code == 0 && dry.stdout.contains("would write .haft/agents/code-reviewer.yml"), "{}", dry.stderr);
    assert!(dry.stdout.contains("Begin review immediately"), "it shows what it would write: {}", dry.stdout);
    assert!(!env.root().join(".haft").exists());
    let ran = env.run(&["import", "agents", "--json"]);
    let notes = ran.json()["notes"].to_string();
    assert!(!notes.contains("inherit"), "{notes}");
    for note in [
        "code-reviewer: there is no tool here for `TodoWrite`, which was left out",
        "code-reviewer: the model `sonnet` was left out, because only Claude Code knows which one that is: it has that of \
         whoever it works for; for that one write `model: anthropic/claude-sonnet-",
        "code-reviewer: `permissionMode` cannot be said here",
        "web_researcher: `temperature` cannot be said here",
        "README.md: it has no front matter",
        "broken.toml: line 1: a text does not end",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
    let reviewer = env.read(".haft/agents/code-reviewer.yml");
    let expected = json!({
        "description": "Expert code review specialist. Use proactively after writing or modifying code.",
        "prompt": REVIEWER.split_once("---\n\n").unwrap().1.trim(),
        "tools": ["file.read", "file.grep", "file.glob", "shell.exec"],
    });
    assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&reviewer).unwrap(), expected, "{reviewer}");
    let debugger = serde_saphyr::from_str::<serde_json::Value>(&env.read(".haft/agents/debugger.yml")).unwrap();
    assert_eq!((debugger.get("tools"), debugger.get("model")), (None, None), "{debugger:#}");
    let research = serde_saphyr::from_str::<serde_json::Value>(&env.read(".haft/agents/web_researcher.yml")).unwrap();
    let expected = json!({
        "description": "Researches topics on the web", "prompt": "You research.\nQuote your sources: \"like this\".",
        "tools": ["web.search", "web.fetch", "file.read", "shell.exec"], "model": "gemini/gemini-2.5-pro", "max_turns": 12,
    });
    assert_eq!(research, expected);
    let again = env.run(&["import", "agents"]);
    assert!(again.code == 1 && again.stderr.contains("--force"), "{}", again.stderr);
    let lint = env.run(&["lint"]);
    assert_eq!((lint.code, lint.stdout.as_str()), (0, "Nothing is wrong with 3 agents.\n"), "{}", lint.stderr);
}

#[test]
fn a_directory_of_agents_is_read_where_it_lies() {
    let env = Env::new();
    env.file("theirs/debugger.md", DEBUGGER);
    let ran = env.run(&["import", "agents", "--from", "theirs"]);
    assert!(ran.stdout.contains(".haft/agents/debugger.yml") && ran.stderr.contains("haft trust"), "{}", ran.stderr);
    assert_eq!(env.run(&["import", "agents", "--from", "nowhere"]).code, 2);
}

#[test]
fn an_agents_file_is_checked_and_accepted_as_it_stands() {
    let env = Env::new();
    env.file(".haft/agents/odd.yml", "description: Odd\nprompt: You are.\nmax_turns: many\ntool: [file.read]\n");
    env.file(".haft/agents/fine.yml", "description: Fine\nprompt: You are.\ntools: [file.raed]\n");
    let lint = env.run(&["lint"]);
    assert_eq!(lint.code, 1, "{}", lint.stdout);
    assert!(lint.stdout.contains(".haft/agents/odd.yml:3:1: max_turns: it is a whole number"), "{}", lint.stdout);
    assert!(lint.stdout.contains(".haft/agents/odd.yml:4:1: tool: there is no such key"), "{}", lint.stdout);
    assert!(
        lint.stdout.contains(".haft/agents/fine.yml:3:9: tools[0]: warning: no tool here matches `file.raed`"),
        "{}",
        lint.stdout
    );
    let asked = env.run(&["trust", "--json"]);
    assert_eq!(asked.code, 2, "nobody is there to look: {}", asked.stdout);
    let trust = env.run(&["trust", "--yes"]);
    assert!(trust.stdout.contains("accepted: the agent fine") && !trust.stdout.contains("odd"), "{}", trust.stdout);
    assert!(trust.stderr.contains("odd.yml:3:1"), "{}", trust.stderr);
    assert!(env.run(&["trust", "--yes"]).stdout.contains("accepted already: 0 tools and 1 agents"));
    env.file(".haft/agents/fine.yml", "description: Fine\nprompt: You obey.\n");
    assert!(env.run(&["trust", "--yes"]).stdout.contains("accepted: the agent fine"), "it was another one");
    assert!(env.run(&["trust", "--revoke"]).stdout.contains("withdrawn: the agent fine"));
}

/// A repository with a test that fails, hooks that tell if they run, and a model that the stub is.
fn repository(root: &Path) {
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=haft", "-c", "user.email=haft@example.com", "-c", "core.hooksPath=/dev/null"])
            .args(args)
            .current_dir(root)
            .output()
            .unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    std::fs::remove_dir_all(root.join(".git")).unwrap();
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "-A"]);
    git(&["commit", "--quiet", "-m", "first"]);
    for hook in ["post-checkout", "post-merge", "pre-commit", "reference-transaction", "post-index-change"] {
        let path = root.join(".git/hooks").join(hook);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\ntouch {}\n", root.join("../hooked").display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A small project: two programs, and a test of one of them that fails.
fn project() -> Env {
    let env = Env::new();
    env.file("add.sh", "echo $(($1 - $2))\n");
    env.file("greet.sh", "echo hello\n");
    env.file("test.sh", "test \"$(sh add.sh 2 3)\" = 5 && echo passed\n");
    repository(&env.root());
    env
}

fn asks(env: &Env, stub: &Stub) {
    let url = stub.base(Wire::Anthropic);
    env.config(&format!(
        "models:\n  use: [stub/stub-1]\n  providers:\n    stub: {{wire: anthropic, url: \"{url}\"}}\n  known:\n    \
         stub/stub-1: {{window: 200000, max_output: 4000, input: 1, output: 1}}\n"
    ));
}

/// What the calls of a conversation gave so far.
fn results(asked: &Asked) -> Vec<String> {
    let messages = asked.body["messages"].as_array().unwrap();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    let text = |block: &Value| block["content"][0]["text"].as_str().or(block["content"].as_str()).unwrap().to_owned();
    blocks.filter(|block| block["type"] == "tool_result").map(text).collect()
}

/// The ids of the children that a parent was told of, in order.
fn ids(report: &str) -> Vec<String> {
    let each = report.split("agent_merge with the id ").skip(1);
    each.map(|rest| rest.split(' ').next().unwrap().to_owned()).collect()
}

fn is(asked: &Asked, task: &str) -> bool {
    asked.says(task) && !asked.says("you are the parent")
}

/// Waits until two are here, for a while.
fn meet(there: &AtomicUsize) {
    there.fetch_add(1, Ordering::SeqCst);
    for _ in 0..500 {
        if there.load(Ordering::SeqCst) >= 2 {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_agents_mend_a_repository_on_copies_and_one_is_brought_over() {
    let env = project();
    let (root, before) = (env.root(), snapshot(&env.root()));
    let (first, met, untouched) = (before.clone(), AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&untouched);
    let stub = Stub::with(move |asked| {
        let told = results(asked);
        match (is(asked, "mend add.sh"), is(asked, "improve greet.sh"), told.len()) {
            (true, _, 0) => {
                meet(&met);
                Reply::call("file_read", json!({"path": "add.sh"}))
            }
            (true, _, 1) => {
                Reply::call("file_edit", json!({"path": "add.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"}))
            }
            (true, _, 2) => Reply::call("shell_exec", json!({"command": "sh test.sh"})),
            (true, ..) => Reply::say(format!("The test says: {}", told[2].trim())),
            (_, true, 0) => {
                meet(&met);
                Reply::call("file_read", json!({"path": "greet.sh"}))
            }
            (_, true, 1) => {
                Reply::call("file_edit", json!({"path": "greet.sh", "old_string": "hello", "new_string": "HELLO"}))
            }
            (_, true, 2) => Reply::call("shell_exec", json!({"command": "sh greet.sh > greeted.txt; cat greeted.txt"})),
            (_, true, _) => Reply::say("It shouts now."),
            (_, _, 0) => Reply::call(
                "agent_spawn",
                json!({"agents": [
                    {"name": "mender", "task": "mend add.sh", "mode": "worktree"},
                    {"name": "shouter", "task": "improve greet.sh", "mode": "worktree"}]}),
            ),
            (_, _, 1) => {
                // Both have ended, and nobody has brought anything over.
                seen.store(if snapshot(&root) == first { 1 } else { 2 }, Ordering::SeqCst);
                let [mender, shouter] = &ids(&told[0])[..] else { return Reply::say(told[0].clone()) };
                Reply::call("agent_merge", json!({"id": mender}))
                    .and_call("agent_control", json!({"action": "discard", "id": shouter}))
            }
            (_, _, 3) => Reply::call("shell_exec", json!({"command": "sh test.sh"})),
            _ => Reply::say(format!("Merged: {}", told[3].trim())),
        }
    });
    asks(&env, &stub);
    let ran = env.run(&["run", "--yes", "you are the parent: have both done"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("passed"), "the test passes in the project: {}", ran.stdout);
    assert_eq!(untouched.load(Ordering::SeqCst), 1, "nothing was touched before the merge");
    let report = &results(stub.asked().last().unwrap())[0];
    assert!(report.contains("+echo $(($1 + $2))") && report.contains("+echo HELLO"), "{report}");
    assert!(report.contains("The test says: passed"), "it passed on the copy: {report}");
    assert_eq!((env.read("add.sh").as_str(), env.read("greet.sh").as_str()), ("echo $(($1 + $2))\n", "echo hello\n"));
    assert!(!env.root().join("greeted.txt").exists() && !env.dir.path().join("hooked").exists());
    let inner = |all: &[(PathBuf, u32, Vec<u8>)]| -> Vec<_> {
        all.iter().filter(|(path, ..)| path.starts_with(env.root().join(".git"))).cloned().collect()
    };
    assert!(inner(&snapshot(&env.root())) == inner(&before), "history, branches and hooks are as they were");
    let worktrees = env.dir.path().join("home/.local/share/haft-worktrees");
    assert_eq!(std::fs::read_dir(worktrees).unwrap().count(), 0, "one was thrown away, the other is in the project");
    let records = env.records();
    let merge = records.iter().find(|record| record["body"]["tool"] == "agent.merge").unwrap();
    let undone = env.run(&["undo", merge["body"]["call"].as_str().unwrap()]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert!(snapshot(&env.root()) == before, "all is as it was: {}", undone.stdout);
    assert_eq!(stub.faults(), Vec::<String>::new());
}

#[test]
fn of_two_agents_that_changed_the_same_the_second_is_told_and_loses_nothing() {
    let env = project();
    let edit = |with: &str| json!({"path": "add.sh", "old_string": "$1 - $2", "new_string": with});
    let stub = Stub::with(move |asked| {
        let told = results(asked);
        match (is(asked, "mend it by plus"), is(asked, "mend it by bc"), told.len()) {
            (true, _, 0) | (_, true, 0) => Reply::call("file_read", json!({"path": "add.sh"})),
            (true, _, 1) => Reply::call("file_edit", edit("$1 + $2")),
            (_, true, 1) => Reply::call("file_edit", edit("$2 + $1")),
            (true, ..) | (_, true, _) => Reply::say("Mended."),
            (_, _, 0) => Reply::call(
                "agent_spawn",
                json!({"agents": [
                    {"name": "one", "task": "mend it by plus", "mode": "worktree"},
                    {"name": "two", "task": "mend it by bc", "mode": "worktree"}]}),
            ),
            (_, _, 1) => Reply::call("agent_merge", json!({"id": ids(&told[0])[0]})),
            (_, _, 2) => Reply::call("agent_merge", json!({"id": ids(&told[0])[1]})),
            _ => Reply::say("One of them."),
        }
    });
    asks(&env, &stub);
    let ran = env.run(&["run", "--yes", "you are the parent"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = results(stub.asked().last().unwrap());
    assert!(told[2].contains("both changed add.sh") && told[2].contains("nothing was changed"), "{told:?}");
    assert_eq!(env.read("add.sh"), "echo $(($1 + $2))\n", "the first one stays");
    let copy = env.dir.path().join("home/.local/share/haft-worktrees").join(&ids(&told[0])[1]).join("tree/add.sh");
    assert_eq!(std::fs::read_to_string(copy).unwrap(), "echo $(($2 + $1))\n", "so does the second, where it was made");
    let status = Command::new("git").args(["diff", "--name-only"]).current_dir(env.root()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "add.sh\n");
}

#[test]
fn what_a_child_asks_on_its_copy_is_answered_in_the_project() {
    let env = project();
    let stub = Stub::with(move |asked| match (is(asked, "write it down"), results(asked).len()) {
        (true, 0) => Reply::call("file_write", json!({"path": "noted.txt", "content": "noted\n"})),
        (true, _) => Reply::say("Somebody has to say yes."),
        (_, 0) => Reply::call("agent_spawn", json!({"name": "clerk", "task": "write it down", "mode": "worktree"})),
        _ => Reply::say("It waits."),
    });
    asks(&env, &stub);
    let ran = env.run(&["run", "--no-input", "you are the parent"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let report = &results(stub.asked().last().unwrap())[0];
    assert!(report.contains("calls of it wait for somebody to decide"), "{report}");
    let listed = env.run(&["approvals", "--json"]).json();
    let root = env.root().canonicalize().unwrap();
    assert_eq!((&listed[0]["tool"], &listed[0]["root"]), (&json!("file.write"), &json!(root)), "{listed:#}");
    let id = listed[0]["id"].as_str().unwrap();
    let worktrees = env.dir.path().join("home/.local/share/haft-worktrees");
    let copy = std::fs::read_dir(worktrees).unwrap().next().unwrap().unwrap().path();
    let asker = format!("main/clerk, in {}", copy.join("tree").display());
    assert!(listed[0]["asker"].as_str().unwrap().starts_with(&asker), "{listed:#}");
    let list = env.run(&["approvals"]).stdout;
    assert!(list.contains(&format!("asked by {asker}")), "a yes happens there: {list}");
    let shown = env.run(&["approvals", "show", id]);
    assert_eq!(shown.stdout.matches("asked by").count(), 1, "{}", shown.stdout);
    assert!(shown.stdout.contains("+noted"), "{} {}", shown.stdout, shown.stderr);
    let approved = env.run(&["approvals", "approve", id]);
    assert_eq!(approved.code, 0, "{} {}", approved.stdout, approved.stderr);
    assert!(!env.root().join("noted.txt").exists(), "it is done on the copy");
    assert_eq!(std::fs::read_to_string(copy.join("tree/noted.txt")).unwrap(), "noted\n");
    env.ok("agent.merge", json!({"id": copy.file_name().unwrap().to_str().unwrap()}));
    assert_eq!(env.read("noted.txt"), "noted\n");
}

#[test]
fn a_script_that_is_allowed_later_calls_nothing_that_its_agent_could_not() {
    let env = project();
    let code = r#"local ok, said = try("shell.exec", {command = "echo x"}); return ok and "it ran" or said"#;
    let stub = Stub::with(move |asked| match (is(asked, "script it"), results(asked).len()) {
        (true, 0) => Reply::call("tool_script", json!({ "code": code })),
        (true, _) => Reply::say("Somebody has to say yes."),
        (_, 0) => Reply::call(
            "agent_spawn",
            json!({"agents": [{"name": "clerk", "task": "script it", "tools": ["tool.script", "file.list"]}]}),
        ),
        _ => Reply::say("It waits."),
    });
    let url = stub.base(Wire::Anthropic);
    env.config(&format!(
        "hooks:\n  confirm: [tool.script]\nmodels:\n  use: [stub/m]\n  providers:\n    stub: {{wire: anthropic, url: \"{url}\"}}\n"
    ));
    env.run(&["run", "--no-input", "you are the parent"]);
    let listed = env.run(&["approvals", "--json"]).json();
    let id = listed[0]["id"].as_str().unwrap();
    let approved = env.run(&["approvals", "approve", id]);
    assert!(approved.stdout.contains("the tools it was given"), "{} {}", approved.stdout, approved.stderr);
}

#[test]
fn the_users_own_agents_are_roles_as_they_stand() {
    let stub = Stub::with(|_| Reply::say("Reviewed."));
    let env = Env::new();
    env.config(&format!(
        "models:\n  use: [stub/m]\n  providers:\n    stub: {{wire: anthropic, url: \"{}\"}}\n",
        stub.base(Wire::Anthropic)
    ));
    let own = |name: &str, text: &str| {
        let dir = env.dir.path().join("home/.config/haft/agents");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(name), text).unwrap();
    };
    own("mine.yml", "description: Mine\nprompt: You review as I like it.\n");
    own("creator.yml", "description: My creator\nprompt: You write as I like it.\n");
    own("broken.yml", "description: x\n");
    own("operator.yml", "description: x\n");
    env.file(".haft/agents/theirs.yml", "description: Theirs\nprompt: You obey.\n");
    let listed = env.run(&["agents"]).stdout;
    let row =
        |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {listed}"));
    assert!(row("mine").ends_with("user     Mine") && row("creator").ends_with("My creator"), "{listed}");
    assert!(row("theirs").contains("nobody has accepted it: `haft trust`"), "{listed}");
    assert!(row("broken").contains("`prompt` is missing") && row("researcher").contains("haft  "), "{listed}");
    assert_eq!(listed.lines().filter(|line| line.starts_with("operator")).count(), 2, "haft's counts still: {listed}");
    let told = env.run(&["agents", "list", "--json"]).json();
    let counts = |name: &str| {
        let all = told["roles"].as_array().unwrap();
        all.iter().find(|role| role["name"] == name).map(|role| role["counts"].clone()).unwrap()
    };
    assert_eq!((counts("mine"), counts("theirs"), counts("broken")), (json!(true), json!(false), json!(false)));
    let ran = env.run(&["run", "--role", "mine", "review"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Reviewed.\n"), "{}", ran.stderr);
    assert!(stub.asked()[0].says("You review as I like it."));
    assert_ne!(env.run(&["run", "--role", "theirs", "x"]).code, 0);
    assert!(env.run(&["doctor"]).stdout.contains("agents        cannot be read"), "doctor tells of it");
}
