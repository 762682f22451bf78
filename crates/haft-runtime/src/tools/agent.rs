//! agent.spawn, agent.control and agent.merge: agents that work for an agent.

use crate::agent::again;
use crate::agent::spawn::{ORDERS_MAX, Order, Report, is_awaited};
use crate::agent::tree::{self, Tree};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::agent::Block;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind, Origin, SessionId, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long children may take that are waited for.
const LONGEST: Duration = Duration::from_hours(6);

/// All of them.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Act { spec: Arc::new(spawn()), work: |scene| Box::pin(run_spawn(scene)) }),
        Arc::new(Act { spec: Arc::new(control()), work: |scene| Box::pin(run_control(scene)) }),
        Arc::new(Act { spec: Arc::new(merge()), work: |scene| Box::pin(run_merge(scene)) }),
    ]
}

type Work = for<'a> fn(&'a Scene) -> BoxFuture<'a, Result<Reply, CallError>>;

struct Act {
    spec: Arc<ToolSpec>,
    work: Work,
}

impl Tool for Act {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        (self.work)(scene)
    }
}

fn spawn() -> ToolSpec {
    declare(
        "agent.spawn",
        "Start a subagent that does a task in its own context and returns a report. Use it for work that you can \
         describe in full and that needs no questions; several run in parallel.",
    )
    .input(json!({"type": "object", "additionalProperties": false, "properties": {
        "task": {"type": "string", "description": "The task, with everything it needs to know"},
        "name": {"type": "string", "description": "Name for it"},
        "role": {"type": "string", "description": "researcher, creator, operator, collector, or one of the project's roles"},
        "context": {"type": "string", "description": "What is known already"},
        "mode": {"type": "string", "enum": ["sync", "background", "worktree"], "default": "sync", "description": "worktree: on a copy of the project, for agent_merge"},
        "branch": {"type": "string", "description": "Branch of the worktree"},
        "model": {"type": "string", "description": "provider/model"},
        "tools": {"type": "array", "items": {"type": "string"}, "description": "Only these tools"},
        "skill": {"type": "string", "description": "Skill to run"},
        "agents": {"type": "array", "maxItems": ORDERS_MAX, "items": {"type": "object"}, "description": "Several: each with members as above; also effort, instructions, max_turns, max_tokens, max_usd, isolated_memory."}}}))
    .hint("sub-agent subagent delegate parallel background worktree team helper")
    .by_parts()
    .timeout(LONGEST)
}

fn control() -> ToolSpec {
    declare(
        "agent.control",
        "Manage your subagents: list them, wait for one, send it a message (also after it has ended), cancel it, or discard its worktree.",
    )
    .input(json!({"type": "object", "additionalProperties": false, "required": ["action"], "properties": {
        "action": {"type": "string", "enum": ["list", "wait", "message", "cancel", "discard"], "description": "What to do."},
        "id": {"type": "string", "description": "The agent's id"},
        "message": {"type": "string", "description": "The message"},
        "timeout_ms": {"type": "integer", "minimum": 0, "maximum": 21_600_000, "default": 600_000, "description": "How long to wait"}}}))
    .hint("sub-agent status follow-up stop background wait result")
    .on_own_tasks()
    .acts()
    .destructive()
    .only_reads_when("action", &["list", "wait", "message", "cancel"])
    .timeout(LONGEST)
}

fn merge() -> ToolSpec {
    declare("agent.merge", "Merge a subagent's worktree changes into the project. Shows the diff first.")
        .input(json!({"type": "object", "additionalProperties": false, "required": ["id"], "properties": {
            "id": {"type": "string", "description": "The agent's id"}}}))
        .hint("worktree apply changes sub-agent accept")
        .changes_files()
        .timeout(Duration::from_mins(5))
}

async fn run_spawn(scene: &Scene) -> Result<Reply, CallError> {
    let mut args = scene.args().clone();
    let several = args.as_object_mut().and_then(|args| args.remove("agents"));
    let bad = |error: serde_json::Error| CallError::invalid(format!("the agents cannot be read: {error}"));
    let mut orders: Vec<Order> = match several {
        Some(list) => serde_json::from_value(list).map_err(bad)?,
        None => Vec::new(),
    };
    let own: Order = serde_json::from_value(args).map_err(bad)?;
    if !own.task.trim().is_empty() {
        orders.insert(0, own);
    }
    if orders.is_empty() {
        return Err(CallError::invalid("nothing is to be done: `task` is missing")
            .hint("say `task`, or `agents` with one in each"));
    }
    if orders.len() > ORDERS_MAX {
        return Err(CallError::invalid(format!("at most {ORDERS_MAX} agents are spawned at once")));
    }
    let reports = scene.back().spawn(orders).await?;
    Ok(reported(&reports))
}

