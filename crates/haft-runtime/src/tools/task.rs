//! task.create, task.list and task.update: what is to be done, by somebody or by itself.

use crate::now_ms;
use crate::promised::{self, Edit, Query, Wanted, Who};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::outcome::Label;
use haft_core::suggest::did_you_mean;
use haft_core::{CallError, ToolSpec};
use haft_store::tasks::Task;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a task's status may be, for whoever reads the schema.
const STATUS: &str = "pending, in_progress, waiting, done, failed or cancelled";
const DUE: &str = "today, tomorrow, friday, in 3 days, 2030-01-31 or 2030-01-31T09:00";
const SCHEDULE: &str = "A cron expression of five fields (0 9 * * 1-5), an interval (30s, 5m, every 2 hours), days with a time (weekdays at 9:00, every monday at 8:30), or once (in 2 hours, at 2030-01-31T09:00)";

type Work = for<'a> fn(&'a Scene) -> BoxFuture<'a, Result<Reply, CallError>>;

/// The tools about tasks.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Tasks { spec: Arc::new(create()), work: |scene| Box::pin(run_create(scene)) }),
        Arc::new(Tasks { spec: Arc::new(list()), work: |scene| Box::pin(run_list(scene)) }),
        Arc::new(Tasks { spec: Arc::new(update()), work: |scene| Box::pin(run_update(scene)) }),
    ]
}

struct Tasks {
    spec: Arc<ToolSpec>,
    work: Work,
}

impl Tool for Tasks {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        (self.work)(scene)
    }
}

fn words(long: u32, about: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": long, "description": about})
}

/// A text that may be empty, to take something away.
fn erasable(long: u32, about: &str) -> Value {
    json!({"type": "string", "maxLength": long, "description": about})
}

fn one_of(values: &[&str], about: &str) -> Value {
    json!({"type": "string", "enum": values, "description": about})
}

fn tags() -> Value {
    json!({
        "type": "array", "maxItems": 20, "items": {"type": "string", "minLength": 1, "maxLength": 40},
        "description": "Tags to find it by"
    })
}

fn create() -> ToolSpec {
    let properties = json!({
        "title": words(200, "The task in a few words"),
        "description": words(16_000, "Details"),
        "priority": one_of(&["low", "medium", "high", "urgent"], "Default medium"),
        "due": words(80, &format!("Due date: {DUE}")),
        "scope": words(20, "project (default), or user: in all of the user's projects"),
        "tags": tags(),
        "parent": words(40, "Parent task; the start of its id is enough"),
        "assignee": words(64, "Who does it; haft: run it now"),
        "schedule": words(200, &format!("When it runs. {SCHEDULE}")),
        "zone": words(64, "Time zone of the schedule, e.g. Europe/Vienna (default UTC)"),
        "missed": one_of(
            &["skip", "once", "all"],
            "What to do about missed runs: skip them, run once (default), or run all"
        ),
        "watch_url": words(8_000, "Web page to watch for changes"),
        "watch_interval_minutes": {
            "type": "number", "minimum": 0, "maximum": 44_640,
            "description": "Minutes between looks: at least 5, default 60"
        },
        "pipeline": words(200, "Stored pipeline to run, by id or name"),
        "inputs": {"type": "object", "description": "The pipeline's inputs"},
        "tool": words(200, "Tool to call"),
        "args": {"type": "object", "description": "Its arguments"},
        "prompt": words(16_000, "Prompt for an agent"),
        "retries": {
            "type": "integer", "minimum": 0, "maximum": 10,
            "description": "How often to retry a single run (default 3)"
        },
        "autonomy": one_of(
            &["conservative", "standard", "autonomous"],
            "conservative: ask a person before every write or command; autonomous: refuse what would need a person"
        )
    });
    declare(
        "task.create",
        "Create a task: a to-do note, or a job that runs at a time, repeats on a cron schedule, or starts when a web \
         page changes. It can run a pipeline, call a tool or prompt an agent. Without schedule, watch_url or \
         pipeline it is a note. Each call that a task makes needs its own approval. Returns the task's id.",
    )
    .hint("todo reminder schedule cron watch plan later")
    .input(json!({
        "type": "object", "properties": properties, "required": ["title"], "additionalProperties": false
    }))
    .body("args")
    .body("inputs")
    .acts()
    .on_own_tasks()
    .by_parts()
}

