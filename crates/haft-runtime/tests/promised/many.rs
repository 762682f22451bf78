//! Many look after the tasks of one store.

use crate::{BEGIN, Ground, Ledger, Scene, at, shown};
use haft_runtime::promised::{Scheduler, Starter};
use haft_store::Store;
use haft_store::tasks::Ended;
use std::sync::Arc;

/// What each of several started, in a life of some hours in which all of them wake at the same times.
fn live(ground: &Ground, count: usize) -> Vec<(String, i64)> {
    let hours: Vec<i64> = (0..6).map(|hour| at(BEGIN) + hour * 3_600_000).collect();
    let barrier = std::sync::Barrier::new(count);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    let store = Store::open(&ground.path()).unwrap();
                    let ledger = Arc::new(Ledger::default());
                    let starter: Arc<dyn Starter> = ledger.clone();
                    let scheduler = Scheduler::new(store.clone(), "/p", starter);
                    for hour in &hours {
                        barrier.wait();
                        runtime.block_on(scheduler.tick(*hour)).unwrap();
                        barrier.wait();
                        // What one started, another may see end.
                        let all = runtime.block_on(store.tasks(haft_store::tasks::TaskFilter::default())).unwrap();
                        for (id, run) in all.into_iter().filter_map(|task| Some((task.id, task.standing.run?))) {
                            runtime.block_on(store.task_ran_at(&id, &run, Ended::Well, "", *hour)).unwrap();
                        }
                    }
                    let mut all = ledger.started.lock().unwrap();
                    std::mem::take(&mut *all)
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

fn each_is_started_once(ground: Ground) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scene = Scene::new(ground);
    for number in 0..10 {
        runtime.block_on(scene.add(&format!("task{number}"), "hourly", "2026-10-11T23:30", |_| {}));
    }
    let mut started: Vec<String> =
        live(&scene.ground, 3).iter().map(|(title, at_ms)| format!("{title} {}", shown(*at_ms))).collect();
    let count = started.len();
    started.sort();
    started.dedup();
    assert_eq!((count, started.len()), (60, 60), "each of ten tasks, at each of six hours, once");
}

#[test]
fn of_several_on_a_file_one_starts_each_run() {
    each_is_started_once(Ground::file());
}

#[test]
fn of_several_on_a_server_one_starts_each_run() {
    if let Some(ground) = Ground::server() {
        each_is_started_once(ground);
    }
}
