//! Laws of the acting half: undo, links, sources, lanes and deadlines, on real files and a real store.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]

mod descriptions;
mod providers;
mod registry;
mod staged;
mod tokens;

use haft_core::approval::Decider;
use haft_core::{Call, ErrorKind};
use haft_runtime::{Haft, Halt, Nobody, Settings, Workspace, Yes, new_call_id};
use haft_store::Store;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

struct Stage {
    dir: tempfile::TempDir,
    haft: Haft,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let workspace = Workspace::new(&dir.path().join("project")).unwrap();
        let haft = Haft::new(workspace, store, Settings::new(dir.path().join("data")));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Self { dir, haft, runtime }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn call(&self, tool: &str, args: Value) -> haft_core::Outcome {
        let call = Call::new(new_call_id(), tool, args);
        self.runtime.block_on(self.haft.call(call, &Yes, &Halt::new()))
    }

    /// Every file and directory below the project: mode and content.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        fn walk(dir: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
            for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let (path, meta) = (entry.path(), entry.metadata().unwrap());
                let content = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
                if meta.is_dir() {
                    walk(&path, found);
                }
                found.insert(path, (meta.permissions().mode(), content));
            }
        }
        let mut found = BTreeMap::new();
        walk(&self.root(), &mut found);
        found
    }
}

/// Something done to a few files.
#[derive(Debug, Clone)]
enum Deed {
    Write(usize, String),
    Edit(usize, String),
    Rename(usize, String),
    Move(String),
    Transform(String, String),
    Ignore(String),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (0..4_usize, "[a-c\\n\\r]{0,12}").prop_map(|(file, text)| Deed::Write(file, text)),
        (0..4_usize, "[x-z\\n]{0,4}").prop_map(|(file, text)| Deed::Edit(file, text)),
        (0..4_usize, "[a-z]{1,3}").prop_map(|(file, name)| Deed::Rename(file, name)),
        "[m-p]{1,2}(/[q-r])?".prop_map(Deed::Move),
        ("[a-c]{1,2}", "[d-e]{0,2}").prop_map(|(find, replace)| Deed::Transform(find, replace)),
        "[a-z]{1,4}".prop_map(Deed::Ignore),
    ]
}

const FILES: [&str; 4] = ["a.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt"];

/// Does a deed; the outcome may well be an error, and then nothing may have changed.
fn perform(stage: &Stage, deed: &Deed) -> haft_core::Outcome {
    match deed {
        Deed::Write(file, text) => {
            stage.call("file.read", json!({"path": FILES[*file]}));
            stage.call("file.write", json!({"path": FILES[*file], "content": text}))
        }
        Deed::Edit(file, text) => {
            stage.call("file.read", json!({"path": FILES[*file]}));
            stage.call(
                "file.edit",
                json!({"path": FILES[*file], "old_string": "a", "new_string": text, "replace_all": true}),
            )
        }
        Deed::Rename(file, name) => {
            stage.call("file.batch", json!({"pattern": FILES[*file], "operation": "rename", "rename_to": name}))
        }
        Deed::Move(to) => {
            stage.call("file.batch", json!({"pattern": "**/*.txt", "operation": "move", "destination": to}))
        }
        Deed::Transform(find, replace) => stage
            .call("file.batch", json!({"pattern": "**/*", "operation": "transform", "find": find, "replace": replace})),
        Deed::Ignore(pattern) => stage.call("file.ignore", json!({"action": "add", "patterns": [pattern]})),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn do_then_undo_is_as_before(deeds in prop::collection::vec(deed(), 1..5)) {
        let stage = Stage::new();
        for (number, file) in FILES.iter().enumerate().skip(1) {
            let path = stage.root().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "abc\naaa\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600 | u32::try_from(number).unwrap())).unwrap();
        }
        let mut done = Vec::new();
        for deed in &deeds {
            let before = stage.tree();
            let outcome = perform(&stage, deed);
            if outcome.success && outcome.undo.is_some() {
                done.push((outcome.call_id, before));
            } else {
                prop_assert_eq!(stage.tree(), before, "{:?} failed or changed nothing: {:?}", deed, outcome.error);
            }
        }
        for (id, before) in done.into_iter().rev() {
            stage.runtime.block_on(stage.haft.undo(&id)).unwrap();
            prop_assert_eq!(stage.tree(), before);
        }
    }
}

#[test]
fn a_link_swapped_in_is_not_followed() {
    let stage = Stage::new();
    let outside = stage.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.txt"), "theirs").unwrap();
    let path = stage.root().join("sub/a.txt");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "mine").unwrap();
    let real = path.canonicalize().unwrap();
    std::fs::remove_dir_all(stage.root().join("sub")).unwrap();
    std::os::unix::fs::symlink(&outside, stage.root().join("sub")).unwrap();
    // The path was decided upon before the swap; opening and replacing it now must both fail.
    assert!(haft_runtime::files::open(&real).is_err());
    assert!(haft_runtime::files::replace(&real, b"pwned", None).is_err());
    assert!(haft_runtime::files::remove(&real).is_err());
    assert_eq!(std::fs::read_to_string(outside.join("a.txt")).unwrap(), "theirs");
}

