//! What changes are shown as, and which of them are taken back: source first, ignored directories in a line, commits as
//! commits; selections by session, turn and time.

use crate::shell::{confines, exec};
use crate::terminal::typed;
use crate::{Env, Ran};
use haft_stub::{Reply, Stub, Wire};
use serde_json::{Value, json};
use std::process::Command;

/// Fills an ignored directory, and changes a line of a tracked file.
const INSTALL: &str = "mkdir -p node_modules/deep; n=0; \
     while [ $n -lt 250 ]; do echo module $n > node_modules/deep/$n.js; n=$((n+1)); done; echo two >> src.py";

fn git(env: &Env, args: &[&str]) -> String {
    let who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"];
    let done = Command::new("git").arg("-C").arg(env.root()).args(who).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?} {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A repository with a tracked file and an ignored directory.
fn repository() -> Option<Env> {
    let env = Env::new();
    if !confines(&env) {
        return None;
    }
    std::fs::remove_dir(env.root().join(".git")).unwrap();
    env.file(".gitignore", "node_modules/\n");
    env.file("src.py", "print(1)\n");
    git(&env, &["init", "-q"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "begin"]);
    Some(env)
}

/// The names that come before the first diff.
fn names(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.starts_with("# ")).take_while(|line| line.starts_with("# "));
    lines.collect()
}

#[track_caller]
fn is_ranked(text: &str) {
    let names = names(text);
    assert_eq!(names.len(), 2, "{text}");
    assert_eq!(names[0], "# modified src.py");
    assert!(names[1].starts_with("# ignored node_modules/: 250 files (250 added), "), "{names:?}");
    assert!(text.contains("+two") && !text.contains("module 7"), "{text}");
}

#[test]
fn source_is_named_before_an_ignored_directory_that_is_one_line() {
    let Some(env) = repository() else { return };
    // Before: the dry run, for people and for programs.
    let args = json!({ "command": INSTALL }).to_string();
    let ran = env.run(&["call", "--dry-run", "shell.exec", &args]);
    is_ranked(&ran.stdout);
    let (outcome, _) = env.call("shell.exec", json!({"command": INSTALL}), &["--dry-run"]);
    let data = &outcome["data"];
    assert_eq!(data["changes"], json!(["src.py", "node_modules/"]), "{data:#}");
    is_ranked(data["diff"].as_str().unwrap());
    let folded = &data["ranked"]["folded"][0];
    assert_eq!(
        (&folded["path"], &folded["files"], &folded["reason"]),
        (&json!("node_modules"), &json!(250), &json!("ignored"))
    );
    assert_eq!(data["ranked"]["paths"], json!([{"path": "src.py", "change": "modified", "rank": "source"}]));
    assert_eq!(env.read("src.py"), "print(1)\n");
    let opened = env.run(&["call", "--dry-run", "--path", "node_modules/deep", "shell.exec", &args]).stdout;
    assert!(names(&opened).len() == 250 && !opened.contains("src.py"), "{opened}");
    // Before: the trial at the prompt, where the folded directory can be opened.
    let (screen, _) = typed(&env, &format!("shell.exec '{args}'"), "t\nf\nr\n\n");
    let (first, folded) = (screen.find("# modified src.py"), screen.find("# ignored node_modules/: 250 files"));
    assert!(first.is_some() && first < folded, "{screen}");
    assert!(screen.contains("# added node_modules/deep/249.js"), "{screen}");
    // Afterwards.
    let (outcome, code) = exec(&env, INSTALL);
    assert_eq!((code, &outcome["undo"]["files"][0]), (0, &json!("src.py")), "{outcome:#}");
    let id = outcome["call_id"].as_str().unwrap();
    let shown = env.run(&["changes", id]);
    is_ranked(&shown.stdout);
    assert!(shown.stderr.contains(&format!("haft changes {id} --path 'node_modules'")), "{}", shown.stderr);
    let shown = env.run(&["changes", id, "--json"]).json();
    assert_eq!(shown["ranked"], data["ranked"], "{shown:#}");
    // The folded directory, opened.
    let opened = env.run(&["changes", id, "--path", "node_modules"]).stdout;
    assert_eq!(names(&opened).len(), 250, "{opened}");
    assert!(opened.contains("+module 10\n") && !opened.contains("src.py"), "{opened}");
    assert!(opened.contains("# the diffs of 50 files are not shown here"), "{opened}");
    let nothing = env.run(&["changes", id, "--path", "docs"]);
    assert_eq!(nothing.code, 1);
    assert!(nothing.stderr.contains("changed nothing at docs"), "{}", nothing.stderr);
}

