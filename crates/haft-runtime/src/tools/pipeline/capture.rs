//! pipeline.capture and pipeline.promote: what a session did becomes a template, and the template a pipeline.

use super::keep;
use super::plan::{slug, unique};
use crate::scene::Scene;
use crate::store_error;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::preview::{cut, inert};
use haft_core::secret::MASK;
use haft_core::work::command::{COMMAND, is_shell};
use haft_core::work::plan::default;
use haft_core::work::{Plan, Step};
use haft_core::{CallError, ToolSpec};
use haft_store::Traced;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many calls of a session are looked at.
const CALLS_MAX: u32 = 200;
/// Calls of these families say nothing about the work.
const INTERNAL: [&str; 5] = ["pipeline.", "tool.", "session.", "system.", "task."];
/// Words shorter than this are not what several calls have in common.
const SHARED_MIN: usize = 3;

pub(super) fn capture() -> Arc<dyn Tool> {
    let spec = declare(
        "pipeline.capture",
        "Record this session's successful calls as a reusable template, with its variable parts found in the data. \
         Turn it into a pipeline with pipeline.promote.",
    )
    .hint("learn process record template")
    .input(json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 80, "description": "Its name"},
            "description": {"type": "string", "maxLength": 2000, "description": "Its purpose"}
        },
        "required": ["name"],
        "additionalProperties": false
    }))
    .acts();
    Arc::new(Capture { spec: Arc::new(spec) })
}

pub(super) fn promote() -> Arc<dyn Tool> {
    let spec = declare(
        "pipeline.promote",
        "Turn a captured template into a stored pipeline. Its variable parts become inputs; the values given here are their defaults.",
    )
    .hint("process workflow parameterise")
    .input(json!({
        "type": "object",
        "properties": {
            "process_id": {"type": "string", "minLength": 1, "maxLength": 200,
                "description": "The template's id or name from pipeline.capture"},
            "parameter_values": {"type": "object", "description": "Default values of the inputs, by name"}
        },
        "required": ["process_id"],
        "additionalProperties": false
    }))
    .acts();
    Arc::new(Promote { spec: Arc::new(spec) })
}

struct Capture {
    spec: Arc<ToolSpec>,
}

#[derive(Deserialize)]
struct CaptureArgs {
    name: String,
    description: Option<String>,
}

impl Tool for Capture {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let args: CaptureArgs = scene.parse()?;
            let session = Some(scene.call().session.to_string());
            let mut calls = scene.store().latest_calls(CALLS_MAX, session).await.map_err(store_error)?;
            calls.reverse();
            let (done, unknown): (Vec<Done>, Vec<Done>) = calls.iter().filter_map(done).partition(Done::is_known);
            if done.is_empty() {
                return Err(CallError::not_found("this session has done nothing that could be captured")
                    .hint("calls that succeeded are captured, but for those about pipelines, tools and sessions"));
            }
            let plan = template(&args.name, args.description, &done);
            plan.order().map_err(|faults| crate::work::unfit(&faults))?;
            let kept = keep(scene.store(), scene.workspace(), "captured", &plan).await?;
            let inputs: Vec<String> = plan.inputs.keys().cloned().collect();
            let mut text = format!("Captured {} steps as {} ({})", plan.steps.len(), inert(&args.name), kept.id);
            for step in &plan.steps {
                text.push_str(&format!("\n  {} {}", step.id, step.tool.as_deref().unwrap_or_default()));
            }
            if !inputs.is_empty() {
                text.push_str(&format!("\nWhat varies: {}", inputs.join(", ")));
            }
            if !unknown.is_empty() {
                text.push_str(&format!("\nLeft out: {} commands that the log does not hold", unknown.len()));
            }
            Ok(Reply::text(text).data(json!({"process_id": kept.id, "name": kept.name, "plan": plan})))
        })
    }
}

/// A call that was made and succeeded.
struct Done {
    tool: String,
    args: Map<String, Value>,
    reads: bool,
}

impl Done {
    /// Whether the log holds what was run. A command cannot be an input: whatever is given would be run.
    fn is_known(&self) -> bool {
        let is_whole = |command: &Value| command.as_str().is_some_and(|text| !text.contains(MASK));
        !is_shell(&self.tool, &self.args) || self.args.get(COMMAND).is_some_and(is_whole)
    }
}

fn done(call: &Traced) -> Option<Done> {
    let kind = |word: &str| call.records.iter().map(|record| &record.body).find(|value| value["kind"] == word);
    let (intent, outcome) = (kind("intent")?, kind("outcome")?);
    let tool = intent["tool"].as_str()?.to_owned();
    let internal = INTERNAL.iter().any(|family| tool.starts_with(family));
    // What another call made is part of that one.
    let own = intent["parent"].is_null();
    let good = outcome["success"].as_bool().unwrap_or(false);
    let shipped = crate::tools::all().iter().find(|known| known.spec().name.as_str() == tool);
    let reads = shipped.is_some_and(|known| known.spec().read_only());
    (good && own && !internal).then(|| Done {
        tool,
        args: intent["args"].as_object().cloned().unwrap_or_default(),
        reads,
    })
}

