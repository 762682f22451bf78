//! Worktrees of agents, for people: listed, removed, and told of.

use super::{Env, Ran};
use haft_stub::{Reply, Stub, Wire};
use serde_json::{Value, json};
use std::process::Command;

/// A repository, and a model whose child changes something in a copy of it.
fn scene() -> (Env, Stub) {
    let stub = Stub::with(|asked| match () {
        () if asked.says("tool_result") && !asked.says("the parent") => Reply::say("It is done."),
        () if asked.says("Work on it") && !asked.says("the parent") => {
            Reply::call("file_write", json!({"path": "new.txt", "content": "new\n"}))
        }
        () if asked.says("tool_result") => Reply::say("Good."),
        () => Reply::call("agent_spawn", json!({"name": "smith", "task": "Work on it", "mode": "worktree"})),
    });
    let env = Env::new();
    env.config(&format!(
        "models:\n  use: [stub/m]\n  providers:\n    stub: {{wire: anthropic, url: \"{}\"}}\n",
        stub.base(Wire::Anthropic)
    ));
    env.file("a.txt", "one\n");
    let _ = std::fs::remove_dir_all(env.root().join(".git"));
    for args in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "first"]] {
        let done = Command::new("git")
            .args(["-c", "user.name=haft", "-c", "user.email=haft@example.com"])
            .args(args)
            .current_dir(env.root())
            .status();
        assert!(done.unwrap().success(), "{args:?}");
    }
    (env, stub)
}

/// Has a child leave a worktree behind.
fn left(env: &Env) {
    let ran = env.run(&["run", "--yes", "you are the parent"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

fn kept(env: &Env) -> Vec<Value> {
    env.run(&["agents", "worktrees", "--json"]).json()["worktrees"].as_array().unwrap().clone()
}

fn remove(env: &Env, args: &[&str]) -> Ran {
    env.run(&[&["agents", "worktrees", "remove"], args].concat())
}

#[test]
fn what_is_merged_goes_and_what_is_not_goes_by_name() {
    let (env, _stub) = scene();
    left(&env);
    left(&env);
    let trees = kept(&env);
    assert_eq!(trees.len(), 2, "{trees:?}");
    assert!(
        trees.iter().all(|tree| tree["holds"] == "unmerged" && tree["unmerged"] == json!(["new.txt"])),
        "{trees:?}"
    );
    let shown = env.run(&["agents", "worktrees"]).stdout;
    assert!(shown.contains("not merged") && shown.contains("new.txt"), "{shown}");
    let doctor = env.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("worktrees     2 of agents are kept") && doctor.contains("haft agents worktrees"),
        "{doctor}"
    );
    let none = remove(&env, &[]);
    assert!(none.code == 2 && none.stderr.contains("--merged"), "{}", none.stderr);
    let ran = remove(&env, &["--merged"]);
    assert!(ran.code == 0 && ran.stderr.contains("nothing to remove"), "{}", ran.stderr);
    let ran = remove(&env, &["--older-than", "1h"]);
    assert!(ran.code == 0 && ran.stderr.contains("nothing to remove"), "{}", ran.stderr);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let ran = remove(&env, &["--older-than", "1s"]);
    assert!(ran.code == 0 && ran.stderr.contains("stays: it has changes that are in no project"), "{}", ran.stderr);
    assert_eq!(kept(&env).len(), 2, "nobody has asked for that");
    let first = trees[0]["id"].as_str().unwrap();
    let ran = remove(&env, &[first, "--json"]);
    assert_eq!((ran.code, &ran.json()["removed"]), (0, &json!([first])), "{}", ran.stderr);
    assert!(!std::path::Path::new(trees[0]["path"].as_str().unwrap()).exists());
    let log = env.run(&["log"]).stdout;
    assert!(log.contains("agent.control"), "it is in the log: {log}");
    env.file("new.txt", "new\n");
    assert_eq!(kept(&env)[0]["holds"], "merged");
    let ran = remove(&env, &["--merged"]);
    assert!(ran.code == 0 && ran.stderr.contains("removed"), "{}", ran.stderr);
    assert!(kept(&env).is_empty() && !env.run(&["doctor"]).stdout.contains("worktrees"));
    assert_eq!(remove(&env, &["nobody"]).code, 1);
}

#[test]
fn what_nobody_knows_the_project_of_goes_by_force_alone() {
    let (env, _stub) = scene();
    left(&env);
    let tree = kept(&env).remove(0);
    let id = tree["id"].as_str().unwrap();
    let note = env.dir.path().join("home/.local/share/haft/worktrees").join(format!("{id}.json"));
    std::fs::remove_file(&note).unwrap();
    assert_eq!(kept(&env)[0]["holds"], "unknown");
    assert_eq!((remove(&env, &["--older-than", "1s"]).code, kept(&env).len()), (0, 1));
    assert_eq!((remove(&env, &["--older-than", "1s", "--force"]).code, kept(&env).len()), (0, 0));
}

#[test]
fn a_session_that_is_deleted_leaves_what_is_not_merged_and_says_so() {
    let (env, _stub) = scene();
    left(&env);
    let sessions = env.run(&["session", "list", "--json"]).json();
    let session = sessions["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|one| one["id"].as_str().filter(|id| id.starts_with("run-")));
    let session = session.unwrap();
    let id = kept(&env)[0]["id"].as_str().unwrap().to_owned();
    let ran = env.run(&["session", "delete", session]);
    assert!(ran.code == 0 && ran.stderr.contains(&id), "{}", ran.stderr);
    assert_eq!(kept(&env).len(), 1);
}
