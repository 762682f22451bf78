//! What was promised is kept, is started by one of many, and ends once.

use crate::{Scene, wait};
use haft_core::policy::Autonomy;
use haft_core::schedule::Due;
use haft_store::Store;
use haft_store::tasks::{
    About, Claim, Ended, LEASE_MS, Owner, Priority, Promise, Standing, Task, TaskFilter, TaskKind, TaskStatus,
};
use serde_json::json;

const NOW: i64 = 1_800_000_000_000;
const HOUR: i64 = 3_600_000;

fn task(id: &str) -> Task {
    Task {
        id: id.to_owned(),
        place: "/p".to_owned(),
        kind: TaskKind::Manual,
        status: TaskStatus::Pending,
        about: About {
            title: format!("Task {id}"),
            description: None,
            priority: Priority::Medium,
            due_ms: None,
            tags: Vec::new(),
            parent: None,
        },
        promise: Promise { owner: Owner { root: "/p".to_owned(), ..Owner::default() }, ..Promise::default() },
        standing: Standing { made_ms: NOW, changed_ms: NOW, ..Standing::default() },
    }
}

/// One that is done once, and is due.
fn once(id: &str, retries: u32) -> Task {
    let mut task = task(id);
    task.promise.spec = Some(json!({"tool": "calc.eval", "args": {"expression": "1+1"}}));
    task.promise.retries = retries;
    task.standing.next_ms = Some(NOW);
    task
}

fn add(scene: &Scene, task: Task) {
    wait(scene.store.add_task(task)).unwrap();
}

fn get(scene: &Scene, id: &str) -> Task {
    wait(scene.store.task(id)).unwrap().unwrap()
}

fn claim(store: &Store, id: &str, seen_ms: i64, next: Option<i64>, now_ms: i64) -> Option<Claim> {
    wait(store.claim_task(id, seen_ms, Due { run: Some(seen_ms), next, missed: 0 }, now_ms)).unwrap()
}

fn ids(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

#[test]
fn a_task_is_kept_whole_and_found_by_the_beginning_of_its_name() {
    let scene = Scene::new();
    let mut whole = task("ab12");
    whole.about.description = Some("in more words".to_owned());
    whole.about.tags = vec!["a".to_owned(), "b".to_owned()];
    whole.about.due_ms = Some(NOW + HOUR);
    whole.promise.spec = Some(json!({"prompt": "look"}));
    whole.promise.schedule = Some("daily at 7:00".to_owned());
    whole.promise.zone = Some("Europe/Vienna".to_owned());
    whole.promise.owner.caller.agent = Some("helper".to_owned());
    whole.promise.owner.autonomy = Some(Autonomy::Conservative);
    whole.standing.next_ms = Some(NOW + 5);
    add(&scene, whole.clone());
    add(&scene, task("ab34"));
    add(&scene, task("ff00"));
    let scene = scene.restarted();
    assert_eq!(get(&scene, "ab12"), whole);
    let named = |prefix: &str| wait(scene.store.tasks_named(prefix, 10)).unwrap().len();
    assert_eq!((named("ab"), named("ab1"), named("f"), named("c")), (2, 1, 1, 0));
    // What is no name finds nothing, whatever a database would make of it.
    assert_eq!((named(""), named("%"), named("AB"), named("a'b")), (0, 0, 0, 0));
}

#[test]
fn tasks_are_found_by_what_they_are_about_and_the_urgent_come_first() {
    let scene = Scene::new();
    let make = |id: &str, edit: &dyn Fn(&mut Task)| {
        let mut new = task(id);
        edit(&mut new);
        add(&scene, new);
    };
    make("a1", &|task| task.about.due_ms = Some(NOW + 2 * HOUR));
    make("a2", &|task| task.about.due_ms = Some(NOW + HOUR));
    make("a3", &|task| task.about.priority = Priority::Urgent);
    make("a4", &|task| task.about.tags = vec!["Red_x".to_owned()]);
    make("a5", &|task| task.about.description = Some("100% Wool".to_owned()));
    make("a6", &|task| task.status = TaskStatus::Done);
    make("a7", &|task| task.place = String::new());
    make("a8", &|task| task.place = "/elsewhere".to_owned());
    let list = |filter: TaskFilter| ids(&wait(scene.store.tasks(filter)).unwrap()).join(" ");
    let here = || TaskFilter { places: vec!["/p".to_owned(), String::new()], ..TaskFilter::default() };
    assert_eq!(list(here()), "a3 a2 a1 a4 a5 a7");
    assert_eq!(list(TaskFilter { limit: 2, ..here() }), "a3 a2");
    assert_eq!(list(TaskFilter { status: Some(TaskStatus::Done), ..here() }), "a6");
    assert_eq!(list(TaskFilter { due: Some((NOW, NOW + 2 * HOUR)), ..here() }), "a2");
    assert_eq!(list(TaskFilter { due: Some((i64::MIN, NOW)), ..here() }), "");
    assert_eq!(list(TaskFilter { tag: Some("red_X".to_owned()), ..here() }), "a4");
    assert_eq!(list(TaskFilter { tag: Some("red".to_owned()), ..here() }), "");
    assert_eq!(list(TaskFilter { tag: Some("red.x".to_owned()), ..here() }), "");
    assert_eq!(list(TaskFilter { text: Some("0% w".to_owned()), ..here() }), "a5");
    assert_eq!(list(TaskFilter { text: Some("0_ w".to_owned()), ..here() }), "");
    assert_eq!(list(TaskFilter { text: Some("TASK A1".to_owned()), ..here() }), "a1");
    assert_eq!(list(TaskFilter { closed: true, ..TaskFilter::default() }), "a3 a2 a1 a4 a5 a6 a7 a8");
}

#[test]
fn completing_a_task_completes_what_is_below_it() {
    let scene = Scene::new();
    for (id, parent) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("a")), ("e", None)] {
        let mut new = once(id, 0);
        new.about.parent = parent.map(str::to_owned);
        add(&scene, new);
    }
    assert_eq!(wait(scene.store.close_task("d", TaskStatus::Cancelled, NOW)).unwrap(), 1);
    assert_eq!(wait(scene.store.close_task("a", TaskStatus::Done, NOW)).unwrap(), 3);
    let stands = |id: &str| {
        let task = get(&scene, id);
        (task.status.as_str(), task.standing.next_ms.is_some())
    };
    assert_eq!(["a", "b", "c"].map(stands), [("done", false); 3]);
    assert_eq!((stands("d"), stands("e")), (("cancelled", false), ("pending", true)));
    assert_eq!(wait(scene.store.remove_task("a")).unwrap(), 4);
    assert_eq!(wait(scene.store.task("c")).unwrap(), None);
    assert_eq!(wait(scene.store.remove_task("a")).unwrap(), 0);
}

