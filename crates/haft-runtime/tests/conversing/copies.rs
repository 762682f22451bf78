//! Copies of a project under attack: by what is in its repository, and by what a child leaves in its copy.

use crate::worktrees::{call, child, copy, git, report, repository, stage};
use crate::{Stage, results, say, who};
use haft_core::approval::Decider;
use haft_runtime::{Halt, Nobody};
use haft_stub::{Reply, Stub};
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many copies there are.
fn copies(stage: &Stage) -> usize {
    std::fs::read_dir(stage.dir.path().join("data-worktrees")).map_or(0, Iterator::count)
}

/// What a parent is told of a child that could not begin.
async fn refused(stage: &Stage) -> String {
    stage.say("You are the parent.").await;
    let (text, failed) = results(&stage.last()).pop().unwrap();
    assert!(failed, "{text}");
    text
}

#[tokio::test]
async fn a_repository_that_names_programs_has_no_copy() {
    let stage = stage(Vec::new());
    stage.file("d/a", "a");
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "--quiet", "-m", "second"]);
    let tree = git(&stage, &["rev-parse", "HEAD:d"]);
    std::fs::remove_file(stage.haft.workspace().root().join(format!(".git/objects/{}/{}", &tree[..2], &tree[2..])))
        .unwrap();
    let trapped = stage.dir.path().join("trapped");
    let trap = format!("sh -c 'env > {}; exit 1' --", trapped.display());
    for (name, value) in [
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ssh://n/x"),
        ("core.sshCommand", &trap),
    ] {
        git(&stage, &["config", name, value]);
    }
    let text = refused(&stage).await;
    for name in ["extensions.partialclone", "remote.origin.promisor", "core.sshcommand"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(!trapped.exists() && copies(&stage) == 0, "{text}");
}

#[tokio::test]
async fn a_program_behind_an_include_is_named_as_well() {
    let stage = stage(Vec::new());
    stage.file("shared.config", "[filter \"x\"]\n\tsmudge = touch trapped\n");
    git(&stage, &["config", "include.path", "../shared.config"]);
    let text = refused(&stage).await;
    assert!(text.contains("filter.x.smudge"), "{text}");
}

#[tokio::test]
async fn children_that_cannot_begin_leave_nothing_behind() {
    let orders = [
        json!({"task": "Work on it", "mode": "worktree", "model": "no model at all"}),
        json!({"task": "Work on it", "mode": "worktree", "branch": "-x"}),
        json!({"task": "Work on it", "mode": "worktree"}),
    ];
    let stage = stage(Vec::new());
    // Its files cannot be listed: found out when the copy has been begun.
    let tree = git(&stage, &["rev-parse", "HEAD:src"]);
    std::fs::remove_file(stage.haft.workspace().root().join(format!(".git/objects/{}/{}", &tree[..2], &tree[2..])))
        .unwrap();
    let mut said = Vec::new();
    for order in orders.iter().cycle().take(72) {
        let outcome = call(&stage, "agent.spawn", order.clone()).await;
        assert!(!outcome.success, "{outcome:?}");
        let id = outcome.data.as_ref().map(|data| data["agents"][0]["id"].clone());
        assert!(id.is_some_and(|id| id.as_str().is_some_and(|id| !id.is_empty())), "{outcome:?}");
        said.push(outcome.error.unwrap().message);
        assert_eq!(copies(&stage), 0, "{said:?}");
    }
    for (why, at) in [("is no model", 0), ("cannot be the name of a branch", 1), ("git ls-tree failed", 2)] {
        assert!(said[at].contains(why), "{said:?}");
    }
    assert!(!stage.dir.path().join("data/worktrees").exists(), "no notes either");
}

