//! Panics: whatever panics on the path of a call is an outcome of that call, and nothing else ends.

use super::{Person, Stage, call, free, kind, run};
use haft_core::record::Kind;
use haft_core::{Call, CallError, Outcome, ToolSpec};
use haft_runtime::{
    Approver, Blocking, BoxFuture, Decider, Question, Reply, Resolution, Said, Scene, Tool, new_call_id,
};
use serde_json::json;
use std::sync::Arc;

/// A tool that panics at some point.
struct Panicking {
    spec: Arc<ToolSpec>,
    at: Point,
}

#[derive(Clone, Copy, PartialEq)]
enum Point {
    /// While its work is made.
    Made,
    /// Where it goes on after it has waited.
    AfterAwait,
}

impl Panicking {
    fn tool(spec: ToolSpec, at: Point) -> Arc<dyn Tool> {
        Arc::new(Self { spec: Arc::new(spec), at })
    }
}

impl Tool for Panicking {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }
    #[expect(clippy::panic, reason = "what is tested is a tool that does")]
    fn act<'a>(&'a self, _: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        assert!(self.at != Point::Made, "while it was made");
        Box::pin(async {
            tokio::task::yield_now().await;
            panic!("after it waited")
        })
    }
}

#[expect(clippy::panic, reason = "what is tested is a tool that does")]
fn sync_panic(_: &Scene) -> Result<Reply, CallError> {
    panic!("on its thread")
}

/// What the tools do that panic.
#[derive(Clone, Copy, PartialEq)]
enum Effect {
    Reads,
    Acts,
}

/// The tools that panic, and what each says.
fn register(stage: &Stage, effect: Effect) -> [(&'static str, &'static str); 3] {
    let spec = |name: &str| {
        let spec = ToolSpec::new(name, "A test's own").unwrap();
        if effect == Effect::Acts { spec.acts() } else { spec }
    };
    let tools = [
        Panicking::tool(spec("test.made"), Point::Made),
        Panicking::tool(spec("test.await"), Point::AfterAwait),
        Blocking::tool(spec("test.thread"), sync_panic),
    ];
    for tool in tools {
        stage.here.registry().register(tool).unwrap();
    }
    [("test.made", "while it was made"), ("test.await", "after it waited"), ("test.thread", "on its thread")]
}

/// The kinds of the records of a call, oldest first.
async fn recorded(stage: &Stage, outcome: &Outcome) -> Vec<String> {
    stage.here.flush().await.unwrap();
    let traced = stage.here.store().traced(outcome.call_id.clone()).await.unwrap().unwrap();
    assert!(!traced.open, "the call is over: {traced:?}");
    assert!(!stage.here.cancel(&outcome.call_id), "it does not run any more");
    traced.records.iter().map(|record| record.body["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn tool_that_panics_ends_its_call_and_nothing_else() {
    run(async {
        let stage = Stage::new();
        for (name, says) in register(&stage, Effect::Reads) {
            let tried = stage.here.dry_run(call(name, json!({})), &free()).await;
            assert!(tried.error.as_ref().is_some_and(|error| error.message.contains(says)), "{name}: {tried:?}");
            let outcome = stage.here.call(call(name, json!({})), &Person::saying(Said::Once), &free()).await;
            let error = outcome.error.clone().unwrap();
            assert_eq!((kind(&outcome), error.message.contains(says)), ("internal", true), "{name}: {outcome:?}");
            assert_eq!(recorded(&stage, &outcome).await, ["intent", "outcome"], "{name}");
            assert_eq!(stage.here.store().take_interrupted().await.unwrap(), [], "{name}");
            let sum = call("calc.eval", json!({"expression": "6 * 7"}));
            assert_eq!(stage.here.call(sum, &Person::saying(Said::Nobody), &free()).await.output, "42");
        }
    });
}

#[test]
fn panic_in_an_approved_call_is_its_outcome() {
    run(async {
        let stage = Stage::new();
        for (name, says) in register(&stage, Effect::Acts) {
            let nobody = Person::saying(Said::Nobody);
            let asked = stage.here.call(call(name, json!({})), &nobody, &free()).await;
            assert_eq!(kind(&asked), "approval_required", "{name}: {asked:?}");
            let by = Decider::embedder("tester");
            let ran = stage.here.decide(asked.call_id.as_str(), &by, Resolution::Once, &free()).await.unwrap();
            assert!(ran.error.as_ref().is_some_and(|error| error.message.contains(says)), "{name}: {ran:?}");
            let found = stage.here.store().approval(asked.call_id.as_str()).await.unwrap().unwrap();
            assert_eq!(found.state.as_str(), "done", "{name}");
            assert_eq!(stage.here.store().take_interrupted().await.unwrap(), [], "{name}");
        }
    });
}

/// Somebody at the door who panics when asked.
struct Fainting;

impl Approver for Fainting {
    fn decider(&self) -> Decider {
        Decider::embedder("fainting")
    }
    #[expect(clippy::panic, reason = "what is tested is an approver that does")]
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        panic!("at the sight of it")
    }
}

#[test]
fn approver_that_panics_ends_the_call_before_it_runs() {
    run(async {
        let stage = Stage::new();
        let writes = call("file.write", json!({"path": "a.txt", "content": "x"}));
        let outcome = stage.here.call(writes, &Fainting, &free()).await;
        let error = outcome.error.clone().unwrap();
        assert!(kind(&outcome) == "internal" && error.message.contains("at the sight of it"), "{outcome:?}");
        assert_eq!((stage.read("a.txt"), recorded(&stage, &outcome).await), (None, vec!["refused".to_owned()]));
        let again = Call::new(new_call_id(), "file.write", json!({"path": "a.txt", "content": "x"}));
        assert!(stage.here.call(again, &Person::saying(Said::Once), &free()).await.success);
    });
}

#[test]
fn sent_again_a_call_that_panicked_has_its_outcome_and_does_not_run() {
    run(async {
        let stage = Stage::new();
        register(&stage, Effect::Acts);
        let again = call("test.await", json!({}));
        let person = Person::saying(Said::Once);
        let first = stage.here.call(again.clone(), &person, &free()).await;
        let second = stage.here.call(again, &person, &free()).await;
        assert_eq!((kind(&first), first.error, person.asked()), ("internal", second.error, 1));
        stage.here.flush().await.unwrap();
        let records = stage.here.store().records(0, 100, None).await.unwrap();
        let intents = records.iter().filter(|record| record.body["kind"] == Kind::Intent.as_str());
        assert_eq!(intents.count(), 1);
    });
}
