//! shell.exec: confined, tried, kept, taken back, recorded.

use crate::terminal::typed;
use crate::{Env, snapshot};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Whether this machine confines fully. Where it does not, these tests say so and prove nothing.
pub(crate) fn confines(env: &Env) -> bool {
    let findings = env.run(&["doctor", "--json"]).json();
    let full = findings.as_array().unwrap().iter().any(|finding| {
        finding["name"] == "confinement"
            && finding["found"].as_str().unwrap().starts_with("full")
            && finding["health"] == "good"
    });
    if !full {
        eprintln!("SKIPPED: this machine does not confine fully; see `haft doctor`");
    }
    full
}

pub(crate) fn scene() -> Option<Env> {
    let env = Env::new();
    confines(&env).then_some(env)
}

pub(crate) fn exec(env: &Env, command: &str) -> (Value, i32) {
    env.call("shell.exec", json!({"command": command}), &["--yes"])
}

#[test]
fn a_command_runs_confined_and_its_status_and_output_come_back() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "one\n");
    let (outcome, code) = exec(&env, "cat a.txt; echo oops >&2; exit 3");
    assert_eq!((code, outcome["success"].as_bool()), (1, Some(false)), "{outcome:#}");
    assert_eq!(outcome["output"], "one\n[stderr] oops\n[exit status 3]\n");
    assert_eq!(outcome["data"]["exit_code"], 3);
    assert_eq!(outcome["data"]["run"]["level"], "full");
    let secret = env.dir.path().join("home/secret");
    std::fs::write(&secret, "s3cret").unwrap();
    let (outcome, _) = exec(&env, &format!("cat {}; cat /etc/shadow; env", secret.display()));
    let text = outcome["output"].as_str().unwrap();
    assert!(!text.contains("s3cret") && text.contains("No such file"), "{text}");
}

#[test]
fn what_a_command_changes_is_kept_shown_and_taken_back() {
    let Some(env) = scene() else { return };
    env.file("keep.txt", "keep\n");
    env.file("edit.txt", "old\n");
    env.file("gone/deep.txt", "deep\n");
    std::os::unix::fs::symlink("keep.txt", env.root().join("link")).unwrap();
    let before = snapshot(&env.root());
    let command = "echo new > edit.txt; chmod 700 edit.txt; rm -r gone; mkdir made; echo x > made/x; mv keep.txt moved.txt; ln -sfn edit.txt link";
    let (outcome, code) = exec(&env, command);
    assert_eq!(code, 0, "{outcome:#}");
    assert_eq!(outcome["undo"]["available"], true);
    assert_eq!(
        (env.read("edit.txt").as_str(), env.read("moved.txt").as_str(), env.read("made/x").as_str()),
        ("new\n", "keep\n", "x\n")
    );
    assert!(!env.root().join("gone").exists());
    let after = snapshot(&env.root());
    let id = outcome["call_id"].as_str().unwrap();
    let changes = env.run(&["changes", id]).stdout;
    for line in ["-old", "+new", "mode of edit.txt: 644 -> 700", "symlink link", "gone/", "made/"] {
        assert!(changes.contains(line), "{line} is missing in\n{changes}");
    }
    let undone = env.run(&["undo", id, "--json"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert_eq!(snapshot(&env.root()), before);
    let again = undone.json()["call_id"].as_str().unwrap().to_owned();
    assert_eq!(env.run(&["undo", &again]).code, 0);
    assert_eq!(snapshot(&env.root()), after);
}

#[test]
fn a_dry_run_shows_the_real_effect_and_touches_nothing() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "one\n");
    let before = snapshot(&env.root());
    let args = json!({"command": "echo two >> a.txt; echo hi; exit 1"});
    let (outcome, code) = env.call("shell.exec", args.clone(), &["--dry-run"]);
    assert_eq!(code, 1, "{outcome:#}");
    assert_eq!(outcome["data"]["changes"], json!(["a.txt"]));
    assert!(outcome["data"]["diff"].as_str().unwrap().contains("+two"), "{outcome:#}");
    assert!(outcome["output"].as_str().unwrap().contains("hi"));
    let explained = env.run(&["explain", "shell.exec", &args.to_string(), "--run", "--json"]).json();
    assert!(explained["trial"]["data"]["diff"].as_str().unwrap().contains("+two"), "{explained:#}");
    assert_eq!(explained["hold"]["level"], "full");
    assert_eq!(snapshot(&env.root()), before);
    let staging = env.dir.path().join("home/.local/share/haft/staging");
    assert_eq!(std::fs::read_dir(staging).unwrap().count(), 0, "a dry run leaves nothing behind");
}

