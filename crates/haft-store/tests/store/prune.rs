//! What is over for long is forgotten, and nothing else.

use crate::{Scene, wait};
use haft_core::schedule::Due;
use haft_core::work::Node;
use haft_store::tasks::{About, Ended, Owner, Priority, Promise, Standing, Task, TaskKind, TaskStatus};
use haft_store::work::{Above, Claim, End, NewRun, WorkerSeen};
use haft_store::{Pruned, Store};
use serde_json::json;

const ROOT: &str = "/project";
/// Everything that a test does is before that, and after 1970.
const SOON: i64 = i64::MAX;

fn run(id: &str, steps: usize, above: Option<&str>) -> NewRun {
    let node = |nr: usize| {
        let needs = if nr == 0 { Vec::new() } else { vec!["s0".to_owned()] };
        Node { id: format!("s{nr}"), needs, ..Node::default() }
    };
    let above = above.map(|run| Above { run: run.to_owned(), nr: 0 });
    NewRun { above, ..crate::work::planned(id, (0..steps).map(node).collect()) }
}

fn begin(store: &Store, id: &str, steps: usize, above: Option<&str>) {
    wait(store.start_run(run(id, steps, above))).unwrap();
}

/// The runs that are there still.
fn runs(store: &Store) -> Vec<String> {
    let sql = "SELECT id FROM runs ORDER BY id";
    wait(store.run(haft_store::Mode::Read, move |db| db.all(sql, &[], |row| row.get(0)))).unwrap()
}

fn count(store: &Store, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    wait(store.run(haft_store::Mode::Read, move |db| db.one(&sql, &[], |row| row.get(0)))).unwrap()
}

#[test]
fn runs_that_are_over_go_whole_and_those_that_are_open_stay() {
    let scene = Scene::new();
    let store = &scene.store;
    for id in ["run-old", "run-late", "run-open", "run-uncertain", "run-unheard"] {
        begin(store, id, 3, None);
    }
    begin(store, "run-old-0", 2, Some("run-old"));
    for id in ["run-old", "run-late", "run-uncertain", "run-unheard"] {
        assert!(wait(store.cancel_run(id, "somebody")).unwrap());
    }
    scene.tamper("UPDATE steps SET state = 'uncertain' WHERE run = 'run-uncertain' AND nr = 1");
    scene.tamper("UPDATE runs SET ended_ms = 5000 WHERE id <> 'run-late' AND state <> 'running'");
    scene.tamper(
        "INSERT INTO tasks (id, place, root, title, tags, kind, status, priority, promise, made_ms, changed_ms, attempt,
         missed, run) VALUES ('a1', '/p', '/p', 'Task', '[]', 'manual', 'pending', 1, '{}', 0, 0, 0, 0, 'run-unheard')",
    );
    let records = count(store, "journal");
    let would = wait(store.prunable(6000)).unwrap();
    assert_eq!(would, Pruned { runs: 2, steps: 5, ..Pruned::default() });
    assert_eq!(runs(store).len(), 6, "to say how much is to do nothing");
    assert_eq!(wait(store.prune(6000, "somebody")).unwrap(), would);
    assert_eq!(runs(store), ["run-late", "run-open", "run-uncertain", "run-unheard"]);
    assert_eq!((count(store, "steps"), count(store, "edges")), (12, 8));
    assert!(wait(store.prune(6000, "somebody")).unwrap().is_nothing());
    // The log is as it was, and says what was forgotten, once.
    assert_eq!(count(store, "journal"), records + 1);
    let checked = wait(store.check()).unwrap();
    assert_eq!(checked.problems, [""; 0]);
}

