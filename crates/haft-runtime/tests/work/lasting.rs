//! What outlives a process: questions, times, and steps whose worker is gone.

use crate::{Stage, block, data, states};
use haft_core::Call;
use haft_core::approval::Decider;
use haft_core::policy::Autonomy;
use haft_runtime::approver::Nobody;
use haft_runtime::work::{Over, Terms, Until, Wanted, drawn};
use haft_runtime::{Halt, Yes, new_call_id};
use serde_json::json;

fn wanted(steps: serde_json::Value) -> Wanted {
    Wanted { plan: serde_json::from_value(json!({ "steps": steps })).unwrap(), ..Wanted::default() }
}

#[test]
fn what_needs_a_person_waits_and_goes_on_when_they_have_decided() {
    block(async {
        let stage = Stage::new();
        let outcome = stage
            .run_alone(json!([
                {"id": "write", "tool": "file.write", "args": {"path": "a.txt", "content": "hello\n"}},
                {"id": "ship", "ask": "Ship {{write.success}}?"},
                {"id": "read", "tool": "file.read", "args": {"path": "a.txt"}, "needs": ["ship"]},
            ]))
            .await;
        assert!(outcome.success, "waiting is no failure: {outcome:?}");
        assert_eq!((&data(&outcome)["state"], &data(&outcome)["stands"]), (&json!("running"), &json!("asking")));
        assert_eq!(states(&outcome)[0].1, "asking");
        assert!(outcome.output.contains("haft approvals show run-"), "{}", outcome.output);
        assert_eq!(stage.read("a.txt"), None);
        let run = data(&outcome)["run"].as_str().unwrap().to_owned();
        // Another process, some other day.
        let other = stage.another();
        for step in ["write", "ship"] {
            let waiting = other.store().approvals(true).await.unwrap();
            assert_eq!(waiting.len(), 1, "{step}");
            let decided = other.approve(&waiting[0].id, &Decider::embedder("me"), &Halt::new()).await;
            assert!(decided.unwrap().success, "{step}");
            let worker = other.worker(4);
            other.work(&worker, &Until::Over(run.clone()), &Nobody, &Halt::new()).await.unwrap();
        }
        let seen = other.store().run_seen(&run).await.unwrap().unwrap();
        assert_eq!(seen.state, "done");
        assert_eq!(stage.read("a.txt").as_deref(), Some("hello\n"));
    });
}

#[test]
fn a_no_fails_the_step() {
    block(async {
        let stage = Stage::new();
        let outcome = stage
            .run_alone(json!([{"id": "gate", "ask": "Really?"}, {"id": "b", "wait": "1s", "needs": ["gate"]}]))
            .await;
        let run = data(&outcome)["run"].as_str().unwrap().to_owned();
        let waiting = stage.haft.store().approvals(true).await.unwrap();
        stage.haft.store().reject(&waiting[0].id, &Decider::embedder("me"), "not today").await.unwrap();
        let worker = stage.haft.worker(1);
        let over = stage.haft.work(&worker, &Until::Over(run), &Nobody, &Halt::new()).await.unwrap();
        let Over::Ended(seen) = over else { panic!("{over:?}") };
        assert_eq!(seen.state, "failed");
    });
}

#[test]
fn a_careful_run_asks_about_what_others_may_do_unasked() {
    block(async {
        let stage = Stage::new();
        let careful = Terms { autonomy: Some(Autonomy::Conservative), ..Terms::default() };
        let steps = json!([{"id": "note", "tool": "task.create", "args": {"title": "Look at it"}}]);
        let run = stage.haft.begin(Wanted { terms: careful, ..wanted(steps.clone()) }).await.unwrap().id;
        let worker = stage.haft.worker(2);
        stage.haft.work(&worker, &Until::Over(run.clone()), &Nobody, &Halt::new()).await.unwrap();
        assert_eq!(stage.haft.store().steps(&run).await.unwrap()[0].state, "asking");
        let run = stage.haft.begin(wanted(steps)).await.unwrap().id;
        stage.haft.work(&worker, &Until::Over(run.clone()), &Nobody, &Halt::new()).await.unwrap();
        assert_eq!(stage.haft.store().steps(&run).await.unwrap()[0].state, "done");
    });
}

