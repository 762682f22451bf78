//! `haft pipeline`: pipelines and their runs, for people.

mod bar;
mod made;

use super::call::{self, approver, show};
use crate::app::{App, Failure};
use crate::cli::{Asking, Became, PipelineAction};
use crate::live::Aside;
use crate::started_by::{command_line, require_user};
use crate::style::{self, BAD, BOLD, CARE, FAINT, GOOD, NAME, paint};
use crate::time;
use bar::Bar;
use haft_core::preview::inert;
use haft_core::work::{Does, Plan, file};
use haft_core::{CallError, Outcome};
use haft_runtime::Halt;
use haft_runtime::shelf::Standing;
use haft_runtime::work::{Filed, Until, drawn, filed, workflow};
use haft_store::work::{RunSeen, Settle, StepSeen};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

/// How often a run is looked at that is followed.
const LOOK: Duration = Duration::from_millis(300);

/// How a command ends whose run waits for something.
const WAITS: u8 = 4;

/// Does one thing with pipelines.
pub(super) fn run(app: &App, action: Option<PipelineAction>) -> Result<u8, Failure> {
    match action.unwrap_or(PipelineAction::List) {
        PipelineAction::List => list(app),
        PipelineAction::Runs { limit } => runs(app, limit),
        PipelineAction::Show { id, follow } => shown(app, &id, follow),
        PipelineAction::Run { name, inputs, background, dry_run, asking } => {
            begin(app, &name, (&inputs, background, dry_run), &asking)
        }
        PipelineAction::Resume { id, asking } => resume(app, &id, &asking),
        PipelineAction::Retry { id, asking } => called(app, json!({"pipeline_id": id, "retry": true}), &asking),
        PipelineAction::Cancel { id } => cancel(app, &id),
        PipelineAction::Settle { id, step, how } => settle(app, &id, &step, how),
        PipelineAction::Remove { name } => remove(app, &name),
        PipelineAction::Plan { file, name, asking } => made::plan(app, &file, name, &asking),
        PipelineAction::Capture { name, description, asking } => made::capture(app, &name, description, &asking),
        PipelineAction::Promote { name, values, asking } => made::promote(app, &name, &values, &asking),
    }
}

fn root(app: &App) -> String {
    app.haft.workspace().stored_root()
}

/// The run whose id begins so.
fn find(app: &App, prefix: &str) -> Result<RunSeen, Failure> {
    let mut found = app.block_on(app.store().runs_beginning(&root(app), prefix))?;
    if found.len() > 1 && !found.iter().any(|run| run.id == prefix) {
        found.retain(|run| run.above.is_none());
    }
    if let Some(exact) = found.iter().position(|run| run.id == prefix) {
        return Ok(found.swap_remove(exact));
    }
    match (found.pop(), found.len()) {
        (Some(run), 0) => Ok(run),
        (Some(run), _) => {
            let ids: Vec<&str> = found.iter().chain([&run]).map(|run| run.id.as_str()).collect();
            Err(CallError::invalid(format!("`{}` could be any of {}", inert(prefix), ids.join(", "))).into())
        }
        (None, _) => Err(CallError::not_found(format!("there is no run `{}` in this project", inert(prefix)))
            .hint("`haft pipeline runs` shows them")
            .into()),
    }
}

