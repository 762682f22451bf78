//! Manifests that make calls of other tools: `mcp`, one, and `pipeline`, several. Each call goes the whole path.

use super::made::{inputs, reply, unfit, values};
use crate::hygiene::unwrapped;
use crate::scene::Scene;
use crate::tool::Reply;
use haft_core::manifest::template::rendered;
use haft_core::manifest::{Format, Mcp, Part, Pipeline, Step};
use haft_core::{CallError, Outcome};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How many calls a pipeline makes.
const STEPS_MAX: usize = 20;

/// Calls a bridged server's tool.
pub(super) async fn forward(mcp: &Mcp, scene: &Scene) -> Result<Reply, CallError> {
    let (inputs, none) = (inputs(scene.args()), BTreeMap::new());
    let args = match &mcp.args {
        Some(template) => values(&inputs, &none).fill_map(template).map_err(|error| unfit(&error))?,
        None => inputs.clone(),
    };
    let call =
        scene.call().makes(crate::new_call_id(), format!("mcp:{}:{}", mcp.server, mcp.tool), Value::Object(args));
    Ok(told(scene.back().call(call).await?))
}

/// Makes the calls of a pipeline, one after the other. The first that fails ends it.
pub(super) async fn run(pipeline: &Pipeline, scene: &Scene) -> Result<Reply, CallError> {
    let count = pipeline.steps.len();
    if count == 0 || count > STEPS_MAX {
        return Err(CallError::invalid(format!("a pipeline has 1 to {STEPS_MAX} steps, and this one has {count}")));
    }
    let mut known = inputs(scene.args());
    known.insert("steps".to_owned(), json!({}));
    let (mut labels, mut warnings, mut last) = (Vec::new(), Vec::new(), Reply::default());
    for (at, step) in pipeline.steps.iter().enumerate() {
        scene.progress(format!("step {} of {count}: {}", at + 1, step.id));
        let outcome = make(step, &known, scene).await?;
        labels.extend(outcome.labels.iter().filter(|label| !labels.contains(*label)).copied().collect::<Vec<_>>());
        warnings.extend(outcome.warnings.iter().map(|warning| format!("step `{}`: {warning}", step.id)));
        known["steps"][&step.id] = gave(&outcome);
        last = told(outcome);
        if let Some(error) = last.error.take() {
            last.error = Some(failed(step, (at + 1, count), error));
            break;
        }
    }
    if let (None, Some(template)) = (&last.error, &pipeline.output) {
        let none = BTreeMap::new();
        let value = values(&known, &none).fill(template).map_err(|error| unfit(&error))?.unwrap_or_default();
        let text = rendered(&value);
        last = reply(Format::Json, text.clone(), Some(value).filter(|value| !value.is_string()));
    }
    Ok(Reply { warnings, labels, ..last })
}

/// What a step gave, as the templates of later ones name it.
fn gave(outcome: &Outcome) -> Value {
    let part = |part: Part| match part {
        Part::Output => json!(unwrapped(&outcome.output)),
        Part::Data => json!(outcome.data),
        Part::Success => json!(outcome.success),
    };
    Part::ALL.into_iter().map(|one| (one.word().to_owned(), part(one))).collect::<Map<String, Value>>().into()
}

/// Makes one call with what is known so far.
async fn make(step: &Step, known: &Map<String, Value>, scene: &Scene) -> Result<Outcome, CallError> {
    let none = BTreeMap::new();
    let filled = values(known, &none).fill_map(&step.args);
    let args = filled.map_err(|error| CallError::invalid(format!("step `{}`: {error}", step.id)))?;
    let call = scene.call().makes(crate::new_call_id(), step.tool.as_str(), Value::Object(args));
    scene.back().call(call).await
}

/// Which step failed, and why.
fn failed(step: &Step, (at, count): (usize, usize), error: CallError) -> CallError {
    let rest = if at == count { "" } else { "; nothing after it ran" };
    let message = format!("step `{}` ({}) failed: {}{rest}", step.id, step.tool, error.message);
    CallError { message, ..error }
}

/// What another call gave, as a reply of this one.
fn told(outcome: Outcome) -> Reply {
    Reply {
        // It is marked off once, as what this call gives.
        text: unwrapped(&outcome.output).into_owned(),
        data: outcome.data,
        content: outcome.content,
        warnings: outcome.warnings,
        labels: outcome.labels,
        error: outcome.error,
        whole: outcome.full_output,
        ..Reply::default()
    }
}
