//! pipeline.run: steps that are given, or a pipeline that is kept.

use super::find;
use crate::back::{Job, Worked};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use crate::work::{Terms, Wanted, drawn};
use haft_core::outcome::Label;
use haft_core::work::plan::INLINE_MAX;
use haft_core::work::{Budget, OnFailure, Plan, Step};
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a call waits for its run. The run itself goes on as long as it needs to.
const PATIENCE: Duration = Duration::from_hours(6);
/// How many warnings of its steps are told.
const WARNINGS_MAX: usize = 8;

pub(super) fn tool() -> Arc<dyn Tool> {
    let spec = declare(
        "pipeline.run",
        "Run several tool calls as one workflow (pipeline). Give `steps`, or a stored pipeline's name or id as \
         `pipeline_id`. A step is {id, tool, args} | {id, pipeline, inputs} | {id, ask} | {id, wait: \"5m\"}, with \
         optional needs, when [{path, op, value}], retries, timeout, on_failure, idempotent and label. \
         `{{step.output}}`, `{{step.data.x}}` and `{{input}}` insert values, in shell commands as one quoted word; a \
         step starts when the steps it names have ended, others run in parallel. Each call needs its own approval. \
         With `retry`, the failed and skipped steps of the run `pipeline_id` run again.",
    )
    .hint("workflow steps parallel batch dag")
    .input(json!({
        "type": "object",
        "properties": {
            "steps": {"type": "array", "minItems": 1, "maxItems": INLINE_MAX, "items": {"type": "object"},
                "description": "The steps of a pipeline that is not stored"},
            "pipeline_id": {"type": "string", "minLength": 1, "maxLength": 200,
                "description": "A stored pipeline or workflow file, by id or name; with retry, a run"},
            "context": {"type": "object", "description": "The pipeline's inputs by name"},
            "on_failure": {"enum": ["stop", "continue", "notify"],
                "description": "What a failed step means for the others, unless it says so itself (default stop)"},
            "retry": {"type": "boolean", "description": "Run the failed and skipped steps of an earlier run again"},
            "modifications": {"type": "array", "maxItems": 50, "items": {"type": "object"},
                "description": "Changes to a stored pipeline for this run: {action: \"remove\", step} or \
                    {action: \"update_task\", step, args | prompt}"},
            "budget": {"type": "object", "description": "Limits: steps, parallel, minutes"},
            "background": {"type": "boolean", "description": "Return at once; a worker runs it (default false)"}
        },
        "additionalProperties": false
    }))
    .acts()
    .by_parts()
    .timeout(PATIENCE);
    Arc::new(Run { spec: Arc::new(spec) })
}

struct Run {
    spec: Arc<ToolSpec>,
}

#[derive(Deserialize)]
struct Args {
    steps: Option<Vec<Value>>,
    pipeline_id: Option<String>,
    #[serde(default)]
    context: Map<String, Value>,
    on_failure: Option<OnFailure>,
    #[serde(default)]
    retry: bool,
    #[serde(default)]
    modifications: Vec<Value>,
    budget: Option<Value>,
    #[serde(default)]
    background: bool,
}

impl Tool for Run {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let args: Args = scene.parse()?;
            let job = job(scene, args).await?;
            let worked = scene.back().work(job).await?;
            Ok(told(&worked))
        })
    }
}

async fn job(scene: &Scene, args: Args) -> Result<Job, CallError> {
    let wait = !args.background;
    let plan = match (args.steps, args.pipeline_id) {
        (None, Some(run)) if args.retry => return Ok(Job::Again { run, wait }),
        (Some(_), _) if args.retry => {
            return Err(CallError::invalid("`retry` is for an earlier run").hint("give its id as pipeline_id"));
        }
        (Some(steps), None) => inline(steps, &args.context)?,
        (None, Some(named)) => {
            let mut plan = find(scene.store(), scene.workspace(), &named).await?;
            for change in &args.modifications {
                modify(&mut plan, change)?;
            }
            plan
        }
        _ => {
            return Err(CallError::invalid("one of `steps` and `pipeline_id` says what to run")
                .hint("give the steps, or the name of a stored pipeline"));
        }
    };
    let mut plan = Plan { on_failure: args.on_failure.or(plan.on_failure), ..plan };
    if let Some(budget) = args.budget {
        let read: Budget =
            serde_json::from_value(budget).map_err(|error| CallError::invalid(format!("budget: {error}")))?;
        plan.budget = Some(read);
    }
    let inputs = if plan.inputs.is_empty() { Map::new() } else { args.context };
    let wanted = Wanted { plan, inputs, terms: Terms::of(scene.call()), ..Wanted::default() };
    Ok(Job::Begin { wanted: Box::new(wanted), wait })
}