#[test]
fn what_is_larger_than_a_portion_goes_in_several() {
    let scene = Scene::new();
    let store = &scene.store;
    begin(store, "run-large", 1500, None);
    begin(store, "run-large-0", 3, Some("run-large"));
    for number in 0..400 {
        begin(store, &format!("run-small{number}"), 2, None);
    }
    for id in runs(store) {
        wait(store.cancel_run(&id, "somebody")).unwrap();
    }
    // As if somebody had been interrupted between a large run and its steps.
    begin(store, "run-half", 4, None);
    scene.tamper("DELETE FROM runs WHERE id = 'run-half'");
    let would = wait(store.prunable(SOON)).unwrap();
    assert_eq!((would.runs, would.steps), (402, 2303));
    let gone = wait(store.prune(SOON, "somebody")).unwrap();
    assert_eq!((gone.runs, gone.steps), (402, 2307), "and what was left before");
    let left = ["runs", "steps", "edges"].map(|table| count(store, table));
    assert_eq!(left, [0, 0, 0]);
}

#[test]
fn what_came_of_tasks_and_workers_that_are_gone_go_by_their_age() {
    let scene = Scene::new();
    let store = &scene.store;
    let task = Task {
        id: "a1".to_owned(),
        place: ROOT.to_owned(),
        kind: TaskKind::Manual,
        status: TaskStatus::Pending,
        about: About {
            title: "Task".to_owned(),
            description: None,
            priority: Priority::Medium,
            due_ms: None,
            tags: Vec::new(),
            parent: None,
        },
        promise: Promise { owner: Owner { root: ROOT.to_owned(), ..Owner::default() }, ..Promise::default() },
        standing: Standing { next_ms: Some(10), ..Standing::default() },
    };
    wait(store.add_task(task)).unwrap();
    for at in [10, 20, 30] {
        let due = Due { run: Some(at), next: Some(at + 10), missed: 0 };
        wait(store.claim_task("a1", at, due, at)).unwrap().unwrap();
        if at < 30 {
            wait(store.task_ran_at("a1", "r", Ended::Well, "", at + 1)).unwrap();
        }
    }
    let (id, host, root, state) = ("w-1".into(), "here".into(), ROOT.into(), "gone".into());
    let seen =
        WorkerSeen { id, host, pid: 1, root, labels: Vec::new(), slots: 1, state, begun_ms: 0, seen_ms: 0, busy: 0 };
    wait(store.see_worker(seen)).unwrap();
    scene.tamper("UPDATE workers SET seen_ms = 15");
    let gone = wait(store.prune(15, "somebody")).unwrap();
    assert_eq!(gone, Pruned { task_runs: 1, ..Pruned::default() }, "and what is as old as that stays");
    let gone = wait(store.prune(SOON, "somebody")).unwrap();
    assert_eq!(gone, Pruned { task_runs: 1, workers: 1, ..Pruned::default() }, "what is under way stays");
    // The run of a start that nobody noted is what keeps it from being begun twice.
    let claimed = NewRun { task: Some("a1".to_owned()), ..run("run-a1", 1, None) };
    wait(store.start_run(claimed)).unwrap();
    wait(store.cancel_run("run-a1", "somebody")).unwrap();
    assert!(wait(store.prune(SOON, "somebody")).unwrap().is_nothing());
    assert_eq!(wait(store.task_runs("a1", 9)).unwrap().len(), 1);
    assert_eq!(wait(store.task("a1")).unwrap().unwrap().status, TaskStatus::InProgress);
}

#[test]
fn a_run_that_is_taken_up_again_meanwhile_is_not_forgotten() {
    let scene = Scene::new();
    let store = &scene.store;
    begin(store, "run-1", 2, None);
    wait(store.cancel_run("run-1", "somebody")).unwrap();
    assert_eq!(wait(store.prunable(SOON)).unwrap().runs, 1);
    assert_eq!(wait(store.run_again("run-1")).unwrap(), 2);
    assert!(wait(store.prune(SOON, "somebody")).unwrap().is_nothing());
    let claim = Claim {
        worker: "w".to_owned(),
        root: ROOT.to_owned(),
        labels: Vec::new(),
        most: 9,
        lease_ms: 60_000,
        only: None,
    };
    let mut claimed = wait(store.claim(claim)).unwrap();
    wait(store.end_step(claimed.remove(0), End::Done(json!({"success": true})))).unwrap();
    assert_eq!(runs(store), ["run-1"]);
}
