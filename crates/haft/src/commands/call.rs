//! `haft call`.

use crate::app::{App, Failure, unrun};
use crate::cli::{Asking, CallArgs};
use crate::input;
use crate::live::Aside;
use crate::started_by::agent_sign;
use crate::style::{self, FAINT, paint};
use crate::terminal::Terminal;
use haft_core::Outcome;
use haft_core::approval::{Decider, DeciderIdentity};
use haft_runtime::{Approver, BoxFuture, Event, Halt, Nobody, Question, Said, Yes, new_call_id};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// From when on a person is told how far a call is.
const PATIENCE: Duration = Duration::from_secs(1);

/// Says yes for the user who runs this command. An agent that runs it is not its user.
pub(super) fn consenting() -> Box<dyn Approver> {
    match agent_sign() {
        None => Box::new(Yes),
        Some(sign) => {
            style::warn(&format!("an agent runs this command ({}), and approves nothing", style::inert(&sign)));
            Box::new(AgentProgram { sign })
        }
    }
}

/// An agent's program where its user would be asked.
struct AgentProgram {
    sign: String,
}

impl Approver for AgentProgram {
    fn decider(&self) -> Decider {
        DeciderIdentity::AgentProgram { sign: self.sign.clone() }.into()
    }

    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Nobody))
    }
}

/// Who answers questions.
pub(super) fn approver(app: &App, asking: &Asking) -> Box<dyn Approver> {
    if asking.yes {
        consenting()
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
    let aside = Aside::new(&Arc::default(), approver(app, &args.asking));
    let mut outcome = app.block_on(async {
        let work = async {
            if args.dry_run {
                app.haft.dry_run_under(call, &halt, args.path.as_deref()).await
            } else {
                app.haft.call(call, &aside, &halt).await
            }
        };
        let outcome = Box::pin(watched(app, work, &halt)).await;
        app.haft.flush().await.map(|()| outcome)
    })?;
    if let Some(error) = &mut outcome.error
        && let Some(better) = input::respelled(&args.args, error)
    {
        error.hint = Some(error.hint.take().map_or_else(|| better.clone(), |hint| format!("{better}; {hint}")));
    }
    Ok(aside.code(report(app, &outcome)))
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
pub(super) async fn watched<T>(app: &App, work: impl Future<Output = T>, halt: &Halt) -> T {
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
