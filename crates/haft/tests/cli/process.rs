//! What goes on after its call: background commands, process.*, moving, ending, and what is left of each.

use crate::Env;
use crate::shell::{confines, scene};
use haft::{Call, Event, Haft, Halt, Keeper, Outcome, Settings, Store, Workspace, Yes, new_call_id};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Waits for something that happens in another process.
pub(crate) fn until(happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether there is a file of this name anywhere in a directory.
pub(crate) fn has(dir: &Path, name: &str) -> bool {
    let mut entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.any(|entry| {
        let kind = entry.file_type();
        entry.file_name() == name || (kind.is_ok_and(|kind| kind.is_dir()) && has(&entry.path(), name))
    })
}

/// Which processes have this in their command line.
pub(crate) fn alive(marker: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(marker)).count()
}

impl Env {
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("home/.local/share/haft")
    }

    /// Starts a command in the background and returns its id.
    fn start(&self, command: &str) -> String {
        let outcome = self.ok("shell.exec", json!({"command": command, "background": true}));
        assert_eq!(outcome["data"]["task"]["state"], "running", "{outcome:#}");
        outcome["data"]["task"]["id"].as_str().unwrap().to_owned()
    }

    fn status(&self, id: &str) -> Value {
        self.ok("process.status", json!({ "id": id }))["data"].clone()
    }

    /// Waits for the end of a task.
    pub(crate) fn ended(&self, id: &str) -> Value {
        until(|| self.status(id)["state"] != "running");
        self.status(id)
    }

    fn said(&self, id: &str) -> String {
        self.ok("process.output", json!({ "id": id }))["output"].as_str().unwrap().to_owned()
    }

    fn task_file(&self, id: &str) -> Value {
        let path = self.data().join("tasks").join(id.trim_start_matches("bg_")).join("task.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }
}

#[test]
fn a_background_command_returns_at_once_and_what_it_prints_accumulates() {
    let Some(env) = scene() else { return };
    let begun = Instant::now();
    let id = env.start(
        "echo one; until [ -e /tmp/never ] || [ $((++n)) -gt 15 ]; do sleep 0.1; done; echo two >&2; echo x > a.txt",
    );
    assert!(begun.elapsed() < Duration::from_secs(10) && id == "bg_1");
    until(|| env.said(&id) == "one\n");
    assert_eq!(env.status(&id)["state"], "running");
    assert!(!env.root().join("a.txt").exists(), "what it changes is there when it has ended");
    let end = env.ended(&id);
    assert_eq!(
        (&end["state"], &end["exit_code"], &end["undo"]["available"]),
        (&json!("done"), &json!(0), &json!(true))
    );
    assert_eq!((env.said(&id).as_str(), env.read("a.txt").as_str()), ("one\n[stderr] two\n", "x\n"));
    let part = env.ok("process.output", json!({"id": id, "offset": 4, "limit": 8}));
    assert_eq!((&part["output"], &part["data"]["next_offset"]), (&json!("[stderr]"), &json!(12)));
    assert_eq!(env.run(&["undo", &id]).code, 0);
    assert!(!env.root().join("a.txt").exists());
    let id = env.start("printf 日本");
    env.ended(&id);
    let part = env.ok("process.output", json!({"id": id, "offset": 0, "limit": 4}));
    assert_eq!((&part["output"], &part["data"]["next_offset"]), (&json!("日"), &json!(3)), "no character is split");
}

#[test]
fn the_log_tells_the_start_and_the_end_of_a_task() {
    let Some(env) = scene() else { return };
    let started = env.ok("shell.exec", json!({"command": "echo x > a.txt; exit 3", "run_in_background": true}));
    let (id, call) = (started["data"]["task"]["id"].as_str().unwrap(), started["call_id"].as_str().unwrap());
    let end = env.ended(id);
    assert_eq!((&end["state"], &end["exit_code"]), (&json!("failed"), &json!(3)));
    let records: Vec<Value> = env.records().into_iter().filter(|record| record["body"]["call"] == call).collect();
    let kinds: Vec<&str> = records.iter().map(|record| record["body"]["kind"].as_str().unwrap()).collect();
    assert!(kinds == ["intent", "outcome", "task"] || kinds == ["intent", "task", "outcome"], "{kinds:?}");
    let task = &records.iter().find(|record| record["body"]["kind"] == "task").unwrap()["body"];
    assert_eq!((&task["task"], &task["state"], &task["success"]), (&json!(id), &json!("failed"), &json!(false)));
    assert_eq!((&task["undo"]["files"], &task["run"]["level"]), (&json!(["a.txt"]), &json!("full")));
    let outcome = &records.iter().find(|record| record["body"]["kind"] == "outcome").unwrap()["body"];
    assert_eq!(outcome["task"], id);
    assert_eq!(env.run(&["log", "verify"]).code, 0);
    assert!(!env.run(&["log"]).stderr.contains("interrupted"), "an ended task is closed");
    assert!(env.run(&["changes", call]).stdout.contains("a.txt"));
    assert_eq!(env.run(&["undo", call]).code, 0, "by the call's name, too");
}

#[test]
fn a_task_is_listed_and_ended_by_the_session_that_started_it_alone() {
    let Some(env) = scene() else { return };
    let id = env.start("echo kept > a.txt; touch ready; sleep 300");
    until(|| has(&env.data(), "ready"));
    let listed = env.ok("process.list", json!({}));
    assert_eq!(listed["data"]["processes"][0]["id"], id.as_str());
    assert!(listed["output"].as_str().unwrap().starts_with("bg_1: running for "), "{listed:#}");
    for (tool, flags) in [("process.kill", ["--session", "other"]), ("process.output", ["--session", "other"])] {
        let (outcome, code) = env.call(tool, json!({ "id": id }), &[&["--yes"], &flags[..]].concat());
        assert_eq!((code, &outcome["error"]["kind"]), (1, &json!("not_found")), "{tool}");
    }
    let others = env.call("process.list", json!({}), &["--session", "other"]).0;
    assert_eq!(others["data"]["processes"], json!([]));
    let all = env.call("process.list", json!({"all": true}), &["--session", "other"]).0;
    assert_eq!(all["data"]["processes"][0]["id"], id.as_str());
    let (outcome, _) = env.call("process.status", json!({"id": "bg_99"}), &[]);
    assert_eq!(outcome["error"]["message"], "this session started no task `bg_99`");
    assert_eq!(
        (&outcome["error"]["hint"], &outcome["error"]["details"]["known"]),
        (&json!("it has bg_1"), &json!([id]))
    );
    let begun = Instant::now();
    let killed = env.ok("process.kill", json!({ "id": id }));
    assert!(begun.elapsed() < Duration::from_secs(5), "asked, it ends");
    assert_eq!((&killed["data"]["state"], &killed["data"]["signal"]), (&json!("cancelled"), &json!(15)), "{killed:#}");
    assert_eq!(env.read("a.txt"), "kept\n", "what was ended on request is kept");
    assert_eq!(env.run(&["undo", &id]).code, 0);
    assert!(!env.root().join("a.txt").exists());
    let again = env.ok("process.kill", json!({ "id": id }));
    assert!(again["output"].as_str().unwrap().starts_with("It had ended already"), "{again:#}");
}

#[test]
fn a_process_that_does_not_listen_is_killed_at_once_if_that_is_asked() {
    let Some(env) = scene() else { return };
    let id = env.start("trap '' TERM; touch ready; while :; do sleep 0.1; done");
    until(|| has(&env.data(), "ready"));
    let begun = Instant::now();
    let killed = env.ok("process.kill", json!({"id": id, "signal": "SIGKILL"}));
    assert!(begun.elapsed() < Duration::from_secs(4), "no grace");
    assert_eq!((&killed["data"]["state"], &killed["data"]["signal"]), (&json!("cancelled"), &json!(9)));
}

#[test]
fn a_program_is_run_as_it_is_or_by_the_shell() {
    let Some(env) = scene() else { return };
    let start = |args: Value| env.ok("process.start", args)["data"]["task"]["id"].as_str().unwrap().to_owned();
    for (args, printed) in [
        (json!({"command": "echo", "args": ["$HOME", "a  b"]}), "$HOME a  b\n"),
        (json!({"command": "echo", "args": []}), "\n"),
        (json!({"command": "echo one && echo two"}), "one\ntwo\n"),
        (json!({"command": "pwd", "cwd": "sub"}), "sub\n"),
    ] {
        env.file("sub/x", "");
        let id = start(args.clone());
        assert_eq!(env.ended(&id)["state"], "done", "{args}");
        assert!(env.said(&id).ends_with(printed), "{args}: {}", env.said(&id));
    }
    let before = env.ok("process.list", json!({}))["data"]["processes"].as_array().unwrap().len();
    for missing in ["no-such-program", "./nothing", "sub"] {
        let (kind, message, _) = env.err("process.start", json!({"command": missing, "args": []}), &["--yes"]);
        assert_eq!(kind, "not_found", "{message}");
    }
    let after = env.ok("process.list", json!({}))["data"]["processes"].as_array().unwrap().len();
    assert_eq!(before, after, "what did not start is no process");
}

#[test]
fn the_time_of_a_task_ends_it_and_discards_what_it_changed() {
    let Some(env) = scene() else { return };
    let args = json!({"command": "echo begun; echo half > a.txt; sleep 60", "background": true, "timeout_ms": 500});
    let id = env.ok("shell.exec", args)["data"]["task"]["id"].as_str().unwrap().to_owned();
    let end = env.ended(&id);
    assert_eq!((&end["state"], env.said(&id).as_str()), (&json!("timed_out"), "begun\n"));
    assert!(!env.root().join("a.txt").exists());
    env.config("confinement: {limits: {output: 100k}}\n");
    let id = env.start("echo half > a.txt; yes");
    let end = env.ended(&id);
    assert_eq!(end["state"], "failed");
    assert!(end["error"]["message"].as_str().unwrap().contains("limit of output"), "{end:#}");
    assert_eq!((end["output_bytes"].as_u64(), env.root().join("a.txt").exists()), (Some(100 << 10), false));
}

#[test]
fn a_task_whose_keeper_died_is_lost_and_nothing_of_it_survives() {
    let Some(env) = scene() else { return };
    let marker = format!("haft-lost-{}", std::process::id());
    let id = env.start(&format!("echo half > a.txt; touch ready; sh -c 'sleep 300; : {marker}'"));
    until(|| has(&env.data(), "ready") && alive(&marker) > 0);
    let keeper = i32::try_from(env.task_file(&id)["keeper"][0].as_i64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(keeper).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    until(|| alive(&marker) == 0);
    let next = env.run(&["call", "process.status", &json!({ "id": id }).to_string(), "--json"]);
    assert!(next.stderr.contains("(shell.exec) was interrupted"), "the next start says so: {}", next.stderr);
    let status = next.json();
    assert_eq!(status["data"]["state"], "lost", "{status:#}");
    assert!(!env.root().join("a.txt").exists());
    let killed = env.ok("process.kill", json!({ "id": id }));
    assert_eq!(killed["data"]["state"], "lost");
}

#[test]
fn a_task_ends_with_its_session_unless_it_is_to_go_on() {
    let Some(env) = scene() else { return };
    let start = |persist: bool| {
        let args = json!({"command": "sleep 300", "background": true, "persist": persist});
        let (outcome, code) = env.call("shell.exec", args, &["--yes", "--session", "work"]);
        assert_eq!(code, 0, "{outcome:#}");
        outcome["data"]["task"]["id"].as_str().unwrap().to_owned()
    };
    let (mortal, lasting) = (start(false), start(true));
    let deleted = env.ok("session.delete", json!({"session": "work"}));
    assert_eq!(deleted["data"]["ended"], json!([mortal]), "{deleted:#}");
    let state =
        |id: &str| env.call("process.status", json!({ "id": id }), &["--session", "work"]).0["data"]["state"].clone();
    until(|| state(&mortal) == "cancelled");
    assert_eq!(state(&lasting), "running");
    let (_, code) = env.call("process.kill", json!({ "id": lasting }), &["--yes", "--session", "work"]);
    assert_eq!(code, 0);
    let (kind, _, _) = env.err("shell.exec", json!({"command": "true", "persist": true}), &["--yes"]);
    assert_eq!(kind, "invalid_input", "what is not in the background cannot go on");
}

const QUICK: &str = "shell: {background_after_ms: 1000}\n";

#[test]
fn a_main_agents_long_command_moves_to_the_background() {
    let Some(env) = scene() else { return };
    env.config(QUICK);
    let args =
        json!({"command": "echo early; until [ $((++n)) -gt 25 ]; do sleep 0.1; done; echo late; echo x > a.txt"});
    let (outcome, code) = env.call("shell.exec", args.clone(), &["--yes", "--agent", "main"]);
    assert_eq!((code, &outcome["success"]), (0, &json!(true)), "{outcome:#}");
    let text = outcome["output"].as_str().unwrap();
    assert!(
        text.starts_with("early\n[it still runs after 1.") && text.contains("process.output {\"id\": \"bg_1\"}"),
        "{text}"
    );
    assert_eq!(outcome["data"]["task"], json!({"id": "bg_1", "pid": 1, "state": "running", "moved": true}));
    assert_eq!(env.ended("bg_1")["state"], "done");
    assert_eq!((env.said("bg_1").as_str(), env.read("a.txt").as_str()), ("early\nlate\n", "x\n"));
    assert_eq!(env.run(&["undo", outcome["call_id"].as_str().unwrap()]).code, 0);
    // Whoever is no agent waits, and so does one that another waits for.
    for agent in [&[][..], &["--agent", "main/helper"]] {
        let (outcome, code) = env.call("shell.exec", args.clone(), &[&["--yes"], agent].concat());
        assert!(code == 0 && outcome["output"].as_str().unwrap().starts_with("early\nlate\n"), "{outcome:#}");
    }
}

#[test]
fn a_main_agents_short_command_is_as_any_other() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "old\n");
    let run = |command: &str| env.call("shell.exec", json!({ "command": command }), &["--yes", "--agent", "main"]);
    let (outcome, code) = run("echo hi; echo oops >&2; echo new > a.txt; exit 3");
    assert_eq!((code, &outcome["data"]["exit_code"], &outcome["data"]["run"]["level"]), (1, &json!(3), &json!("full")));
    let text = outcome["output"].as_str().unwrap();
    assert!(text == "hi\n[stderr] oops\n[exit status 3]\n" || text == "[stderr] oops\nhi\n[exit status 3]\n", "{text}");
    assert_eq!((&outcome["undo"]["available"], env.read("a.txt").as_str()), (&json!(true), "new\n"));
    assert_eq!(env.run(&["undo", outcome["call_id"].as_str().unwrap()]).code, 0);
    assert_eq!(env.read("a.txt"), "old\n");
    env.config("shell: {output: separate}\n");
    let (outcome, _) = run("echo oops >&2; sleep 0.2; echo hi");
    assert_eq!(outcome["output"], "hi\n[stderr] oops\n");
    let (outcome, _) = run("seq 1 100000");
    let whole = std::fs::read_to_string(outcome["full_output"].as_str().unwrap()).unwrap();
    assert_eq!(whole.lines().count(), 100_000);
    assert_eq!(env.ok("process.list", json!({}))["data"]["processes"], json!([]), "it is not remembered as a task");
    assert!(!env.run(&["log"]).stderr.contains("interrupted"));
}