/// The calls as a plan. What is the same in several calls, what looks like a date, and what the log does not hold varies.
fn template(name: &str, description: Option<String>, done: &[Done]) -> Plan {
    let mut inputs = Map::new();
    let shared = shared(done);
    let mut steps: Vec<Step> = Vec::new();
    let (mut effects, mut reads): (Option<String>, Vec<String>) = (None, Vec::new());
    for one in done {
        let id = unique(&steps, &slug(&one.tool));
        let shell = is_shell(&one.tool, &one.args);
        let args = one.args.iter().map(|(param, value)| {
            let stays = shell && param == COMMAND;
            let said = if stays { value.clone() } else { vary(value, (&id, param), &shared, &mut inputs) };
            (param.clone(), said)
        });
        let args: Map<String, Value> = args.collect();
        // What reads waits for the last effect before it, what has an effect for everything before it.
        let mut needs: Vec<String> = effects.iter().cloned().collect();
        if one.reads {
            reads.push(id.clone());
        } else {
            needs.append(&mut reads);
            effects = Some(id.clone());
        }
        steps.push(Step { id, tool: Some(one.tool.clone()), args, needs, ..Step::default() });
    }
    Plan { name: Some(name.to_owned()), description, inputs, steps, ..Plan::default() }
}

/// Texts that more than one call has, each with a name for it.
fn shared(done: &[Done]) -> BTreeMap<String, String> {
    let mut seen: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for one in done {
        for (param, value) in &one.args {
            if let Some(text) = value.as_str().filter(|text| text.chars().count() >= SHARED_MIN) {
                seen.entry(text).or_insert((0, param)).0 += 1;
            }
        }
    }
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (text, (count, param)) in seen {
        if count > 1 {
            let mut name = param.to_owned();
            for number in 2.. {
                if !names.values().any(|known| *known == name) {
                    break;
                }
                name = format!("{param}_{number}");
            }
            names.insert(text.to_owned(), name);
        }
    }
    names
}

/// A value, or what stands for it.
fn vary(
    value: &Value,
    (step, param): (&str, &str),
    shared: &BTreeMap<String, String>,
    inputs: &mut Map<String, Value>,
) -> Value {
    let own = || format!("{}_{param}", step.replace('-', "_"));
    let hidden = value.get("sha256").is_some() && value.get("bytes").is_some();
    let (name, says) = match value.as_str() {
        _ if hidden => (own(), json!({"source": "user_input", "description": "the log does not hold what was given"})),
        Some(text) if shared.contains_key(text) => {
            (shared[text].clone(), json!({"source": "context", "default": text}))
        }
        Some(text) if is_date(text) => (own(), json!({"source": "relative_date", "default": text})),
        _ => return value.clone(),
    };
    inputs.entry(name.clone()).or_insert(says);
    Value::from(format!("{{{{{name}}}}}"))
}

/// `2026-11-15`, and what begins so.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
    bytes.len() >= 10
        && bytes.len() <= 32
        && digits(0..4)
        && bytes[4] == b'-'
        && digits(5..7)
        && bytes[7] == b'-'
        && digits(8..10)
}

struct Promote {
    spec: Arc<ToolSpec>,
}

#[derive(Deserialize)]
struct PromoteArgs {
    process_id: String,
    #[serde(default)]
    parameter_values: Map<String, Value>,
}

impl Tool for Promote {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let args: PromoteArgs = scene.parse()?;
            let root = scene.workspace().stored_root();
            let found = scene.store().pipeline(&root, &args.process_id).await.map_err(store_error)?;
            let captured = found.into_iter().find(|kept| kept.origin == "captured").ok_or_else(|| {
                let shown = cut(&inert(&args.process_id), 80);
                CallError::not_found(format!("there is no captured template `{shown}`"))
                    .hint("pipeline.capture makes one of what this session did")
            })?;
            let mut plan: Plan = serde_json::from_value(captured.plan)
                .map_err(|error| CallError::failed(format!("the template cannot be read: {error}")))?;
            for (name, value) in args.parameter_values {
                let Some(says) = plan.inputs.get_mut(&name) else {
                    let known: Vec<String> = plan.inputs.keys().cloned().collect();
                    return Err(CallError::invalid(format!("`{}` does not vary in it", inert(&name)))
                        .hint(format!("what varies: {}", known.join(", "))));
                };
                match says.as_object_mut() {
                    Some(says) => drop(says.insert("default".to_owned(), value)),
                    None => *says = value,
                }
            }
            let kept = keep(scene.store(), scene.workspace(), "promoted", &plan).await?;
            let open: Vec<&String> =
                plan.inputs.iter().filter(|(_, says)| default(says).is_none()).map(|(name, _)| name).collect();
            let mut text = format!("{} is a pipeline now ({})", inert(&kept.name), kept.id);
            if !open.is_empty() {
                let names: Vec<&str> = open.iter().map(|name| name.as_str()).collect();
                text.push_str(&format!("\nIt has to be given: {}", names.join(", ")));
            }
            Ok(Reply::text(text).data(json!({"pipeline_id": kept.id, "inputs": plan.inputs})))
        })
    }
}
