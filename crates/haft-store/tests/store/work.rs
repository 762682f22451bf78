//! Runs, their steps, and who works on them.

use crate::{Scene, wait};
use haft_core::CallId;
use haft_core::work::run::{Ended, Run, State, Then as Means};
use haft_core::work::{Graph, Node, OnFailure};
use haft_store::work::{Above, Claim, Claimed, End, NewRun, NewStep, Room, Settle, Then, WorkerSeen};
use haft_store::{Entry, Mode, Store, cells};
use serde_json::json;

const ROOT: &str = "/project";

fn node(id: &str, needs: &[&str]) -> Node {
    Node { id: id.into(), needs: needs.iter().map(|need| (*need).to_owned()).collect(), ..Node::default() }
}

/// A run of these steps, with nothing else about it.
pub(crate) fn planned(id: &str, nodes: Vec<Node>) -> NewRun {
    let steps = vec![NewStep::default(); nodes.len()];
    NewRun {
        id: CallId::parse(id).unwrap(),
        root: ROOT.to_owned(),
        name: "story".to_owned(),
        plan: json!({}),
        inputs: json!({}),
        terms: json!({}),
        task: None,
        above: None,
        room: Room::default(),
        graph: Graph::new(nodes).unwrap(),
        steps,
    }
}

fn wants(worker: &str, most: u32) -> Claim {
    Claim {
        worker: worker.to_owned(),
        root: ROOT.to_owned(),
        labels: vec!["gpu".to_owned(), "region=eu".to_owned()],
        most,
        lease_ms: 60_000,
        only: None,
    }
}

fn claim(store: &Store, worker: &str) -> Vec<Claimed> {
    let mut claimed = wait(store.claim(wants(worker, 100))).unwrap();
    claimed.sort_by_key(|step| (step.run.clone(), step.nr));
    claimed
}

fn ids(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|step| step.id.as_str()).collect()
}

fn end(store: &Store, step: &Claimed, end: End) -> Then {
    wait(store.end_step(step.clone(), end)).unwrap()
}

fn good() -> End {
    End::Done(json!({"success": true}))
}

fn bad() -> End {
    End::Failed(json!({"success": false}))
}

fn states(store: &Store, run: &str) -> Vec<(String, String)> {
    wait(store.steps(run)).unwrap().into_iter().map(|step| (step.id, step.state)).collect()
}

fn state(store: &Store, run: &str) -> String {
    wait(store.run_seen(run)).unwrap().unwrap().state
}

#[test]
fn a_step_begins_when_its_own_inputs_are_there_and_is_one_workers() {
    let scene = Scene::new();
    let nodes = vec![node("a", &[]), node("slow", &[]), node("b", &["a"]), node("c", &["b", "slow"])];
    wait(scene.store.start_run(planned("run-1", nodes.clone()))).unwrap();
    wait(scene.store.start_run(planned("run-1", nodes))).unwrap();
    let first = claim(&scene.store, "one");
    assert_eq!(ids(&first), ["a", "slow"], "and a run that is begun twice is begun once");
    assert!(first[0].call_id.starts_with("run-1-0-1-"));
    assert!(claim(&scene.store, "two").is_empty());
    assert_eq!(end(&scene.store, &first[0], good()), Then::On);
    let next = claim(&scene.store, "two");
    assert_eq!(ids(&next), ["b"]);
    end(&scene.store, &next[0], good());
    assert!(claim(&scene.store, "one").is_empty());
    end(&scene.store, &first[1], good());
    assert_eq!(end(&scene.store, &first[1], bad()), Then::Lost, "what is over stays as it is");
    let last = claim(&scene.store, "one");
    assert_eq!(ids(&last), ["c"]);
    let before = wait(scene.store.steps_before("run-1", last[0].nr)).unwrap();
    assert_eq!(before.iter().map(|step| step.id.as_str()).collect::<Vec<_>>(), ["slow", "b"]);
    end(&scene.store, &last[0], good());
    assert_eq!(state(&scene.store, "run-1"), "done");
    let scene = scene.restarted();
    assert_eq!(state(&scene.store, "run-1"), "done");
}

#[test]
fn two_workers_never_claim_one_step() {
    let scene = Scene::new();
    let nodes = (0..200).map(|number| node(&format!("s{number}"), &[])).collect();
    wait(scene.store.start_run(planned("run-1", nodes))).unwrap();
    let mut all: Vec<(String, u32)> = std::thread::scope(|scope| {
        let worker = |name: &'static str| {
            let store = Store::open(&scene.path()).unwrap();
            move || {
                let mut mine = Vec::new();
                loop {
                    let claimed = wait(store.claim(wants(name, 7))).unwrap();
                    if claimed.is_empty() {
                        break mine;
                    }
                    for step in claimed {
                        assert_ne!(end(&store, &step, good()), Then::Lost);
                        mine.push((step.run, step.nr));
                    }
                }
            }
        };
        let threads: Vec<_> = ["one", "two", "three"].map(|name| scope.spawn(worker(name))).into_iter().collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 200);
    assert_eq!(state(&scene.store, "run-1"), "done");
}