#[test]
fn every_path_outside_ignored_directories_is_named() {
    let Some(env) = repository() else { return };
    let command =
        "n=0; while [ $n -lt 400 ]; do echo $n > new$n.txt; n=$((n+1)); done; mkdir -p dist; echo x > dist/a.js";
    let (outcome, _) =
        env.call("shell.exec", json!({"command": format!("{command}; echo 2 >> src.py")}), &["--dry-run"]);
    let diff = outcome["data"]["diff"].as_str().unwrap();
    let names = names(diff);
    assert_eq!((names[0], names[401]), ("# modified src.py", "# added dist/a.js"), "{diff}");
    assert!((0..400).all(|n| names.contains(&format!("# added new{n}.txt").as_str())), "{diff}");
    // What a call names itself is shown whole, wherever it is.
    let args = json!({"path": "node_modules/x.js", "content": "patched"});
    let (outcome, _) = env.call("file.write", args, &["--dry-run"]);
    assert!(outcome["data"]["diff"].as_str().unwrap().contains("+patched"), "{outcome:#}");
}

#[test]
fn a_call_cannot_hide_what_it_changes_by_ignoring_it() {
    let Some(env) = repository() else { return };
    let command = "echo '*' > .gitignore; mkdir lib; echo '*' > lib/.gitignore; echo evil > lib/evil.py; git rm -q --cached src.py; echo 2 >> src.py";
    let (outcome, code) = exec(&env, command);
    assert_eq!(code, 0, "{outcome:#}");
    let shown = env.run(&["changes", outcome["call_id"].as_str().unwrap()]).stdout;
    let names = names(&shown);
    for name in ["# modified src.py", "# modified .gitignore", "# added lib/evil.py", "# added lib/.gitignore"] {
        assert!(names.contains(&name), "{name}: {shown}");
    }
}

#[test]
fn a_commit_is_shown_as_a_commit() {
    let Some(env) = repository() else { return };
    let from = git(&env, &["rev-parse", "--short=12", "HEAD"]);
    let command = "echo 2 >> src.py && git -c user.name=x -c user.email=x@x commit -q -a -m 'Print two' -m body";
    let (outcome, code) = exec(&env, command);
    assert_eq!(code, 0, "{outcome:#}");
    let to = git(&env, &["rev-parse", "--short=12", "HEAD"]);
    let id = outcome["call_id"].as_str().unwrap();
    let shown = env.run(&["changes", id]).stdout;
    let names = names(&shown);
    assert_eq!(
        names[..3],
        [
            "# modified src.py",
            &format!("# commit {to} Print two"),
            &format!("# reference refs/heads/main: {from} -> {to}"),
        ],
        "{shown}"
    );
    assert!(names[3].starts_with("# git data .git/: ") && names.len() == 4, "{shown}");
    assert!(!shown.contains(".git/objects"), "{shown}");
    let ranked = &env.run(&["changes", id, "--json"]).json()["ranked"];
    assert_eq!(ranked["commits"][0]["subject"], "Print two", "{ranked:#}");
    let opened = env.run(&["changes", id, "--path", ".git"]).stdout;
    assert!(opened.contains("# added .git/objects/") && opened.contains("# modified .git/refs/heads/main"), "{opened}");
}