/// What a parent is told: a section for each, in the order in which they were asked for.
fn reported(reports: &[Report]) -> Reply {
    let text = reports.iter().map(section).collect::<Vec<_>>().join("\n\n");
    let labels: BTreeSet<_> = reports.iter().flat_map(|report| report.labels.iter().copied()).collect();
    let mut reply = Reply::text(text).data(json!({ "agents": reports }));
    reply.labels = labels.into_iter().collect();
    let warned = |report: &Report| {
        report.warnings.iter().map(|warning| format!("{}: {warning}", report.name)).collect::<Vec<_>>()
    };
    reply.warnings = reports.iter().flat_map(warned).collect();
    if reports.iter().all(|report| !report.is_done()) {
        let why: Vec<String> = reports.iter().map(|report| format!("{}: {}", report.name, report.why())).collect();
        let hint = reports.iter().find_map(|report| report.error.as_ref()?.hint.clone());
        let cancelled = |report: &Report| matches!(&report.ended, Some(ended) if ended.end == haft_core::agent::turns::End::Cancelled);
        let kind = match reports.first().and_then(|report| report.error.as_ref()) {
            Some(error) => error.kind,
            None if reports.iter().all(cancelled) => ErrorKind::Cancelled,
            None => ErrorKind::Failed,
        };
        let error = CallError::new(kind, why.join("; "));
        reply.error = Some(match hint {
            Some(hint) => error.hint(hint),
            None => error,
        });
    }
    reply
}

fn section(report: &Report) -> String {
    let mut text = format!("## {}\n\n", report.name);
    match (&report.ended, &report.error) {
        (_, Some(error)) => text.push_str(&format!("It could not be done: {}", error.message)),
        (None, None) => text.push_str(&format!(
            "It runs in the background as {}. You are told when it ends; agent_control waits for it, speaks to it or stops it.",
            report.id
        )),
        (Some(ended), None) => {
            if !ended.is_done() {
                text.push_str(&format!("[It ended early: {}.]\n\n", report.why()));
            }
            text.push_str(ended.text.trim());
        }
    }
    if let Some(tree) = &report.worktree {
        text.push_str(&match &tree.files {
            None => format!(
                "\n\n[What it did in {} cannot be brought over as it is. agent_control with the id {} discards it.]",
                tree.path, report.id
            ),
            Some(files) if files.is_empty() => "\n\n[It changed nothing in its worktree.]".to_owned(),
            Some(files) => format!(
                "\n\n[It changed {} on the branch {} in {}. agent_merge with the id {} brings that into the project; agent_control discards it.]\n\n{}",
                files.join(", "), tree.branch, tree.path, report.id, tree.diff
            ),
        });
    }
    text
}

#[derive(Deserialize)]
struct Control {
    action: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    message: Option<String>,
    timeout_ms: u64,
}

async fn run_control(scene: &Scene) -> Result<Reply, CallError> {
    let Control { action, id, message, timeout_ms } = scene.parse()?;
    let (agents, session) = (scene.agents(), &scene.call().session);
    let own = again::children(agents, scene.store(), session).await?;
    if action == "list" {
        return Ok(listed(&own));
    }
    let id = id.ok_or_else(|| CallError::invalid(format!("`id` is missing: whom to {action}?")))?;
    let known = own.iter().any(|child| child["id"] == id.as_str());
    let shown = cut(&inert(&id), 80);
    if action == "discard" {
        owned(scene, &id).await?;
        return discard(scene, id).await;
    }
    if !known {
        return Err(CallError::not_found(format!("there is no agent `{shown}` of this conversation"))
            .hint("agent.control lists them"));
    }
    match action.as_str() {
        "cancel" if agents.cancel(&id) => Ok(Reply::text(format!("{shown} is being stopped."))),
        "cancel" => Ok(Reply::text(format!("{shown} has ended already."))),
        "message" => {
            let text = message.filter(|text| !text.trim().is_empty());
            let text = text.ok_or_else(|| CallError::invalid("`message` is missing"))?;
            // What is said to it may come from wherever its parent has heard something.
            if let Some(child) = agents.session_of(&id) {
                let heard = scene.store().heard(session).await.map_err(crate::store_error)?;
                scene.store().note_heard(&child, heard.into_iter().map(|(source, _)| source).collect());
            }
            if agents.say(&id, vec![Block::Text { text: text.clone() }]) {
                return Ok(Reply::text(format!("{shown} hears it with its next results.")));
            }
            let report = scene.back().follow_up(id, text).await?;
            Ok(reported(&[report]))
        }
        _ => wait(scene, &id, Duration::from_millis(timeout_ms)).await,
    }
}