#[test]
fn labels_choose_who_does_a_step() {
    let scene = Scene::new();
    let mut run = planned("run-1", vec![node("here", &[]), node("there", &[]), node("eu", &[]), node("part", &[])]);
    for (step, label) in run.steps.iter_mut().zip([Some("gpu"), Some("tpu"), Some("region=eu"), Some("pu")]) {
        step.label = label.map(ToOwned::to_owned);
    }
    wait(scene.store.start_run(run)).unwrap();
    assert_eq!(ids(&claim(&scene.store, "one")), ["here", "eu"]);
    let other = Claim { labels: vec!["tpu".to_owned()], ..wants("two", 9) };
    assert_eq!(ids(&wait(scene.store.claim(other)).unwrap()), ["there"]);
    let elsewhere = Claim { root: "/other".to_owned(), labels: vec!["pu".to_owned()], ..wants("three", 9) };
    assert!(wait(scene.store.claim(elsewhere)).unwrap().is_empty());
}

#[test]
fn what_a_lost_worker_had_begun_is_not_begun_again() {
    let scene = Scene::new();
    let mut run = planned("run-1", ["begun", "not", "twice", "asked"].map(|id| node(id, &[])).into());
    run.steps[2].repeatable = true;
    wait(scene.store.start_run(run)).unwrap();
    let claimed = claim(&scene.store, "lost");
    for step in [&claimed[0], &claimed[2]] {
        let id = step.call().unwrap();
        let intent = Entry::new(haft_core::record::Kind::Intent).call(&id);
        wait(scene.store.open_call(&id, "shell.exec", intent)).unwrap();
    }
    assert_eq!(wait(scene.store.take_over()).unwrap(), haft_store::work::TakenOver::default());
    scene.tamper("UPDATE steps SET lease_ms = 1");
    let taken = wait(scene.store.take_over()).unwrap();
    assert_eq!((taken.again, taken.uncertain, taken.asking), (3, 1, 0));
    assert_eq!(wait(scene.store.take_over()).unwrap(), haft_store::work::TakenOver::default());
    let next = claim(&scene.store, "next");
    assert_eq!(ids(&next), ["not", "twice", "asked"]);
    assert!(next[0].call_id.starts_with("run-1-1-2-"));
    // The one that was held up comes back and wants to begin now.
    let late = claimed[1].call().unwrap();
    let intent = || Entry::new(haft_core::record::Kind::Intent).call(&late);
    let refused = wait(scene.store.open_call(&late, "shell.exec", intent())).unwrap_err();
    assert!(refused.to_string().contains("is given to another worker"), "{refused}");
    assert_eq!(end(&scene.store, &claimed[1], good()), Then::Lost);
    // Whoever was believed lost and is not says what came of it.
    assert_eq!(states(&scene.store, "run-1")[0].1, "uncertain");
    assert_eq!(end(&scene.store, &claimed[0], good()), Then::On);
    assert_eq!(states(&scene.store, "run-1")[0].1, "done");
    assert!(wait(scene.store.verify(None)).unwrap().is_ok());
}

#[test]
fn a_person_settles_what_nobody_knows() {
    for (settle, then) in [(Settle::Done, "done"), (Settle::Failed, "failed"), (Settle::Again, "running")] {
        let scene = Scene::new();
        wait(scene.store.start_run(planned("run-1", vec![node("a", &[])]))).unwrap();
        let step = claim(&scene.store, "lost").remove(0);
        let id = step.call().unwrap();
        wait(scene.store.open_call(&id, "t", Entry::new(haft_core::record::Kind::Intent).call(&id))).unwrap();
        assert!(!wait(scene.store.settle_step("run-1", "a", settle, "me")).unwrap(), "it is not uncertain yet");
        scene.tamper("UPDATE steps SET lease_ms = 1");
        wait(scene.store.take_over()).unwrap();
        assert!(wait(scene.store.settle_step("run-1", "a", settle, "me")).unwrap());
        assert_eq!(state(&scene.store, "run-1"), then);
        assert_eq!(claim(&scene.store, "next").len(), usize::from(settle == Settle::Again));
    }
}

