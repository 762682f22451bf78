//! Every tool of a child that works on a copy is bound to that copy, however its paths are written.

use crate::worktrees::{child, git, repository};
use crate::{Stage, results, say, who};
use haft_core::agent::turns::End;
use haft_runtime::Decider;
use haft_runtime::approver::{Approver, Question, Said};
use haft_runtime::{BoxFuture, Halt};
use haft_stub::Reply;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is only in the project, because it is not committed.
const OWN: &str = "only in the project";

/// Somebody who lets a program run whatever it names, because the kernel holds it, and a file tool only what is inside.
struct Inside;

impl Approver for Inside {
    fn decider(&self) -> Decider {
        Decider::embedder("inside")
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        let outside = question.places.iter().any(|place| place.contains("/project"));
        let refused = question.tool.as_str().starts_with("file.") && outside;
        let said = if refused { Said::Reject("not there".to_owned()) } else { Said::Once };
        Box::pin(std::future::ready(said))
    }
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// It is made, on the copy, and says this.
    Says(&'static str),
    /// It is refused.
    Refused,
    /// It is made or not; the project is as it was.
    Held,
}

fn table() -> Vec<(&'static str, Value, Then)> {
    use Then::{Held, Refused, Says};
    let shell = |command: &str| json!({ "command": command });
    let behind = |command: &str| json!({ "command": command, "background": true });
    vec![
        // Paths that begin nowhere begin in the copy.
        ("file_read", json!({"path": "old.txt"}), Says("old")),
        ("file_write", json!({"path": "new.txt", "content": "new\n"}), Says("")),
        ("file_edit", json!({"path": "old.txt", "old_string": "old", "new_string": "older"}), Says("")),
        ("file_glob", json!({"pattern": "*.txt"}), Says("new.txt")),
        ("file_list", json!({"path": "."}), Says("new.txt")),
        ("file_grep", json!({"pattern": "older|only in"}), Says("older")),
        ("file_batch", json!({"pattern": "new.txt", "operation": "move", "destination": "moved"}), Says("moved")),
        ("file_ignore", json!({"action": "add", "patterns": ["*.log"]}), Says("")),
        ("shell_exec", shell("pwd; cat old.txt"), Says("older")),
        ("shell_exec", behind("echo behind > behind.txt"), Says("")),
        (
            "shell_exec",
            shell("for i in 1 2 3 4 5 6 7 8 9; do test -f behind.txt || sleep 0.3; done; ls"),
            Says("behind.txt"),
        ),
        // Those of the project, as they are and by way of a link.
        ("file_read", json!({"path": "{project}/old.txt"}), Refused),
        ("file_read", json!({"path": "../../../project/old.txt"}), Refused),
        ("file_write", json!({"path": "{project}/escaped", "content": "x"}), Refused),
        ("file_edit", json!({"path": "{project}/old.txt", "old_string": "o", "new_string": "x"}), Refused),
        ("file_glob", json!({"pattern": "*", "path": "{project}"}), Refused),
        ("file_list", json!({"path": "{project}"}), Refused),
        ("file_grep", json!({"pattern": "only", "path": "{project}"}), Refused),
        (
            "file_batch",
            json!({"pattern": "*.txt", "path": "{project}", "operation": "rename", "rename_to": "$1.x"}),
            Refused,
        ),
        ("file_batch", json!({"pattern": "old.txt", "operation": "move", "destination": "{project}/in"}), Refused),
        ("file_ignore", json!({"action": "add", "dir": "{project}", "patterns": ["*"]}), Refused),
        ("shell_exec", shell("ln -s {project} link; ls -d link"), Held),
        ("file_read", json!({"path": "link/old.txt"}), Refused),
        ("file_write", json!({"path": "link/escaped", "content": "x"}), Refused),
        ("file_grep", json!({"pattern": "only", "path": "link"}), Refused),
        ("shell_exec", shell("echo x > {project}/escaped"), Held),
        ("shell_exec", shell("echo x > link/escaped; touch ../../../project/escaped"), Held),
        ("shell_exec", shell("cd {project} && touch escaped && rm old.txt"), Held),
        ("shell_exec", shell("mv {project}/old.txt taken.txt; cp old.txt {project}/escaped"), Held),
        ("shell_exec", shell("git -C {project} config user.name nobody"), Held),
        ("shell_exec", shell("git -C {project} checkout -q -b other"), Held),
        ("shell_exec", shell("git -C {project} -c user.name=x -c user.email=x commit -qam x"), Held),
        ("shell_exec", shell("git --git-dir={project}/.git --work-tree=. add -A"), Held),
        ("shell_exec", shell("git push -q {project} HEAD:refs/heads/other"), Held),
        ("shell_exec", shell("sh -c 'python3 -c \"open(\\\"{project}/escaped\\\", \\\"w\\\")\"'"), Held),
        ("shell_exec", behind("echo x > {project}/escaped; echo x > link/escaped"), Held),
    ]
}

fn placed(args: &Value, project: &Path) -> Value {
    serde_json::from_str(&args.to_string().replace("{project}", &project.display().to_string())).unwrap()
}

/// All files below a directory.
fn all(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                left.push(entry.path());
            } else {
                found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

#[tokio::test]
async fn each_tool_of_a_child_is_bound_to_its_copy() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let project = dir.path().canonicalize().unwrap().join("project");
    let asked_for = project.clone();
    let stub = haft_stub::Stub::with(move |asked| {
        let done = results(asked).len();
        match table().get(done) {
            Some((tool, args, _)) if child(asked) => Reply::call(tool, placed(args, &asked_for)),
            _ if child(asked) => Reply::say("Tried."),
            _ if done == 0 => Reply::call("agent_spawn", json!({"task": "Work on it", "mode": "worktree"})),
            _ => Reply::say("Good."),
        }
    });
    let stage = Stage::in_dir(dir, stub, |_| {});
    repository(&stage);
    stage.file("old.txt", OWN);
    let before = all(&project);
    let (ended, _) = say(&stage.haft, who("talk"), "You are the parent.", &Inside, &Halt::new()).await;
    assert_eq!(ended.end, End::Done);
    let told = results(&stage.stub.asked().into_iter().rfind(child).unwrap());
    assert_eq!(told.len(), table().len(), "{:#?}", told.last());
    for ((tool, args, then), (text, failed)) in table().iter().zip(&told) {
        assert!(!text.contains(OWN), "{tool} {args}: {text}");
        match then {
            Then::Says(words) => assert!(!failed && text.contains(words), "{tool} {args}: {text}"),
            Then::Refused => assert!(*failed, "{tool} {args}: {text}"),
            Then::Held => {}
        }
    }
    // The last one may still be at it.
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    let after = all(&project);
    let changed: Vec<&PathBuf> =
        before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
    assert_eq!(changed, Vec::<&PathBuf>::new());
    assert_eq!(git(&stage, &["branch", "--list"]), "* main");
}
