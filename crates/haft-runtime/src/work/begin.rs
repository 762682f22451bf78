//! Beginning a run: its plan is checked whole, and stored with what it was given.

use super::terms::Terms;
use crate::registry::Registry;
use crate::{new_call_id, store_error};
use haft_core::work::{Does, Fault, Plan};
use haft_core::{CallError, CallId};
use haft_store::Store;
use haft_store::work::{Above, NewRun, NewStep, RUN_PREFIX, Room};
use serde_json::{Map, Value, json};

/// How many faults of a plan are told.
const FAULTS_SHOWN: usize = 12;

/// A run that is wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// What it does.
    pub plan: Plan,
    /// What it is given.
    pub inputs: Map<String, Value>,
    /// On whose behalf.
    pub terms: Terms,
    /// The task that it is for.
    pub task: Option<String>,
    /// Its id, if somebody has chosen one: a run that is begun twice under one id is begun once.
    pub id: Option<CallId>,
    /// The run that it is a step of.
    pub above: Option<Above>,
}

/// A run that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Its id.
    pub id: String,
    /// How many steps it has.
    pub steps: usize,
}

/// Why a plan cannot be begun.
pub(crate) fn unfit(faults: &[Fault]) -> CallError {
    let shown: Vec<String> = faults.iter().take(FAULTS_SHOWN).map(ToString::to_string).collect();
    let more = faults.len().saturating_sub(FAULTS_SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let listed: Vec<Value> = faults.iter().map(|fault| json!({"at": fault.at, "what": fault.what})).collect();
    let mut error = CallError::invalid(format!("the pipeline cannot be run: {}{more}", shown.join("; ")))
        .hint("steps are {id, tool, args, needs?, when?, …}; `{{step.output}}` stands for what a step gave");
    error.details = Some(json!({ "faults": listed }));
    error
}

/// Makes the store's own form of a run. Tools that are not there are faults, too.
pub(crate) fn made(registry: &Registry, root: &str, wanted: Wanted, now_ms: i64) -> Result<NewRun, CallError> {
    let Wanted { plan, inputs, terms, task, id, above } = wanted;
    let said = format!("{} {}", json!(plan), Value::Object(inputs.clone()));
    if haft_core::secret::tells_secret(&said) || !haft_core::record::secrets_in(&json!(plan)).is_empty() {
        return Err(CallError::invalid("the pipeline has a secret in it, and would be stored with it")
            .hint("keep it with `haft secret set NAME`, and write secret:NAME where a tool takes that"));
    }
    let graph = plan.order().map_err(|faults| unfit(&faults))?;
    let inputs = plan.given(&inputs).map_err(|faults| unfit(&faults))?;
    let steps = plan.steps.iter().map(|step| {
        let (repeatable, wait_ms) = match step.does() {
            Some(Does::Tool(tool, _)) => (registry.get(tool).is_some_and(|entry| entry.spec().read_only()), 0),
            Some(Does::Wait(ms)) => (true, ms),
            Some(Does::Pipeline(..) | Does::Ask(_)) => (true, 0),
            Some(Does::Prompt(_)) | None => (false, 0),
        };
        NewStep { label: step.label.clone(), repeatable: repeatable || step.idempotent, wait_ms }
    });
    let steps = steps.collect();
    let budget = plan.budget.unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "minutes are checked to be few, and a float saturates")]
    let until_ms = budget.minutes.map(|minutes| now_ms.saturating_add((minutes * 60_000.0) as i64));
    let id = match id {
        Some(id) => id,
        None => new_run_id()?,
    };
    Ok(NewRun {
        id,
        root: root.to_owned(),
        name: plan.name.clone().unwrap_or_else(|| "pipeline".to_owned()),
        plan: serde_json::to_value(&plan).unwrap_or_default(),
        inputs: Value::Object(inputs),
        terms: serde_json::to_value(&terms).unwrap_or_default(),
        task,
        above,
        room: Room { steps: budget.steps, width: budget.parallel, until_ms },
        graph,
        steps,
    })
}

/// Begins a run. It is durable when this returns.
pub(crate) async fn begin(store: &Store, registry: &Registry, root: &str, wanted: Wanted) -> Result<Begun, CallError> {
    let new = made(registry, root, wanted, crate::now_ms())?;
    let begun = Begun { id: new.id.as_str().to_owned(), steps: new.steps.len() };
    store.start_run(new).await.map_err(store_error)?;
    Ok(begun)
}

fn new_run_id() -> Result<CallId, CallError> {
    CallId::parse(&format!("{RUN_PREFIX}{}", new_call_id())).ok_or_else(|| CallError::internal("no id for the run"))
}