#[test]
fn what_failed_is_tried_again_and_the_rest_goes_by_its_rule() {
    let scene = Scene::new();
    let rule = |id: &str, needs: &[&str], on_failure, retries| Node { on_failure, retries, ..node(id, needs) };
    let nodes = vec![
        rule("a", &[], OnFailure::Continue, 1),
        rule("b", &["a"], OnFailure::Stop, 0),
        rule("c", &["b"], OnFailure::Stop, 0),
    ];
    wait(scene.store.start_run(planned("run-1", nodes))).unwrap();
    assert_eq!(end(&scene.store, &claim(&scene.store, "w")[0], bad()), Then::Again);
    assert!(claim(&scene.store, "w").is_empty(), "not at once");
    assert!(wait(scene.store.next_step_ms(ROOT)).unwrap().is_some());
    scene.tamper("UPDATE steps SET from_ms = 0");
    assert_eq!(end(&scene.store, &claim(&scene.store, "w")[0], bad()), Then::On);
    assert_eq!(end(&scene.store, &claim(&scene.store, "w")[0], bad()), Then::Stop);
    assert_eq!(state(&scene.store, "run-1"), "failed");
    let seen: Vec<String> = states(&scene.store, "run-1").into_iter().map(|(_, state)| state).collect();
    assert_eq!(seen, ["failed", "failed", "skipped"]);
    assert_eq!(wait(scene.store.run_again("run-1")).unwrap(), 3);
    assert_eq!(wait(scene.store.run_again("run-1")).unwrap(), 0, "it is under way");
    for expected in ["a", "b", "c"] {
        let claimed = claim(&scene.store, "w");
        assert_eq!(ids(&claimed), [expected]);
        end(&scene.store, &claimed[0], good());
    }
    assert_eq!(state(&scene.store, "run-1"), "done");
}

#[test]
fn a_run_in_a_run_ends_the_step_that_it_is() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("inner", &[]), node("after", &["inner"])]))).unwrap();
    let outer = claim(&scene.store, "w").remove(0);
    let inner = NewRun {
        above: Some(Above { run: "run-1".to_owned(), nr: outer.nr }),
        ..planned("run-1-0", vec![node("x", &[])])
    };
    wait(scene.store.start_run(inner)).unwrap();
    assert_eq!(end(&scene.store, &outer, End::Nested), Then::On);
    let step = claim(&scene.store, "w");
    assert_eq!(step[0].run, "run-1-0");
    assert_eq!(wait(scene.store.run_seen("run-1-0")).unwrap().unwrap().deep, 1);
    end(&scene.store, &step[0], good());
    assert_eq!(state(&scene.store, "run-1-0"), "done");
    let again = claim(&scene.store, "w");
    assert_eq!((ids(&again), again[0].attempt), (vec!["inner"], 2));
    end(&scene.store, &again[0], good());
    assert_eq!(ids(&claim(&scene.store, "w")), ["after"]);
    assert_eq!(wait(scene.store.runs(ROOT, 10)).unwrap().len(), 1, "what is in another is shown with it");
}

#[test]
fn budgets_hold_for_all_that_is_in_a_run() {
    let scene = Scene::new();
    let nodes = || (0..6).map(|number| node(&format!("s{number}"), &[])).collect::<Vec<_>>();
    let room = Room { width: Some(2), ..Room::default() };
    wait(scene.store.start_run(NewRun { room, ..planned("run-1", nodes()) })).unwrap();
    let mut seen = 0;
    loop {
        let claimed = claim(&scene.store, "w");
        if claimed.is_empty() {
            break;
        }
        assert!(claimed.len() <= 2);
        assert!(claim(&scene.store, "w").is_empty());
        for step in claimed {
            end(&scene.store, &step, good());
            seen += 1;
        }
    }
    assert_eq!((seen, state(&scene.store, "run-1").as_str()), (6, "done"));
    let room = Room { steps: Some(3), ..Room::default() };
    wait(scene.store.start_run(NewRun { room, ..planned("run-2", nodes()) })).unwrap();
    let claimed = claim(&scene.store, "w");
    assert_eq!(claimed.len(), 3);
    let stopped = wait(scene.store.run_seen("run-2")).unwrap().unwrap();
    assert_eq!(stopped.state, "failed");
    assert!(stopped.why.unwrap().contains("budget"));
    assert_eq!(wait(scene.store.stopped_under("w")).unwrap(), ["run-2"]);
    for step in claimed {
        end(&scene.store, &step, good());
    }
    let room = Room { until_ms: Some(1), ..Room::default() };
    wait(scene.store.start_run(NewRun { room, ..planned("run-3", nodes()) })).unwrap();
    assert_eq!(wait(scene.store.end_late_runs()).unwrap(), ["run-3"]);
    assert!(claim(&scene.store, "w").is_empty());
}

