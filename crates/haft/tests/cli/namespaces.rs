//! Several hafts on one data directory that cannot see each other as processes: in PID namespaces of their own, as in containers,
//! and of several users. Who lives is seen by locks.

use crate::interference::{behind, can, open_to_all};
use crate::process::{has, until};
use crate::shell::scene;
use crate::{Env, Ran};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The program that starts others in a PID namespace of their own.
fn namespace() -> Option<Vec<&'static str>> {
    let as_root = vec!["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let as_user = [&["unshare", "--user", "--map-root-user"][..], &as_root[1..]].concat();
    let found = [as_root, as_user].into_iter().find(|program| can(program));
    if found.is_none() {
        eprintln!("SKIPPED: PID namespaces are forbidden here");
    }
    found
}

/// A project in which a command can be kept waiting.
fn scene_with_namespace() -> Option<(Env, Vec<&'static str>)> {
    let found = scene().zip(namespace());
    if let Some((env, _)) = &found {
        env.file("gate", "shut\n");
    }
    found
}

/// A command that goes on until the gate is opened.
const WAITING: &str =
    "echo half > begun; until read -r gate < gate; [ \"$gate\" = open ]; do sleep 0.05; done; echo whole > a.txt";

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a call that waits at the gate, in a namespace.
fn begin(env: &Env, namespace: &[&str]) -> Running {
    let args = json!({ "command": WAITING }).to_string();
    let mut command = behind(&env.command(&["call", "shell.exec", &args, "--yes", "--json"]), namespace);
    let running = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    until(|| has(&env.data(), "begun"));
    running
}

fn run_behind(command: &Command, program: &[&str]) -> Ran {
    Ran::from(behind(command, program).stdin(Stdio::null()).output().unwrap())
}

/// What a haft that starts in another namespace says of the calls of others.
fn said_elsewhere(env: &Env, namespace: &[&str]) -> String {
    let ran = run_behind(&env.command(&["log", "--json", "-n", "10000"]), namespace);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stderr
}

fn interrupted(env: &Env) -> usize {
    env.records().iter().filter(|record| record["body"]["kind"] == "interrupted").count()
}

