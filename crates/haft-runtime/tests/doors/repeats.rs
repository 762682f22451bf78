//! Once is once: a call that is sent again under the same id is not made again, in this process or another.

use super::{LONG, Person, Stage, call, free, kind, run};
use haft_core::{Call, CallError, CallId, ToolSpec};
use haft_runtime::{BoxFuture, Decider, Halt, RedactionRequest, Reply, Resolution, Said, Scene, Tool, new_call_id};
use haft_store::{ClaimedCall, RedactionScope};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A tool that counts how often it runs, and ends when it may.
struct Counting {
    spec: Arc<ToolSpec>,
    begun: AtomicUsize,
    may_end: Semaphore,
}

impl Counting {
    fn on(stage: &Stage) -> Arc<Self> {
        let spec = Arc::new(ToolSpec::new("test.count", "A test's own").unwrap().acts());
        let tool = Arc::new(Self { spec, begun: AtomicUsize::new(0), may_end: Semaphore::new(0) });
        for haft in [&stage.here, &stage.there] {
            haft.registry().register(Arc::<Self>::clone(&tool)).unwrap();
        }
        tool
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    fn let_end(&self) {
        self.may_end.add_permits(1000);
    }
}

impl Tool for Counting {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }
    fn act<'a>(&'a self, _: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async {
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            let _may = self.may_end.acquire().await.unwrap();
            Ok(Reply::text(format!("run {number}")).data(json!({ "number": number })))
        })
    }
}

fn own(id: &str, tool: &str, args: Value) -> Call {
    Call::new(CallId::chosen(id).unwrap(), tool, args)
}

fn writing(id: &str) -> Call {
    own(id, "file.write", json!({"path": "a.txt", "content": "one\n"}))
}

#[test]
fn call_of_an_embedder_that_is_sent_again_gives_the_first_outcome() {
    run(async {
        let stage = Stage::new();
        let tool = Counting::on(&stage);
        tool.let_end();
        let yes = Person::saying(Said::Once);
        for call in [call("test.count", json!({})), own("mine-1", "test.count", json!({}))] {
            let begun = tool.begun();
            let first = stage.here.call(call.clone(), &yes, &free()).await;
            assert!(first.success, "{first:?}");
            stage.here.flush().await.unwrap();
            for haft in [&stage.here, &stage.there] {
                let again = haft.call(call.clone(), &yes, &free()).await;
                assert_eq!(serde_json::to_value(&again).unwrap(), serde_json::to_value(&first).unwrap());
            }
            assert_eq!(tool.begun(), begun + 1);
        }
        let writes = call("file.write", json!({"path": "a.txt", "content": "one\n"}));
        let first = stage.here.call(writes.clone(), &yes, &free()).await;
        std::fs::write(stage.path("a.txt"), "mine\n").unwrap();
        let again = stage.here.call(writes, &yes, &free()).await;
        assert_eq!((first.success, again.success, first.undo), (true, true, again.undo));
        assert_eq!(stage.read("a.txt").as_deref(), Some("mine\n"), "it was not written again");
    });
}

#[test]
fn repeat_waits_for_a_call_that_runs_here_or_in_another_process() {
    run(async {
        let stage = Stage::new();
        let tool = Counting::on(&stage);
        let once = own("mine-1", "test.count", json!({}));
        let send = |haft: &Arc<haft_runtime::Haft>| {
            let (haft, call) = (Arc::clone(haft), once.clone());
            async move { haft.call(call, &Person::saying(Said::Once), &free()).await }
        };
        let mut calls = JoinSet::new();
        calls.spawn(send(&stage.here));
        while tool.begun() == 0 {
            tokio::task::yield_now().await;
        }
        calls.spawn(send(&stage.here));
        calls.spawn(send(&stage.there));
        // A repeat whose caller has no more time hears that the call goes on.
        let impatient = Halt::new().within(std::time::Duration::from_millis(1));
        let late = stage.there.call(once.clone(), &Person::saying(Said::Once), &impatient).await;
        assert_eq!(kind(&late), "timeout", "{late:?}");
        assert!(late.error.unwrap().message.contains("still runs"));
        tool.let_end();
        let outcomes = calls.join_all().await;
        let said: Vec<&str> = outcomes.iter().map(|outcome| outcome.output.as_str()).collect();
        assert_eq!((said, tool.begun()), (vec!["run 1"; 3], 1));
    });
}

#[test]
fn same_id_with_other_content_is_a_conflict_and_does_not_run() {
    run(async {
        let stage = Stage::new();
        let yes = Person::saying(Said::Once);
        assert!(stage.here.call(writing("mine-1"), &yes, &free()).await.success);
        let other_args = own("mine-1", "file.write", json!({"path": "a.txt", "content": "two\n"}));
        let other_tool = own("mine-1", "file.read", json!({"path": "a.txt"}));
        let mut other_session = writing("mine-1");
        other_session.session = haft_core::SessionId::new("other").unwrap();
        for other in [other_args, other_tool, other_session] {
            for haft in [&stage.here, &stage.there] {
                let outcome = haft.call(other.clone(), &yes, &free()).await;
                assert_eq!(kind(&outcome), "conflict", "{outcome:?}");
                assert!(haft_runtime::is_refused_repeat(&outcome));
            }
        }
        assert_eq!((stage.read("a.txt").as_deref(), yes.asked()), (Some("one\n"), 1));
        // An id that names a call which nobody claimed is no caller's to use.
        let read = call("file.read", json!({"path": "a.txt"}));
        assert!(stage.here.call(read.clone(), &yes, &free()).await.success);
        stage.here.flush().await.unwrap();
        let borrowed = Call { spoken: "file.write".to_owned(), args: json!({"path": "b", "content": ""}), ..read };
        assert_eq!(kind(&stage.there.call(borrowed, &yes, &free()).await), "conflict");
    });
}