#[test]
fn a_cancelled_run_begins_nothing_more() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("a", &[]), node("b", &["a"])]))).unwrap();
    let step = claim(&scene.store, "w").remove(0);
    assert!(wait(scene.store.cancel_run("run-1", "me")).unwrap());
    assert!(!wait(scene.store.cancel_run("run-1", "me")).unwrap());
    assert_eq!(end(&scene.store, &step, good()), Then::On, "what was under way is noted");
    assert_eq!(state(&scene.store, "run-1"), "cancelled");
    assert!(claim(&scene.store, "w").is_empty());
    assert_eq!(states(&scene.store, "run-1")[1].1, "skipped");
}

#[test]
fn a_no_is_not_asked_again_and_what_may_have_happened_is_not_done_again() {
    let failed = |kind: &str| End::Failed(json!({"success": false, "error": {"kind": kind}}));
    for (kind, repeatable, then) in [
        ("rejected", true, Then::Stop),
        ("denied", true, Then::Stop),
        ("timeout", false, Then::Stop),
        ("upstream", false, Then::Stop),
        ("timeout", true, Then::Again),
        ("failed", false, Then::Again),
    ] {
        let scene = Scene::new();
        let mut run = planned("run-1", vec![Node { retries: 3, ..node("a", &[]) }]);
        run.steps[0].repeatable = repeatable;
        wait(scene.store.start_run(run)).unwrap();
        let step = claim(&scene.store, "w").remove(0);
        assert_eq!(end(&scene.store, &step, failed(kind)), then, "{kind} {repeatable}");
    }
}

#[test]
fn what_is_uncertain_survives_a_cancel_and_is_not_run_again_by_a_retry() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("a", &[]), node("b", &["a"])]))).unwrap();
    let id = claim(&scene.store, "lost").remove(0).call().unwrap();
    wait(scene.store.open_call(&id, "t", Entry::new(haft_core::record::Kind::Intent).call(&id))).unwrap();
    scene.tamper("UPDATE steps SET lease_ms = 1 WHERE state = 'running'");
    wait(scene.store.take_over()).unwrap();
    assert!(wait(scene.store.cancel_run("run-1", "me")).unwrap());
    assert_eq!(states(&scene.store, "run-1")[0].1, "uncertain");
    assert_eq!(wait(scene.store.run_again("run-1")).unwrap(), 0);
    assert!(wait(scene.store.settle_step("run-1", "a", Settle::Done, "me")).unwrap());
    assert_eq!(wait(scene.store.run_again("run-1")).unwrap(), 1, "what was skipped, and that alone");
    assert_eq!(ids(&claim(&scene.store, "w")), ["b"]);
}

#[test]
fn a_step_that_its_worker_left_is_found_at_once_and_one_that_loses_them_all_asks() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("a", &[])]))).unwrap();
    for round in 1.. {
        let Some(step) = claim(&scene.store, "w").pop() else {
            assert_eq!(round, 11);
            break;
        };
        wait(scene.store.leave_step(step)).unwrap();
        wait(scene.store.renew("w", 60_000)).unwrap();
        wait(scene.store.take_over()).unwrap();
    }
    assert_eq!(states(&scene.store, "run-1")[0].1, "uncertain");
}

/// What the store does is what the pure order says, whatever happens.
#[test]
fn the_store_keeps_the_order_that_is_decided_elsewhere() {
    let scene = Scene::new();
    let mut seed = 42_u64;
    let mut chance = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for story in 0..12 {
        let count = 1 + chance(14);
        let nodes: Vec<Node> = (0..count)
            .map(|at| Node {
                id: format!("s{at}"),
                needs: (0..chance(3)).filter(|_| at > 0).map(|_| format!("s{}", chance(at.max(1)))).collect(),
                on_failure: [OnFailure::Stop, OnFailure::Continue, OnFailure::Notify]
                    [usize::try_from(chance(3)).unwrap()],
                retries: u32::try_from(chance(2)).unwrap(),
            })
            .collect();
        let id = format!("run-{story}");
        wait(scene.store.start_run(planned(&id, nodes.clone()))).unwrap();
        let graph = Graph::new(nodes).unwrap();
        let (mut model, mut running) = (Run::new(&graph), Vec::new());
        loop {
            scene.tamper("UPDATE steps SET from_ms = 0 WHERE state = 'ready'");
            let claimed = claim(&scene.store, "w");
            let got: Vec<usize> = claimed.iter().map(|step| usize::try_from(step.nr).unwrap()).collect();
            let mut ready = model.ready();
            ready.extend((0..graph.nodes().len()).filter(|at| model.states()[*at] == State::Ready));
            ready.sort_unstable();
            ready.dedup();
            assert_eq!(got, ready, "story {story}");
            for step in claimed {
                assert!(model.begin(usize::try_from(step.nr).unwrap()));
                running.push(step);
            }
            if running.is_empty() {
                break;
            }
            let picked = usize::try_from(chance(running.len() as u64)).unwrap();
            let step = running.swap_remove(picked);
            let (ended, noted) = match chance(4) {
                0 => (Ended::Failed, bad()),
                1 => (Ended::Unwanted, End::Unwanted(json!({}))),
                _ => (Ended::Done, good()),
            };
            let expected = match model.end(usize::try_from(step.nr).unwrap(), ended) {
                Means::On => Then::On,
                Means::Again(_) => Then::Again,
                Means::Tell => Then::Tell,
                Means::Stop => Then::Stop,
            };
            assert_eq!(end(&scene.store, &step, noted), expected, "story {story}");
        }
        assert!(model.is_over());
        let words = |state: &State| match state {
            State::Done => "done",
            State::Failed => "failed",
            _ => "skipped",
        };
        let expected: Vec<&str> = model.states().iter().map(words).collect();
        let got: Vec<String> = states(&scene.store, &id).into_iter().map(|(_, state)| state).collect();
        assert_eq!(got, expected, "story {story}");
        assert_ne!(state(&scene.store, &id), "running");
    }
}