#[test]
fn call_goes_on_when_hafts_in_other_namespaces_start_and_end() {
    let Some((env, namespace)) = scene_with_namespace() else { return };
    let mut call = begin(&env, &namespace);
    for _ in 0..2 {
        assert!(!said_elsewhere(&env, &namespace).contains("interrupted"));
        assert!(!env.run(&["log"]).stderr.contains("interrupted"));
        // One that makes a call sweeps what others left.
        let other = run_behind(&env.command(&["call", "shell.exec", r#"{"command":"true"}"#, "--yes"]), &namespace);
        assert_eq!(other.code, 0, "{}", other.stderr);
    }
    assert!(has(&env.data(), "begun"), "what it has written so far is there");
    env.file("gate", "open\n");
    let outcome: Value = serde_json::from_reader(call.0.stdout.take().unwrap()).unwrap();
    assert!(call.0.wait().unwrap().success());
    assert_eq!((&outcome["success"], env.read("a.txt").as_str()), (&json!(true), "whole\n"), "{outcome:#}");
    assert_eq!(interrupted(&env), 0);
    assert_eq!(env.run(&["undo", outcome["call_id"].as_str().unwrap()]).code, 0);
    let locks = std::fs::read_dir(env.data().join("locks")).unwrap().count();
    assert_eq!(locks, 0, "who ends well leaves no lock");
}

#[test]
fn call_of_a_namespace_that_was_killed_is_interrupted_at_once() {
    let Some((env, namespace)) = scene_with_namespace() else { return };
    let call = begin(&env, &namespace);
    assert!(!said_elsewhere(&env, &namespace).contains("interrupted"));
    drop(call);
    // Its namespace goes with it; the kernel needs a moment for that.
    until(|| said_elsewhere(&env, &namespace).contains("(shell.exec) was interrupted"));
    assert_eq!(interrupted(&env), 1);
    assert!(!has(&env.data(), "begun"), "what it left half-made is cleared away");
    assert!(!env.root().join("a.txt").exists());
}

/// A namespace that lasts, in which a task was started.
fn task_in(env: &Env, namespace: &[&str]) -> (Running, String) {
    let args = json!({"command": WAITING, "background": true}).to_string();
    let lasting = [namespace, &["sh", "-c", "\"$@\"; exec sleep 600", "sh"][..]].concat();
    let mut command = behind(&env.command(&["call", "shell.exec", &args, "--yes", "--json"]), &lasting);
    let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(running.0.stdout.take().unwrap());
    let mut text = String::new();
    let outcome: Value = loop {
        assert!(said.read_line(&mut text).unwrap() > 0, "{text}");
        if let Ok(outcome) = serde_json::from_str(&text) {
            break outcome;
        }
    };
    let id = outcome["data"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{outcome:#}")).to_owned();
    until(|| has(&env.data(), "begun"));
    (running, id)
}

#[test]
fn task_of_another_namespace_runs_until_its_keeper_ends() {
    let Some((env, namespace)) = scene_with_namespace() else { return };
    let state = |id: &str| {
        let args = json!({ "id": id }).to_string();
        let ran = run_behind(&env.command(&["call", "process.status", &args, "--json"]), &namespace);
        assert!(!ran.stderr.contains("interrupted"), "{}", ran.stderr);
        ran.json()["data"]["state"].as_str().unwrap().to_owned()
    };
    let (kept, id) = task_in(&env, &namespace);
    assert_eq!(state(&id), "running");
    env.file("gate", "open\n");
    until(|| state(&id) == "done");
    assert_eq!(env.read("a.txt"), "whole\n");
    drop(kept);
    std::fs::remove_file(env.root().join("a.txt")).unwrap();
    env.file("gate", "shut\n");
    let (kept, id) = task_in(&env, &namespace);
    assert_eq!(state(&id), "running");
    drop(kept);
    until(|| said_elsewhere(&env, &namespace).contains("(shell.exec) was interrupted"));
    assert_eq!(state(&id), "lost");
    assert!(!env.root().join("a.txt").exists());
}

/// Lets every user use the store.
fn share_store(env: &Env) -> PathBuf {
    assert_eq!(env.run(&["log"]).code, 0);
    for dir in env.data().ancestors().take_while(|dir| dir.starts_with(env.dir.path())) {
        open_to_all(dir, 0o755);
    }
    open_to_all(&env.data(), 0o777);
    open_to_all(&env.root(), 0o777);
    for entry in std::fs::read_dir(env.data()).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            open_to_all(&entry.path(), 0o666);
        }
    }
    env.store()
}

#[test]
fn another_user_sees_who_lives_and_takes_nobody_for_dead_whose_lock_is_closed() {
    let Some((env, namespace)) = scene_with_namespace() else { return };
    let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    if !can(&user) {
        eprintln!("SKIPPED: only root can be another user");
        return;
    }
    let store = share_store(&env);
    let home = env.dir.path().join("other");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    let as_other = [&namespace[..], &user[..]].concat();
    let run = |args: &[&str]| {
        let mut command = env.command(&[&["--store", store.to_str().unwrap()], args].concat());
        command.env("HOME", &home);
        let ran = run_behind(&command, &as_other);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
        ran
    };
    let look = || run(&["log", "--json"]).stderr;
    let locks = |mode: u32| {
        let locks = std::fs::read_dir(env.data().join("locks")).unwrap().flatten();
        locks.for_each(|lock| open_to_all(&lock.path(), mode));
    };
    let call = begin(&env, &namespace);
    assert!(!look().contains("interrupted"), "the lock is as open as the store, and held");
    locks(0o600);
    assert!(!look().contains("interrupted"), "a lock that may not be looked at is not taken for free");
    drop(call);
    assert!(!look().contains("interrupted"));
    locks(0o666);
    until(|| look().contains("(shell.exec) was interrupted"));
    assert_eq!(interrupted(&env), 1);
    // Its own calls are kept and undone there, too.
    let written = run(&["call", "file.write", r#"{"path":"b.txt","content":"theirs"}"#, "--yes", "--json"]).json();
    assert_eq!(env.read("b.txt"), "theirs");
    run(&["undo", written["call_id"].as_str().unwrap()]);
    assert!(!env.root().join("b.txt").exists());
}

#[test]
fn data_directory_on_a_network_file_system_is_refused() {
    let env = Env::new();
    let run = |args: &[&str]| Ran::from(env.command(args).env("HAFT_REFUSE", "local-disk").output().unwrap());
    let refused = run(&["call", "file.write", r#"{"path":"a.txt","content":"x"}"#, "--yes"]);
    assert_ne!(refused.code, 0);
    for said in ["is on a network file system (NFS)", "local disk", "PostgreSQL"] {
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    assert!(!env.root().join("a.txt").exists() && !env.store().exists());
}
