//! `haft task`: what is to be done, by somebody or by itself.

mod show;

use crate::app::{App, Failure};
use crate::cli::{TaskAction, TaskAdd, TaskList, TaskMissed, TaskPriority, TaskUpdate};
use crate::input::arguments;
use crate::style;
use haft_core::{CallError, ToolName, suggest::did_you_mean};
use haft_runtime::now_ms;
use haft_runtime::promised::{self, Edit, Query, Wanted, Who};
use haft_store::tasks::{Task, TaskFilter};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

/// Does one thing with tasks.
pub(super) fn run(app: &App, action: Option<TaskAction>) -> Result<u8, Failure> {
    match action.unwrap_or_else(|| TaskAction::List(TaskList { limit: 100, ..TaskList::default() })) {
        TaskAction::Add(args) => add(app, *args),
        TaskAction::List(args) => list(app, args),
        TaskAction::Show { id } => show(app, &id),
        TaskAction::Update(args) => update(app, *args),
        TaskAction::Done { id } => change(app, &id, Edit { status: Some("done".to_owned()), ..Edit::default() }),
        TaskAction::Cancel { id } => change(app, &id, Edit { status: Some("cancelled".to_owned()), ..Edit::default() }),
        TaskAction::Run { id } => run_now(app, &id),
        TaskAction::Rm { id, all } => remove(app, &id, all),
        TaskAction::Logs { id, last } => logs(app, &id, last),
    }
}

/// The project.
fn root(app: &App) -> String {
    app.haft.workspace().root().to_string_lossy().into_owned()
}

/// A person finds every task by its name, wherever it belongs.
fn find(app: &App, id: &str) -> Result<Task, Failure> {
    Ok(app.block_on(promised::find(app.store(), id, &[]))?)
}

fn word(priority: TaskPriority) -> String {
    format!("{priority:?}").to_lowercase()
}

fn policy(missed: TaskMissed) -> String {
    format!("{missed:?}").to_lowercase()
}

fn add(app: &App, args: TaskAdd) -> Result<u8, Failure> {
    let given = if args.args.is_empty() { None } else { Some(arguments(&args.args)?) };
    if given.is_some() && args.tool.is_none() && args.pipeline.is_none() {
        return Err(CallError::invalid("arguments are for a tool or a pipeline")
            .hint("name one with --tool or --pipeline")
            .into());
    }
    if let Some(tool) = &args.tool {
        known(app, tool)?;
    }
    let (tool_args, inputs): (Option<Value>, Option<Value>) =
        if args.pipeline.is_some() { (None, given) } else { (given, None) };
    let wanted = Wanted {
        title: args.title,
        description: args.description,
        priority: args.priority.map(word),
        due: args.due,
        scope: args.user.then(|| "user".to_owned()),
        tags: args.tags,
        parent: args.parent,
        assignee: if args.now { Some("haft".to_owned()) } else { args.assignee },
        schedule: args.schedule,
        zone: args.zone,
        watch_url: args.watch,
        watch_interval_minutes: args.every,
        pipeline: args.pipeline,
        inputs,
        tool: args.tool,
        args: tool_args,
        prompt: args.prompt,
        missed: args.missed.map(policy),
        retries: args.retries,
        autonomy: args.autonomy,
    };
    let who = Who { root: root(app), caller: app.caller.clone(), zone: TimeZone::system(), wary: false };
    let (task, notes) = app.block_on(promised::make(app.store(), wanted, &who, now_ms()))?;
    notes.iter().for_each(|note| style::warn(note));
    tell(app, "added", &task);
    Ok(0)
}

/// A task that could never run is refused while somebody looks.
fn known(app: &App, tool: &str) -> Result<(), Failure> {
    if !app.haft.registry().has(tool) {
        app.load_tools();
    }
    if app.haft.registry().has(tool) {
        return Ok(());
    }
    let names = app.haft.registry().names();
    let hint = did_you_mean(tool, names.iter().map(ToolName::as_str));
    let hint = hint.unwrap_or_else(|| "`haft tools` lists what there is".to_owned());
    Err(CallError::invalid(format!("there is no tool `{}`", style::inert(tool))).hint(hint).into())
}