#[test]
fn many_ends_at_once_are_as_good_as_one_after_the_other() {
    let scene = Scene::new();
    let mut nodes: Vec<Node> = (0..90).map(|at| node(&format!("s{at}"), &[])).collect();
    let names: Vec<String> = nodes.iter().map(|node| node.id.clone()).collect();
    nodes.push(node("last", &names.iter().map(String::as_str).collect::<Vec<_>>()));
    wait(scene.store.start_run(planned("run-1", nodes))).unwrap();
    let claimed = claim(&scene.store, "one");
    assert_eq!(claimed.len(), 90);
    // One of them is somebody else's by now: it alone is lost, whatever it came with.
    let stale = Claimed { call_id: "run-1-5-1-other".to_owned(), ..claimed[5].clone() };
    let ends = claimed.iter().enumerate().map(|(at, step)| {
        let step = if at == 5 { stale.clone() } else { step.clone() };
        scene.store.end_step(step, End::Done(json!({"success": true, "output": at})))
    });
    let came: Vec<Then> = wait(futures_util::future::join_all(ends)).into_iter().map(Result::unwrap).collect();
    assert_eq!(came.iter().filter(|then| **then == Then::Lost).count(), 1);
    assert_eq!(came[5], Then::Lost);
    let seen = wait(scene.store.steps("run-1")).unwrap();
    assert_eq!((seen[5].state.as_str(), seen[90].state.as_str()), ("running", "waiting"));
    assert_eq!(seen[89].outcome.as_ref().unwrap()["output"], 89, "each has what it gave");
    assert_eq!(wait(scene.store.run_seen("run-1")).unwrap().unwrap().unsettled, 2);
    end(&scene.store, &claimed[5], good());
    let last = claim(&scene.store, "two");
    assert_eq!(ids(&last), ["last"]);
    end(&scene.store, &last[0], good());
    assert_eq!(state(&scene.store, "run-1"), "done");
    assert!(wait(scene.store.verify(None)).unwrap().is_ok());
}

#[test]
fn a_call_of_a_step_that_was_given_away_is_not_begun_and_harms_no_other() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("a", &[]), node("b", &[])]))).unwrap();
    let claimed = claim(&scene.store, "one");
    wait(scene.store.leave_step(claimed[0].clone())).unwrap();
    let open = |step: &Claimed| {
        let call = step.call().unwrap();
        let entry = Entry::new(haft_core::record::Kind::Intent).call(&call);
        let store = scene.store.clone();
        async move { store.open_call(&call, "file.write", entry).await }
    };
    let (gone, kept) = wait(futures_util::future::join(open(&claimed[0]), open(&claimed[1])));
    assert!(gone.unwrap_err().to_string().contains("given to another worker"));
    kept.unwrap();
    let intents = wait(scene.store.records(0, 100, None)).unwrap();
    let calls: Vec<&str> = intents.iter().filter_map(|record| record.body["call"].as_str()).collect();
    assert_eq!(calls, [claimed[1].call_id.as_str()], "and what was not begun is not in the log");
    assert!(wait(scene.store.verify(None)).unwrap().is_ok());
}

