//! `haft tui`: a conversation with a model, on a whole screen.
//!
//! ```text
//!  keys ──► Input ──► Screen::update ──► Wish ──► conduct ──► Chat::say
//!  (thread)    ▲          │  (thread)                │ (async)     │
//!              │          ▼                          │             │
//!              │      View::draw                     ▼             ▼
//!              └──────────────── Told, questions, answers ◄────────┘
//! ```
//!
//! What is shown and what a key means are pure ([`screen`], [`view`]). The screen has a thread of its own ([`shell`]): drawing
//! does not hold up the conversation, and the conversation does not hold up a key. [`conduct`] does what is wished.

mod ask;
mod command;
mod conduct;
mod edit;
mod form;
mod keys;
mod markdown;
mod person;
mod screen;
mod shell;
mod talk;
mod text;
mod view;
mod work;

#[cfg(test)]
mod tests;

use crate::app::{App, Failure, Threads};
use crate::cli::{Common, TuiArgs};
use crate::style::{self, FAINT, paint};
use crate::talks::resumed;
use conduct::Conduct;
use haft_core::preview::inert;
use haft_core::{CallError, SessionId};
use haft_runtime::agent::ModelRef;
use screen::{About, Screen};
use shell::Shell;
use std::io::IsTerminal;

/// Opens the screen, and leaves the terminal as it was.
pub(crate) fn run(common: &Common, args: TuiArgs) -> Result<u8, Failure> {
    fit(common)?;
    let models = args.model.as_deref().map(model).transpose()?;
    let app = App::open_to_serve(common, Threads::One)?;
    let session = app.block_on(which(&app, common, args.resume.as_deref()))?;
    let screen = Screen {
        about: About {
            session: session.to_string(),
            model: args.model.unwrap_or_default(),
            config: app.config.clone(),
            project: haft_core::path_text::show(app.haft.workspace().root().as_os_str()),
        },
        ..Screen::default()
    };
    let (shell, wishes) = Shell::open(screen, args.prompt, colours())?;
    let conduct = Conduct::new(&app, shell.inputs(), session, models.into_iter().collect());
    let kept = app.block_on(async {
        let kept = conduct.run(wishes).await;
        app.haft.flush().await.map(|()| kept)
    });
    shell.close()?;
    if let Some(session) = kept? {
        style::note(&paint(FAINT, format!("go on with: haft tui --resume={}", inert(session.as_str()))));
    }
    Ok(0)
}

/// Whether this is a terminal that can be drawn on.
fn fit(common: &Common) -> Result<(), CallError> {
    let hint = "use `haft run`: it prints line by line, into pipes and files as well";
    if common.json() {
        return Err(CallError::invalid("a screen is no JSON").hint("use `haft run --json`"));
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CallError::invalid("this is no terminal, so there is no screen to draw on").hint(hint));
    }
    match std::env::var("TERM").as_deref() {
        Err(_) | Ok("" | "dumb") => {
            Err(CallError::invalid("this terminal cannot be drawn on: TERM is `dumb` or not set").hint(hint))
        }
        Ok(_) => Ok(()),
    }
}

/// Whether there are colours, by `--color`, `NO_COLOR` and what the terminal says of itself.
fn colours() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

/// A model as it was named.
fn model(name: &str) -> Result<ModelRef, CallError> {
    ModelRef::try_from(name.to_owned()).map_err(CallError::invalid)
}

/// The conversation that is meant: the one that was named, the latest, or a new one.
async fn which(app: &App, common: &Common, resume: Option<&str>) -> Result<SessionId, CallError> {
    match resume {
        Some(named) => resumed(app, named).await,
        None if common.session.is_none() => Ok(fresh()),
        None => Ok(app.session().clone()),
    }
}

/// A name for a new conversation.
fn fresh() -> SessionId {
    let mark = haft_runtime::new_mark();
    SessionId::new(&format!("chat-{}", mark.get(..8).unwrap_or(&mark))).unwrap_or_default()
}