#[test]
fn of_many_who_find_a_task_due_one_starts_it() {
    let scene = Scene::new();
    for id in ["a1", "a2", "a3"] {
        add(&scene, once(id, 0));
    }
    let path = scene.path();
    let mut won: Vec<String> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|_| {
                let path = &path;
                scope.spawn(move || {
                    let store = Store::open(path).unwrap();
                    let due = wait(store.due_tasks("/p", NOW, 10)).unwrap();
                    let mine = due.iter().filter(|task| claim(&store, &task.id, NOW, None, NOW).is_some());
                    mine.map(|task| task.id.clone()).collect::<Vec<_>>()
                })
            })
            .collect();
        tries.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    won.sort();
    assert_eq!(won, ["a1", "a2", "a3"]);
    assert_eq!(wait(scene.store.due_tasks("/p", NOW, 10)).unwrap(), []);
}

#[test]
fn what_somebody_claimed_and_did_not_start_is_started_by_another() {
    let scene = Scene::new();
    add(&scene, once("a1", 0));
    let first = claim(&scene.store, "a1", NOW, None, NOW + 3).unwrap();
    assert_eq!((first.at_ms, first.task.is_owed()), (NOW, true));
    let scene = scene.restarted();
    assert_eq!(wait(scene.store.due_tasks("/p", NOW + LEASE_MS, 9)).unwrap(), []);
    let later = NOW + LEASE_MS + 3;
    let owed = wait(scene.store.due_tasks("/p", later, 9)).unwrap();
    assert_eq!(ids(&owed), ["a1"]);
    // For the same time: whoever starts it can tell that it is the same run.
    let again = claim(&scene.store, "a1", owed[0].standing.next_ms.unwrap(), None, later).unwrap();
    assert_eq!(again.at_ms, NOW);
    assert!(wait(scene.store.task_started("a1", NOW, "r1")).unwrap());
    assert!(!wait(scene.store.task_started("a1", NOW, "r2")).unwrap(), "it is started");
    assert_eq!(wait(scene.store.due_tasks("/p", i64::MAX, 9)).unwrap(), []);
    assert!(wait(scene.store.task_ran("a1", "r1", true, "2")).unwrap());
    assert!(!wait(scene.store.task_ran("a1", "r1", false, "")).unwrap(), "a run ends once");
    let task = get(&scene, "a1");
    assert_eq!((task.status, task.standing.result.as_deref()), (TaskStatus::Done, Some("2")));
}