#[test]
fn what_a_main_agent_waits_for_ends_with_it() {
    let Some(env) = scene() else { return };
    let marker = format!("haft-wait-{}", std::process::id());
    let args = json!({"command": format!("echo half > a.txt; touch ready; sh -c 'sleep 300; : {marker}'")}).to_string();
    let mut child = env.command(&["call", "shell.exec", &args, "--yes", "--agent", "main"]).spawn().unwrap();
    until(|| has(&env.data(), "ready") && alive(&marker) > 1);
    child.kill().unwrap();
    child.wait().unwrap();
    until(|| alive(&marker) == 0);
    until(|| env.records().iter().any(|record| record["body"]["kind"] == "task"));
    assert!(!env.root().join("a.txt").exists(), "nobody waits for it, so nothing is kept");
    let ended = env.records().into_iter().rfind(|record| record["body"]["kind"] == "task").unwrap();
    assert_eq!(ended["body"]["state"], "cancelled", "{ended:#}");
}

#[test]
fn a_main_agent_that_cancels_hears_what_was_printed() {
    let Some(env) = scene() else { return };
    let args = json!({"command": "echo begun; echo x > a.txt; touch ready; sleep 300"}).to_string();
    let mut haft = env.command(&["call", "shell.exec", &args, "--yes", "--json", "--agent", "main"]);
    let child = haft.stdout(Stdio::piped()).spawn().unwrap();
    until(|| has(&env.data(), "ready"));
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let outcome: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(outcome["error"]["kind"], "cancelled", "{outcome:#}");
    assert_eq!(outcome["output"], "begun\n[the call was cancelled]\n");
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn what_decided_about_a_command_decides_about_what_it_changes_later() {
    let Some(env) = scene() else { return };
    env.config("floor: [{tool: \"shell.exec\", args: 'migrations/', reason: \"written by hand\"}]\n");
    // What the command says cannot be told beforehand, so that only what it did can be.
    let id = env.start("d=$(printf migrations); mkdir \"$d\"; echo x > \"$d/1\"");
    let end = env.ended(&id);
    assert_eq!((&end["state"], &end["error"]["kind"]), (&json!("failed"), &json!("denied")), "{end:#}");
    assert!(!env.root().join("migrations").exists());
    env.config("approval: {level: supervised}\nundo: {max_file_bytes: 10}\n");
    env.file("large.txt", "more than ten bytes");
    let args = json!({"command": "echo 2 > large.txt", "background": true});
    let (outcome, code) = env.call("shell.exec", args, &["--no-input"]);
    assert_eq!(code, 0, "{outcome:#}");
    let end = env.ended(outcome["data"]["task"]["id"].as_str().unwrap());
    assert_eq!((&end["state"], &end["error"]["kind"]), (&json!("failed"), &json!("conflict")), "{end:#}");
    assert_eq!(env.read("large.txt"), "more than ten bytes");
}

#[test]
fn somebody_elses_change_is_not_overwritten_by_a_task() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "old\n");
    let id = env.start("echo mine > a.txt; touch ready; until [ -e go ] || [ $((++n)) -gt 300 ]; do sleep 0.1; done");
    until(|| has(&env.data().join("staging"), "ready"));
    env.file("a.txt", "theirs\n");
    env.ok("process.kill", json!({ "id": id }));
    let end = env.ended(&id);
    assert_eq!((&end["state"], &end["error"]["kind"]), (&json!("cancelled"), &json!("conflict")), "{end:#}");
    assert_eq!(env.read("a.txt"), "theirs\n");
}