fn list(app: &App) -> Result<u8, Failure> {
    let kept = app.block_on(app.store().pipelines(&root(app)))?;
    let files = filed(app.haft.workspace());
    let standings = app.block_on(workflow::standings(app.store(), app.haft.workspace()))?;
    let standing = |file: &Filed| standings.get(&file.name).copied().unwrap_or(Standing::Untrusted);
    if app.json {
        let files: Vec<Value> = files
            .iter()
            .map(|file| {
                let problems: Vec<String> = file.plan.as_ref().err().into_iter().flatten().map(told).collect();
                json!({"name": file.name, "file": file.path, "ok": file.plan.is_ok(), "standing": standing(file),
                    "problems": problems})
            })
            .collect();
        style::json(&json!({"stored": kept, "files": files}));
        return Ok(0);
    }
    if kept.is_empty() && files.is_empty() {
        style::note("there are no pipelines; .haft/workflows/NAME.yml makes one, and so does pipeline.plan");
    }
    for file in &files {
        let says = match &file.plan {
            Ok(plan) if standing(file).counts() => format!("{} steps", plan.steps.len()),
            Ok(plan) => {
                let care = format!("{}; `haft trust` shows it and asks", standing(file).word());
                format!("{} steps  {}", plan.steps.len(), paint(CARE, care))
            }
            Err(misfits) => paint(BAD, misfits.first().map(told).unwrap_or_default()),
        };
        style::out(&format!("{}  {says}  {}", paint(NAME, &file.name), paint(FAINT, file.path.display())));
    }
    for one in &kept {
        let steps = one.plan["steps"].as_array().map_or(0, Vec::len);
        let about = paint(FAINT, format!("{} {}", one.origin, time::shown(one.at_ms)));
        style::out(&format!("{}  {steps} steps  {}  {about}", paint(NAME, inert(&one.name)), one.id));
    }
    Ok(0)
}

/// What is wrong with a file, and where.
fn told(misfit: &file::Misfit) -> String {
    format!("{}:{}: {}", misfit.line, misfit.column, misfit.fault)
}

fn runs(app: &App, limit: u32) -> Result<u8, Failure> {
    app.block_on(app.haft.tend())?;
    let runs = app.block_on(app.store().runs(&root(app), limit))?;
    if app.json {
        let told: Vec<Value> = runs.iter().map(|run| summary(run, &[])).collect();
        style::json(&told);
        return Ok(0);
    }
    if runs.is_empty() {
        style::note("nothing was run yet; `haft pipeline run NAME` runs one");
    }
    for run in runs {
        let done = run.count - run.unsettled;
        let at = paint(FAINT, time::shown(run.begun_ms));
        let state = painted(&run.stands);
        style::out(&format!("{}  {state}  {done}/{}  {}  {at}", paint(NAME, &run.id), run.count, inert(&run.name)));
    }
    Ok(0)
}

fn painted(state: &str) -> String {
    match state {
        "done" => paint(GOOD, state),
        "failed" | "cancelled" => paint(BAD, state),
        _ => paint(CARE, state),
    }
}

fn summary(run: &RunSeen, steps: &[StepSeen]) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| {
            let mut told = json!(step);
            if let Some(remedy) = drawn::remedy(step) {
                told["remedy"] = remedy.into();
            }
            told
        })
        .collect();
    json!({
        "run": run.id, "name": run.name, "state": run.state, "stands": run.stands, "why": run.why, "count": run.count, "unsettled": run.unsettled,
        "task": run.task, "begun_ms": run.begun_ms, "ended_ms": run.ended_ms, "steps": steps,
    })
}

fn shown(app: &App, id: &str, follow: bool) -> Result<u8, Failure> {
    app.block_on(app.haft.tend())?;
    let found = find(app, id);
    if found.is_err() && !id.starts_with(haft_store::work::RUN_PREFIX) {
        return planned(app, id);
    }
    let run = found?;
    let mut last = String::new();
    loop {
        let (seen, steps) = app.block_on(async {
            let seen = app.store().run_seen(&run.id).await?;
            let steps = app.store().steps(&run.id).await?;
            Ok::<_, Failure>((seen.unwrap_or_else(|| run.clone()), steps))
        })?;
        let plan: Plan = serde_json::from_value(seen.plan.clone()).unwrap_or_default();
        let text = format!("{}\n{}", paint(BOLD, drawn::line(&seen, &steps)), drawn::graph(&plan, &steps));
        if app.json {
            if !follow || seen.state != "running" || text != last {
                style::json(&summary(&seen, &steps));
            }
        } else if text != last {
            style::out(&text);
            if let Some(notes) = drawn::notes(&steps) {
                style::out(&notes);
            }
        }
        last = text;
        if !follow || seen.state != "running" {
            return Ok(0);
        }
        app.block_on(tokio::time::sleep(LOOK));
    }
}