fn list() -> ToolSpec {
    declare("task.list", "List tasks and reminders by priority, then due date. Closed tasks only if asked for.")
        .hint("todo agenda overdue")
        .input(json!({
            "type": "object",
            "properties": {
                "scope": words(20, "project or user (default both)"),
                "status": words(40, &format!("{STATUS}; all includes closed ones")),
                "due": one_of(&["today", "week", "overdue"], "Only tasks due then"),
                "tag": words(40, "Only tasks with this tag"),
                "text": words(200, "Only tasks with these words in title or description"),
                "parent": words(40, "Only subtasks of this task"),
                "priority": one_of(&["low", "medium", "high", "urgent"], "Only tasks of this priority"),
                "limit": {
                    "type": "integer", "minimum": 1, "maximum": 200, "default": 20,
                    "description": "Maximum number"
                }
            },
            "additionalProperties": false
        }))
}

fn update() -> ToolSpec {
    declare(
        "task.update",
        "Change, complete, reschedule or cancel a task. Completing or cancelling it does the same to its subtasks; \
         waiting postpones it, pending reopens it.",
    )
    .hint("todo complete done cancel reschedule")
    .input(json!({
        "type": "object",
        "properties": {
            "id": words(40, "The task's id; its start is enough"),
            "status": words(40, STATUS),
            "priority": one_of(&["low", "medium", "high", "urgent"], "New priority"),
            "due": erasable(80, &format!("Due date: {DUE}; none removes it")),
            "title": words(200, "New title"),
            "description": erasable(16_000, "New details"),
            "tags": tags(),
            "schedule": erasable(200, &format!("When it runs; none removes it. {SCHEDULE}")),
            "zone": erasable(64, "Time zone of the schedule, e.g. Europe/Vienna"),
            "missed": one_of(&["skip", "once", "all"], "What to do about missed runs"),
            "assignee": erasable(64, "Who does it; none removes it")
        },
        "required": ["id"],
        "additionalProperties": false
    }))
    .acts()
    .on_own_tasks()
    .by_parts()
}

/// The project in which a call is made.
fn root(scene: &Scene) -> String {
    scene.workspace().stored_root()
}

async fn run_create(scene: &Scene) -> Result<Reply, CallError> {
    let wanted: Wanted = scene.parse()?;
    if let Some(tool) = &wanted.tool {
        known(scene, tool)?;
    }
    let who = Who {
        root: root(scene),
        caller: scene.call().caller.clone(),
        zone: TimeZone::system(),
        person: false,
        labels: heard(scene).await?,
    };
    let (task, notes) = promised::make(scene.store(), wanted, &who, now_ms()).await?;
    let mut reply = reply("Created", &task, &who.zone);
    reply.warnings = notes;
    Ok(reply)
}

/// Where what this conversation has heard came from, each once.
async fn heard(scene: &Scene) -> Result<Vec<Label>, CallError> {
    let heard = scene.store().heard(&scene.call().session).await.map_err(crate::store_error)?;
    let labels: BTreeSet<Label> = heard.into_iter().map(|(source, _)| source.label).collect();
    Ok(labels.into_iter().collect())
}

/// A task that could never run is refused while somebody listens.
fn known(scene: &Scene, tool: &str) -> Result<(), CallError> {
    let visible = scene.catalogue().visible(&scene.call().caller);
    if visible.iter().any(|entry| entry.spec().name.as_str() == tool) {
        return Ok(());
    }
    let hint = did_you_mean(tool, visible.iter().map(|entry| entry.spec().name.as_str()));
    let error = CallError::invalid(format!("there is no tool `{}`", haft_core::preview::inert(tool)));
    Err(error.hint(hint.unwrap_or_else(|| "tool.list names them all".to_owned())))
}

async fn run_list(scene: &Scene) -> Result<Reply, CallError> {
    let (query, zone, now): (Query, _, _) = (scene.parse()?, TimeZone::system(), now_ms());
    let tasks = promised::list(scene.store(), query, Some(&root(scene)), &zone, now).await?;
    let text = if tasks.is_empty() { "No tasks".to_owned() } else { promised::table(&tasks, now, &zone) };
    let data: Vec<Value> = tasks.iter().map(promised::data).collect();
    Ok(Reply { labels: labels(&tasks), ..Reply::text(text).data(json!({ "tasks": data })) })
}

#[derive(Deserialize)]
struct UpdateArgs {
    id: String,
    #[serde(flatten)]
    edit: Edit,
}

