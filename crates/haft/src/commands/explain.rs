//! `haft explain`.

use crate::app::{App, Failure};
use crate::cli::ExplainArgs;
use crate::commands::batch::Line;
use crate::input;
use crate::style::{self, BAD, BOLD, CARE, FAINT, GOOD, paint, painted};
use crate::terminal::command;
use haft_core::CallError;
use haft_core::approval::Decision;
use haft_core::preview::inert;
use haft_runtime::judge::ShellShown;
use haft_runtime::{Explained, Halt};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};

/// The longest line of a batch.
const LINE_MAX: u64 = 16 << 20;

/// Says what would happen to a call, and why.
pub(super) fn run(app: &App, args: &ExplainArgs) -> Result<u8, Failure> {
    if let Some(file) = &args.batch {
        return batch(app, file, args.dialect.as_deref());
    }
    let name = args.name.as_deref().unwrap_or_default();
    let call = app.call(name, input::arguments(&args.args)?, args.dialect.as_deref())?;
    let explained = app.block_on(app.haft.explain(call.clone()))?;
    let tried = args.run.then(|| app.block_on(app.haft.dry_run(call, &Halt::new())));
    app.block_on(app.haft.flush())?;
    if app.json {
        let mut value = serde_json::to_value(&explained).unwrap_or_default();
        if let Some(tried) = &tried {
            value["trial"] = serde_json::to_value(tried).unwrap_or_default();
        }
        style::json(&value);
    } else {
        show(&explained);
        tried.iter().for_each(super::call::show);
    }
    // Explaining went well even where what it explains would not.
    Ok(0)
}

/// Explains many calls, each as it comes: a line in, a line out. A line that makes no sense is answered with
/// its error, and the rest goes on.
fn batch(app: &App, file: &str, dialect: Option<&str>) -> Result<u8, Failure> {
    let mut source: Box<dyn BufRead> = match file {
        "-" => Box::new(BufReader::new(std::io::stdin())),
        path => {
            let file = std::fs::File::open(path).map_err(|error| CallError::invalid(format!("{path}: {error}")))?;
            Box::new(BufReader::new(file))
        }
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = source.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        let read = read.map_err(|error| CallError::invalid(format!("{file}: {error}")))?;
        if read == 0 {
            return Ok(0);
        }
        if read as u64 == LINE_MAX && line.last() != Some(&b'\n') {
            return Err(CallError::invalid(format!("a line is longer than {} MiB", LINE_MAX >> 20)).into());
        }
        if !line.trim_ascii().is_empty() {
            style::json(&answer(app, &line, dialect).unwrap_or_else(|error| json!({ "error": error })));
        }
    }
}

fn answer(app: &App, line: &[u8], dialect: Option<&str>) -> Result<Value, CallError> {
    let line: Line = serde_json::from_slice(line).map_err(|error| {
        CallError::invalid(format!("not a call: {error}"))
            .hint(r#"each line is an object like {"tool": "shell.exec", "args": {"command": "ls"}}"#)
    })?;
    let mut call = app.call(&line.tool, line.args, dialect)?;
    call.dialect = line.dialect.unwrap_or(call.dialect);
    let explained = app.block_on(app.haft.explain(call))?;
    serde_json::to_value(&explained).map_err(|error| CallError::internal(error.to_string()))
}

fn show(explained: &Explained) {
    style::out(&paint(BOLD, &explained.preview));
    let verdict = &explained.verdict;
    style::out(&format!("{} by {}: {}", word(verdict.decision), verdict.by, inert(&verdict.reason)));
    for place in explained.places.iter().filter(|place| explained.shell.is_none() || place.param != "command") {
        let inside = if place.inside { "inside the project" } else { "outside the project" };
        let care = place.sensitive.map(|why| format!(", holds {}", why.noun())).unwrap_or_default();
        style::out(&format!("  {:?} {} ({inside}{care})", place.access, inert(&place.shown)).to_lowercase());
    }
    if let Some(shell) = &explained.shell {
        show_shell(shell);
    }
    if let Some(hold) = &explained.hold {
        style::out(&format!("  confinement {}", hold.level));
        for (name, held) in &hold.permissions {
            style::out(&format!("    {name:<8} {held}"));
        }
        let undo =
            hold.gap.as_ref().map_or_else(|| "can be undone".to_owned(), |gap| format!("cannot be undone: {gap}"));
        style::out(&format!("    {:<8} {undo}", "changes"));
    }
    for vote in &explained.votes {
        let said = vote.decision.map_or_else(|| paint(FAINT, "no opinion"), word);
        style::out(&format!("  {:>5}  {:<14} {said}  {}", vote.priority, vote.by, inert(&vote.reason)));
    }
    if let Some(problem) = &explained.problem {
        style::out(&format!("{} {}", paint(CARE, "it would fail:"), inert(problem)));
    }
    if let Some(diff) = &explained.diff {
        style::out(&style::diff(diff));
    }
}

fn show_shell(shown: &ShellShown) {
    style::out(&format!("  {}", painted(&command::class(shown))));
    for row in command::rows(shown) {
        style::out(&format!("    {}", painted(&row)));
    }
}

pub(super) fn word(decision: Decision) -> String {
    match decision {
        Decision::Allow => paint(GOOD, "allow"),
        Decision::Ask => paint(CARE, "ask"),
        Decision::Deny => paint(BAD, "deny"),
    }
}