#[test]
fn a_person_approves_the_effect_and_not_the_intention() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "one\n");
    // Runs differently every time: what is kept has to be what was seen.
    let call = r#"shell.exec '{"command":"date +%s%N > now.txt; echo two >> a.txt"}'"#;
    let (screen, code) = typed(&env, call, "t\no\n");
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("+two") && screen.contains("[o]nce: keep this"), "{screen}");
    let seen = screen.lines().find_map(|line| line.strip_prefix('+').filter(|line| line.len() == 19)).unwrap();
    assert_eq!(env.read("now.txt").trim(), seen);
    assert_eq!(env.read("a.txt"), "one\ntwo\n");
    let (screen, code) = typed(&env, r#"shell.exec '{"command":"echo three >> a.txt"}'"#, "t\nr\nno\n");
    assert_eq!(code, 5, "{screen}");
    assert_eq!(env.read("a.txt"), "one\ntwo\n", "what was tried and rejected is discarded");
}

#[test]
fn an_edited_command_is_not_the_one_that_was_tried() {
    let Some(env) = scene() else { return };
    let call = r#"shell.exec '{"command":"echo tried > b.txt"}'"#;
    let (screen, code) = typed(&env, call, "t\ne\n{\"command\":\"echo edited > c.txt\"}\no\n");
    assert_eq!(code, 0, "{screen}");
    assert_eq!(env.read("c.txt"), "edited\n");
    assert!(!env.root().join("b.txt").exists(), "{screen}");
}

#[test]
fn trying_is_recorded_and_what_is_sent_is_asked() {
    let Some(env) = scene() else { return };
    let args = json!({"command": "true"});
    env.call("shell.exec", args.clone(), &["--dry-run"]);
    let record = env.records().pop().unwrap();
    assert_eq!((record["body"]["dry_run"].as_bool(), &record["body"]["args"]), (Some(true), &args));
    assert_eq!(record["body"]["confinement"]["level"], "full");
    assert_eq!(record["body"]["run"]["level"], "full", "{record:#}");
    env.config("permissions: {network: {allow: [\"example.com:443\"]}}\n");
    let writes = json!({"command": "touch x"});
    let (kind, message, code) = env.err("shell.exec", writes, &["--dry-run"]);
    assert_eq!((kind.as_str(), code), ("approval_required", 4), "{message}");
}