#[test]
fn invented_git_data_is_shown_as_the_files_that_it_is() {
    let Some(env) = repository() else { return };
    let object = |id: &str| format!(".git/objects/{}/{}", &id[..2], &id[2..]);
    let blob = object(&git(&env, &["rev-parse", "HEAD:src.py"]));
    let commit = object(&git(&env, &["rev-parse", "HEAD"]));
    let id = "c".repeat(38);
    let added = [
        // No repository is there.
        "src/.git/objects/pack/pack-x.js".to_owned(),
        format!("src/.git/objects/ab/{id}"),
        "src/.git/logs/x.py".to_owned(),
        "src/.git/logs/HEAD".to_owned(),
        // One is, and this is none of its data.
        ".git/objects/pack/pack-x.js".to_owned(),
        format!(".git/objects/ab/{id}"),
        format!(".git/objects/pack/pack-{id}00.pack"),
        ".git/logs/x.py".to_owned(),
        ".git/logs/refs/heads/x.py".to_owned(),
        ".git/refs/heads/x.py".to_owned(),
        format!(".git/x/objects/ab/{id}"),
    ];
    let mut commands = vec![format!("rm -f {blob}; chmod u+w {commit}; echo x > {commit}")];
    for path in &added {
        commands.push(format!("mkdir -p $(dirname {path}); echo 'import os' > {path}"));
    }
    let (outcome, code) = exec(&env, &commands.join("; "));
    assert_eq!(code, 0, "{outcome:#}");
    let shown = env.run(&["changes", outcome["call_id"].as_str().unwrap()]).stdout;
    let names = names(&shown);
    let mut expected = vec![format!("# deleted {blob}"), format!("# modified {commit}")];
    expected.extend(added.iter().map(|path| format!("# added {path}")));
    for name in &expected {
        assert!(names.contains(&name.as_str()), "{name}: {shown}");
    }
    assert_eq!(names.len(), expected.len(), "{shown}");
    assert!(shown.contains("+import os"), "{shown}");
}

fn write(env: &Env, session: &str, path: &str) -> String {
    let (outcome, code) =
        env.call("file.write", json!({"path": path, "content": "new"}), &["--yes", "--session", session]);
    assert_eq!(code, 0, "{outcome:#}");
    outcome["call_id"].as_str().unwrap().to_owned()
}

fn is_there(env: &Env, names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| env.root().join(name).exists()).collect()
}