#[test]
fn a_background_command_is_tried_by_waiting_for_it() {
    let Some(env) = scene() else { return };
    let args = json!({"command": "echo x > a.txt; echo hi", "background": true});
    let (outcome, code) = env.call("shell.exec", args, &["--dry-run"]);
    assert_eq!((code, &outcome["data"]["changes"]), (0, &json!(["a.txt"])), "{outcome:#}");
    assert!(!env.root().join("a.txt").exists());
    let (_, message, _) = env.err("process.start", json!({"command": "true"}), &["--dry-run"]);
    assert!(message.contains("has no end to show"), "{message}");
    assert_eq!(env.ok("process.list", json!({}))["data"]["processes"], json!([]));
}

#[test]
fn looking_is_free_and_ending_ones_own_weighs_as_much_as_starting_it() {
    let Some(env) = scene() else { return };
    env.config("approval: {level: supervised}\n");
    let run = |tool: &str, args: Value| env.call(tool, args, &["--no-input"]);
    let (outcome, code) = run("process.start", json!({"command": "sleep", "args": ["300"]}));
    assert_eq!(code, 0, "{outcome:#}");
    for (tool, args) in [
        ("process.list", json!({})),
        ("process.status", json!({"id": "bg_1"})),
        ("process.output", json!({"id": "1"})),
        ("process.kill", json!({"id": "bg_1"})),
    ] {
        let (outcome, code) = run(tool, args);
        assert_eq!(code, 0, "{tool}: {outcome:#}");
    }
    env.config("");
    assert_eq!(run("process.kill", json!({"id": "bg_1"})).1, 4, "without a level it is asked, as everything that acts");
    env.config("profile: coding\n");
    assert_eq!(run("process.list", json!({})).1, 3, "group:runtime holds it");
}