#[test]
fn calls_with_effects_of_one_session_run_one_after_the_other() {
    let stage = Stage::new();
    let write = |number: usize| {
        Call::new(new_call_id(), "file.write", json!({"path": format!("{number}.txt"), "content": "x"}))
    };
    stage.runtime.block_on(async {
        let halt = Halt::new();
        let calls = (0..20).map(|number| stage.haft.call(write(number), &Yes, &halt));
        let outcomes = futures_util::future::join_all(calls).await;
        assert!(outcomes.iter().all(|outcome| outcome.success));
        stage.haft.flush().await.unwrap();
        // Each outcome directly follows its intent: no two were under way at once.
        let records = stage.haft.store().records(0, 100, None).await.unwrap();
        for pair in records.chunks(2) {
            assert_eq!(pair[0].body["call"], pair[1].body["call"]);
        }
    });
}

#[test]
fn a_halted_call_stops_at_every_stage() {
    let stage = Stage::new();
    let halt = Halt::new();
    halt.cancel();
    let call = Call::new(new_call_id(), "calc.eval", json!({"expression": "1"}));
    let outcome = stage.runtime.block_on(stage.haft.call(call, &Nobody, &halt));
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Cancelled);
    let call = Call::new(new_call_id(), "file.write", json!({"path": "a", "content": "x"}));
    let outcome = stage.runtime.block_on(stage.haft.call(
        call,
        &Never,
        &Halt::new().within(std::time::Duration::from_millis(50)),
    ));
    assert_eq!(
        outcome.error.unwrap().kind,
        ErrorKind::Timeout,
        "a person who does not answer does not hold the call for ever"
    );
}

/// Somebody who never answers.
struct Never;

impl haft_runtime::Approver for Never {
    fn decider(&self) -> Decider {
        Decider::embedder("never")
    }
    fn ask<'a>(&'a self, _: &'a haft_runtime::Question) -> haft_runtime::BoxFuture<'a, haft_runtime::Said> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_call_that_is_dropped_is_closed_as_cancelled() {
    let stage = Stage::new();
    let call = Call::new(new_call_id(), "calc.eval", json!({"expression": "1", "delay_ms": 30_000}));
    stage.runtime.block_on(async {
        let halt = Halt::new();
        let dropped =
            tokio::time::timeout(std::time::Duration::from_millis(50), stage.haft.call(call, &Nobody, &halt)).await;
        assert!(dropped.is_err());
        stage.haft.flush().await.unwrap();
        let records = stage.haft.store().records(0, 10, None).await.unwrap();
        assert_eq!(records[1].body["error"]["kind"], "cancelled");
    });
}

#[test]
fn a_file_with_other_names_is_replaced_with_a_warning() {
    let stage = Stage::new();
    std::fs::write(stage.root().join("a.txt"), "old").unwrap();
    std::fs::hard_link(stage.root().join("a.txt"), stage.root().join("b.txt")).unwrap();
    stage.call("file.read", json!({"path": "a.txt"}));
    let outcome = stage.call("file.write", json!({"path": "a.txt", "content": "new"}));
    assert_eq!(outcome.warnings, ["a.txt has other hard links; they keep the old content"]);
    assert_eq!(std::fs::read_to_string(stage.root().join("b.txt")).unwrap(), "old");
}

#[test]
fn directories_that_come_and_go_during_a_walk_do_not_end_it() {
    let stage = Stage::new();
    let root = stage.root();
    std::fs::write(root.join("stays.txt"), "needle").unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = std::time::Instant::now();
            while !over.load(std::sync::atomic::Ordering::Relaxed) && begun.elapsed().as_secs() < 20 {
                for number in 0..50 {
                    let dir = root.join(format!("gone-{number}/deep"));
                    let _ = std::fs::create_dir_all(&dir);
                    let _ = std::fs::write(dir.join("x.txt"), "needle");
                }
                for number in 0..50 {
                    let _ = std::fs::remove_dir_all(root.join(format!("gone-{number}")));
                }
            }
        });
        for (tool, args) in [
            ("file.grep", json!({"pattern": "needle"})),
            ("file.glob", json!({"pattern": "**/*.txt"})),
            ("file.list", json!({"recursive": true})),
        ] {
            for _ in 0..20 {
                let outcome = stage.call(tool, args.clone());
                assert!(outcome.success && outcome.output.contains("stays.txt"), "{outcome:?}");
            }
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn the_bus_tells_of_start_question_progress_and_end() {
    let stage = Stage::new();
    let mut events = stage.haft.events().listen();
    stage.call("file.write", json!({"path": "a.txt", "content": "x"}));
    stage.call("calc.eval", json!({"expression": "1", "delay_ms": 5}));
    let mut seen = Vec::new();
    while let Ok(event) = events.try_recv() {
        seen.push(serde_json::to_value(event).unwrap()["event"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, ["approval", "call_start", "call_end", "call_start", "progress", "call_end"]);
}
