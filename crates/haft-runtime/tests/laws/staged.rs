//! Tools that prepare files elsewhere: their changes are shown, kept and undone like any other, and what
//! they prepared goes away.

use crate::Stage;
use haft_core::change::{Change, State};
use haft_core::pattern::ToolPattern;
use haft_core::policy::FloorDeny;
use haft_core::{Call, CallError, ErrorKind, Outcome, Policy, ToolSpec};
use haft_runtime::tool::Staging;
use haft_runtime::{Blocking, Haft, Halt, Reply, Settings, Tool, Workspace, Yes, new_call_id};
use haft_sandbox::layer::stands;
use haft_store::Store;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A tool that makes a directory, removes a file, and fails.
fn tool(data: PathBuf, root: PathBuf) -> Arc<dyn Tool> {
    let spec = ToolSpec::new("my.command", "A test").unwrap().changes_files();
    Blocking::tool(spec, move |scene| {
        let staging = Staging::create(&data, &scene.call().id).unwrap();
        let tree = staging.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        std::fs::write(tree.join("secret.env"), "new\n").unwrap();
        // The same each time it is looked at.
        let file = std::fs::File::options().append(true).open(tree.join("secret.env")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        let after = stands(&tree).unwrap();
        let old = root.join("old.txt");
        let changes = vec![
            Change::Place { path: root.join("tree"), staged: tree, before: State::Absent, after },
            Change::Remove { before: stands(&old).unwrap(), path: old },
        ];
        let reply = Reply::text("made a tree").data(json!({"status": 1})).changes(changes);
        Ok(Reply { error: Some(CallError::failed("exit status 1")), staging: Some(staging), ..reply })
    })
}

fn stage() -> Stage {
    let stage = Stage::new();
    std::fs::write(stage.root().join("old.txt"), "old\n").unwrap();
    let root = stage.root().canonicalize().unwrap();
    stage.haft.registry().register(tool(stage.dir.path().join("data"), root)).unwrap();
    stage
}

fn nothing_is_staged(stage: &Stage) {
    assert_eq!(std::fs::read_dir(stage.dir.path().join("data/staging")).unwrap().count(), 0);
}

#[test]
fn a_tool_that_fails_has_output_changes_and_an_undo_all_the_same() {
    let stage = stage();
    let start = stage.tree();
    let outcome = stage.call("my.command", json!({}));
    assert!(!outcome.success);
    assert_eq!(outcome.error.as_ref().unwrap().message, "exit status 1");
    assert_eq!((outcome.output.as_str(), &outcome.data), ("made a tree", &Some(json!({"status": 1}))));
    assert_eq!(outcome.undo.as_ref().unwrap().files, ["tree", "old.txt"]);
    assert!(stage.root().join("tree/secret.env").exists() && !stage.root().join("old.txt").exists());
    nothing_is_staged(&stage);
    let shown = stage.runtime.block_on(stage.haft.changes(&outcome.call_id)).unwrap().diff;
    assert!(shown.contains("+++ b/tree/secret.env") && shown.contains("--- a/old.txt"), "{shown}");
    let (undo, _) = stage.runtime.block_on(stage.haft.undo(&outcome.call_id)).unwrap();
    assert_eq!(stage.tree(), start);
    stage.runtime.block_on(stage.haft.undo(&undo)).unwrap();
    assert!(stage.root().join("tree/secret.env").exists());
}

#[test]
fn a_dry_run_shows_the_same_and_changes_nothing() {
    let stage = stage();
    let start = stage.tree();
    let call = Call::new(new_call_id(), "my.command", json!({}));
    let outcome: Outcome = stage.runtime.block_on(stage.haft.dry_run(call, &Halt::new()));
    assert!(!outcome.success && outcome.output.contains("# added tree/secret.env"), "{}", outcome.output);
    assert_eq!(stage.tree(), start);
    nothing_is_staged(&stage);
}

#[test]
fn the_floor_sees_into_directories() {
    let stage = stage();
    let start = stage.tree();
    let (root, data) = (stage.root().canonicalize().unwrap(), stage.dir.path().join("data"));
    let rule = FloorDeny {
        tool: ToolPattern::new("*").unwrap(),
        args: Some(regex::Regex::new(r"secret\.env").unwrap()),
        reason: "no secrets".to_owned(),
    };
    let policy = Policy { floor: vec![rule], ..Policy::default() };
    let store = Store::open(&stage.dir.path().join("floor.db")).unwrap();
    let haft = Haft::new(Workspace::new(&root).unwrap(), store, Settings::with_policy(data.clone(), Arc::new(policy)));
    haft.registry().register(tool(data, root)).unwrap();
    let call = Call::new(new_call_id(), "my.command", json!({}));
    let outcome = stage.runtime.block_on(haft.call(call, &Yes, &Halt::new()));
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Denied);
    assert_eq!(stage.tree(), start);
    nothing_is_staged(&stage);
}