#[test]
fn a_worker_goes_on_with_what_another_left() {
    block(async {
        let stage = Stage::new();
        let steps = json!([
            {"id": "a", "tool": "file.write", "args": {"path": "a.txt", "content": "1"}},
            {"id": "b", "tool": "file.write", "args": {"path": "b.txt", "content": "2"}, "needs": ["a"]},
        ]);
        let run = stage.haft.begin(wanted(steps)).await.unwrap().id;
        // A worker that is gone before it has begun.
        let claim = haft_store::work::Claim {
            worker: "gone".to_owned(),
            root: stage.haft.workspace().root().to_string_lossy().into_owned(),
            labels: Vec::new(),
            most: 9,
            lease_ms: -1,
            only: None,
        };
        assert_eq!(stage.haft.store().claim(claim).await.unwrap().len(), 1);
        let other = stage.another();
        let halt = Halt::new();
        let worker = other.worker(4);
        let (over, ()) = tokio::join!(other.work(&worker, &Until::Told, &Yes, &halt), async {
            for _ in 0..400 {
                if other.store().run_seen(&run).await.unwrap().unwrap().state == "done" {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            halt.cancel();
        });
        assert_eq!(over.unwrap(), Over::Told);
        assert_eq!(stage.read("b.txt").as_deref(), Some("2"));
        let workers = other.store().workers().await.unwrap();
        assert_eq!((workers.len(), workers[0].state.as_str()), (1, "gone"));
    });
}

#[test]
fn whoever_stops_waiting_ends_the_run() {
    block(async {
        let stage = Stage::new();
        let halt = Halt::new();
        let call = Call::new(
            new_call_id(),
            "pipeline.run",
            json!({"steps": [
                {"id": "long", "tool": "shell.exec", "args": {"command": "sleep 60"}},
                {"id": "after", "tool": "file.write", "args": {"path": "x", "content": "x"}, "needs": ["long"]},
            ]}),
        );
        let (outcome, ()) = tokio::join!(stage.haft.call(call, &Yes, &halt), async {
            let root = stage.haft.workspace().root().to_string_lossy().into_owned();
            loop {
                let runs = stage.haft.store().runs(&root, 1).await.unwrap();
                if let Some(run) = runs.first()
                    && stage.haft.store().steps(&run.id).await.unwrap()[0].state == "running"
                {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            halt.cancel();
        });
        assert!(!outcome.success);
        let root = stage.haft.workspace().root().to_string_lossy().into_owned();
        for _ in 0..200 {
            if stage.haft.store().runs(&root, 1).await.unwrap()[0].state != "running" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_ne!(stage.haft.store().runs(&root, 1).await.unwrap()[0].state, "running");
        assert_eq!(stage.read("x"), None);
    });
}

#[test]
fn a_run_is_taken_up_again_by_whoever_began_it_and_by_nobody_else() {
    block(async {
        let stage = Stage::new();
        let outcome = stage.run(json!([{"id": "a", "tool": "file.read", "args": {"path": "missing"}}])).await;
        let run = data(&outcome)["run"].as_str().unwrap().to_owned();
        stage.file("missing", "there now\n");
        let mut call = Call::new(new_call_id(), "pipeline.run", json!({"pipeline_id": run, "retry": true}));
        call.caller.agent = Some("bob".to_owned());
        let refused = stage.haft.call(call, &Yes, &Halt::new()).await.error.unwrap();
        assert_eq!(refused.kind.as_str(), "denied", "{}", refused.message);
        let again = stage.call("pipeline.run", json!({"pipeline_id": run, "retry": true}), &Yes).await;
        assert!(again.success, "{again:?}");
    });
}

#[test]
fn a_cancelled_runs_questions_are_taken_back_and_a_no_at_a_gate_stops_whatever_is_let_pass() {
    block(async {
        let stage = Stage::new();
        let steps = json!([{"id": "gate", "ask": "Really?"}, {"id": "after", "wait": "0s", "needs": ["gate"]}]);
        let args = json!({"steps": steps, "on_failure": "continue"});
        let outcome = stage.call("pipeline.run", args.clone(), &Nobody).await;
        let run = data(&outcome)["run"].as_str().unwrap().to_owned();
        assert!(stage.haft.store().cancel_run(&run, "me").await.unwrap());
        assert!(stage.haft.store().approvals(true).await.unwrap().is_empty());
        let outcome = stage.call("pipeline.run", args, &Nobody).await;
        let run = data(&outcome)["run"].as_str().unwrap().to_owned();
        let waiting = stage.haft.store().approvals(true).await.unwrap();
        stage.haft.store().reject(&waiting[0].id, &Decider::embedder("me"), "no").await.unwrap();
        let worker = stage.haft.worker(1);
        stage.haft.work(&worker, &Until::Over(run.clone()), &Nobody, &Halt::new()).await.unwrap();
        let steps = stage.haft.store().steps(&run).await.unwrap();
        assert_eq!((steps[0].state.as_str(), steps[1].state.as_str()), ("failed", "skipped"));
    });
}

#[test]
fn a_plan_with_a_secret_is_not_stored() {
    block(async {
        let stage = Stage::new();
        let key = ["ghp", "_0123456789abcdefghijklmnopqrstuvwxyzAB"].concat();
        let outcome = stage.run(json!([{"id": "a", "tool": "calc.eval", "args": {"expression": key}}])).await;
        assert!(outcome.error.unwrap().message.contains("has a secret in it"));
    });
}

#[test]
fn a_step_for_which_nobody_is_there_is_told_and_not_waited_for() {
    block(async {
        let stage = Stage::new();
        let steps = json!([
            {"id": "here", "tool": "calc.eval", "args": {"expression": "1"}},
            {"id": "there", "tool": "calc.eval", "args": {"expression": "2"}, "label": "gpu"},
        ]);
        let begun = std::time::Instant::now();
        let outcome = stage.run(steps).await;
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
        assert_eq!(data(&outcome)["stands"], "waiting", "{outcome:?}");
        let said = "there: waits for a worker with the label `gpu`; none is there: haft worker --label gpu";
        assert!(outcome.output.contains(said), "{}", outcome.output);
        assert_eq!(data(&outcome)["steps"][1]["remedy"], "haft worker --label gpu");
        let run = data(&outcome)["run"].as_str().unwrap().to_owned();
        let mut worker = stage.haft.worker(1);
        worker.labels = vec!["gpu".to_owned()];
        let over = stage.haft.work(&worker, &Until::Over(run), &Nobody, &Halt::new()).await.unwrap();
        assert!(matches!(over, Over::Ended(seen) if seen.state == "done"));
    });
}

#[test]
fn a_step_that_nobody_knows_about_names_its_remedy() {
    block(async {
        let stage = Stage::new();
        let steps = json!([{"id": "a", "tool": "file.write", "args": {"path": "a.txt", "content": "1"}}]);
        let run = stage.haft.begin(wanted(steps)).await.unwrap().id;
        let claim = haft_store::work::Claim {
            worker: "gone".to_owned(),
            root: stage.haft.workspace().root().to_string_lossy().into_owned(),
            labels: Vec::new(),
            most: 9,
            lease_ms: 60_000,
            only: None,
        };
        let step = stage.haft.store().claim(claim).await.unwrap().remove(0);
        let id = step.call().unwrap();
        let intent = haft_store::Entry::new(haft_core::record::Kind::Intent).call(&id);
        stage.haft.store().open_call(&id, "file.write", intent).await.unwrap();
        stage.haft.store().leave_step(step).await.unwrap();
        stage.haft.store().take_over().await.unwrap();
        let steps = stage.haft.store().steps(&run).await.unwrap();
        let remedy = format!("haft pipeline settle {run} a done|failed|again");
        assert_eq!(drawn::remedy(&steps[0]), Some(remedy.clone()));
        let told = drawn::notes(&steps).unwrap();
        assert!(
            told.contains("may or may not have happened; say what became of it: ") && told.ends_with(&remedy),
            "{told}"
        );
        let seen = stage.haft.store().run_seen(&run).await.unwrap().unwrap();
        assert!(
            drawn::line(&seen, &steps).contains(": uncertain, 0 of 1 steps done"),
            "{}",
            drawn::line(&seen, &steps)
        );
    });
}

#[test]
fn a_write_that_is_out_of_date_is_made_anew_by_a_retry() {
    block(async {
        let stage = Stage::new();
        stage.file("a.txt", "one\n");
        let steps = json!([
            {"id": "read", "tool": "file.read", "args": {"path": "a.txt", "line_numbers": false}},
            {"id": "write", "tool": "file.write", "args": {"path": "a.txt", "content": "{{read}}more\n"}},
        ]);
        let outcome = stage.run_alone(steps).await;
        assert_eq!(data(&outcome)["stands"], "asking", "{outcome:?}");
        let run = data(&outcome)["run"].as_str().unwrap().to_owned();
        stage.file("a.txt", "two\n");
        let asked = stage.haft.store().approvals(true).await.unwrap().remove(0).id;
        let refused = stage.haft.approve(&asked, &Decider::embedder("me"), &Halt::new()).await.unwrap_err();
        assert!(refused.message.contains("because the files changed"), "{}", refused.message);
        assert!(refused.hint.as_deref().unwrap().contains(&format!("`haft pipeline retry {run}`")), "{refused:?}");
        // Whoever looks again and says yes hears why it cannot be done.
        let looked = stage.haft.look_at(&asked, &Decider::embedder("test")).await.unwrap().unwrap();
        assert!(looked.problem.unwrap().contains("has changed since it was read"));
        let failed = stage.haft.approve(&asked, &Decider::embedder("me"), &Halt::new()).await.unwrap();
        assert_eq!(failed.error.unwrap().kind.as_str(), "conflict");
        let worker = stage.haft.worker(1);
        stage.haft.work(&worker, &Until::Over(run.clone()), &Nobody, &Halt::new()).await.unwrap();
        let steps = stage.haft.store().steps(&run).await.unwrap();
        let told = drawn::notes(&steps).unwrap();
        assert!(told.contains(&format!("is read again by: haft pipeline retry {run}")), "{told}");
        let again = stage.call("pipeline.run", json!({"pipeline_id": run, "retry": true}), &Yes).await;
        assert!(again.success, "{again:?}");
        assert_eq!(stage.read("a.txt").as_deref(), Some("two\nmore\n"));
    });
}

#[test]
fn whoever_looks_sees_what_was_decided_and_hears_why_nothing_is_taken_up() {
    block(async {
        let stage = Stage::new();
        let outcome = stage.run_alone(json!([{"id": "gate", "ask": "Really?"}])).await;
        let run = data(&outcome)["run"].as_str().unwrap().to_owned();
        let again = json!({"pipeline_id": run, "retry": true});
        let refused = stage.call("pipeline.run", again.clone(), &Nobody).await.error.unwrap();
        assert!(refused.message.contains("its step `gate` waits for a person"), "{}", refused.message);
        let asked = stage.haft.store().approvals(true).await.unwrap().remove(0).id;
        assert!(refused.hint.unwrap().contains(&format!("haft approvals reject {asked}")));
        stage.haft.store().reject(&asked, &Decider::embedder("me"), "no").await.unwrap();
        let stands = async || stage.haft.store().run_seen(&run).await.unwrap().unwrap().state;
        assert_eq!(stands().await, "running", "nobody has looked yet");
        stage.haft.tend().await.unwrap();
        assert_eq!(stands().await, "failed");
        // A question that its run took back says so.
        let outcome = stage.run_alone(json!([{"id": "gate", "ask": "Again?"}])).await;
        let run = data(&outcome)["run"].as_str().unwrap();
        let asked = stage.haft.store().approvals(true).await.unwrap().remove(0).id;
        stage.haft.store().cancel_run(run, "me").await.unwrap();
        let late = stage.haft.approve(&asked, &Decider::embedder("me"), &Halt::new()).await.unwrap_err();
        assert!(late.message.contains("is not asked any more: cancelled by me"), "{}", late.message);
    });
}