#[test]
fn what_is_done_once_is_tried_again_after_longer_and_longer() {
    let scene = Scene::new();
    add(&scene, once("a1", 2));
    let (mut now, mut waits) = (NOW, Vec::new());
    while let Some(next) = get(&scene, "a1").standing.next_ms {
        waits.push((next - now) / 60_000);
        now = next;
        claim(&scene.store, "a1", now, None, now).unwrap();
        wait(scene.store.task_started("a1", now, "r")).unwrap();
        assert!(wait(scene.store.task_ran_at("a1", "r", Ended::Badly, "no", now)).unwrap());
    }
    assert_eq!(waits, [0, 1, 2]);
    assert_eq!(get(&scene, "a1").status, TaskStatus::Failed);
    assert_eq!(wait(scene.store.task_runs("a1", 10)).unwrap().len(), 3);
    // What a person refused is not asked again.
    add(&scene, once("a2", 2));
    claim(&scene.store, "a2", NOW, None, NOW).unwrap();
    wait(scene.store.task_ran_at("a2", "r", Ended::ForGood, "rejected", NOW)).unwrap();
    assert_eq!((get(&scene, "a2").status, get(&scene, "a2").standing.next_ms), (TaskStatus::Failed, None));
}

#[test]
fn what_repeats_goes_on_after_a_failure_and_not_after_it_was_cancelled() {
    let scene = Scene::new();
    add(&scene, once("a1", 3));
    let run = |at: i64, ended: Ended| {
        claim(&scene.store, "a1", at, Some(at + HOUR), at).unwrap();
        wait(scene.store.task_started("a1", at, "r")).unwrap();
        wait(scene.store.task_ran_at("a1", "r", ended, "", at + 5)).unwrap();
        let task = get(&scene, "a1");
        (task.status.as_str(), task.standing.next_ms.map(|next| next - at))
    };
    assert_eq!(run(NOW, Ended::Badly), ("pending", Some(HOUR)));
    assert_eq!(run(NOW + HOUR, Ended::Well), ("pending", Some(HOUR)));
    let at = NOW + 2 * HOUR;
    claim(&scene.store, "a1", at, Some(at + HOUR), at).unwrap();
    wait(scene.store.task_started("a1", at, "r")).unwrap();
    wait(scene.store.close_task("a1", TaskStatus::Cancelled, at + 1)).unwrap();
    assert!(wait(scene.store.task_ran_at("a1", "r", Ended::Well, "late", at + 9)).unwrap(), "what came of it is kept");
    let task = get(&scene, "a1");
    assert_eq!((task.status, task.standing.next_ms), (TaskStatus::Cancelled, None));
    assert_eq!(task.standing.result.as_deref(), Some("late"));
}

#[test]
fn what_waits_for_a_person_says_so_and_is_not_due() {
    let scene = Scene::new();
    add(&scene, once("a1", 0));
    claim(&scene.store, "a1", NOW, None, NOW).unwrap();
    wait(scene.store.task_started("a1", NOW, "r")).unwrap();
    assert!(!wait(scene.store.task_waits("a1", "another", Some("q-1"))).unwrap());
    assert!(wait(scene.store.task_waits("a1", "r", Some("q-1"))).unwrap());
    let scene = scene.restarted();
    let task = get(&scene, "a1");
    assert_eq!((task.status, task.standing.waits_for.as_deref()), (TaskStatus::Waiting, Some("q-1")));
    assert_eq!(wait(scene.store.due_tasks("/p", NOW + 400 * 24 * HOUR, 9)).unwrap(), [], "for a year, too");
    wait(scene.store.task_waits("a1", "r", None)).unwrap();
    wait(scene.store.task_ran("a1", "r", true, "yes")).unwrap();
    let task = get(&scene, "a1");
    assert_eq!((task.status, task.standing.waits_for), (TaskStatus::Done, None));
}