fn tell(app: &App, done: &str, task: &Task) {
    if app.json {
        return style::json(&promised::data(task));
    }
    style::note(&format!("{done} {}", show::line(task, now_ms())));
}

fn list(app: &App, args: TaskList) -> Result<u8, Failure> {
    let query = Query {
        scope: None,
        status: args.status,
        due: args.due,
        tag: args.tag,
        text: args.text,
        parent: args.parent,
        priority: args.priority.map(word),
        limit: Some(args.limit),
    };
    let (here, now) = (root(app), now_ms());
    let place = (!args.everywhere).then_some(here.as_str());
    let tasks = app.block_on(promised::list(app.store(), query, place, &TimeZone::system(), now))?;
    if app.json {
        style::json(&tasks.iter().map(promised::data).collect::<Vec<_>>());
        return Ok(0);
    }
    if tasks.is_empty() {
        style::note("no tasks");
    }
    style::out(&show::table(&tasks, now));
    Ok(0)
}

fn show(app: &App, id: &str) -> Result<u8, Failure> {
    let task = find(app, id)?;
    let below = TaskFilter { parent: Some(task.id.clone()), closed: true, limit: 1_000, ..TaskFilter::default() };
    let parts = app.block_on(app.store().tasks(below)).map_err(Failure::store)?;
    if app.json {
        let mut value = promised::data(&task);
        value["parts"] = parts.iter().map(promised::data).collect();
        style::json(&value);
        return Ok(0);
    }
    style::out(&show::whole(&task, &parts, now_ms()));
    Ok(0)
}

fn update(app: &App, args: TaskUpdate) -> Result<u8, Failure> {
    let edit = Edit {
        status: args.status,
        priority: args.priority.map(word),
        due: args.due,
        title: args.title,
        description: args.description,
        tags: (!args.tags.is_empty()).then_some(args.tags),
        schedule: args.schedule,
        zone: args.zone,
        missed: args.missed.map(policy),
        assignee: args.assignee,
        run_now: false,
    };
    change(app, &args.id, edit)
}

fn change(app: &App, id: &str, edit: Edit) -> Result<u8, Failure> {
    let (task, parts) = app.block_on(promised::edit(app.store(), id, edit, (&[], &TimeZone::system()), now_ms()))?;
    tell(app, "now", &task);
    if parts > 0 && !app.json {
        style::note(&format!("and {parts} below it"));
    }
    Ok(0)
}

fn run_now(app: &App, id: &str) -> Result<u8, Failure> {
    change(app, id, Edit { run_now: true, ..Edit::default() })?;
    if !app.json {
        style::note("it starts as soon as `haft serve` or `haft worker` is running for its project");
    }
    Ok(0)
}

fn remove(app: &App, id: &str, all: bool) -> Result<u8, Failure> {
    let task = find(app, id)?;
    let below = TaskFilter { parent: Some(task.id.clone()), closed: true, limit: 1, ..TaskFilter::default() };
    let parts = app.block_on(app.store().tasks(below)).map_err(Failure::store)?;
    if !parts.is_empty() && !all {
        return Err(CallError::conflict(format!(
            "there are tasks below {}, and nothing was removed",
            promised::short(&task.id)
        ))
        .hint("--all removes them, too")
        .into());
    }
    let removed = app.block_on(app.store().remove_task(&task.id)).map_err(Failure::store)?;
    if app.json {
        style::json(&json!({"id": task.id, "removed": removed}));
    } else {
        style::note(&format!(
            "removed {}",
            if removed == 1 { "1 task".to_owned() } else { format!("{removed} tasks") }
        ));
    }
    Ok(0)
}

fn logs(app: &App, id: &str, last: u32) -> Result<u8, Failure> {
    let task = find(app, id)?;
    let mut runs = app.block_on(app.store().task_runs(&task.id, last)).map_err(Failure::store)?;
    runs.reverse();
    if app.json {
        style::json(&runs);
        return Ok(0);
    }
    if runs.is_empty() {
        style::note("it has not been run");
    }
    runs.iter().for_each(|run| style::out(&show::run(run)));
    Ok(0)
}
