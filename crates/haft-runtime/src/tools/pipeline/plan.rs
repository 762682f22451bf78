//! pipeline.plan: a plan that a person reads and approves, and that can be run then.

use super::keep;
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::preview::{cut, inert};
use haft_core::work::{Plan, Step};
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a phase for an agent takes, very roughly: so many words read and written for each of its steps.
const TOKENS_A_STEP: u64 = 6_000;
const PHASES_MAX: usize = 20;

pub(super) fn tool() -> Arc<dyn Tool> {
    let phase = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 80},
            "steps": {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 1000}},
            "calls": {"type": "array", "maxItems": 20, "items": {"type": "object"}},
            "verification": {"type": "string", "maxLength": 1000},
            "depends_on": {"type": "array", "maxItems": PHASES_MAX, "items": {"type": "string"}},
            "assignee": {"enum": ["agent", "user"]}
        },
        "required": ["name", "steps"],
        "additionalProperties": false
    });
    let spec = declare(
        "pipeline.plan",
        "Show the user a plan and wait for approval. The agent's phases become a stored pipeline, whose id is \
         returned for pipeline.run; the user's phases stay with the user. `calls` in a phase are tool calls {tool, \
         args} that run unchanged; an agent does a phase without them.",
    )
    .hint("plan phases approve propose")
    .input(json!({
        "type": "object",
        "properties": {
            "summary": {"type": "string", "minLength": 1, "maxLength": 2000,
                "description": "What the plan does, in plain words"},
            "name": {"type": "string", "minLength": 1, "maxLength": 80, "description": "Name of the pipeline"},
            "context": {"type": "object", "description": "Findings so far: {summary, findings: []}"},
            "phases": {"type": "array", "maxItems": PHASES_MAX, "items": phase,
                "description": "The phases of the work, each with its steps in plain words"},
            "steps": {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 1000},
                "description": "A plain list instead of phases: shown only, not runnable"}
        },
        "required": ["summary"],
        "additionalProperties": false
    }))
    .acts()
    .asks();
    Arc::new(Planned { spec: Arc::new(spec) })
}

struct Planned {
    spec: Arc<ToolSpec>,
}

#[derive(Deserialize)]
struct Args {
    summary: String,
    name: Option<String>,
    #[serde(default)]
    context: Value,
    #[serde(default)]
    phases: Vec<Phase>,
    #[serde(default)]
    steps: Vec<String>,
}

#[derive(Deserialize)]
struct Phase {
    name: String,
    steps: Vec<String>,
    #[serde(default)]
    calls: Vec<Called>,
    verification: Option<String>,
    #[serde(default)]
    depends_on: Vec<String>,
    assignee: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
}

impl Phase {
    fn is_users(&self) -> bool {
        self.assignee.as_deref() == Some("user")
    }
}

impl Tool for Planned {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let args: Args = scene.parse()?;
            let shown = readable(&args);
            if args.phases.iter().all(Phase::is_users) {
                let text = format!("{shown}\n\nApproved. There is nothing in it that runs by itself.");
                return Ok(Reply::text(text).data(json!({"pipeline_id": null})));
            }
            let plan = runnable(&args)?;
            plan.order().map_err(|faults| crate::work::unfit(&faults))?;
            let kept = keep(scene.store(), scene.workspace(), "planned", &plan).await?;
            let text =
                format!("{shown}\n\nApproved as pipeline {}. pipeline.run with that pipeline_id runs it.", kept.id);
            let (agents, users): (Vec<&Phase>, Vec<&Phase>) = args.phases.iter().partition(|phase| !phase.is_users());
            let names = |phases: &[&Phase]| phases.iter().map(|phase| phase.name.clone()).collect::<Vec<_>>();
            Ok(Reply::text(text).data(json!({
                "pipeline_id": kept.id, "name": kept.name, "agent_phases": names(&agents), "user_phases": names(&users),
                "estimate": estimate(&args),
            })))
        })
    }
}

