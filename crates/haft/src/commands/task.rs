//! `haft task`: what is to be done, by somebody or by itself.

mod show;

use crate::app::{App, Failure};
use crate::cli::{Asking, TaskAction, TaskAdd, TaskList, TaskMissed, TaskPriority, TaskUpdate};
use crate::commands::call;
use crate::input::arguments;
use crate::live::Aside;
use crate::style;
use haft_core::suggest::did_you_mean;
use haft_core::{CallError, ErrorKind, ToolName};
use haft_runtime::promised::{self, Edit, Query, Wanted, Who};
use haft_runtime::work::Until;
use haft_runtime::{Halt, now_ms};
use haft_store::tasks::{Task, TaskFilter, TaskStatus};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::sync::Arc;

/// How many steps are done at once.
const SLOTS: u32 = 16;

/// Does one thing with tasks.
pub(super) fn run(app: &App, action: Option<TaskAction>) -> Result<u8, Failure> {
    match action.unwrap_or_else(|| TaskAction::List(TaskList { limit: 100, ..TaskList::default() })) {
        TaskAction::Add(args) => add(app, *args),
        TaskAction::List(args) => list(app, args),
        TaskAction::Show { id } => show(app, &id),
        TaskAction::Update(args) => update(app, *args),
        TaskAction::Done { id } => change(app, &id, Edit { status: Some("done".to_owned()), ..Edit::default() }),
        TaskAction::Cancel { id } => change(app, &id, Edit { status: Some("cancelled".to_owned()), ..Edit::default() }),
        TaskAction::Run { id, later: true, .. } => change(app, &id, Edit { run_now: true, ..Edit::default() }),
        TaskAction::Run { id, asking, .. } => run_now(app, &id, &asking),
        TaskAction::Rm { id, all } => remove(app, &id, all),
        TaskAction::Logs { id, last } => logs(app, &id, last),
    }
}

/// The project.
fn root(app: &App) -> String {
    app.haft.workspace().stored_root()
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
    let (caller, person) = (app.caller.clone(), app.caller.agent.is_none());
    let who = Who { root: root(app), caller, zone: TimeZone::system(), person, labels: Vec::new() };
    let (task, notes) = app.block_on(promised::make(app.store(), wanted, &who, now_ms()))?;
    for note in &notes {
        style::warn(note);
    }
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
        labels: Vec::new(),
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

/// Runs a task here and now. What needs a person is asked at the terminal, or waits in the inbox.
fn run_now(app: &App, id: &str, asking: &Asking) -> Result<u8, Failure> {
    let task = find(app, id)?;
    let (root, owned) = (root(app), &task.promise.owner.root);
    if *owned != root {
        let why = format!("task {} belongs to another project, {}", promised::short(&task.id), style::inert(owned));
        return Err(CallError::conflict(why).hint("run it there, or say --later").into());
    }
    app.load_tools();
    let (halt, now) = (Halt::new(), now_ms());
    let aside = Aside::new(&Arc::default(), call::approver(app, asking));
    let work = async {
        let scheduler = app.haft.scheduler(&root);
        let edit = Edit { run_now: true, ..Edit::default() };
        promised::edit(app.store(), &task.id, edit, (&[], &TimeZone::system()), now).await?;
        if let Some(run) = scheduler.tick_one(&task.id, now).await? {
            let worker = app.haft.worker(SLOTS);
            Box::pin(app.haft.work(&worker, &Until::Over(run), &aside, &halt)).await?;
            scheduler.hear(now_ms()).await?;
        }
        app.haft.flush().await
    };
    app.block_on(async { Box::pin(call::watched(app, work, &halt)).await })?;
    let task = find(app, &task.id)?;
    let failed = task.standing.at_ms.is_none() && task.standing.ok == Some(false);
    if app.json {
        style::json(&promised::data(&task));
    } else {
        tell(app, "now", &task);
        style::out_foreign(
            task.standing.result.as_deref().filter(|_| task.standing.at_ms.is_none()).unwrap_or_default(),
        );
    }
    Ok(match task.status {
        TaskStatus::Waiting => ErrorKind::ApprovalRequired.exit_code(),
        _ => aside.code(u8::from(failed)),
    })
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
    for run in &runs {
        style::out(&show::run(run));
    }
    Ok(0)
}