fn listed(own: &[Value]) -> Reply {
    let line = |child: &Value| {
        let word = |name: &str| child[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} ({}): {}", word("id"), word("name"), word("state"), cut(&inert(&word("task")), 80))
    };
    let text = if own.is_empty() {
        "You have no agents.".to_owned()
    } else {
        own.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    Reply::text(text).data(json!({ "agents": own }))
}

async fn wait(scene: &Scene, id: &str, limit: Duration) -> Result<Reply, CallError> {
    let agents = scene.agents();
    let mut changes = agents.changes();
    let ended = async { while agents.runs(id) && changes.changed().await.is_ok() {} };
    tokio::select! {
        () = ended => {}
        () = tokio::time::sleep(limit) => return Ok(Reply::text(format!("{id} still runs.")).data(json!({ "running": true }))),
    }
    let session = &scene.call().session;
    // It is told here, and need not be told again.
    let _ = scene.store().drop_report(session, id).await;
    let (Some(ended), labels) = agents.end_of(id) else {
        let (words, state, labels) = again::last_words(scene.store(), session, id).await?;
        if words.is_empty() {
            return Err(CallError::failed(format!("{id} failed; the log says how")));
        }
        let text = format!("{}\n\n[{state}]", words.trim());
        return Ok(Reply { labels, ..Reply::text(text).data(json!({ "running": false, "state": state })) });
    };
    let text = format!("{}\n\n[{}]", ended.text.trim(), crate::agent::worded(&ended.end));
    Ok(Reply { labels, ..Reply::text(text).data(json!({ "running": false, "ended": ended })) })
}

/// Whether somebody at the command line makes this call, and no agent.
fn is_person(scene: &Scene) -> bool {
    let call = scene.call();
    call.origin == Origin::Cli && call.caller.agent.is_none()
}

/// Whether a worktree is this conversation's, and nobody works in it any more. A person at the command line may have any.
async fn owned(scene: &Scene, id: &str) -> Result<(), CallError> {
    let shown = cut(&inert(id), 80);
    if scene.agents().runs(id) {
        return Err(CallError::conflict(format!("{shown} still works")).hint("wait for it, or cancel it first"));
    }
    if is_person(scene) {
        return Ok(());
    }
    again::child(scene.store(), &scene.call().session, id).await.map(drop)
}

/// Whether calls of an agent wait for somebody to decide.
async fn awaits(scene: &Scene, id: &str) -> Result<bool, CallError> {
    match SessionId::new(&format!("agent-{id}")) {
        Some(session) => is_awaited(scene.store(), &session).await,
        None => Ok(false),
    }
}

async fn discard(scene: &Scene, id: String) -> Result<Reply, CallError> {
    if awaits(scene, &id).await? {
        return Err(CallError::conflict(format!("calls of {} wait for somebody to decide", cut(&inert(&id), 80)))
            .hint("`haft approvals` lists them; once they are decided, the worktree can go"));
    }
    let (workspace, data_dir) = (scene.workspace().clone(), scene.terms().data_dir.clone());
    // A person may have any, also what is left of one whose project is gone.
    let any = is_person(scene) && tree::ids(&data_dir).contains(&id);
    let work = move || {
        if any {
            tree::remove(&data_dir, &id)?;
        } else {
            Tree::open(&workspace, &data_dir, &id)?.discard()?;
        }
        Ok(Reply::text(format!("The worktree of {id} is gone.")))
    };
    crate::tool::off_thread(scene.halt().clone(), work).await
}

/// What the agent did, as changes of the project: shown, decided, made and undone like those of any other tool.
async fn run_merge(scene: &Scene) -> Result<Reply, CallError> {
    #[derive(Deserialize)]
    struct Args {
        id: String,
    }
    let Args { id } = scene.parse()?;
    owned(scene, &id).await?;
    let (workspace, data_dir) = (scene.workspace().clone(), scene.terms().data_dir.clone());
    let (own, named) = (scene.halt().clone(), id.clone());
    let look = move || Tree::open(&workspace, &data_dir, &named)?.changes(&workspace, &own);
    let merge = crate::tool::off_thread(scene.halt().clone(), look).await?;
    let files: Vec<String> = merge.changes.iter().map(|change| scene.shown(change.path())).collect();
    let mut reply = Reply::text(match files.as_slice() {
        [] => "There is nothing to bring over.".to_owned(),
        files => format!("Brought over: {}.", files.join(", ")),
    });
    reply.data = Some(json!({ "files": files, "left": merge.left }));
    reply.warnings = merge.left.iter().map(|left| format!("not carried over: {left}")).collect();
    // What is in the project need not be kept a second time. What is not carried over is there and nowhere else.
    let awaited = awaits(scene, &id).await?;
    reply.spent = (merge.left.is_empty() && !awaited).then_some(id);
    reply.changes = merge.changes;
    Ok(reply)
}