#[tokio::test]
async fn a_project_that_was_committed_as_a_link_has_no_copy() {
    let dir = tempfile::tempdir().unwrap();
    let stub = Stub::with(|asked| match results(asked).len() {
        0 if !child(asked) => Reply::call("agent_spawn", json!({"task": "Work on it", "mode": "worktree"})),
        _ => Reply::say("I see."),
    });
    let stage = Stage::in_dir(dir, stub, |_| {});
    // The repository is around the project, which is a link to elsewhere in what was committed.
    let (top, root) = (stage.dir.path().to_owned(), stage.haft.workspace().root().to_owned());
    let run = |args: &[&str]| {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=haft", "-c", "user.email=haft@example.com", "-C"])
            .arg(&top)
            .args(args)
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    std::fs::remove_dir_all(root.join(".git")).unwrap();
    std::fs::rename(&root, top.join("aside")).unwrap();
    std::os::unix::fs::symlink("../../../../../../../../bin", &root).unwrap();
    run(&["init", "--quiet"]);
    run(&["add", "project"]);
    run(&["commit", "--quiet", "-m", "a link"]);
    std::fs::remove_file(&root).unwrap();
    std::fs::rename(top.join("aside"), &root).unwrap();
    let text = refused(&stage).await;
    assert!(text.contains("project is no directory in what was last committed"), "{text}");
    assert_eq!(copies(&stage), 0);
}

#[tokio::test]
async fn what_cannot_be_carried_over_is_not_taken_for_gone() {
    let grow = "truncate -s 70M old.txt && truncate -s 70M new.bin && echo x >> kept.txt";
    let stage = stage(vec![("shell_exec", json!({"command": grow}))]);
    stage.file("kept.txt", "kept\n");
    stage.file("large.bin", "");
    let large = stage.haft.workspace().root().join("large.bin");
    std::fs::File::options().write(true).open(large).unwrap().set_len(70 << 20).unwrap();
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "--quiet", "-m", "second"]);
    stage.say("You are the parent.").await;
    let (text, id) = report(&stage);
    let lib = copy(&text).join("src/lib.txt");
    std::fs::remove_file(&lib).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&lib).status().unwrap().success());
    let merged = call(&stage, "agent.merge", json!({"id": id})).await;
    assert!(merged.success, "{merged:?}");
    assert_eq!(stage.read("old.txt").as_deref(), Some("old\n"), "{merged:?}");
    assert_eq!(stage.read("kept.txt").as_deref(), Some("kept\nx\n"));
    assert_eq!(stage.read("src/lib.txt").as_deref(), Some("one\ntwo\nthree\nfour\nfive\n"));
    let left = merged.data.as_ref().unwrap()["left"].to_string();
    for what in ["old.txt: it is larger than 64 MiB", "new.bin: it is larger", "src/lib.txt: it is neither"] {
        assert!(left.contains(what), "{left}");
    }
    assert!(!left.contains("large.bin"), "nobody touched it: {left}");
    let again = call(&stage, "agent.merge", json!({"id": id})).await;
    assert!(again.output.contains("nothing to bring over") && again.warnings.len() == 3, "{again:?}");
}

