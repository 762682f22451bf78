//! Agents that work on a copy of the project: nothing of it is touched until somebody says so.

use crate::{Stage, results};
use haft_core::agent::turns::End;
use haft_core::{Call, Outcome};
use haft_runtime::Decider;
use haft_runtime::agent::worktrees::Holds;
use haft_runtime::approver::{Approver, Question, Said};
use haft_runtime::{BoxFuture, Halt, Nobody, Yes, new_call_id};
use haft_stub::{Asked, Reply, Stub};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub(crate) fn git(stage: &Stage, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=haft", "-c", "user.email=haft@example.com"])
        .args(args)
        .current_dir(stage.haft.workspace().root())
        .output()
        .unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// A repository with a commit in the place of the scene's empty one.
pub(crate) fn repository(stage: &Stage) {
    std::fs::remove_dir_all(stage.haft.workspace().root().join(".git")).unwrap();
    stage.file("src/lib.txt", "one\ntwo\nthree\nfour\nfive\n");
    stage.file("old.txt", "old\n");
    stage.file(".gitignore", "build/\n");
    git(stage, &["init", "--quiet", "--initial-branch=main"]);
    git(stage, &["add", "-A"]);
    git(stage, &["commit", "--quiet", "-m", "first"]);
}

pub(crate) fn child(asked: &Asked) -> bool {
    asked.says("Work on it") && !asked.says("You are the parent")
}

/// A parent that has one child make these calls on a worktree.
pub(crate) fn stage(calls: Vec<(&'static str, Value)>) -> Stage {
    let stage = Stage::answers(move |asked| {
        let done = results(asked).len();
        match () {
            () if child(asked) => match calls.get(done) {
                Some((tool, args)) => Reply::call(tool, args.clone()),
                None => Reply::say("It is done."),
            },
            () if done == 0 => {
                Reply::call("agent_spawn", json!({"name": "smith", "task": "Work on it", "mode": "worktree"}))
            }
            () => Reply::say("Good."),
        }
    });
    repository(&stage);
    stage
}

pub(crate) async fn call(stage: &Stage, tool: &str, args: Value) -> Outcome {
    stage.haft.call(parents(tool, args), &Yes, &Halt::new()).await
}

/// A call of the conversation that the child works for.
fn parents(tool: &str, args: Value) -> Call {
    let session = haft_core::SessionId::new("talk").unwrap();
    Call { session, ..Call::new(new_call_id(), tool, args) }
}

/// What the parent was told of its child, and the child's id.
pub(crate) fn report(stage: &Stage) -> (String, String) {
    let (text, failed) = results(&stage.last()).pop().unwrap();
    assert!(!failed, "{text}");
    let id = text.split("the id ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default().to_owned();
    (text, id)
}

fn work() -> Vec<(&'static str, Value)> {
    vec![
        ("file_read", json!({"path": "src/lib.txt"})),
        ("file_edit", json!({"path": "src/lib.txt", "old_string": "five", "new_string": "FIVE"})),
        ("file_write", json!({"path": "new/file.txt", "content": "new\n"})),
        ("shell_exec", json!({"command": "mv old.txt older.txt && mkdir build && echo x > build/out && pwd"})),
        (
            "shell_exec",
            json!({"command": "git add -A && git -c user.name=s -c user.email=s@example.com commit -qm work && git status --short"}),
        ),
    ]
}

#[tokio::test]
async fn everything_happens_in_the_copy_and_comes_over_when_it_is_wanted() {
    let stage = stage(work());
    let (ended, _) = stage.say("You are the parent. Have it worked on.").await;
    assert_eq!(ended.end, End::Done);
    let (text, id) = report(&stage);
    assert!(text.contains("-five") && text.contains("+FIVE"), "{text}");
    for (path, content) in [
        ("src/lib.txt", Some("one\ntwo\nthree\nfour\nfive\n")),
        ("old.txt", Some("old\n")),
        ("new/file.txt", None),
        ("build/out", None),
    ] {
        assert_eq!(stage.read(path).as_deref(), content, "{path} is as it was");
    }
    assert_eq!(git(&stage, &["status", "--porcelain"]), "", "the project's repository, too");
    assert_eq!(git(&stage, &["branch", "--list"]), "* main");
    let asked = stage.haft.call(parents("agent.merge", json!({"id": id})), &Nobody, &Halt::new()).await;
    assert!(!asked.success && asked.error.unwrap().kind.as_str() == "approval_required", "somebody decides about it");
    let merged = call(&stage, "agent.merge", json!({"id": id})).await;
    assert!(merged.success, "{merged:?}");
    assert_eq!(stage.read("src/lib.txt").as_deref(), Some("one\ntwo\nthree\nfour\nFIVE\n"));
    assert_eq!((stage.read("old.txt"), stage.read("older.txt").as_deref()), (None, Some("old\n")));
    assert_eq!((stage.read("new/file.txt").as_deref(), stage.read("build/out")), (Some("new\n"), None));
    let undone = stage.haft.undo(&merged.call_id).await;
    assert!(undone.is_ok(), "{undone:?}");
    assert_eq!(stage.read("src/lib.txt").as_deref(), Some("one\ntwo\nthree\nfour\nfive\n"));
    assert_eq!((stage.read("old.txt").as_deref(), stage.read("new/file.txt")), (Some("old\n"), None));
    assert!(!call(&stage, "agent.merge", json!({"id": id})).await.success, "it went when it was brought over");
    assert!(stage.haft.worktrees().await.unwrap().is_empty());
}

#[tokio::test]
async fn both_sides_changes_are_joined_or_named() {
    let stage = stage(work());
    stage.say("You are the parent.").await;
    let (_, id) = report(&stage);
    stage.file("src/lib.txt", "one\ntwo\nthree\nfour\nsix\n");
    let merged = call(&stage, "agent.merge", json!({"id": id})).await;
    let error = merged.error.unwrap();
    assert_eq!((error.kind.as_str(), error.message.contains("src/lib.txt")), ("conflict", true), "{error:?}");
    assert_eq!(stage.read("src/lib.txt").as_deref(), Some("one\ntwo\nthree\nfour\nsix\n"));
    stage.file("src/lib.txt", "ONE\ntwo\nthree\nfour\nfive\n");
    assert!(call(&stage, "agent.merge", json!({"id": id})).await.success);
    assert_eq!(stage.read("src/lib.txt").as_deref(), Some("ONE\ntwo\nthree\nfour\nFIVE\n"), "both are there");
}

/// The child's copy, as the parent was told of it.
pub(crate) fn copy(text: &str) -> PathBuf {
    PathBuf::from(
        text.split("] in ").next().unwrap().rsplit(" in ").next().unwrap().split(". agent_merge").next().unwrap(),
    )
}

#[tokio::test]
async fn what_is_set_up_in_a_copy_does_not_run_here() {
    let stage = stage(vec![("shell_exec", json!({"command": "echo changed >> old.txt"}))]);
    stage.say("You are the parent.").await;
    let (text, id) = report(&stage);
    // As if a child had got past what keeps it from writing there.
    let (copy, trapped) = (copy(&text), stage.dir.path().join("trapped"));
    let trap = format!("touch {}", trapped.display());
    let config =
        format!("[core]\n\tfsmonitor = {trap}\n[diff]\n\texternal = {trap}\n[filter \"x\"]\n\tclean = {trap}\n");
    std::fs::write(copy.join(".git/config"), config).unwrap();
    std::fs::write(copy.join(".gitattributes"), "* filter=x diff=x\n").unwrap();
    let merged = call(&stage, "agent.merge", json!({"id": id})).await;
    assert!(merged.success, "{merged:?}");
    assert_eq!(stage.read("old.txt").as_deref(), Some("old\nchanged\n"));
    assert!(!trapped.exists());
}

#[tokio::test]
async fn a_child_cannot_set_up_what_git_would_run() {
    let trap = "echo x >> old.txt; git config core.fsmonitor 'touch trapped'; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; true";
    let stage = stage(vec![("shell_exec", json!({"command": trap}))]);
    stage.say("You are the parent.").await;
    let child = stage.stub.asked().into_iter().rfind(child).unwrap();
    let (text, failed) = results(&child).pop().unwrap();
    assert!(!failed, "{text}");
    for place in [".git/config", ".git/hooks/pre-commit"] {
        assert!(text.contains(&format!("{place} is not kept")), "{text}");
    }
}

#[tokio::test]
async fn what_leads_out_of_the_copy_is_not_brought_over() {
    let away = "rm -r src && ln -s /etc src && ln -s /etc/hostname linked && echo more >> old.txt";
    let stage = stage(vec![("shell_exec", json!({"command": away}))]);
    stage.say("You are the parent.").await;
    let (text, id) = report(&stage);
    let copy = copy(&text);
    std::fs::create_dir_all(copy.join(".haft")).unwrap();
    std::fs::write(copy.join(".haft/config.yml"), "profile: full\n").unwrap();
    std::fs::write(copy.join(".env"), "KEY=x\n").unwrap();
    let merged = call(&stage, "agent.merge", json!({"id": id})).await;
    assert!(merged.success, "{merged:?}");
    assert_eq!((stage.read("linked"), stage.read("old.txt").as_deref()), (None, Some("old\nmore\n")));
    assert_eq!((stage.read(".haft/config.yml"), stage.read(".env")), (None, None), "{merged:?}");
    assert!(!stage.haft.workspace().root().join("src").is_symlink());
    let kept = stage.haft.worktrees().await.unwrap();
    assert_eq!((kept.len(), kept[0].holds), (1, Holds::Unmerged), "what is left is nowhere else");
    for left in
        ["src: links", "linked: links", ".env: it is a sensitive place", ".haft/config.yml: it is a sensitive place"]
    {
        assert!(merged.warnings.iter().any(|warning| warning.contains(left)), "{left}: {merged:?}");
    }
}

#[tokio::test]
async fn a_child_cannot_reach_the_project_it_is_a_copy_of() {
    let stage = Stage::answers(|asked| {
        let root = asked.body["system"].to_string();
        let done = results(asked).len();
        match () {
            () if child(asked) && done == 0 => {
                let tree = root
                    .split("a copy of the project: ")
                    .nth(1)
                    .and_then(|rest| rest.split(". Relative").next())
                    .unwrap()
                    .to_owned();
                let project = format!("{}/project", tree.split("/data-worktrees").next().unwrap());
                Reply::call(
                    "shell_exec",
                    json!({"command": format!("echo x > {project}/escaped; cat {project}/old.txt; pwd")}),
                )
                .and_call("file_write", json!({"path": "inside.txt", "content": "x"}))
            }
            () if child(asked) => Reply::say("Tried."),
            () if done == 0 => Reply::call("agent_spawn", json!({"task": "Work on it", "mode": "worktree"})),
            () => Reply::say("Good."),
        }
    });
    repository(&stage);
    stage.say("You are the parent.").await;
    assert_eq!((stage.read("escaped"), stage.read("inside.txt")), (None, None));
    let (text, _) = report(&stage);
    assert!(text.contains("inside.txt"), "{text}");
}

#[tokio::test]
async fn nothing_changed_leaves_nothing_behind() {
    let stage = stage(vec![("file_read", json!({"path": "old.txt"}))]);
    stage.say("You are the parent.").await;
    let (text, _) = report(&stage);
    assert!(text.contains("It changed nothing"), "{text}");
    let left = std::fs::read_dir(stage.dir.path().join("data-worktrees")).unwrap().count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn without_a_commit_there_is_no_copy() {
    let stub = Stub::with(|asked| match results(asked).len() {
        0 => Reply::call("agent_spawn", json!({"task": "Work on it", "mode": "worktree"})),
        _ => Reply::say("I see."),
    });
    // Nothing around it is a repository, either.
    let stage = Stage::in_dir(tempfile::tempdir().unwrap(), stub, |_| {});
    stage.say("You are the parent.").await;
    let (text, failed) = results(&stage.last()).pop().unwrap();
    assert!(failed && text.contains("not in a git repository"), "{text}");
}

#[tokio::test]
async fn a_directory_that_only_looks_like_a_repository_is_none() {
    let stub = Stub::with(|asked| match results(asked).len() {
        0 => Reply::call("agent_spawn", json!({"task": "Work on it", "mode": "worktree"})),
        _ => Reply::say("I see."),
    });
    let stage = Stage::in_dir(tempfile::tempdir().unwrap(), stub, |_| {});
    repository(&stage);
    let (root, trapped) = (stage.haft.workspace().root().to_owned(), stage.dir.path().join("trapped"));
    // As an agent could write it with plain files: a repository without the name of one, whose filter is a program.
    for part in ["HEAD", "objects", "refs", "index", "config"] {
        std::fs::rename(root.join(".git").join(part), root.join(part)).unwrap();
    }
    std::fs::remove_dir_all(root.join(".git")).unwrap();
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n[filter \"x\"]\n\tclean = touch {0}\n\tsmudge = touch {0}\n",
        trapped.display()
    );
    stage.file("config", &config);
    stage.file(".gitattributes", "* filter=x\n");
    stage.file("old.txt", "OLD\n");
    stage.say("You are the parent.").await;
    let (text, failed) = results(&stage.last()).pop().unwrap();
    assert!(failed && text.contains("not in a git repository"), "{text}");
    assert!(!trapped.exists());
}

#[tokio::test]
async fn what_a_child_ignores_is_looked_at_all_the_same() {
    let hide = "printf '*\\n' > .ignore && printf '*\\n' > .gitignore && echo more >> old.txt";
    let stage = stage(vec![("shell_exec", json!({"command": hide}))]);
    stage.say("You are the parent.").await;
    let (text, id) = report(&stage);
    assert!(text.contains("+more"), "{text}");
    let merged = call(&stage, "agent.merge", json!({"id": id})).await;
    assert!(merged.success, "{merged:?}");
    assert_eq!(stage.read("old.txt").as_deref(), Some("old\nmore\n"));
    assert_eq!(
        stage.read("src/lib.txt").as_deref(),
        Some("one\ntwo\nthree\nfour\nfive\n"),
        "nothing is taken for gone"
    );
}

#[tokio::test]
async fn a_copy_is_its_own_conversations() {
    let stage = stage(work());
    stage.say("You are the parent.").await;
    let (_, id) = report(&stage);
    let stranger = |tool: &str, args: Value| {
        let mut call = Call::new(new_call_id(), tool, args);
        call.caller.agent = Some("other".to_owned());
        call
    };
    for (tool, args) in [("agent.merge", json!({"id": id})), ("agent.control", json!({"action": "discard", "id": id}))]
    {
        let refused = stage.haft.call(stranger(tool, args), &Yes, &Halt::new()).await;
        assert_eq!(refused.error.unwrap().kind.as_str(), "not_found", "{tool}");
    }
    assert!(call(&stage, "agent.merge", json!({"id": id})).await.success, "its own may");
}

/// Somebody who is not there, and has time.
struct Later;

impl Approver for Later {
    fn decider(&self) -> Decider {
        Decider::embedder("later")
    }

    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Nobody))
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(20)
    }
}

#[tokio::test]
async fn a_copy_goes_with_its_conversation_unless_something_in_it_is_not_in_the_project() {
    let stage = stage(work());
    stage.say("You are the parent.").await;
    let (_, id) = report(&stage);
    let kept = stage.haft.worktrees().await.unwrap();
    let [tree] = kept.as_slice() else { panic!("{kept:?}") };
    assert_eq!((tree.id.as_str(), tree.holds, tree.running), (id.as_str(), Holds::Unmerged, false));
    assert!(tree.unmerged.iter().any(|path| path == "src/lib.txt"), "{tree:?}");
    let forget = || async {
        let call = Call::new(new_call_id(), "session.delete", json!({"session": "talk"}));
        stage.haft.call(call, &Yes, &Halt::new()).await
    };
    let forgotten = forget().await;
    assert!(forgotten.success && forgotten.warnings[0].contains(&id), "{forgotten:?}");
    assert_eq!(stage.haft.worktrees().await.unwrap().len(), 1, "nobody asked for that by name");
    // Brought over by hand.
    let copy = tree.path.clone();
    for path in ["src/lib.txt", "older.txt", "new/file.txt"] {
        stage.file(path, &std::fs::read_to_string(copy.join(path)).unwrap());
    }
    std::fs::remove_file(stage.haft.workspace().root().join("old.txt")).unwrap();
    assert_eq!(stage.haft.worktrees().await.unwrap()[0].holds, Holds::Merged);
    assert!(stage.say("You are the parent.").await.0.is_done());
    let forgotten = forget().await;
    assert!(forgotten.success && forgotten.warnings.is_empty(), "{forgotten:?}");
    assert!(stage.haft.worktrees().await.unwrap().is_empty());
}

/// Says yes, and keeps in mind who asked.
#[derive(Default)]
struct Noting(std::sync::Mutex<Vec<Option<String>>>);

impl haft_runtime::approver::Approver for Noting {
    fn decider(&self) -> Decider {
        Decider::embedder("noting")
    }

    fn ask<'a>(&'a self, question: &'a haft_runtime::Question) -> haft_runtime::BoxFuture<'a, haft_runtime::Said> {
        self.0.lock().unwrap().push(question.asker.clone());
        Box::pin(std::future::ready(haft_runtime::Said::Once))
    }
}

#[tokio::test]
async fn what_a_child_asks_on_its_copy_waits_with_the_project() {
    let stage = stage(vec![
        ("user_ask", json!({"question": "Which colour?", "options": ["red", "blue"]})),
        ("file_write", json!({"path": "colour.txt", "content": "blue\n"})),
    ]);
    let there = stage.another();
    let halt = Halt::new();
    let answers = async {
        for n in 0..2 {
            let asked = loop {
                if let Some(asked) = there.store().approvals(true).await.unwrap().pop() {
                    break asked;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            assert_eq!(PathBuf::from(&asked.root), there.workspace().root(), "{asked:?}");
            if n == 0 {
                there.answer_form(&asked.id, &Decider::embedder("me"), json!({"answer": "blue"})).await.unwrap();
            } else {
                let shown = there.look_at(&asked.id, &Decider::embedder("test")).await.unwrap().unwrap();
                assert!(shown.diff.unwrap().contains("+blue"), "what it would do there");
                let outcome = there.approve(&asked.id, &Decider::embedder("me"), &halt).await.unwrap();
                assert!(outcome.success, "{outcome:?}");
            }
        }
    };
    let parent = crate::who("talk");
    let ((ended, _), ()) = tokio::join!(crate::say(&stage.haft, parent, "You are the parent.", &Later, &halt), answers);
    assert_eq!(ended.end, End::Done);
    let told = results(&stage.stub.asked().into_iter().rfind(child).unwrap());
    assert!(told.iter().all(|(_, failed)| !failed) && told[0].0.contains("blue"), "{told:?}");
    let (text, _) = report(&stage);
    assert!(text.contains("+blue"), "it is done on the copy: {text}");
    assert_eq!(stage.read("colour.txt"), None);
}

#[tokio::test]
async fn a_question_says_which_agent_asks_and_where_it_works() {
    let stage = stage(vec![("file_write", json!({"path": "new.txt", "content": "new\n"}))]);
    let noting = Noting::default();
    let ended = crate::say(&stage.haft, crate::who("talk"), "You are the parent.", &noting, &Halt::new()).await;
    assert_eq!(ended.0.end, End::Done);
    let (text, id) = report(&stage);
    let place = copy(&text).canonicalize().unwrap();
    let asked: Vec<String> = noting.0.lock().unwrap().iter().flatten().cloned().collect();
    assert_eq!(asked, [format!("main/smith, in {}", place.display())], "{id}");
    let direct =
        stage.haft.call(parents("file.write", json!({"path": "x", "content": "y"})), &noting, &Halt::new()).await;
    assert!(direct.success && noting.0.lock().unwrap().last().unwrap().is_none(), "nobody works for another there");
}
