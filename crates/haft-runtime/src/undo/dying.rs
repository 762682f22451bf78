//! A process that dies while it makes or takes back changes loses nothing, and undo puts things right.
//! This program runs itself again to have somebody who dies.

use super::bench::{Bench, Closeness, memory, snapshot};
use super::tests::{prepare, prepared};
use super::*;
use std::process::{Child, Command, Stdio};

/// Runs `job` on a bench in another process. `turn` says which change comes first.
fn start(bench: &Bench, job: &str, call: &CallId, turn: usize, stage: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "undo::dying::inside", "--nocapture"])
        .env("HAFT_DYING", job)
        .env("HAFT_DYING_DIR", &bench.dir)
        .env("HAFT_DYING_DATA", &bench.data)
        .env("HAFT_DYING_CALL", call.as_str())
        .env("HAFT_DYING_TURN", turn.to_string())
        .env("HAFT_CRASH_AT", stage)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The process that dies. By itself it does nothing.
#[test]
fn inside() {
    let Ok(job) = std::env::var("HAFT_DYING") else { return };
    let var = |name: &str| std::env::var(name).unwrap();
    let (dir, data) = (var("HAFT_DYING_DIR"), var("HAFT_DYING_DATA"));
    let bench = Bench::open(Path::new(&dir), Path::new(&data), UndoLimits::default());
    let call = CallId::parse(&var("HAFT_DYING_CALL")).unwrap();
    if job == "undo" {
        bench.undo(&call).unwrap();
        return;
    }
    let mut changes = prepared(&bench);
    let turn = var("HAFT_DYING_TURN").parse::<usize>().unwrap() % changes.len();
    changes.rotate_left(turn);
    bench.carry_out_as(&call, &changes).unwrap();
}

type Snapshot = std::collections::BTreeMap<String, String>;

/// A project on which everything is ready.
struct Scene {
    bench: Bench,
    /// With times.
    start: Snapshot,
    /// Without times, as it is and as it will be.
    sides: [Snapshot; 2],
}

fn scene(vault: &Path) -> Scene {
    let (bench, model) = (Bench::across(&memory(), vault, UndoLimits::default()), Bench::new());
    prepare(&bench);
    prepare(&model);
    model.carry_out(&prepared(&model)).unwrap();
    let (start, old) = (snapshot(&bench.root(), Closeness::Exact), snapshot(&bench.root(), Closeness::Alike));
    Scene { sides: [old, snapshot(&model.root(), Closeness::Alike)], start, bench }
}

/// Every path has what it had or what it was to have: nothing else, and nothing in part.
fn whole(scene: &Scene, when: &str) {
    let now = snapshot(&scene.bench.root(), Closeness::Alike);
    let [old, new] = &scene.sides;
    for (path, line) in now.iter().filter(|(path, _)| !path.contains(".haft-")) {
        assert!(old.get(path) == Some(line) || new.get(path) == Some(line), "{when}: {path}: {line}");
    }
    for path in old.keys().filter(|path| new.contains_key(*path)) {
        assert!(now.contains_key(path), "{when}: {path} is gone");
    }
}

/// What the next start does, and then the person.
fn recover(Scene { bench, start, .. }: &Scene, call: &CallId, when: &str) {
    bench.vault.sweep(call, &bench.rows(call).1);
    bench.undo(call).unwrap_or_else(|error| panic!("{when}: {error:?}"));
    assert_eq!(snapshot(&bench.root(), Closeness::Exact), *start, "{when}");
}

#[test]
fn who_dies_while_making_changes_can_be_undone() {
    for (vault, stages) in
        [(memory(), &["kept", "exchanged", "applied"][..]), (std::env::temp_dir(), &["kept", "drafted", "applied"][..])]
    {
        for (stage, turn) in stages.iter().flat_map(|stage| (0..8).map(move |turn| (stage, turn))) {
            let scene = scene(&vault);
            let call = crate::new_call_id();
            let when = format!("{stage} {turn}");
            let died = start(&scene.bench, "call", &call, turn, stage).wait().unwrap();
            assert!(!died.success(), "{when}: it should have died");
            whole(&scene, &when);
            recover(&scene, &call, &when);
        }
    }
}

#[test]
fn who_dies_while_undoing_can_undo_again() {
    for vault in [memory(), std::env::temp_dir()] {
        for (stage, turn) in
            ["kept", "exchanged", "undone"].iter().flat_map(|stage| (0..8).map(move |turn| (stage, turn)))
        {
            let scene = scene(&vault);
            let call = crate::new_call_id();
            let when = format!("{stage} {turn}");
            assert!(start(&scene.bench, "call", &call, turn, "").wait().unwrap().success(), "{when}");
            let _ = start(&scene.bench, "undo", &call, turn, stage).wait().unwrap();
            whole(&scene, &when);
            if scene.bench.rows(&call).0.undone_by.is_none() {
                recover(&scene, &call, &when);
            }
            assert_eq!(snapshot(&scene.bench.root(), Closeness::Exact), scene.start, "{when}");
        }
    }
}

#[test]
fn who_is_killed_at_any_moment_can_be_undone() {
    for round in 0..40 {
        let scene = scene(&memory());
        let call = crate::new_call_id();
        let mut child = start(&scene.bench, "call", &call, round, "");
        std::thread::sleep(Duration::from_micros(5_000 + 500 * round as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        whole(&scene, "killed");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        if runtime.block_on(scene.bench.store.undo_of(&call)).unwrap().is_some() {
            recover(&scene, &call, "killed");
        }
        assert_eq!(snapshot(&scene.bench.root(), Closeness::Exact), scene.start);
    }
}
