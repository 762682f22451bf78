//! Doing one step: its words are filled in, its call is made, and what came of it is what others are given.

use super::agents;
use super::begin::{self, Wanted};
use super::terms::Terms;
use crate::approver::Approver;
use crate::halt::Halt;
use crate::hygiene::unwrapped;
use crate::pipeline::Haft;
use crate::store_error;
use haft_core::outcome::Label;
use haft_core::work::plan::{RESULT_LIMIT, span_ms};
use haft_core::work::words::{Gave, Known};
use haft_core::work::{Does, Graph, Plan, Step};
use haft_core::{Call, CallError, CallId, Dialect, ErrorKind, Origin, Outcome};
use haft_store::work::{Above, Claimed, DEPTH_MAX, End, RunSeen, StepSeen};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The tool that asks a person whether to go on.
pub(crate) const GATE: &str = "pipeline.gate";
/// How many warnings of a step are kept.
const WARNINGS_MAX: usize = 8;

/// A run, read once for all of its steps.
pub(super) struct Loaded {
    pub(super) seen: RunSeen,
    pub(super) plan: Plan,
    graph: Graph,
    inputs: Map<String, Value>,
    pub(super) terms: Terms,
}

impl Loaded {
    pub(super) fn new(seen: RunSeen) -> Result<Self, CallError> {
        let unread = |error: String| CallError::internal(format!("the plan of {} cannot be read: {error}", seen.id));
        let plan: Plan = serde_json::from_value(seen.plan.clone()).map_err(|error| unread(error.to_string()))?;
        let graph = plan.order().map_err(|faults| unread(begin::unfit(&faults).message))?;
        let (inputs, terms) = (seen.inputs.as_object().cloned().unwrap_or_default(), Terms::read(&seen.terms));
        Ok(Self { seen, plan, graph, inputs, terms })
    }
}

/// Does a step, and says how it ended.
pub(super) async fn carry(
    layer: &Haft,
    run: &Loaded,
    step: &Claimed,
    (approver, halt): (&dyn Approver, &Halt),
) -> Result<End, CallError> {
    let nr = usize::try_from(step.nr).unwrap_or(usize::MAX);
    let planned = run.plan.steps.get(nr).ok_or_else(|| CallError::internal("there is no such step in its plan"))?;
    let before = match run.graph.needs(nr) {
        [] => Vec::new(),
        _ => layer.store.steps_before(&run.seen.id, step.nr).await.map_err(store_error)?,
    };
    let steps: BTreeMap<String, Gave> = before.iter().map(|step| (step.id.clone(), gave(step))).collect();
    let known = Known { inputs: &run.inputs, steps: &steps };
    let labels = labels_of(&run.terms.labels, &before);
    // What its words may hold is known to whoever decides, whichever process did the steps before and however long ago.
    layer.note_labels(&run.terms.session, &labels, "pipeline.run");
    if !planned.when.iter().all(|when| when.holds(known)) {
        return Ok(End::Unwanted(json!({"success": false, "output": "", "unwanted": true})));
    }
    match begin(layer, run, (step, planned), (known, &labels), (approver, halt)).await {
        Ok(End::Done(gave)) => Ok(End::Done(labelled(warned(gave, &before), &labels))),
        Ok(end) => Ok(end),
        // What cannot even be begun has failed.
        Err(error) if error.kind == ErrorKind::Internal => Err(error),
        Err(error) => Ok(End::Failed(json!({"success": false, "output": "", "error": error}))),
    }
}