#[test]
fn where_a_project_lies_says_nothing_about_what_is_granted() {
    let env = Env::new();
    if !confines(&env) {
        return;
    }
    let project = env.dir.path().join("home/.glee/worktrees/proj");
    std::fs::create_dir_all(project.join(".git/hooks")).unwrap();
    let root = project.to_str().unwrap();
    let ran = env.run(&[
        "call",
        "shell.exec",
        r#"{"command":"mkdir -p n/.git/hooks; echo evil > n/.git/hooks/x"}"#,
        "--yes",
        "--root",
        root,
    ]);
    assert!(!project.join("n").exists(), "{}", ran.stderr);
    let ran = env.run(&["call", "shell.exec", r#"{"command":"echo fine > a.txt"}"#, "--yes", "--root", root]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn rules_do_not_vanish_with_a_directory() {
    let Some(env) = scene() else { return };
    env.file("sub/.haft/config.yml", "deny: [shell.exec]\n");
    let (_, _, code) = env.err("shell.exec", json!({"command": "rm -rf sub; mkdir sub"}), &["--yes"]);
    assert_eq!(code, 3);
    assert!(env.root().join("sub/.haft/config.yml").exists());
}

#[test]
fn what_decides_about_later_runs_cannot_be_written() {
    let Some(env) = scene() else { return };
    env.file(".git/hooks/pre-commit", "echo mine\n");
    env.file(".git/config", "[core]\n");
    env.file(".haft/config.yml", "");
    // A repository may be copied; the copy is no repository by its name.
    let state = || {
        let _ = std::fs::remove_dir_all(env.root().join(".g"));
        snapshot(&env.root())
    };
    let before = state();
    for command in [
        "echo evil > .git/hooks/pre-commit",
        "echo evil >> .git/config",
        "mv .git .g; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
        "rm -rf .git",
        "echo 'approval: {level: yolo}' > .haft/config.yml",
        "mkdir -p sub/.git/hooks && echo evil > sub/.git/hooks/pre-commit",
        "mkdir evil && cd evil && mkdir .glee && touch .glee/x",
        "echo 'gitdir: ../evil' > sub.git; mkdir w; mv sub.git w/.git",
    ] {
        let (outcome, code) = exec(&env, &format!("({command}) 2>/dev/null; true"));
        assert!(code == 0 || code == 3, "{command}: {outcome:#}");
        assert_eq!(state(), before, "{command}: {outcome:#}");
    }
    let outcome = env.ok("shell.exec", json!({"command": "mkdir -p n/.git/hooks; echo x > n/.git/hooks/p"}));
    assert_eq!(outcome["warnings"], json!(["n/.git/hooks/p is not kept: git runs it as a hook"]), "{outcome:#}");
    env.config(&format!("files:\n  write: [\"{}\"]\n", env.root().join(".git/hooks").display()));
    exec(&env, "echo granted > .git/hooks/pre-commit");
    assert_eq!(env.read(".git/hooks/pre-commit"), "granted\n", "what is named itself is granted");
}

#[test]
fn credentials_in_the_project_are_closed() {
    let Some(env) = scene() else { return };
    env.file(".env", "TOKEN=hush");
    env.file("conf/server.pem", "hush");
    // Many files must not push one out of sight.
    for number in 0..400 {
        env.file(&format!("d{number}/f"), "");
    }
    let (outcome, _) = exec(&env, "cat .env conf/server.pem; cp .env copy; ls -a");
    assert!(!outcome["output"].as_str().unwrap().contains("hush"), "{outcome:#}");
    assert!(!env.root().join("copy").exists() || env.read("copy").is_empty());
}

#[test]
fn the_record_says_beforehand_what_holds_and_what_cannot_be_taken_back() {
    let Some(env) = scene() else { return };
    env.config("confinement: {writes: direct}\napproval: {level: supervised}\n");
    let args = json!({"command": "echo x > a.txt"});
    assert_eq!(env.call("shell.exec", args.clone(), &["--no-input"]).1, 4, "what cannot be undone is asked");
    let (kind, message, _) = env.err("shell.exec", args.clone(), &["--dry-run"]);
    assert!(message.contains("cannot be tried without doing it"), "{kind}: {message}");
    env.ok("shell.exec", args.clone());
    assert_eq!(env.read("a.txt"), "x\n");
    let intent = |env: &Env| env.records().into_iter().rfind(|record| record["body"]["kind"] == "intent").unwrap();
    let hold = &intent(&env)["body"]["confinement"];
    assert_eq!(hold["level"], "full");
    assert!(hold["gap"].as_str().unwrap().contains("straight into the project"), "{hold:#}");
    env.config("approval: {level: supervised}\n");
    assert_eq!(env.call("shell.exec", args, &["--no-input"]).1, 0, "confined and undoable is medium");
    assert_eq!(intent(&env)["body"]["confinement"]["gap"], Value::Null);
}

#[test]
fn what_runs_unasked_because_it_can_be_undone_is_not_kept_if_it_cannot() {
    let Some(env) = scene() else { return };
    env.config("approval: {level: supervised}\nundo: {max_file_bytes: 10}\n");
    env.file("small.txt", "1");
    env.file("large.txt", "more than ten bytes");
    let run = |command: &str, flag: &str| env.call("shell.exec", json!({ "command": command }), &[flag]);
    assert_eq!(run("echo 2 > small.txt", "--no-input").1, 0);
    let (outcome, code) = run("echo 2 > large.txt", "--no-input");
    assert_eq!((code, outcome["error"]["kind"].as_str()), (1, Some("conflict")), "{outcome:#}");
    assert_eq!(env.read("large.txt"), "more than ten bytes");
    env.config("undo: {max_file_bytes: 10}\n");
    let (outcome, code) = run("echo 2 > large.txt", "--yes");
    assert_eq!((code, outcome["undo"]["available"].as_bool()), (0, Some(false)), "a person may: {outcome:#}");
}

#[test]
fn limits_end_a_command_and_discard_what_it_had_changed() {
    let Some(env) = scene() else { return };
    let begun = Instant::now();
    let args = json!({"command": "echo half > a.txt; sleep 60", "timeout_ms": 500});
    let (kind, message, code) = env.err("shell.exec", args, &["--yes"]);
    assert_eq!((kind.as_str(), code), ("timeout", 6), "{message}");
    assert!(begun.elapsed() < Duration::from_secs(10) && !env.root().join("a.txt").exists());
    env.config("confinement: {limits: {cpu_seconds: 1}}\n");
    let (outcome, _) = exec(&env, "echo half > a.txt; while :; do :; done");
    assert!(outcome["error"]["message"].as_str().unwrap().contains("processor time"), "{outcome:#}");
    assert!(!env.root().join("a.txt").exists());
    env.config("confinement: {limits: {memory: 64m, output: 100k, processes: 20}}\n");
    let hog = "head -c 200m /dev/zero | tail -c 200m | wc -c; echo survived";
    let (outcome, _) = exec(&env, hog);
    assert!(!outcome["output"].as_str().unwrap().contains("209715200"), "{outcome:#}");
    let (outcome, code) = exec(&env, "yes | head -c 10m");
    assert_eq!(code, 1, "{outcome:#}");
    assert!(outcome["error"]["message"].as_str().unwrap().contains("limit of output"), "{outcome:#}");
}

#[test]
fn nothing_outlives_its_call_not_even_when_haft_is_killed() {
    let Some(env) = scene() else { return };
    let marker = format!("haft-test-{}", std::process::id());
    // By its command line: the marker is in the arguments of whatever still runs.
    let alive = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&marker)).count()
    };
    // The kernel has been told; on a busy machine it takes a moment until nobody is left in the list. A process that begins
    // another program has no command line for a moment, so one look is not enough.
    let all_end = || {
        let (mut looks, until) = (0, Instant::now() + Duration::from_secs(10));
        while looks < 5 && Instant::now() < until {
            looks = if alive() == 0 { looks + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(20));
        }
        looks == 5
    };
    exec(&env, &format!("(setsid sh -c 'sleep 300; : {marker}-a' &) ; echo started"));
    assert!(all_end(), "a daemon ends with the call");
    let args = json!({"command": format!("echo half > a.txt; sh -c 'sleep 300; : {marker}-b'")}).to_string();
    let mut child = env.command(&["call", "shell.exec", &args, "--yes"]).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    // haft itself has the marker in its arguments.
    while alive() < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(all_end(), "everything ends with haft");
    assert!(!env.root().join("a.txt").exists());
    assert!(env.run(&["log"]).stderr.contains("(shell.exec) was interrupted"));
}

