//! What is done for a task, and what is made of what came of it.

use haft_core::error::Blame;
use haft_core::web::Target;
use haft_core::{CallError, CallId};
use haft_store::tasks::{Ended, Task, TaskKind};
use haft_store::work::RUN_PREFIX;
use serde::Deserialize;
use serde_json::{Value, json};

/// How much of a watched page is read: as much as is kept of what a step gives.
const PAGE_CHARS: u32 = 50_000;

/// What a task does.
#[derive(Debug, Clone, PartialEq)]
pub enum Does {
    /// A call.
    Call {
        /// Of this tool.
        tool: String,
        /// With these arguments.
        args: Value,
    },
    /// A stored pipeline, by id or name.
    Pipeline {
        /// Which.
        pipeline: String,
        /// What it is given.
        inputs: Value,
    },
    /// Words for an agent.
    Prompt(String),
}

/// The name of the run for a task and a time: the same whoever starts it, and however often.
pub fn run_id(task: &str, at_ms: i64) -> CallId {
    CallId::parse(&format!("{RUN_PREFIX}{task}-{}", at_ms.unsigned_abs()))
        .unwrap_or_else(|| CallId::new(at_ms.unsigned_abs(), 0))
}

/// What a task does. One that somebody does by hand does nothing.
pub fn does(task: &Task) -> Result<Does, CallError> {
    let nothing = || {
        CallError::invalid(format!("task {} is for somebody to do: there is nothing that could be run", task.id))
            .hint("give it a tool and arguments, a prompt, or a pipeline")
    };
    let spec = task.promise.spec.as_ref().ok_or_else(nothing)?;
    let word = |name: &str| spec[name].as_str().map(str::to_owned);
    let object = |name: &str| spec.get(name).filter(|value| value.is_object()).cloned().unwrap_or_else(|| json!({}));
    match (word("tool"), word("pipeline"), word("prompt")) {
        (Some(tool), None, None) => Ok(Does::Call { tool, args: object("args") }),
        (None, Some(pipeline), None) => Ok(Does::Pipeline { pipeline, inputs: object("inputs") }),
        (None, None, Some(prompt)) => Ok(Does::Prompt(prompt)),
        _ => Err(nothing()),
    }
}

/// The call that looks at a page: the same that anybody makes, so that the same rules and quotas hold.
pub(super) fn look(url: &str) -> Value {
    json!({"tool": "web.fetch", "args": {"url": url, "format": "text", "limit": PAGE_CHARS}})
}

/// How a task's call ended, from what is kept of its outcome; and what is told of it.
pub fn told(task: &Task, outcome: &Value) -> (Ended, String) {
    let output = outcome["output"].as_str().unwrap_or_default().to_owned();
    if let Ok(error) = CallError::deserialize(&outcome["error"]) {
        // What a person or a rule refused is not asked for again.
        let later = matches!(error.kind.blame(), Blame::Tool | Blame::Host);
        return (if later { Ended::Badly } else { Ended::ForGood }, super::said(&error));
    }
    match elsewhere(task, outcome) {
        Some(place) => (Ended::Badly, format!("the page leads elsewhere, to {place}, and is not watched there")),
        None => ((outcome["success"] == true).into(), output),
    }
}

/// Another host than the one that is watched, if the page came from there in the end.
fn elsewhere(task: &Task, outcome: &Value) -> Option<String> {
    let host = |url: &str| Target::read(url).ok().map(|target| target.host().to_string());
    let watched = Some(task).filter(|task| task.kind == TaskKind::Watch)?.promise.spec.as_ref()?;
    let (watched, from) = (host(watched["args"]["url"].as_str()?)?, host(outcome["data"]["url"].as_str()?)?);
    (from != watched).then(|| haft_core::preview::inert(&from))
}
