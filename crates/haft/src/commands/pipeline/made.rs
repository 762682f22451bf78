//! Pipelines from a plan, and from what was done: the tools for that, for people.

use super::{call, inputs};
use crate::app::{App, Failure};
use crate::cli::Asking;
use haft_core::CallError;
use haft_core::manifest::written;
use haft_core::preview::inert;
use haft_runtime::Halt;
use serde_json::{Value, json};
use std::io::Read;

/// The largest plan that is read.
const PLAN_MAX: u64 = 1 << 20;

/// Shows a plan, and keeps it as a pipeline if somebody says yes.
pub(super) fn plan(app: &App, file: &str, name: Option<String>, asking: &Asking) -> Result<u8, Failure> {
    let text = read(file).map_err(|error| CallError::invalid(format!("{}: {error}", inert(file))))?;
    let mut args = written::parse(&text).map_err(|flaw| {
        CallError::invalid(format!("{}:{}:{}: {}", inert(file), flaw.line, flaw.column, flaw.message))
            .hint("a plan is {summary, phases: [{name, steps, calls: [{tool, args}]}]}")
    })?;
    if let (Some(args), Some(name)) = (args.as_object_mut(), name) {
        args.insert("name".to_owned(), name.into());
    }
    made(app, "pipeline.plan", args, asking)
}

fn read(file: &str) -> std::io::Result<String> {
    let mut text = String::new();
    if file == "-" {
        std::io::stdin().lock().take(PLAN_MAX).read_to_string(&mut text)?;
    } else {
        std::fs::File::open(file)?.take(PLAN_MAX).read_to_string(&mut text)?;
    }
    Ok(text)
}

/// Makes a template of what this session did.
pub(super) fn capture(app: &App, name: &str, about: Option<String>, asking: &Asking) -> Result<u8, Failure> {
    let mut args = json!({ "name": name });
    if let Some(about) = about {
        args["description"] = about.into();
    }
    made(app, "pipeline.capture", args, asking)
}

/// Makes a pipeline of a template.
pub(super) fn promote(app: &App, named: &str, values: &[String], asking: &Asking) -> Result<u8, Failure> {
    let args = json!({"process_id": named, "parameter_values": inputs(values)?});
    made(app, "pipeline.promote", args, asking)
}

fn made(app: &App, tool: &str, args: Value, asking: &Asking) -> Result<u8, Failure> {
    let wanted = app.call(tool, args, Some("haft"))?;
    let (halt, approver) = (Halt::new(), call::approver(app, asking));
    let outcome = app.block_on(async {
        let work = app.haft.call(wanted, approver.as_ref(), &halt);
        let outcome = Box::pin(call::watched(app, work, &halt)).await;
        app.haft.flush().await.map(|()| outcome)
    })?;
    Ok(call::report(app, &outcome))
}