async fn run_update(scene: &Scene) -> Result<Reply, CallError> {
    let UpdateArgs { id, edit } = scene.parse()?;
    let (places, zone) = ([root(scene), String::new()], TimeZone::system());
    let edit = Edit { labels: heard(scene).await?, ..edit };
    let (task, parts) = promised::edit(scene.store(), &id, edit, (&places, &zone), now_ms()).await?;
    let mut reply = reply("Updated", &task, &zone);
    if parts > 0 {
        reply.text.push_str(&format!("\nand {parts} below it"));
    }
    Ok(reply)
}

fn reply(done: &str, task: &Task, zone: &TimeZone) -> Reply {
    let line = promised::table(std::slice::from_ref(task), now_ms(), zone);
    let labels = labels(std::slice::from_ref(task));
    Reply { labels, ..Reply::text(format!("{done} {line}")).data(json!({ "task": promised::data(task) })) }
}

/// What came of a task may be words of a page, and so may be its own.
fn labels(tasks: &[Task]) -> Vec<Label> {
    let results = tasks.iter().filter(|task| task.standing.result.is_some()).map(|_| Label::Untrusted);
    let words = tasks.iter().flat_map(|task| task.promise.owner.labels.iter().copied());
    results.chain(words).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;
    use haft_core::ErrorKind;

    fn tool(name: &str) -> Arc<dyn Tool> {
        all().into_iter().find(|tool| tool.spec().name.as_str() == name).unwrap()
    }

    fn created(stage: &Stage, args: Value) -> String {
        let reply = stage.act(&tool("task.create"), args).unwrap();
        reply.data.unwrap()["task"]["id"].as_str().unwrap().to_owned()
    }

    fn listed(stage: &Stage, args: Value) -> Vec<String> {
        let reply = stage.act(&tool("task.list"), args).unwrap();
        let data = reply.data.unwrap();
        data["tasks"].as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_task_is_listed_until_it_is_done_with_its_parts() {
        let stage = Stage::new();
        let whole = created(&stage, json!({"title": "Release", "priority": "high", "due": "tomorrow", "tags": ["v1"]}));
        created(&stage, json!({"title": "Write the notes", "parent": whole[..6]}));
        assert_eq!(listed(&stage, json!({})), ["Release", "Write the notes"]);
        assert_eq!(listed(&stage, json!({"tag": "v1", "due": "week"})), ["Release"]);
        let done = stage.act(&tool("task.update"), json!({"id": whole[..6], "status": "completed"})).unwrap();
        assert!(done.text.ends_with("and 1 below it"), "{}", done.text);
        assert_eq!(stage.act(&tool("task.list"), json!({})).unwrap().text, "No tasks");
        assert_eq!(listed(&stage, json!({"status": "done"})).len(), 2);
    }

    #[test]
    fn what_is_said_of_a_task_fits_a_line() {
        let stage = Stage::new();
        let args = json!({"title": "Look\u{202e} up", "schedule": "0 9 * * 1-5", "prompt": "go"});
        let text = stage.act(&tool("task.create"), args).unwrap().text;
        let (head, tail) = text.split_once("  ").unwrap();
        assert!(head.starts_with("Created ") && head.len() == "Created ".len() + 8, "{text}");
        assert!(tail.starts_with("pending") && tail.ends_with("Look\\u{202e} up") && tail.contains("next "), "{text}");
    }

    #[test]
    fn what_a_conversation_heard_stays_with_its_tasks() {
        let stage = Stage::new();
        let heard = vec![haft_core::outcome::Source { label: Label::Untrusted, tool: "web.fetch".to_owned() }];
        let scene = stage.scene(&tool("task.list"), json!({}), &crate::Halt::new()).unwrap();
        scene.store().note_heard(&scene.call().session, heard);
        let made = stage.act(&tool("task.create"), json!({"title": "a"})).unwrap();
        assert_eq!(made.data.unwrap()["task"]["owner"]["labels"], json!(["untrusted"]));
        // Whoever reads its words hears them, too.
        assert_eq!(stage.act(&tool("task.list"), json!({})).unwrap().labels, [Label::Untrusted]);
    }

    #[test]
    fn what_could_never_run_is_refused() {
        let stage = Stage::new();
        let refused = |args: Value| stage.act(&tool("task.create"), args).unwrap_err();
        let error = refused(json!({"title": "a", "schedule": "0 0 31 2 *"}));
        assert_eq!(error.kind, ErrorKind::InvalidInput);
        assert!(refused(json!({"title": "a", "tool": "no.such"})).message.contains("there is no tool `no.such`"));
        let error = stage.act(&tool("task.update"), json!({"id": "abc", "status": "done"})).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
    }
}