#[test]
fn a_watched_page_is_silent_until_it_changes() {
    let scene = Scene::new();
    let mut watch = task("a1");
    watch.kind = TaskKind::Watch;
    watch.standing.next_ms = Some(NOW);
    add(&scene, watch);
    let looks = |at: i64, text: &str, ended: Ended| {
        claim(&scene.store, "a1", at, Some(at + HOUR), at).unwrap();
        wait(scene.store.task_ran_at("a1", "r", ended, text, at)).unwrap();
        (wait(scene.store.task_runs("a1", 1)).unwrap()[0].result.clone(), get(&scene, "a1").standing.result)
    };
    assert_eq!(looks(NOW, "Apples 3\nPears 4", Ended::Well), (None, None));
    assert_eq!(looks(NOW + HOUR, "Apples  3\n\nPears 4\n", Ended::Well), (None, None));
    let told = Some("- Apples 3\n+ Apples 5".to_owned());
    assert_eq!(looks(NOW + 2 * HOUR, "Apples 5\nPears 4", Ended::Well), (told.clone(), told.clone()));
    // What changed last stays known while nothing changes.
    assert_eq!(looks(NOW + 3 * HOUR, "Apples 5\nPears 4", Ended::Well), (None, told));
    // A failure is no change of the page.
    assert_eq!(looks(NOW + 4 * HOUR, "gone", Ended::Badly).0.as_deref(), Some("gone"));
    assert_eq!(looks(NOW + 5 * HOUR, "Apples 5\nPears 4", Ended::Well).0, None);
}

#[test]
fn results_are_bounded_and_hold_no_secrets() {
    let scene = Scene::new();
    add(&scene, once("a1", 0));
    claim(&scene.store, "a1", NOW, Some(NOW + 1), NOW).unwrap();
    let long = format!("key AKIAABCDEFGHIJKLMNOP {}", "é".repeat(100_000));
    wait(scene.store.task_ran_at("a1", "r", Ended::Well, &long, NOW)).unwrap();
    let kept = get(&scene, "a1").standing.result.unwrap();
    assert!(kept.len() < 20_000 && kept.ends_with("(only the beginning is kept)"), "{}", kept.len());
    assert!(kept.starts_with("key [secret]"), "{}", &kept[..40]);
    // A hundred runs are remembered.
    for at in 1..130 {
        let at = NOW + at;
        claim(&scene.store, "a1", at, Some(at + 1), at).unwrap();
        wait(scene.store.task_ran_at("a1", "r", Ended::Well, "", at)).unwrap();
    }
    let runs = wait(scene.store.task_runs("a1", 1_000)).unwrap();
    assert_eq!((runs.len(), runs[0].at_ms), (100, NOW + 129));
}

#[test]
fn an_edit_and_a_claim_do_not_undo_each_other() {
    let scene = Scene::new();
    add(&scene, once("a1", 0));
    claim(&scene.store, "a1", NOW, Some(NOW + HOUR), NOW).unwrap();
    let edited = wait(scene.store.edit_task("a1", |task| {
        task.about.title = "Another".to_owned();
        task.plan(Some(NOW + 9 * HOUR));
    }));
    assert!(edited.unwrap().unwrap().is_owed());
    wait(scene.store.task_ran_at("a1", "r", Ended::Well, "", NOW)).unwrap();
    let task = get(&scene, "a1");
    assert_eq!((task.about.title.as_str(), task.standing.next_ms), ("Another", Some(NOW + 9 * HOUR)));
    assert_eq!(wait(scene.store.edit_task("none", |_| {})).unwrap(), None);
}

#[test]
fn what_is_due_is_found_by_an_index_among_a_hundred_thousand() {
    let scene = Scene::new();
    add(&scene, once("a1", 0));
    let numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000)";
    let rows = scene.tamper(&format!(
        "{numbers} INSERT INTO tasks (id, place, root, title, tags, kind, status, priority, promise, made_ms, changed_ms, next_ms,
         attempt, missed) SELECT 'f' || x, '/p', '/p', 'Task', '[]', 'scheduled', 'pending', 1, '{{}}', 0, 0,
         CASE WHEN x % 2 = 0 THEN {NOW} + 1000 + x END, 0, 0 FROM n"
    ));
    assert_eq!(rows, 100_000);
    assert_eq!(ids(&wait(scene.store.due_tasks("/p", NOW, 10)).unwrap()), ["a1"]);
    assert_eq!(wait(scene.store.next_task_ms("/p")).unwrap(), Some(NOW));
    for question in [
        format!(
            "SELECT * FROM tasks WHERE root = '/p' AND next_ms IS NOT NULL AND next_ms <= {NOW} ORDER BY next_ms, id LIMIT 10"
        ),
        "SELECT min(next_ms) FROM tasks WHERE root = '/p' AND next_ms IS NOT NULL".to_owned(),
    ] {
        let plan = scene.plan(&question);
        assert!(plan.contains("tasks_due") && !plan.contains("Seq Scan"), "{plan}");
    }
}