#[test]
fn a_dialect_speaks_of_processes_in_its_own_words() {
    let Some(env) = scene() else { return };
    let said = |dialect: &str, tool: &str, args: Value| env.call(tool, args, &["--yes", "--dialect", dialect]).0;
    let started = said("flynn", "process.start", json!({"command": "echo", "args": ["hi"]}));
    assert!(started["output"].as_str().unwrap().starts_with("Started pid 1 in the background"), "{started:#}");
    env.ended("bg_1");
    let status = said("flynn", "process.status", json!({"pid": 1}));
    assert!(status["output"].as_str().unwrap().starts_with("pid 1: done"), "{status:#}");
    assert_eq!(said("flynn", "process.output", json!({"pid": 1}))["output"], "hi\n");
    assert_eq!(said("flynn", "process.kill", json!({"pid": 1, "signal": "SIGKILL"}))["success"], true);
    let started = said("flyto", "Bash", json!({"command": "echo flyto", "run_in_background": true, "timeout": 5000}));
    assert_eq!(started["data"]["task"]["id"], "bg_2");
    env.ended("bg_2");
    assert_eq!(said("flyto", "Bash", json!({"command": "sleep 9", "timeout": 300}))["error"]["kind"], "timeout");
    let flemma = |command: &str, timeout: Value| {
        said("flemma", "bash", json!({"label": "why", "command": command, "timeout": timeout}))
    };
    assert_eq!(flemma("echo flemma", Value::Null)["output"], "flemma\n");
    assert_eq!(flemma("sleep 9", json!(0.3))["error"]["kind"], "timeout");
    let tail = flemma("seq 1 5000", Value::Null);
    let text = tail["output"].as_str().unwrap();
    assert!(text.starts_with("[Output truncated") && text.contains("\n5000\n[the whole output is in "), "{text}");
    let head = said("nodyn", "bash", json!({"command": "seq 1 50000", "timeout_ms": 60000}));
    assert!(head["output"].as_str().unwrap().starts_with("1\n2\n") && head["output"].as_str().unwrap().len() < 81_000);
    let flynn = said("flynn", "shell.exec", json!({"command": "seq 1 50000", "timeout": 60000}));
    assert!(flynn["output"].as_str().unwrap().len() < 52_000);
}