#[test]
fn a_yes_whose_process_is_gone_is_asked_again_or_is_uncertain() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("a", &[]), node("b", &[])]))).unwrap();
    let claimed = claim(&scene.store, "one");
    for step in &claimed {
        end(&scene.store, step, End::Asking);
        let call = step.call_id.clone();
        let yes =
            "INSERT INTO approvals (id, state, tool, preview, reason, root, basis, asked_ms, decided_ms, decided_by)
             VALUES (?1, 'approved', 'file.write', '', '', '/project', '', 0, 0, 'me')";
        wait(scene.store.run(Mode::Write, move |db| db.execute(yes, cells![call]))).unwrap();
    }
    let call = claimed[1].call().unwrap();
    let intent = Entry::new(haft_core::record::Kind::Intent).call(&call);
    wait(scene.store.record(intent, Mode::Durable)).unwrap();
    let taken = wait(scene.store.take_over()).unwrap();
    assert_eq!((taken.again, taken.uncertain), (1, 1));
    assert_eq!(states(&scene.store, "run-1"), [("a".into(), "ready".into()), ("b".into(), "uncertain".into())]);
    // Whoever said yes and comes back after all does nothing.
    let late = claimed[0].call().unwrap();
    let entry = Entry::new(haft_core::record::Kind::Intent).call(&late);
    assert!(wait(scene.store.open_call(&late, "file.write", entry)).is_err());
}

#[test]
fn a_retry_takes_up_what_failed_inside() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("outer", &[])]))).unwrap();
    let outer = claim(&scene.store, "one").remove(0);
    let inner = NewRun {
        above: Some(Above { run: "run-1".to_owned(), nr: 0 }),
        ..planned("run-1-0", vec![node("good", &[]), node("bad", &["good"])])
    };
    wait(scene.store.start_run(inner)).unwrap();
    end(&scene.store, &outer, End::Nested);
    end(&scene.store, &claim(&scene.store, "one")[0], good());
    end(&scene.store, &claim(&scene.store, "one")[0], bad());
    end(&scene.store, &claim(&scene.store, "one")[0], bad());
    assert_eq!((state(&scene.store, "run-1").as_str(), state(&scene.store, "run-1-0").as_str()), ("failed", "failed"));
    assert_eq!(wait(scene.store.run_again("run-1")).unwrap(), 1);
    assert_eq!(states(&scene.store, "run-1"), [("outer".to_owned(), "nested".to_owned())]);
    let again = claim(&scene.store, "two");
    assert_eq!(ids(&again), ["bad"], "and nothing else");
    end(&scene.store, &again[0], good());
    assert_eq!(state(&scene.store, "run-1-0"), "done");
    let outer = claim(&scene.store, "two");
    assert_eq!(ids(&outer), ["outer"]);
    end(&scene.store, &outer[0], good());
    assert_eq!(state(&scene.store, "run-1"), "done");
}

fn stands(store: &Store, run: &str) -> String {
    wait(store.run_seen(run)).unwrap().unwrap().stands
}

