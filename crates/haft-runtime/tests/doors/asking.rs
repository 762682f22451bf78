//! Tools that ask back, tools that are not what they were, and calls that are cancelled by id.

use super::{LONG, Person, Stage, call, free, kind, run};
use haft_core::{CallError, ToolSpec};
use haft_runtime::{BoxFuture, Form, Reply, Said, Scene, Tool, Written};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

type Work = for<'a> fn(&'a Scene) -> BoxFuture<'a, Result<Reply, CallError>>;

struct Own {
    spec: Arc<ToolSpec>,
    work: Work,
    altered: Option<String>,
}

impl Own {
    fn tool(name: &str, work: Work) -> Self {
        Self { spec: Arc::new(ToolSpec::new(name, "A test's own").unwrap()), work, altered: None }
    }
}

impl Tool for Own {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }
    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        (self.work)(scene)
    }
    fn altered(&self) -> Option<String> {
        self.altered.clone()
    }
}

fn form() -> Form {
    Form { from: "server".to_owned(), message: "who?".to_owned(), schema: json!({"type": "object"}) }
}

/// Asks for a form twenty times, and says how often it was filled in.
fn nosy(scene: &Scene) -> BoxFuture<'_, Result<Reply, CallError>> {
    Box::pin(async move {
        let mut filled = 0;
        for _ in 0..20 {
            if matches!(scene.back().elicit(form()).await, Written::Answer(_)) {
                filled += 1;
            }
        }
        Ok(Reply::text(filled.to_string()))
    })
}

fn sampler(scene: &Scene) -> BoxFuture<'_, Result<Reply, CallError>> {
    Box::pin(async move {
        let said = scene.back().sample("server", json!({"messages": []})).await?;
        Ok(Reply::text(said.to_string()))
    })
}

fn sleeper(_: &Scene) -> BoxFuture<'_, Result<Reply, CallError>> {
    Box::pin(std::future::pending())
}

/// Takes longer than it may, but as a task.
fn slow_task(scene: &Scene) -> BoxFuture<'_, Result<Reply, CallError>> {
    Box::pin(async move {
        scene.back().go_on_as_task().await;
        tokio::time::sleep(LIMIT * 3).await;
        Ok(Reply::text("done"))
    })
}

/// How long the tool above may take.
const LIMIT: Duration = Duration::from_millis(100);

fn quiet(_: &Scene) -> BoxFuture<'_, Result<Reply, CallError>> {
    Box::pin(std::future::ready(Ok(Reply::text("done"))))
}

#[test]
fn a_tool_may_ask_a_person_but_not_for_ever() {
    run(async {
        let stage = Stage::new();
        stage.here.registry().register(Arc::new(Own::tool("nosy", nosy))).unwrap();
        let person = Person { writes: Written::Answer(json!({})), ..Person::saying(Said::Once) };
        let outcome = stage.here.call(call("nosy", json!({})), &person, &free()).await;
        assert_eq!(outcome.output, "16", "{outcome:?}");
        stage.here.flush().await.unwrap();
        let records = stage.here.store().records(0, 100, Some(outcome.call_id)).await.unwrap();
        let back = records.iter().filter(|record| record.body["kind"] == "back").count();
        assert_eq!(back, 20, "each wish is recorded");
    });
}

#[test]
fn a_model_answers_a_tool_only_if_a_person_agrees() {
    run(async {
        let stage = Stage::new();
        stage.here.registry().register(Arc::new(Own::tool("sampler", sampler))).unwrap();
        let cases =
            [(Said::Once, ""), (Said::Reject("no".to_owned()), "rejected"), (Said::Nobody, "approval_required")];
        for (says, expected) in cases {
            let person = Person::saying(says);
            let outcome = stage.here.call(call("sampler", json!({})), &person, &free()).await;
            assert_eq!((kind(&outcome), person.asked()), (expected, 1), "{outcome:?}");
        }
    });
}

#[test]
fn task_outlasts_its_tools_time_limit_for_a_caller_who_looks_after_it() {
    run(async {
        let stage = Stage::new();
        let mut tool = Own::tool("slow", slow_task);
        tool.spec = Arc::new(ToolSpec::new("slow", "Takes its time").unwrap().timeout(LIMIT));
        stage.here.registry().register(Arc::new(tool)).unwrap();
        for (has_tasks, expected) in [(true, ""), (false, "timeout")] {
            let person = Person { has_tasks, ..Person::saying(Said::Once) };
            let outcome = stage.here.call(call("slow", json!({})), &person, &free()).await;
            assert_eq!(kind(&outcome), expected, "{outcome:?}");
        }
    });
}

#[test]
fn a_tool_that_is_not_what_it_was_is_asked_about() {
    run(async {
        let stage = Stage::new();
        let altered = Some("its description has changed".to_owned());
        stage.here.registry().register(Arc::new(Own { altered, ..Own::tool("changed", quiet) })).unwrap();
        let refused = stage.here.call(call("changed", json!({})), &Person::saying(Said::Nobody), &free()).await;
        assert_eq!(kind(&refused), "approval_required");
        assert!(refused.verdict.reason.contains("its description has changed"), "{refused:?}");
    });
}

#[test]
fn a_call_is_cancelled_by_its_id() {
    run(async {
        let stage = Stage::new();
        stage.here.registry().register(Arc::new(Own::tool("sleeper", sleeper))).unwrap();
        let call = call("sleeper", json!({}));
        let id = call.id.clone();
        let (outcome, ()) =
            tokio::join!(async { stage.here.call(call, &Person::absent(LONG), &free()).await }, async {
                while !stage.here.cancel(&id) {
                    tokio::task::yield_now().await;
                }
            });
        assert_eq!(kind(&outcome), "cancelled");
        assert!(!stage.here.cancel(&id), "it is over");
    });
}