#[test]
fn haft_may_die_at_any_point_of_keeping_and_undoing() {
    let Some(env) = scene() else { return };
    let command = "echo new > a.txt; rm b.txt; mkdir d; echo c > d/c";
    for stage in ["opened", "kept", "exchanged", "applied", "ran"] {
        env.file("a.txt", "old\n");
        env.file("b.txt", "b\n");
        let _ = std::fs::remove_dir_all(env.root().join("d"));
        let before = snapshot(&env.root());
        let args = json!({ "command": command }).to_string();
        let died = env.command(&["call", "shell.exec", &args, "--yes"]).env("HAFT_CRASH_AT", stage).output().unwrap();
        assert_eq!(died.status.code(), None, "{stage}: {died:?}");
        let now = env.read("a.txt");
        assert!(now == "old\n" || now == "new\n", "{stage}: {now}");
        env.run(&["log"]);
        let interrupted = env.records().into_iter().rfind(|record| record["body"]["kind"] == "interrupted").unwrap();
        let id = interrupted["body"]["call"].as_str().unwrap().to_owned();
        let undo = env.run(&["undo", &id]);
        assert!(undo.code == 0 || stage == "opened", "{stage}: {}", undo.stderr);
        assert_eq!(snapshot(&env.root()), before, "{stage}");
    }
    let done = env.ok("shell.exec", json!({ "command": command }));
    let id = done["call_id"].as_str().unwrap();
    let died = env.command(&["undo", id]).env("HAFT_CRASH_AT", "undone").output().unwrap();
    assert_eq!(died.status.code(), None);
    let undo = env.run(&["undo", id]);
    assert_eq!(undo.code, 0, "an undo that died is done again: {}", undo.stderr);
    assert_eq!((env.read("a.txt").as_str(), env.read("b.txt").as_str()), ("old\n", "b\n"));
    assert!(!env.root().join("d").exists());
}

/// Whether there is a file of this name anywhere in a directory.
fn has(dir: &std::path::Path, name: &str) -> bool {
    let mut entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name() == name || (entry.path().is_dir() && has(&entry.path(), name)))
}

#[test]
fn somebody_elses_change_in_the_meantime_is_not_overwritten() {
    let Some(env) = scene() else { return };
    let path = env.file("a.txt", "old\n");
    let args = json!({"command": "echo mine > a.txt; touch ready; sleep 2"}).to_string();
    let child = env
        .command(&["call", "shell.exec", &args, "--yes", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It is at work when its layer has what it writes last.
    let staging = env.dir.path().join("home/.local/share/haft/staging");
    let until = Instant::now() + Duration::from_secs(20);
    while !has(&staging, "ready") && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::fs::write(&path, "theirs\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["error"]["kind"], "conflict", "{outcome:#}");
    assert_eq!(env.read("a.txt"), "theirs\n");
    assert!(!env.root().join("ready").exists(), "nothing was kept");
}

#[test]
fn what_was_believed_to_only_read_leaves_nothing_behind() {
    let Some(env) = scene() else { return };
    // A table that is wrong about a program, as any table may be about one.
    env.config("commands: {touch: {class: read, operands: \"read*\"}}\npermissions: {network: true}\n");
    let args = json!({"command": "touch new.txt; cat a.txt"});
    let (outcome, code) = env.call("shell.exec", args, &["--no-input"]);
    assert_eq!((code, &outcome["verdict"]["by"]), (3, &json!("shell reading")), "{outcome:#}");
    let said = outcome["error"]["message"].as_str().unwrap();
    assert_eq!(said, "it was let through because it only reads, and it changed new.txt; nothing was kept");
    assert!(!env.root().join("new.txt").exists());
}