/// A pipeline that is not under way.
fn planned(app: &App, name: &str) -> Result<u8, Failure> {
    let plan = app.block_on(haft_runtime::work::plan(&app.haft, name))?;
    if app.json {
        style::json(&plan);
        return Ok(0);
    }
    style::out(&paint(BOLD, plan.name.as_deref().map(inert).unwrap_or_default()));
    if let Some(about) = &plan.description {
        style::out(&inert(about));
    }
    style::out(&drawn::graph(&plan, &[]));
    if !plan.inputs.is_empty() {
        let names: Vec<&str> = plan.inputs.keys().map(String::as_str).collect();
        style::note(&format!("inputs: {}", names.join(", ")));
    }
    Ok(0)
}

fn inputs(given: &[String]) -> Result<Map<String, Value>, CallError> {
    given
        .iter()
        .map(|text| {
            let (name, value) = text.split_once('=').ok_or_else(|| {
                CallError::invalid(format!("`{}` is not NAME=VALUE", inert(text))).hint("for example --input n=3")
            })?;
            Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
        })
        .collect()
}

fn begin(
    app: &App,
    name: &str,
    (given, background, dry_run): (&[String], bool, bool),
    asking: &Asking,
) -> Result<u8, Failure> {
    if background && asking.yes {
        return Err(CallError::invalid(
            "--yes answers what is asked here, and with --background nothing is asked here",
        )
        .hint(
            "leave --background out; or leave --yes out, and decide what it asks with `haft approvals`, or allow it \
             beforehand with `haft approvals grant` or a rule",
        )
        .into());
    }
    let context = inputs(given)?;
    let name = named(app, name)?;
    if dry_run {
        return dry(app, &name, &context);
    }
    let args = json!({"pipeline_id": name, "context": context, "background": background});
    called(app, args, asking)
}

/// What is to be run, by name. Who points at a workflow file means its name.
fn named(app: &App, text: &str) -> Result<String, Failure> {
    let path = Path::new(text);
    if !matches!(path.extension().and_then(|ending| ending.to_str()), Some("yml" | "yaml")) {
        return Ok(text.to_owned());
    }
    let meant = path.canonicalize().map_err(|error| CallError::not_found(format!("{}: {error}", inert(text))))?;
    let same = |file: &Filed| file.path.canonicalize().is_ok_and(|path| path == meant);
    let found = filed(app.haft.workspace()).into_iter().find(same);
    Ok(found.map(|file| file.name).ok_or_else(|| {
        CallError::invalid(format!("{} is no workflow of this project", inert(text)))
            .hint("put the file into .haft/workflows under a name that is free there")
    })?)
}

/// Says what each step would do, and who would decide. Nothing is run.
fn dry(app: &App, name: &str, given: &Map<String, Value>) -> Result<u8, Failure> {
    let plan = app.block_on(haft_runtime::work::plan(&app.haft, name))?;
    let told = app.block_on(haft_runtime::work::foreseen(&app.haft, &plan, given, &app.caller))?;
    if app.json {
        style::json(&told);
        return Ok(0);
    }
    style::out(&drawn::graph(&plan, &[]));
    for (step, foreseen) in plan.steps.iter().zip(&told) {
        let what = match step.does() {
            Some(Does::Tool(tool, _)) => tool.to_owned(),
            Some(Does::Prompt(_)) => "an agent".to_owned(),
            Some(Does::Pipeline(named, _)) => format!("the pipeline {named}"),
            Some(Does::Ask(_)) => "asks a person".to_owned(),
            Some(Does::Wait(_)) => "waits".to_owned(),
            None => String::new(),
        };
        let says =
            format!("{}: {}", foreseen["decision"].as_str().unwrap_or("?"), foreseen["reason"].as_str().unwrap_or(""));
        style::out(&format!("{}  {what}  {}", paint(NAME, &step.id), paint(FAINT, inert(&says))));
    }
    style::note("nothing was run");
    Ok(0)
}

