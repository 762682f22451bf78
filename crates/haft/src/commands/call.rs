//! `haft call` and `haft batch`.

use crate::app::{App, Failure, unrun};
use crate::cli::{Asking, BatchArgs, CallArgs};
use crate::input;
use crate::style::{self, FAINT, paint};
use crate::terminal::Terminal;
use haft_core::{Call, CallError, Dialect, Outcome};
use haft_runtime::{Approver, Event, Halt, Nobody, Yes, new_call_id};
use serde::Deserialize;
use serde_json::Value;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// From when on a person is told how far a call is.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who answers questions.
pub(super) fn approver(app: &App, asking: &Asking) -> Box<dyn Approver> {
    if asking.yes {
        Box::new(Yes)
    } else if asking.no_input || !Terminal::present() {
        Box::new(Nobody)
    } else {
        Box::new(Terminal::new(&app.config))
    }
}

/// Calls one tool.
pub(super) fn one(app: &App, args: &CallArgs) -> Result<u8, Failure> {
    let call = match input::arguments(&args.args).and_then(|input| app.call(&args.name, input, args.dialect.as_deref()))
    {
        Ok(call) => call,
        Err(error) => return Ok(report(app, &unrun(new_call_id(), &args.name, error))),
    };
    let halt = args.timeout_ms.map_or_else(Halt::new, |ms| Halt::new().within(Duration::from_millis(ms)));
    let approver = approver(app, &args.asking);
    let outcome = app.block_on(async {
        let work = async {
            if args.dry_run {
                app.haft.dry_run(call, &halt).await
            } else {
                app.haft.call(call, approver.as_ref(), &halt).await
            }
        };
        let outcome = Box::pin(watched(app, work, &halt)).await;
        app.haft.flush().await.map(|()| outcome)
    })?;
    Ok(report(app, &outcome))
}

/// Prints an outcome in the form that was asked for, and returns its exit code.
pub(super) fn report(app: &App, outcome: &Outcome) -> u8 {
    if app.json {
        style::json(outcome);
    } else {
        show(outcome);
    }
    outcome.exit_code()
}

/// Waits for work, passing on its progress and a Ctrl-C.
async fn watched<T>(app: &App, work: impl Future<Output = T>, halt: &Halt) -> T {
    let mut events = app.haft.events().listen();
    let chatty = !app.json && std::io::stderr().is_terminal();
    let begun = Instant::now();
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            Ok(event) = events.recv(), if chatty => {
                // What is done in a moment is shown once, at the end.
                if let (Event::Progress { message, .. }, true) = (event, begun.elapsed() >= PATIENCE) {
                    style::note(&paint(FAINT, haft_core::preview::inert(&message)));
                }
            }
            Ok(()) = tokio::signal::ctrl_c() => halt.cancel(),
        }
    }
}

/// An outcome for people: the output on stdout, everything else on stderr.
pub(super) fn show(outcome: &Outcome) {
    style::out_foreign(&outcome.output);
    for warning in &outcome.warnings {
        style::warn(warning);
    }
    if let Some(error) = &outcome.error {
        style::error(error);
    }
    if let Some(undo) = &outcome.undo {
        match &undo.reason {
            Some(reason) => style::warn(&format!("this cannot be undone: {reason}")),
            None => style::note(&paint(FAINT, format!("undo with: haft undo {}", outcome.call_id))),
        }
    }
}

/// One line of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) args: Value,
    #[serde(default)]
    pub(super) dialect: Option<Dialect>,
}

/// Calls many tools.
pub(super) fn batch(app: &App, args: &BatchArgs) -> Result<u8, Failure> {
    let text = match args.file.as_str() {
        "-" => input::read(std::io::stdin(), "stdin")?,
        path => {
            let file = std::fs::File::open(path).map_err(|error| CallError::invalid(format!("{path}: {error}")))?;
            input::read(file, path)?
        }
    };
    let calls = lines(app, &text, args.dialect.as_deref())?;
    let (halt, approver) = (Halt::new(), approver(app, &args.asking));
    let mut worst = 0;
    app.block_on(async {
        let work = app.haft.call_all(calls, approver.as_ref(), &halt, |outcome| {
            // The first failure's code is the batch's.
            worst = if worst == 0 { outcome.exit_code() } else { worst };
            style::json(&outcome);
        });
        watched(app, work, &halt).await;
        app.haft.flush().await
    })?;
    Ok(worst)
}

/// Reads all lines before any is run: a typing error in the last must not leave the first half done.
fn lines(app: &App, text: &str, dialect: Option<&str>) -> Result<Vec<Call>, Failure> {
    let mut calls = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(line).map_err(|error| {
            CallError::invalid(format!("line {}: {error}; nothing was run", number + 1))
                .hint(r#"each line is an object like {"tool": "file.read", "args": {"path": "a.txt"}}"#)
        })?;
        let mut call = app.call(&line.tool, line.args, dialect)?;
        call.dialect = line.dialect.unwrap_or(call.dialect);
        calls.push(call);
    }
    Ok(calls)
}