/// A plan of the steps that a call says. What it is given are its inputs.
fn inline(steps: Vec<Value>, context: &Map<String, Value>) -> Result<Plan, CallError> {
    let read = |(at, step): (usize, Value)| {
        serde_json::from_value::<Step>(step).map_err(|error| CallError::invalid(format!("steps.{at}: {error}")))
    };
    let steps = steps.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    let inputs = context.keys().map(|name| (name.clone(), json!({}))).collect();
    Ok(Plan { steps, inputs, ..Plan::default() })
}

/// Changes a stored plan for one run.
fn modify(plan: &mut Plan, change: &Value) -> Result<(), CallError> {
    let named = change["step"].as_str().or(change["step_id"].as_str()).unwrap_or_default();
    let at = plan.steps.iter().position(|step| step.id == named).ok_or_else(|| {
        let known: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
        CallError::invalid(format!("there is no step `{}` to change", haft_core::preview::inert(named)))
            .hint(format!("its steps are {}", known.join(", ")))
    })?;
    match change["action"].as_str().or(change["type"].as_str()) {
        // Whoever is asked about would take the question away.
        Some("remove") if plan.steps[at].ask.is_some() => {
            Err(CallError::invalid(format!("`{named}` is a question to a person, and stays")))
        }
        Some("remove") => {
            let gone = plan.steps.remove(at);
            // Whoever waited for it waits for what it waited for.
            for step in &mut plan.steps {
                if let Some(found) = step.needs.iter().position(|need| *need == gone.id) {
                    step.needs.remove(found);
                    step.needs.extend(gone.needs.iter().cloned());
                }
            }
            Ok(())
        }
        Some("update_task") => {
            let step = &mut plan.steps[at];
            match (change["args"].as_object(), change["prompt"].as_str().or(change["task"].as_str())) {
                (Some(args), _) if step.tool.is_some() => {
                    step.args.extend(args.clone());
                    Ok(())
                }
                (_, Some(prompt)) if step.prompt.is_some() => {
                    step.prompt = Some(prompt.to_owned());
                    Ok(())
                }
                _ => Err(CallError::invalid(format!(
                    "`{named}` can be given new `args` if it calls a tool, or a new `prompt`"
                ))),
            }
        }
        _ => Err(CallError::invalid("a modification is {action: remove | update_task, step, …}")),
    }
}

/// What a caller is told.
fn told(worked: &Worked) -> Reply {
    let Worked { run, steps, gave } = worked;
    let steps_told: Vec<Value> = steps
        .iter()
        .map(|step| {
            let mut told =
                json!({"id": step.id, "state": step.state, "call_id": step.call_id, "attempt": step.attempt});
            if let Some(remedy) = drawn::remedy(step) {
                told["remedy"] = remedy.into();
            }
            told
        })
        .collect();
    let mut text = format!("{}\n{}", drawn::line(run, steps), drawn::list(steps));
    let mut data = json!({"run": run.id, "state": run.state, "stands": run.stands, "steps": steps_told});
    if let Some(gave) = gave {
        let output = gave["output"].as_str().unwrap_or_default();
        if !output.is_empty() {
            text.push_str("\n\n");
            text.push_str(output);
        }
        data["output"] = gave["output"].clone();
        if !gave["data"].is_null() {
            data["data"] = gave["data"].clone();
        }
    }
    let labels: Vec<Label> = steps
        .iter()
        .filter_map(|step| step.outcome.as_ref())
        .flat_map(|outcome| serde_json::from_value::<Vec<Label>>(outcome["labels"].clone()).unwrap_or_default())
        .fold(Vec::new(), |mut all, label| {
            if !all.contains(&label) {
                all.push(label);
            }
            all
        });
    let error = match run.state.as_str() {
        "failed" | "cancelled" => {
            let why = run.why.clone().unwrap_or_else(|| "a step failed".to_owned());
            Some(CallError::failed(format!("the pipeline {}: {why}", run.state)).hint(format!(
                "`retry: true` with pipeline_id {0} (`haft pipeline retry {0}`) runs what failed or was skipped again",
                run.id
            )))
        }
        _ => None,
    };
    let warnings = steps.iter().flat_map(|step| {
        let said =
            step.outcome.as_ref().and_then(|outcome| outcome["warnings"].as_array()).cloned().unwrap_or_default();
        said.into_iter().filter_map(|word| Some(format!("{}: {}", step.id, word.as_str()?)))
    });
    let mut reply = Reply::text(text).data(data);
    reply.warnings = warnings.take(WARNINGS_MAX).collect();
    reply.labels = labels;
    reply.error = error;
    reply
}