fn seen(store: &Store, labels: &[&str], state: &str) {
    let worker = WorkerSeen {
        id: "w".to_owned(),
        host: "here".to_owned(),
        pid: 1,
        root: ROOT.to_owned(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        slots: 8,
        state: state.to_owned(),
        begun_ms: 0,
        seen_ms: 0,
        busy: 0,
    };
    wait(store.see_worker(worker)).unwrap();
}

#[test]
fn a_run_stands_as_its_steps_do_also_those_of_the_runs_in_it() {
    let scene = Scene::new();
    let mut run = planned("run-1", vec![node("inner", &[]), node("later", &[]), node("after", &["inner", "later"])]);
    run.steps[1].wait_ms = 3_600_000;
    wait(scene.store.start_run(run)).unwrap();
    assert_eq!(stands(&scene.store, "run-1"), "waiting", "nobody is there");
    seen(&scene.store, &[], "working");
    assert_eq!(stands(&scene.store, "run-1"), "running");
    let outer = claim(&scene.store, "w").remove(0);
    let inner = NewRun {
        above: Some(Above { run: "run-1".to_owned(), nr: outer.nr }),
        ..planned("run-1-0", vec![node("x", &[]), node("y", &[])])
    };
    wait(scene.store.start_run(inner)).unwrap();
    end(&scene.store, &outer, End::Nested);
    let steps = claim(&scene.store, "w");
    assert_eq!(stands(&scene.store, "run-1"), "running");
    end(&scene.store, &steps[0], End::Asking);
    assert_eq!(stands(&scene.store, "run-1"), "running", "one of two still runs");
    let id = steps[1].call().unwrap();
    wait(scene.store.open_call(&id, "t", Entry::new(haft_core::record::Kind::Intent).call(&id))).unwrap();
    scene.tamper("UPDATE steps SET lease_ms = 1 WHERE state = 'running'");
    wait(scene.store.take_over()).unwrap();
    assert_eq!(stands(&scene.store, "run-1"), "uncertain");
    let unknown = wait(scene.store.uncertain_steps()).unwrap();
    assert_eq!((unknown.len(), unknown[0].run.as_str(), unknown[0].step.as_str()), (1, "run-1-0", "y"));
    assert!(unknown[0].why.contains("may or may not have happened"), "{}", unknown[0].why);
    wait(scene.store.settle_step("run-1-0", "y", Settle::Done, "me")).unwrap();
    assert_eq!((stands(&scene.store, "run-1"), stands(&scene.store, "run-1-0")), ("asking".into(), "asking".into()));
    assert_eq!(wait(scene.store.runs(ROOT, 9)).unwrap()[0].stands, "asking");
    end(&scene.store, &steps[0], good());
    let again = claim(&scene.store, "w");
    end(&scene.store, &again[0], good());
    assert_eq!((stands(&scene.store, "run-1"), state(&scene.store, "run-1")), ("waiting".into(), "running".into()));
    wait(scene.store.cancel_run("run-1", "me")).unwrap();
    assert_eq!(stands(&scene.store, "run-1"), "cancelled");
}

#[test]
fn a_step_that_nobody_is_there_for_does_not_move_its_run() {
    let scene = Scene::new();
    let mut run = planned("run-1", vec![node("a", &[]), node("b", &["a"])]);
    run.steps[0].label = Some("gpu".to_owned());
    wait(scene.store.start_run(run)).unwrap();
    let moves = || wait(scene.store.moves("run-1", i64::MAX)).unwrap();
    let unserved = || wait(scene.store.unserved("run-1")).unwrap().into_iter().map(|step| step.id).collect::<Vec<_>>();
    seen(&scene.store, &["gp", "u", "tpu"], "working");
    assert_eq!((moves(), unserved(), stands(&scene.store, "run-1")), (false, vec!["a".to_owned()], "waiting".into()));
    scene.tamper("DELETE FROM workers");
    seen(&scene.store, &["tpu", "gpu"], "working");
    assert_eq!((moves(), unserved(), stands(&scene.store, "run-1")), (true, Vec::new(), "running".into()));
    scene.tamper("UPDATE workers SET seen_ms = 1");
    assert!(!moves(), "who is silent for long is gone");
    seen(&scene.store, &["gpu"], "draining");
    assert!(!moves(), "who is about to go begins nothing");
    assert!(wait(scene.store.steps("run-1")).unwrap()[0].unserved);
}

#[test]
fn what_was_under_way_when_a_run_was_stopped_asks_nothing_and_begins_nothing_inside() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("asks", &[]), node("inner", &[])]))).unwrap();
    let claimed = claim(&scene.store, "one");
    assert!(wait(scene.store.cancel_run("run-1", "me")).unwrap());
    let call = claimed[0].call_id.clone();
    let question = "INSERT INTO approvals (id, state, tool, preview, reason, root, basis, asked_ms)
         VALUES (?1, 'pending', 'file.write', '', '', '/project', '', 0)";
    wait(scene.store.run(Mode::Write, move |db| db.execute(question, cells![call]))).unwrap();
    end(&scene.store, &claimed[0], End::Asking);
    assert!(wait(scene.store.approvals(true)).unwrap().is_empty(), "the question is withdrawn");
    let inner = NewRun {
        above: Some(Above { run: "run-1".to_owned(), nr: claimed[1].nr }),
        ..planned("run-1-1", vec![node("effect", &[])])
    };
    assert!(wait(scene.store.start_run(inner)).unwrap_err().to_string().contains("over"));
    end(&scene.store, &claimed[1], End::Nested);
    assert!(claim(&scene.store, "two").is_empty());
    assert!(states(&scene.store, "run-1").iter().all(|(_, state)| state == "skipped"));
}

#[test]
fn a_worker_that_is_lost_leaves_its_room_and_a_no_to_what_happened_is_no_retry() {
    let scene = Scene::new();
    let mut run = planned("run-1", vec![node("a", &[]), node("b", &[])]);
    run.room = Room { width: Some(1), ..Room::default() };
    run.graph = Graph::new(vec![Node { retries: 3, ..node("a", &[]) }, node("b", &[])]).unwrap();
    wait(scene.store.start_run(run)).unwrap();
    let first = claim(&scene.store, "one");
    assert_eq!(ids(&first), ["a"], "one at a time");
    let call = first[0].call().unwrap();
    wait(scene.store.open_call(&call, "file.write", Entry::new(haft_core::record::Kind::Intent).call(&call))).unwrap();
    scene.tamper("UPDATE steps SET lease_ms = 1 WHERE state = 'running'");
    assert_eq!(wait(scene.store.take_over()).unwrap().uncertain, 1);
    let next = claim(&scene.store, "two");
    assert_eq!(ids(&next), ["b"], "what is uncertain takes up no room");
    assert!(wait(scene.store.settle_step("run-1", "a", Settle::Failed, "me")).unwrap());
    assert_eq!(states(&scene.store, "run-1")[0].1, "failed", "although it has retries");
}