/// The plan as a person reads it: numbered, without names of models or what depends on what.
fn readable(args: &Args) -> String {
    let mut lines = vec![inert(&args.summary)];
    if let Some(found) = args.context["summary"].as_str() {
        lines.push(format!("\nWhat was found: {}", inert(found)));
    }
    for finding in args.context["findings"].as_array().into_iter().flatten().filter_map(Value::as_str).take(50) {
        lines.push(format!("- {}", inert(finding)));
    }
    lines.push(String::new());
    for (at, phase) in args.phases.iter().enumerate() {
        let yours = if phase.is_users() { "  [your input needed]" } else { "" };
        lines.push(format!("{}. {}{yours}", at + 1, inert(&phase.name)));
        lines.extend(phase.steps.iter().map(|step| format!("   - {}", inert(step))));
        lines.extend(phase.calls.iter().map(|call| format!("   - calls {}", inert(&call.tool))));
        lines.extend(phase.verification.iter().map(|how| format!("   Checked by: {}", inert(how))));
    }
    lines.extend(args.steps.iter().enumerate().map(|(at, step)| format!("{}. {}", at + 1, inert(step))));
    let estimate = estimate(args);
    let (calls, tokens) = (&estimate["calls"], &estimate["tokens"]);
    lines.push(format!("\nEstimate: {calls} tool calls as they are, about {tokens} tokens for what an agent does."));
    lines.join("\n")
}

/// What it will take, roughly: calls that are known, and words of a model for what is not.
fn estimate(args: &Args) -> Value {
    let mine = || args.phases.iter().filter(|phase| !phase.is_users());
    let calls: usize = mine().map(|phase| phase.calls.len()).sum();
    let prompted = mine().filter(|phase| phase.calls.is_empty()).map(|phase| phase.steps.len().max(1)).sum::<usize>();
    json!({"calls": calls, "tokens": u64::try_from(prompted).unwrap_or(u64::MAX).saturating_mul(TOKENS_A_STEP)})
}

/// The agent's phases as steps.
fn runnable(args: &Args) -> Result<Plan, CallError> {
    let mut ends: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut steps: Vec<Step> = Vec::new();
    let known = |name: &str| args.phases.iter().any(|phase| phase.name == name);
    for phase in &args.phases {
        if let Some(missing) = phase.depends_on.iter().find(|name| !known(name)) {
            let message =
                format!("the phase `{}` depends on `{}`, and there is none", inert(&phase.name), inert(missing));
            return Err(CallError::invalid(message));
        }
        // What a person does is waited for by nobody: they say when it is time to run the rest.
        let needs: Vec<String> =
            phase.depends_on.iter().flat_map(|name| ends.get(name.as_str()).cloned().unwrap_or_default()).collect();
        if phase.is_users() {
            ends.insert(&phase.name, needs);
            continue;
        }
        let id = unique(&steps, &slug(&phase.name));
        if phase.calls.is_empty() {
            let listed: Vec<String> = phase.steps.iter().map(|step| format!("- {step}")).collect();
            let check = phase.verification.as_ref().map(|how| format!("\nCheck: {how}")).unwrap_or_default();
            let prompt = Some(format!("{}\n{}{check}", phase.name, listed.join("\n")));
            steps.push(Step { id: id.clone(), prompt, needs, ..Step::default() });
            ends.insert(&phase.name, vec![id]);
            continue;
        }
        let mut last = needs;
        for (at, call) in phase.calls.iter().enumerate() {
            let id = if phase.calls.len() == 1 { id.clone() } else { unique(&steps, &format!("{id}-{}", at + 1)) };
            let (tool, args) = (Some(call.tool.clone()), call.args.clone());
            steps.push(Step { id: id.clone(), tool, args, needs: last, ..Step::default() });
            last = vec![id];
        }
        ends.insert(&phase.name, last);
    }
    let name = args.name.clone().unwrap_or_else(|| cut(&args.summary, 60));
    Ok(Plan { name: Some(name), description: Some(args.summary.clone()), steps, ..Plan::default() })
}

/// A name of a step from a name of a phase.
pub(super) fn slug(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let joined: String = words.join("-").chars().take(48).collect();
    if joined.is_empty() { "step".to_owned() } else { joined }
}

/// The same, unlike those there are.
pub(super) fn unique(steps: &[Step], id: &str) -> String {
    let taken = |id: &str| steps.iter().any(|step| step.id == id);
    let numbered = (2..).map(|number| format!("{id}-{number}"));
    std::iter::once(id.to_owned()).chain(numbered).find(|id| !taken(id)).unwrap_or_default()
}
