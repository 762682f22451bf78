//! A step that is a prompt: an agent does it, as a call like any other.

use super::step::Loaded;
use crate::pipeline::Haft;
use crate::store_error;
use haft_core::work::Step;
use haft_core::{CallError, ErrorKind};
use haft_store::work::{End, StepSeen};
use serde_json::{Value, json};

/// The tool that has an agent do something.
pub(super) const SPAWN: &str = "agent.spawn";
/// As what an agent does a step that does not say: it gets no shell that nobody asked for.
const USUAL: &str = "creator";

/// What the agent of a step is asked: as what, with what, and for how much of the money that the run may cost.
pub(super) async fn order(layer: &Haft, run: &Loaded, step: &Step, mut args: Value) -> Result<Value, CallError> {
    if args.get("agents").is_some() || args.get("mode").is_some_and(|mode| mode == "background") {
        return Err(CallError::invalid("a step is one agent's, and is over when that is")
            .hint("make several steps; steps that do not need each other run at once"));
    }
    args["name"] = json!(step.id);
    if args.get("role").is_none() && args.get("tools").is_none() {
        args["role"] = json!(USUAL);
    }
    let Some(budget) = run.plan.budget.and_then(|budget| budget.usd) else { return Ok(args) };
    let steps = layer.store.steps(&run.seen.id).await.map_err(store_error)?;
    let left = budget - steps.iter().map(cost).sum::<f64>();
    if left <= 0.0 {
        return Err(CallError::new(ErrorKind::Failed, format!("the run has cost the ${budget:.2} that it may"))
            .hint("`budget.usd` in the plan says how much"));
    }
    let own = args.get("max_usd").and_then(Value::as_f64).unwrap_or(left);
    let rest = args.as_object().cloned().unwrap_or_default();
    let mut one = Value::Object(rest);
    one["max_usd"] = json!(own.min(left));
    Ok(json!({ "agents": [one] }))
}

/// What a step gave whose one agent has ended: its words alone.
pub(super) fn alone(end: End) -> End {
    match end {
        End::Done(mut gave) => {
            if let Some(text) = gave["data"]["agents"][0]["ended"]["text"].as_str().map(str::to_owned) {
                gave["output"] = json!(text);
            }
            End::Done(gave)
        }
        other => other,
    }
}

/// What the agents of a step have cost, in dollars.
fn cost(step: &StepSeen) -> f64 {
    let agents = step.outcome.as_ref().and_then(|outcome| outcome["data"]["agents"].as_array());
    let micros = |agent: &Value| agent["ended"]["cost_micros"].as_f64().unwrap_or_default();
    agents.into_iter().flatten().map(micros).sum::<f64>() / 1_000_000.0
}