#[test]
fn what_somebody_said_yes_to_is_not_taken_for_undone_when_its_run_is_stopped() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("a", &[])]))).unwrap();
    let claimed = claim(&scene.store, "one");
    end(&scene.store, &claimed[0], End::Asking);
    let call = claimed[0].call_id.clone();
    let yes = "INSERT INTO approvals (id, state, tool, preview, reason, root, basis, asked_ms, decided_ms, decided_by)
         VALUES (?1, 'approved', 'file.write', '', '', '/project', '', 0, 9999999999999, 'me')";
    wait(scene.store.run(Mode::Write, move |db| db.execute(yes, cells![call]))).unwrap();
    assert!(wait(scene.store.cancel_run("run-1", "me")).unwrap());
    assert_eq!(states(&scene.store, "run-1")[0].1, "asking", "it may be under way");
    assert_eq!(wait(scene.store.run_again("run-1")).unwrap(), 0, "and is not done twice");
    end(&scene.store, &claimed[0], good());
    assert_eq!(states(&scene.store, "run-1")[0].1, "done");
}

#[test]
fn a_claim_that_was_forgotten_is_not_another_workers() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("a", &[])]))).unwrap();
    let forgotten = claim(&scene.store, "one").remove(0);
    // What a server that crashed just then comes back with.
    scene.tamper("UPDATE steps SET state = 'ready', attempt = 0, worker = NULL, lease_ms = NULL, call_id = NULL");
    let kept = claim(&scene.store, "two").remove(0);
    assert_eq!((forgotten.nr, forgotten.attempt), (kept.nr, kept.attempt), "the same attempt, claimed twice");
    let open = |step: &Claimed| {
        let call = step.call().unwrap();
        let entry = Entry::new(haft_core::record::Kind::Intent).call(&call);
        wait(scene.store.open_call(&call, "file.write", entry))
    };
    assert!(open(&forgotten).is_err(), "the first one begins nothing");
    wait(scene.store.leave_step(forgotten.clone())).unwrap();
    assert_eq!(end(&scene.store, &forgotten, good()), Then::Lost);
    assert_eq!(
        wait(scene.store.take_over()).unwrap(),
        haft_store::work::TakenOver::default(),
        "nor takes it from the other"
    );
    open(&kept).unwrap();
    assert_eq!(end(&scene.store, &kept, good()), Then::On);
    assert_eq!(state(&scene.store, "run-1"), "done");
}

#[test]
fn a_silent_worker_is_lost_and_a_run_that_is_taken_up_has_as_long_as_its_plan_says() {
    let scene = Scene::new();
    seen(&scene.store, &[], "working");
    let stands = || wait(scene.store.workers()).unwrap().remove(0).state;
    assert_eq!(stands(), "working");
    scene.tamper("UPDATE workers SET seen_ms = 1000");
    // One that is about to be forgotten is still shown.
    assert_eq!(stands(), "lost");
    let run = NewRun { plan: json!({"budget": {"minutes": 5}}), ..planned("run-1", vec![node("a", &[])]) };
    wait(scene.store.start_run(run)).unwrap();
    end(&scene.store, &claim(&scene.store, "one")[0], bad());
    assert_eq!(wait(scene.store.run_again("run-1")).unwrap(), 1);
    let sql = "SELECT until_ms - begun_ms FROM runs";
    let span: i64 = wait(scene.store.run(Mode::Read, move |db| db.one(sql, &[], |row| row.get(0)))).unwrap();
    assert!((300_000..310_000).contains(&span), "{span}");
}

#[test]
fn what_was_taken_for_uncertain_is_known_when_its_yes_is_done() {
    let scene = Scene::new();
    wait(scene.store.start_run(planned("run-1", vec![node("a", &[])]))).unwrap();
    let step = claim(&scene.store, "one").remove(0);
    end(&scene.store, &step, End::Asking);
    let call = step.call_id.clone();
    let yes = "INSERT INTO approvals (id, state, tool, preview, reason, root, basis, asked_ms, decided_ms, outcome)
         VALUES (?1, 'done', 'file.write', '', '', '/project', '', 0, 0, '{\"success\":true}')";
    wait(scene.store.run(Mode::Write, move |db| db.execute(yes, cells![call]))).unwrap();
    scene.tamper("UPDATE steps SET state = 'uncertain'");
    let answered = wait(scene.store.answered(ROOT)).unwrap();
    assert_eq!(answered.len(), 1);
    assert_eq!(answered[0].1.as_ref().unwrap()["success"], true);
}