#[test]
fn reads_under_generated_ids_claim_nothing() {
    run(async {
        let stage = Stage::new();
        std::fs::write(stage.path("a.txt"), "one").unwrap();
        let yes = Person::saying(Said::Once);
        let read = |id| Call::new(id, "file.read", json!({"path": "a.txt"}));
        let is_claimed = async |call: &Call| {
            stage.here.call(call.clone(), &yes, &free()).await;
            let content = call.content_digest("elsewhere");
            let found = stage.here.store().claimed_call(&call.id, content).await.unwrap();
            found.is_some_and(|found| found == ClaimedCall::Differs)
        };
        assert!(!is_claimed(&read(new_call_id())).await);
        assert!(is_claimed(&read(CallId::chosen("mine-1").unwrap())).await);
    });
}

#[test]
fn repeat_of_a_call_that_waits_for_a_person_hears_what_they_decided() {
    run(async {
        let stage = Stage::new();
        let nobody = Person::saying(Said::Nobody);
        let first = stage.here.call(writing("mine-1"), &nobody, &free()).await;
        assert_eq!(kind(&first), "approval_required", "{first:?}");
        stage.here.flush().await.unwrap();
        let again = stage.there.call(writing("mine-1"), &nobody, &free()).await;
        assert_eq!((again.error, stage.read("a.txt")), (first.error, None));
        // One that has patience gets the outcome of whoever decides.
        let waits = async { stage.there.call(writing("mine-1"), &Person::absent(LONG), &free()).await };
        let by = Decider::embedder("tester");
        let halt = free();
        let decision = stage.here.decide("mine-1", &by, Resolution::Once, &halt);
        let (waited, decided) = tokio::join!(waits, decision);
        let decided = decided.unwrap();
        assert!(decided.success && waited.success, "{waited:?}");
        assert_eq!((waited.output, stage.read("a.txt").as_deref()), (decided.output, Some("one\n")));
        let after = stage.there.call(writing("mine-1"), &nobody, &free()).await;
        assert_eq!((after.success, after.undo), (true, decided.undo));
        // A no is the answer, too.
        let other = own("mine-2", "file.write", json!({"path": "b.txt", "content": "x"}));
        stage.here.call(other.clone(), &nobody, &free()).await;
        stage.there.reject("mine-2", &by, "not there").await.unwrap();
        let rejected = stage.here.call(other, &nobody, &free()).await;
        assert_eq!((kind(&rejected), rejected.error.unwrap().message.as_str()), ("rejected", "not there"));
        assert_eq!(stage.read("b.txt"), None);
    });
}

#[test]
fn call_whose_caller_went_away_is_over_for_whoever_sends_it_again() {
    run(async {
        let stage = Stage::new();
        let tool = Counting::on(&stage);
        let once = own("mine-1", "test.count", json!({}));
        let yes = Person::saying(Said::Once);
        let halt = free();
        {
            let calling = stage.here.call(once.clone(), &yes, &halt);
            tokio::pin!(calling);
            while tool.begun() == 0 {
                tokio::select! {
                    biased;
                    ended = &mut calling => assert_eq!(ended.output, "it cannot end yet"),
                    () = tokio::task::yield_now() => {}
                }
            }
        }
        let again = stage.there.call(once, &yes, &free()).await;
        assert_eq!((kind(&again), tool.begun()), ("cancelled", 1), "{again:?}");
    });
}

#[test]
fn redacted_call_is_not_made_again() {
    run(async {
        let stage = Stage::new();
        let yes = Person::saying(Said::Once);
        assert!(stage.here.call(writing("mine-1"), &yes, &free()).await.success);
        std::fs::remove_file(stage.path("a.txt")).unwrap();
        stage.here.flush().await.unwrap();
        let request = RedactionRequest {
            scope: RedactionScope::Call(CallId::chosen("mine-1").unwrap()),
            by: "ada".to_owned(),
            why: None,
            keep_outputs: false,
            before_images: false,
        };
        stage.there.redact_log(request).await.unwrap();
        let again = stage.here.call(writing("mine-1"), &yes, &free()).await;
        assert_eq!((kind(&again), stage.read("a.txt")), ("conflict", None), "{again:?}");
        assert!(again.error.unwrap().message.contains("removed from the log"));
    });
}

#[test]
fn kept_outcome_has_no_secret_and_is_bounded() {
    run(async {
        let stage = Stage::new();
        let yes = Person::saying(Said::Once);
        let large = format!("AKIAIOSFODNN7EXAMPLE\n{}\n", "line\n".repeat(200_000));
        std::fs::write(stage.path("a.txt"), &large).unwrap();
        let read = own("mine-1", "file.read", json!({"path": "a.txt"}));
        let first = stage.here.call(read.clone(), &yes, &free()).await;
        assert!(first.success && first.output.contains("AKIA"), "{first:?}");
        let again = stage.here.call(read, &yes, &free()).await;
        assert!(again.success && !again.output.contains("AKIAIOSFODNN7EXAMPLE"), "{}", again.output);
        assert!(serde_json::to_string(&again).unwrap().len() <= 256 << 10);
    });
}