#[tokio::test]
async fn what_nobody_can_look_into_has_lost_nothing() {
    let stage = stage(vec![("shell_exec", json!({"command": "echo x >> old.txt"}))]);
    stage.say("You are the parent.").await;
    let (text, id) = report(&stage);
    let src = copy(&text).join("src");
    std::fs::set_permissions(&src, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root looks into everything.
    let unreadable = std::fs::read_dir(&src).is_err();
    let merged = call(&stage, "agent.merge", json!({"id": id})).await;
    // A copy that was brought over whole is gone by now.
    let _ = std::fs::set_permissions(&src, std::fs::Permissions::from_mode(0o700));
    assert!(merged.success && stage.read("src/lib.txt").is_some(), "{merged:?}");
    assert_eq!(merged.warnings.iter().any(|warning| warning.contains("src/lib.txt")), unreadable, "{merged:?}");
}

#[tokio::test]
async fn a_directory_named_like_a_home_is_only_that() {
    let away = "mkdir -p ./~/deep && echo mine > ./~/deep/x && echo x > './~/.bashrc'";
    let stage = stage(vec![("shell_exec", json!({"command": away}))]);
    stage.say("You are the parent.").await;
    let (_, id) = report(&stage);
    let merged = call(&stage, "agent.merge", json!({"id": id})).await;
    assert!(merged.success, "{merged:?}");
    assert_eq!(stage.read("~/deep/x").as_deref(), Some("mine\n"), "{merged:?}");
}

#[tokio::test]
async fn a_branch_is_the_one_that_was_asked_for_or_none() {
    let stage = Stage::answers(|asked| match results(asked).len() {
        0 if child(asked) => Reply::call("file_write", json!({"path": "new.txt", "content": "x"})),
        _ => Reply::say("It is done."),
    });
    repository(&stage);
    let spawn = |branch: &str| json!({"task": "Work on it", "mode": "worktree", "branch": branch});
    for odd in ["-x", "a..b", "a/", "/a", "a b", ".a", "a/.b", "a.lock", "HEAD", "a;b"] {
        let outcome = call(&stage, "agent.spawn", spawn(odd)).await;
        assert!(outcome.error.is_some_and(|error| error.message.contains("name of a branch")), "{odd}");
    }
    let outcome = call(&stage, "agent.spawn", spawn("mend/it-1")).await;
    let agents: Value = outcome.data.unwrap();
    assert_eq!(agents["agents"][0]["worktree"]["branch"], "mend/it-1", "{agents:#}");
}

#[tokio::test]
async fn nothing_outlives_a_child_in_its_copy() {
    let stage = stage(vec![
        ("process_start", json!({"command": "sleep 471.2", "persist": true})),
        ("process_start", json!({"command": "sleep 471.3; echo late > late.txt"})),
    ]);
    stage.say("You are the parent.").await;
    let child = stage.stub.asked().into_iter().rfind(child).unwrap();
    let told = results(&child);
    assert!(told[0].1 && told[0].0.contains("starts nothing that outlives it"), "{told:?}");
    assert!(!told[1].1, "{told:?}");
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
    let left: Vec<String> = lines.filter(|line| line.contains("471.2") || line.contains("471.3")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_copy_stays_while_calls_wait_to_happen_in_it() {
    let stage = stage(vec![("file_write", json!({"path": "new.txt", "content": "x"}))]);
    say(&stage.haft, who("talk"), "You are the parent.", &Nobody, &Halt::new()).await;
    let (text, _) = results(&stage.last()).pop().unwrap();
    assert_eq!(copies(&stage), 1, "{text}");
    let waiting = stage.haft.store().approvals(true).await.unwrap();
    let asked = waiting.iter().find(|asked| asked.tool == "file.write").unwrap();
    let id = asked.session.as_deref().unwrap().strip_prefix("agent-").unwrap().to_owned();
    let discard = || call(&stage, "agent.control", json!({"action": "discard", "id": id}));
    let refused = discard().await;
    assert!(refused.error.is_some_and(|error| error.message.contains("wait for somebody to decide")));
    assert_eq!(copies(&stage), 1);
    assert!(stage.haft.store().reject(&asked.id, &Decider::embedder("me"), "no").await.unwrap());
    let gone = discard().await;
    assert!(gone.success && copies(&stage) == 0, "{gone:?}");
}

/// Another repository, beside the project.
fn secret(stage: &Stage) -> PathBuf {
    let dir = stage.dir.path().canonicalize().unwrap().join("secret");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("secret.txt"), "a secret").unwrap();
    let at = dir.display().to_string();
    for args in [&["init", "--quiet", "--initial-branch=main"][..], &["add", "-A"], &["commit", "--quiet", "-m", "s"]] {
        git(stage, &[&["-C", &at], args].concat());
    }
    dir
}

fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// How a project's repository is made to lead elsewhere: what it is called, how it is done, and what is said of it.
type Trick = (&'static str, fn(&Path, &Path), &'static str);

const TRICKS: &[Trick] = &[
    (
        "a branch of another repository",
        |own, secret| {
            std::fs::remove_file(own.join("refs/heads/main")).unwrap();
            symlink(secret.join("refs/heads/main"), own.join("refs/heads/main")).unwrap();
            let objects = format!("{}\n", secret.join("objects").display());
            std::fs::write(own.join("objects/info/alternates"), objects).unwrap();
        },
        "main is a link, or no plain file",
    ),
    (
        "a commit of another repository, borrowed",
        |own, secret| {
            std::fs::copy(secret.join("refs/heads/main"), own.join("refs/heads/main")).unwrap();
            std::fs::write(own.join("objects/info/alternates"), "../../../secret/.git/objects\n").unwrap();
        },
        "what it borrows objects from is at",
    ),
    (
        "borrowed from somebody who borrows",
        |own, secret| {
            std::fs::copy(secret.join("refs/heads/main"), own.join("refs/heads/main")).unwrap();
            std::fs::create_dir_all(own.join("lender/info")).unwrap();
            std::fs::write(own.join("objects/info/alternates"), "../lender\n").unwrap();
            let objects = format!("{}\n", secret.join("objects").display());
            std::fs::write(own.join("lender/info/alternates"), objects).unwrap();
        },
        "what it borrows objects from is at",
    ),
    (
        "a file that says where it is",
        |own, _| {
            std::fs::remove_dir_all(own).unwrap();
            std::fs::write(own, "gitdir: ../secret/.git\n").unwrap();
        },
        "which the project may not read",
    ),
    (
        "a link to it",
        |own, secret| {
            std::fs::remove_dir_all(own).unwrap();
            symlink(secret, own).unwrap();
        },
        "which the project may not read",
    ),
    (
        "a place that is shared",
        |own, secret| std::fs::write(own.join("commondir"), secret.display().to_string()).unwrap(),
        "which the project may not read",
    ),
    (
        "objects that are what is around the project",
        |own, _| {
            let around = own.join("../..");
            for entry in std::fs::read_dir(own.join("objects")).unwrap().flatten() {
                std::fs::rename(entry.path(), around.join(entry.file_name())).unwrap();
            }
            std::fs::remove_dir(own.join("objects")).unwrap();
            symlink("../..", own.join("objects")).unwrap();
        },
        "objects is a link, or no plain file",
    ),
    (
        "a head that is a link",
        |own, secret| {
            std::fs::remove_file(own.join("HEAD")).unwrap();
            symlink(secret.join("HEAD"), own.join("HEAD")).unwrap();
        },
        "HEAD is a link, or no plain file",
    ),
    (
        "a branch that waits for a writer",
        |own, _| {
            std::fs::remove_file(own.join("refs/heads/main")).unwrap();
            pipe(&own.join("refs/heads/main"));
        },
        "main is a link, or no plain file",
    ),
    (
        "settings that wait for a writer",
        |own, _| {
            std::fs::remove_file(own.join("config")).unwrap();
            pipe(&own.join("config"));
        },
        "config is a link, or no plain file",
    ),
];

#[tokio::test]
async fn a_repository_that_leads_elsewhere_has_no_copy() {
    for (name, trick, said) in TRICKS {
        let stage = stage(vec![("shell_exec", json!({"command": "cat secret.txt"}))]);
        let secret = secret(&stage);
        trick(&stage.haft.workspace().root().join(".git"), &secret.join(".git"));
        let text = tokio::time::timeout(Duration::from_mins(1), refused(&stage)).await.expect(name);
        assert!(text.contains("there is no copy of the project's repository") && text.contains(said), "{name}: {text}");
        assert!(text.contains("use the mode sync"), "{name}: {text}");
        assert_eq!(copies(&stage), 0, "{name}");
    }
}

/// Makes the project another worktree of the repository beside it.
fn link(stage: &Stage, secret: &Path, back: &Path) {
    let own = stage.haft.workspace().root().join(".git");
    std::fs::remove_dir_all(&own).unwrap();
    git(stage, &["-C", &secret.display().to_string(), "worktree", "add", "--quiet", "../linked"]);
    std::fs::rename(secret.with_file_name("linked").join(".git"), &own).unwrap();
    std::fs::write(secret.join(".git/worktrees/linked/gitdir"), format!("{}\n", back.display())).unwrap();
}

#[tokio::test]
async fn a_project_that_is_a_worktree_or_a_submodule_has_a_copy() {
    let look = || vec![("shell_exec", json!({"command": "git log --format=%s && git show --stat && ls"}))];
    let told = |stage: &Stage| {
        report(stage);
        let child = stage.stub.asked().into_iter().rfind(child).unwrap();
        results(&child).pop().unwrap()
    };
    let worktree = stage(look());
    let own = worktree.haft.workspace().root().join(".git");
    link(&worktree, &secret(&worktree), &own);
    worktree.say("You are the parent.").await;
    let (text, failed) = told(&worktree);
    assert!(!failed && text.contains("secret.txt"), "{text}");

    let submodule = stage(look());
    let own = submodule.haft.workspace().root().join(".git");
    let modules = secret(&submodule).join(".git/modules");
    std::fs::create_dir(&modules).unwrap();
    std::fs::rename(&own, modules.join("sub")).unwrap();
    std::fs::write(&own, "gitdir: ../secret/.git/modules/sub\n").unwrap();
    let config = modules.join("sub/config").display().to_string();
    git(&submodule, &["config", "--file", &config, "core.worktree", "../../../../project"]);
    submodule.say("You are the parent.").await;
    let (text, failed) = told(&submodule);
    assert!(!failed && text.contains("old.txt"), "{text}");
}

#[tokio::test]
async fn somebody_elses_worktree_has_no_copy() {
    let stage = stage(Vec::new());
    let secret = secret(&stage);
    link(&stage, &secret, &secret.with_file_name("linked").join(".git"));
    let text = refused(&stage).await;
    assert!(text.contains("which the project may not read") && copies(&stage) == 0, "{text}");
}

#[tokio::test]
async fn what_is_little_in_a_repository_and_much_in_a_copy_has_none() {
    let stage = stage(Vec::new());
    // As much as it says it has, which is all that is looked at: nothing is unpacked.
    let id = "aa".repeat(20);
    let dir = stage.haft.workspace().root().join(".git/objects").join(&id[..2]);
    std::fs::create_dir(&dir).unwrap();
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(b"blob 3000000000\0little").unwrap();
    std::fs::write(dir.join(&id[2..]), packed.finish().unwrap()).unwrap();
    git(&stage, &["update-index", "--add", "--cacheinfo", &format!("100644,{id},much.bin")]);
    let tree = git(&stage, &["write-tree", "--missing-ok"]);
    let commit = git(&stage, &["commit-tree", "-m", "much", &tree]);
    git(&stage, &["update-ref", "refs/heads/main", &commit]);
    let text = refused(&stage).await;
    assert!(text.contains("the limit of a copy") && copies(&stage) == 0, "{text}");
}