async fn begin(
    layer: &Haft,
    run: &Loaded,
    (step, planned): (&Claimed, &Step),
    (known, labels): (Known<'_>, &[Label]),
    asked: (&dyn Approver, &Halt),
) -> Result<End, CallError> {
    let filled = |value: &Value| known.fill(value).map_err(|error| CallError::invalid(error.to_string()));
    let filled_map = |map: &Map<String, Value>| filled(&Value::Object(map.clone()));
    match planned.does() {
        Some(Does::Tool(tool, _)) => {
            let args = planned.filled(known).map_err(|error| CallError::invalid(error.to_string()))?;
            call(layer, run, (step, planned), tool, args, asked).await
        }
        Some(Does::Ask(question)) => {
            let args = json!({"question": filled(&Value::from(question))?});
            call(layer, run, (step, planned), GATE, args, asked).await
        }
        // The time has passed: it was not to be claimed before.
        Some(Does::Wait(_)) => Ok(End::Done(json!({"success": true, "output": ""}))),
        Some(Does::Pipeline(named, inputs)) => {
            let inputs = filled_map(inputs)?.as_object().cloned().unwrap_or_default();
            nested(layer, run, step, named, (inputs, labels)).await
        }
        Some(Does::Prompt(prompt)) => {
            let mut args = filled_map(&planned.args)?;
            args["task"] = filled(&Value::from(prompt))?;
            let args = agents::order(layer, run, planned, args).await?;
            call(layer, run, (step, planned), agents::SPAWN, args, asked).await.map(agents::alone)
        }
        None => Err(CallError::invalid("the step does not say what it does")),
    }
}

/// Makes the call of a step.
async fn call(
    layer: &Haft,
    run: &Loaded,
    (step, planned): (&Claimed, &Step),
    tool: &str,
    args: Value,
    (approver, halt): (&dyn Approver, &Halt),
) -> Result<End, CallError> {
    let call = Call {
        id: step.call().ok_or_else(|| CallError::internal("its call has no id"))?,
        spoken: tool.to_owned(),
        args,
        dialect: Dialect::Haft,
        session: run.terms.session.clone(),
        caller: run.terms.caller.clone(),
        origin: Origin::Work,
        parents: run.terms.parents.iter().cloned().chain(CallId::parse(&run.seen.id)).collect(),
        turn: None,
        autonomy: run.terms.autonomy,
        independent: false,
    };
    let limit = planned.timeout.as_deref().and_then(span_ms).map(Duration::from_millis);
    let halt = limit.map_or_else(|| halt.clone(), |limit| halt.within(limit));
    let outcome = layer.call(call, approver, &halt).await;
    match outcome.error {
        // The store did not answer, or gave the step to somebody else: what is known of the call is in the log.
        Some(error) if error.kind == ErrorKind::Internal => Err(error),
        _ => Ok(ended(&outcome)),
    }
}

/// How a call's outcome ends its step.
pub(super) fn ended(outcome: &Outcome) -> End {
    match &outcome.error {
        Some(error) if error.kind == ErrorKind::ApprovalRequired => End::Asking,
        Some(_) => End::Failed(kept(outcome)),
        None => End::Done(kept(outcome)),
    }
}

/// What is kept of an outcome for those who come after.
pub(super) fn kept(outcome: &Outcome) -> Value {
    let text = unwrapped(&outcome.output);
    let shown = cut(&text);
    let data = outcome.data.as_ref().filter(|data| data.to_string().len() <= RESULT_LIMIT);
    let mut kept = json!({
        "success": outcome.success, "output": shown, "call_id": outcome.call_id, "tool": outcome.tool,
        "labels": outcome.labels, "duration_ms": outcome.duration_ms,
    });
    if let Some(data) = data {
        kept["data"] = data.clone();
    }
    if let Some(error) = &outcome.error {
        kept["error"] = json!(error);
    }
    if shown.len() < text.len() || (data.is_none() && outcome.data.is_some()) {
        kept["truncated"] = true.into();
    }
    if let Some(full) = &outcome.full_output {
        kept["full_output"] = json!(full);
    }
    if !outcome.warnings.is_empty() {
        kept["warnings"] = json!(outcome.warnings.iter().take(WARNINGS_MAX).collect::<Vec<_>>());
    }
    kept
}

/// Where what some steps gave came from, and what they were given themselves.
fn labels_of(given: &[Label], steps: &[StepSeen]) -> Vec<Label> {
    let kept = |step: &StepSeen| step.outcome.as_ref().map(|outcome| outcome["labels"].clone()).unwrap_or_default();
    let each = steps.iter().flat_map(|step| serde_json::from_value::<Vec<Label>>(kept(step)).unwrap_or_default());
    let mut all = given.to_vec();
    for label in each {
        if !all.contains(&label) {
            all.push(label);
        }
    }
    all
}

/// What a step gave, with a word about what it was given in part only.
fn warned(mut gave: Value, before: &[StepSeen]) -> Value {
    let is_cut = |step: &&StepSeen| step.outcome.as_ref().is_some_and(|outcome| outcome["truncated"] == true);
    let told = |step: &StepSeen| {
        json!(format!("what `{}` gave is longer than {} KB: the rest is not here", step.id, RESULT_LIMIT >> 10))
    };
    let cut: Vec<Value> = before.iter().filter(is_cut).take(WARNINGS_MAX).map(told).collect();
    if !cut.is_empty() {
        let own = gave["warnings"].as_array().cloned().unwrap_or_default();
        gave["warnings"] = cut.into_iter().chain(own).collect();
    }
    gave
}

/// What a step gave, with where that may have come from.
fn labelled(mut gave: Value, labels: &[Label]) -> Value {
    let own = serde_json::from_value::<Vec<Label>>(gave["labels"].clone()).unwrap_or_default();
    let more: Vec<Label> = labels.iter().copied().filter(|label| !own.contains(label)).collect();
    gave["labels"] = json!(own.into_iter().chain(more).collect::<Vec<_>>());
    gave
}

/// As much of a text as is kept.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(RESULT_LIMIT)]
}