#[test]
fn undo_says_that_a_session_alone_selects_nothing() {
    let env = Env::new();
    write(&env, "x", "x1");
    for args in [&["undo", "--session", "x"][..], &["undo"][..]] {
        let ran = env.run(args);
        assert_eq!((ran.code, is_there(&env, &["x1"])), (2, vec![true]), "{}", ran.stderr);
        for part in
            ["`--session` narrows `--last`, `--turn` and `--since`; alone it selects nothing", "the ID of a call"]
        {
            assert!(ran.stderr.contains(part), "{}", ran.stderr);
        }
    }
    let help = env.run(&["undo", "--help"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "Undo calls: one by ID, the latest (`--last`), or all of a turn (`--turn`) or since a time (`--since`). \
                 Calls that cannot be undone are skipped and listed with the reason.";
    assert!(help.starts_with(words), "{help}");
}

#[test]
fn the_last_of_a_session_is_undone_and_other_sessions_stay() {
    let env = Env::new();
    write(&env, "x", "x1");
    let second = write(&env, "x", "x2");
    write(&env, "y", "y1");
    let undone = env.run(&["undo", "--session", "x", "--last", "--json"]).json();
    assert_eq!(undone["undone"], json!(second), "{undone:#}");
    assert_eq!(is_there(&env, &["x1", "x2", "y1"]), [true, false, true]);
    let none = env.run(&["undo", "--session", "z", "--last"]);
    assert_eq!(none.code, 1, "{}", none.stderr);
    assert!(none.stderr.contains("no selected call"), "{}", none.stderr);
    // Without a session, it is the last of the project.
    assert_eq!(env.run(&["undo", "--last"]).code, 0);
    assert_eq!(is_there(&env, &["x1", "x2", "y1"]), [true, false, false]);
    // The environment names a session, too.
    let mut command = env.command(&["undo", "--last"]);
    let ran = Ran::from(command.env("HAFT_SESSION", "y").output().unwrap());
    assert_eq!((ran.code, is_there(&env, &["x1"])), (1, vec![true]), "{}", ran.stderr);
}

#[test]
fn call_whose_undo_was_undone_can_be_undone_again() {
    let env = Env::new();
    let call = write(&env, "x", "x1");
    let undo = |args: &[&str]| {
        let done = env.run(&[&["undo"], args, &["--json"]].concat());
        assert_eq!(done.code, 0, "{args:?} {}{}", done.stdout, done.stderr);
        done.json()["call_id"].as_str().unwrap().to_owned()
    };
    let listed = || env.run(&["changes"]).stdout.lines().find(|line| line.starts_with(&call)).unwrap().to_owned();
    let first = undo(&[&call]);
    assert!(listed().contains(&format!("undone by {first}")), "{}", listed());
    undo(&[&first]);
    assert_eq!(is_there(&env, &["x1"]), [true]);
    assert!(!listed().contains("undone by"), "{}", listed());
    let second = undo(&[&call]);
    assert_eq!(is_there(&env, &["x1"]), [false]);
    assert!(listed().contains(&format!("undone by {second}")), "{}", listed());
    let again = env.run(&["undo", &call]);
    assert!(again.code != 0 && again.stderr.contains("undone already"), "{}", again.stderr);
    undo(&[&second]);
    undo(&["--last"]);
    assert_eq!(is_there(&env, &["x1"]), [false]);
}

#[test]
fn a_stuck_change_of_a_session_is_passed_over_with_its_reason() {
    let env = Env::new();
    write(&env, "x", "x1");
    let stuck = write(&env, "x", "x2");
    env.file("x2", "theirs");
    write(&env, "y", "y1");
    let ran = env.run(&["undo", "--session", "x", "--last"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("passed over {stuck}")), "{}", ran.stderr);
    assert!(ran.stderr.contains("changed since: x2"), "{}", ran.stderr);
    assert_eq!(is_there(&env, &["x1", "x2", "y1"]), [false, true, true]);
    for selection in [&["--last"][..], &["--since", "1h"]] {
        let none = env.run(&[&["undo", "--session", "x"], selection].concat());
        assert_eq!(none.code, 1, "{}", none.stderr);
        assert_eq!(none.stderr.matches("cannot be undone").count(), 0, "the reason is said once: {}", none.stderr);
        assert!(none.stderr.contains(&format!("the latest is {stuck}: changed since: x2")), "{}", none.stderr);
        assert!(!none.stderr.contains("--partial"), "its only file cannot be restored: {}", none.stderr);
    }
}

#[test]
fn all_calls_since_a_time_are_undone_the_latest_first() {
    let env = Env::new();
    for content in ["one", "two"] {
        let args = json!({"path": "a", "content": content});
        let (outcome, code) = env.call("file.write", args, &["--yes", "--session", "x"]);
        assert_eq!(code, 0, "{outcome:#}");
    }
    write(&env, "y", "b");
    let later = env.run(&["undo", "--session", "x", "--since", "2999-01-01"]);
    assert_eq!((later.code, env.read("a").as_str()), (1, "two"), "{}", later.stderr);
    let undone = env.run(&["undo", "--session", "x", "--since", "1h", "--json"]).json();
    assert_eq!(undone["undone"].as_array().unwrap().len(), 2, "{undone:#}");
    assert_eq!(is_there(&env, &["a", "b"]), [false, true]);
    for wrong in [&["undo"][..], &["undo", "--since", "soon"], &["undo", "--turn", "1"], &["undo", "--session", "y"]] {
        let ran = env.run(wrong);
        assert_eq!((ran.code, is_there(&env, &["b"])), (2, vec![true]), "{wrong:?} {}", ran.stderr);
    }
}

#[test]
fn a_turn_of_a_conversation_is_undone() {
    let stub = Stub::start(vec![
        Reply::call("file_write", json!({"path": "first", "content": "1"})),
        Reply::call("file_write", json!({"path": "second", "content": "2"})),
        Reply::say("Both are there."),
    ]);
    let env = Env::new();
    let url = stub.base(Wire::Anthropic);
    env.config(&format!(
        "models:\n  use: [stub/stub-1]\n  providers:\n    stub: {{wire: anthropic, url: \"{url}\"}}\n  known:\n    \
         stub/stub-1: {{window: 200000, max_output: 4000, input: 1, output: 1}}\n"
    ));
    let ran = env.run(&["run", "--yes", "--session", "talk", "write both"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let listed = env.run(&["changes", "--json"]).json();
    let turns: Vec<(&Value, &Value)> =
        listed.as_array().unwrap().iter().map(|call| (&call["turn"], &call["files"][0])).collect();
    assert_eq!(turns, [(&json!(2), &json!("second")), (&json!(1), &json!("first"))], "{listed:#}");
    let lines = env.run(&["changes", "--session", "talk", "--turn", "1"]).stdout;
    assert!(lines.contains("file.write  first  (session talk, turn 1)") && lines.lines().count() == 1, "{lines}");
    let undone = env.run(&["undo", "--session", "talk", "--turn", "1"]);
    assert_eq!((undone.code, is_there(&env, &["first", "second"])), (0, vec![false, true]), "{}", undone.stderr);
}

#[test]
fn changes_are_listed_with_tool_files_command_session_and_time() {
    let Some(env) = repository() else { return };
    write(&env, "x", "x1");
    let (outcome, _) = env.call("shell.exec", json!({"command": INSTALL}), &["--yes", "--session", "y"]);
    assert_eq!(outcome["success"], true, "{outcome:#}");
    let lines = env.run(&["changes"]).stdout;
    let lines: Vec<&str> = lines.lines().collect();
    assert!(
        lines[0].contains("  shell.exec  $ mkdir -p node_modules/deep") && lines[0].contains("(session y)"),
        "{lines:?}"
    );
    assert!(lines[1].contains("  file.write  x1  (session x)"), "{lines:?}");
    let listed = env.run(&["changes", "--json"]).json();
    let call = &listed[0];
    assert_eq!(
        (&call["tool"], &call["session"], &call["files"][0]),
        (&json!("shell.exec"), &json!("y"), &json!("src.py"))
    );
    assert!(call["command"].as_str().unwrap().starts_with("mkdir") && call["at_ms"].is_i64(), "{call:#}");
    let session = env.run(&["changes", "--session", "x", "--json"]).json();
    assert_eq!((session.as_array().unwrap().len(), &session[0]["files"]), (1, &json!(["x1"])), "{session:#}");
}

/// Gives a file and a directory the attributes of others, and leaves their content and times as they are.
const COPY_ATTRIBUTES: &str = "cp --attributes-only --preserve=xattr model.txt noted.txt; \
     cp -rT --attributes-only --preserve=xattr model dir";

#[test]
fn attribute_alone_is_shown_kept_and_taken_back_and_a_directorys_is_told() {
    let env = Env::new();
    if !confines(&env) {
        return;
    }
    env.file("noted.txt", "text\n");
    env.file("model.txt", "");
    for dir in ["dir", "model"] {
        std::fs::create_dir(env.root().join(dir)).unwrap();
    }
    for model in ["model", "model.txt"] {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(env.root().join(model), "user.note", b"new", flags).unwrap();
    }
    let attribute = |name: &str| {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(env.root().join(name), "user.note", &mut value[..]).ok()?;
        Some(String::from_utf8_lossy(&value[..length]).into_owned())
    };
    let command = json!({ "command": COPY_ATTRIBUTES }).to_string();
    let dry = env.run(&["call", "--dry-run", "shell.exec", &command]);
    assert!(dry.stdout.contains("attribute user.note of noted.txt: added"), "{} {}", dry.stdout, dry.stderr);
    assert_eq!(attribute("noted.txt"), None);
    let (outcome, code) = env.call("shell.exec", serde_json::from_str(&command).unwrap(), &["--yes"]);
    assert_eq!(code, 0, "{outcome:#}");
    assert_eq!(attribute("noted.txt").as_deref(), Some("new"));
    assert_eq!(attribute("dir"), None);
    assert_eq!(
        outcome["warnings"],
        json!([
            "dir keeps its attributes and access control list: haft does not take over those that a command gives to a directory"
        ])
    );
    env.run(&["undo", "--last"]);
    assert_eq!(attribute("noted.txt"), None);
    assert_eq!(std::fs::read_to_string(env.root().join("noted.txt")).unwrap(), "text\n");
}