/// Calls pipeline.run, showing how far it is.
fn called(app: &App, args: Value, asking: &Asking) -> Result<u8, Failure> {
    let waited = args["background"] != true;
    let call = app.call("pipeline.run", args, Some("haft"))?;
    let (halt, approver, bar) = (Halt::new(), approver(app, asking), Bar::new(app));
    let aside = Aside::new(&bar.line, approver);
    let outcome = app.block_on(async {
        let outcome = Box::pin(bar.over(app, app.haft.call(call, &aside, &halt), &halt)).await;
        app.haft.flush().await.map(|()| outcome)
    })?;
    Ok(aside.code(report(app, &outcome, waited)))
}

fn report(app: &App, outcome: &Outcome, waited: bool) -> u8 {
    if app.json {
        style::json(outcome);
    } else {
        show(outcome);
    }
    // What waits is not done.
    let waits = outcome.success && outcome.data.as_ref().is_some_and(|data| data["state"] == "running");
    if waits && waited { WAITS } else { outcome.exit_code() }
}

fn resume(app: &App, id: &str, asking: &Asking) -> Result<u8, Failure> {
    let run = find(app, id)?;
    let (halt, approver, bar) = (Halt::new(), approver(app, asking), Bar::new(app));
    let aside = Aside::new(&bar.line, approver);
    let worker = app.haft.worker(16);
    app.block_on(async {
        let until = Until::Over(run.id.clone());
        let over = Box::pin(bar.over(app, app.haft.work(&worker, &until, &aside, &halt), &halt)).await;
        app.haft.flush().await?;
        over.map(drop).map_err(Failure::from)
    })?;
    let seen = find(app, &run.id)?;
    shown(app, &run.id, false)?;
    Ok(aside.code(match seen.state.as_str() {
        "done" => 0,
        "running" => WAITS,
        _ => 1,
    }))
}

fn cancel(app: &App, id: &str) -> Result<u8, Failure> {
    let run = find(app, id)?;
    let ended = app.block_on(app.store().cancel_run(&run.id, "a person"))?;
    if !ended {
        return Err(CallError::conflict(format!("{} is over already: {}", run.id, run.state)).into());
    }
    if app.json {
        style::json(&json!({"cancelled": run.id}));
    } else {
        style::out(&format!("{} {}; what runs just now is told to stop", paint(GOOD, "cancelled"), run.id));
    }
    Ok(0)
}

fn settle(app: &App, id: &str, step: &str, how: Became) -> Result<u8, Failure> {
    require_user()?;
    let run = find(app, id)?;
    let settle = match how {
        Became::Done => Settle::Done,
        Became::Failed => Settle::Failed,
        Became::Again => Settle::Again,
    };
    if !app.block_on(app.store().settle_step(&run.id, step, settle, &command_line().to_string()))? {
        return Err(CallError::conflict(format!(
            "nothing is uncertain about the step `{}` of {}",
            inert(step),
            run.id
        ))
        .hint(format!("`haft pipeline show {}` says where each stands", run.id))
        .into());
    }
    if app.json {
        style::json(&json!({"run": run.id, "step": step, "settled": format!("{how:?}").to_lowercase()}));
    } else {
        style::out(&format!("{} {step} of {}", paint(GOOD, "settled"), run.id));
        style::note(&format!("`haft pipeline resume {}` goes on with it, and so does a worker", run.id));
    }
    Ok(0)
}

fn remove(app: &App, name: &str) -> Result<u8, Failure> {
    let found = app.block_on(app.store().pipeline(&root(app), name))?;
    let [one] = found.as_slice() else {
        let error = if found.is_empty() {
            CallError::not_found(format!("no pipeline `{}` is stored", inert(name)))
        } else {
            CallError::invalid(format!("`{}` could be any of several", inert(name)))
        };
        return Err(error.hint("`haft pipeline list` shows those that are").into());
    };
    app.block_on(app.store().forget_pipeline(&root(app), &one.id))?;
    if app.json {
        style::json(&json!({"removed": one.id}));
    } else {
        style::out(&format!("{} {} ({})", paint(GOOD, "removed"), inert(&one.name), one.id));
    }
    Ok(0)
}