/// A host that keeps its tasks itself.
fn host(env: &Env) -> (Haft, tokio::runtime::Runtime) {
    let (store, data) = (Store::open(&env.dir.path().join("lib.db")).unwrap(), env.dir.path().join("lib"));
    let mut settings = Settings::new(data);
    assert_eq!(settings.keeper, Keeper::Thread, "the library's default");
    settings.terms.shell.background_after = Some(Duration::from_millis(500));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    (Haft::new(Workspace::new(&env.root()).unwrap(), store, settings), runtime)
}

fn call(haft: &Haft, runtime: &tokio::runtime::Runtime, agent: Option<&str>, tool: &str, args: Value) -> Outcome {
    let mut call = Call::new(new_call_id(), tool, args);
    call.caller.agent = agent.map(str::to_owned);
    runtime.block_on(haft.call(call, &Yes, &Halt::new()))
}

#[test]
fn a_long_lived_host_keeps_tasks_itself_and_ends_them_with_it() {
    let env = Env::new();
    if !confines(&env) {
        return;
    }
    let marker = format!("haft-host-{}", std::process::id());
    let (haft, runtime) = host(&env);
    let run = |agent, tool: &str, args| call(&haft, &runtime, agent, tool, args);
    let args = json!({"command": "echo early; sleep 1; echo x > a.txt"});
    let moved = run(Some("main"), "shell.exec", args);
    assert!(moved.output.starts_with("early\n[it still runs after 0.5 s"), "{}", moved.output);
    until(|| run(None, "process.status", json!({"id": "bg_1"})).data.unwrap()["state"] == "done");
    assert_eq!(env.read("a.txt"), "x\n");
    runtime.block_on(haft.undo(&moved.call_id)).unwrap();
    let quick = run(Some("main"), "shell.exec", json!({"command": "echo y > b.txt; echo hi"}));
    assert_eq!((quick.output.as_str(), quick.undo.unwrap().available), ("hi\n", true));
    let command = format!("touch ready; sh -c 'sleep 300; : {marker}'");
    let started = run(None, "shell.exec", json!({"command": command, "background": true}));
    assert!(started.success, "{started:?}");
    until(|| alive(&marker) > 0);
    drop(haft);
    assert_eq!(alive(&marker), 0, "what a host keeps ends with it");
}

#[test]
fn whoever_listens_hears_lines_as_they_are_printed() {
    let env = Env::new();
    if !confines(&env) {
        return;
    }
    let (haft, runtime) = host(&env);
    for agent in [None, Some("main")] {
        let mut events = haft.events().listen();
        let args = json!({"command": "echo one; sleep 0.2; echo two >&2; sleep 0.2; seq 1 100000"});
        let outcome = call(&haft, &runtime, agent, "shell.exec", args);
        assert!(outcome.success, "{outcome:?}");
        let mut lines = Vec::new();
        while let Ok(event) = events.try_recv() {
            if let Event::Progress { message, .. } = event {
                lines.push(message);
            }
        }
        assert_eq!(lines[..2], ["one", "[stderr] two"], "{agent:?}");
        assert!(lines.len() < 110, "a flood is told in part: {}", lines.len());
    }
}