/// What a step gave, as the words of others name it.
fn gave(step: &StepSeen) -> Gave {
    let outcome = step.outcome.as_ref();
    let part = |name: &str| outcome.and_then(|outcome| outcome.get(name));
    let success = step.state == "done";
    let output = part("output").and_then(Value::as_str).filter(|_| success).unwrap_or_default().to_owned();
    Gave { success, output, data: part("data").filter(|_| success).cloned().unwrap_or_default() }
}

/// A step that is a pipeline: it is begun as a run of its own, and ends when that does.
async fn nested(
    layer: &Haft,
    run: &Loaded,
    step: &Claimed,
    named: &str,
    (inputs, labels): (Map<String, Value>, &[Label]),
) -> Result<End, CallError> {
    // One run for the step, however often it is taken up.
    let id = format!("{}-{}", run.seen.id, step.nr);
    if let Some(inner) = layer.store.run_seen(&id).await.map_err(store_error)? {
        return match inner.state.as_str() {
            "running" => Ok(End::Nested),
            state => {
                let gave = result(layer, &inner).await?;
                Ok(if state == "done" { End::Done(gave) } else { End::Failed(gave) })
            }
        };
    }
    if run.seen.deep >= DEPTH_MAX {
        return Err(CallError::invalid(format!("pipelines may be at most {DEPTH_MAX} deep in one another")));
    }
    let plan = crate::tools::pipeline::find(&layer.store, &layer.workspace, named).await?;
    let id = CallId::parse(&id).ok_or_else(|| CallError::internal("its run has no id"))?;
    let above = Above { run: run.seen.id.clone(), nr: step.nr };
    let terms = Terms { labels: labels.to_vec(), ..run.terms.clone() };
    let wanted = Wanted { plan, inputs, terms, task: None, id: Some(id), above: Some(above) };
    begin::begin(&layer.store, &layer.registry, &run.seen.root, wanted).await?;
    Ok(End::Nested)
}

/// What a run gave that is over: what its output says; or what those of its steps said that nothing waited for.
pub(crate) async fn result(layer: &Haft, run: &RunSeen) -> Result<Value, CallError> {
    let steps = layer.store.steps(&run.id).await.map_err(store_error)?;
    let loaded = Loaded::new(run.clone())?;
    let all: BTreeMap<String, Gave> = steps.iter().map(|step| (step.id.clone(), gave(step))).collect();
    let success = run.state == "done";
    let labels = labels_of(&loaded.terms.labels, &steps);
    if let Some(template) = loaded.plan.output.as_ref().filter(|_| success) {
        let known = Known { inputs: &loaded.inputs, steps: &all };
        let value = known.fill(template).map_err(|error| CallError::failed(error.to_string()))?;
        let text = haft_core::manifest::template::rendered(&value);
        let output = cut(&text).to_owned();
        let data = if value.is_string() { Value::Null } else { value };
        return Ok(labelled(json!({"success": success, "output": output, "data": data}), &labels));
    }
    let last = (0..steps.len()).filter(|at| loaded.graph.feeds(*at).is_empty()).filter_map(|at| steps.get(at));
    let said: Vec<String> = last
        .filter(|step| step.state == "done")
        .map(|step| (step, gave(step).output))
        .filter(|(_, output)| !output.is_empty())
        .map(|(step, output)| format!("## {}\n{output}", step.id))
        .collect();
    let text = said.join("\n\n");
    let output = cut(&text).to_owned();
    let mut gave = json!({"success": success, "output": output});
    if let Some(why) = &run.why {
        gave["error"] = json!({"kind": "failed", "message": why});
    }
    Ok(labelled(gave, &labels))
}
