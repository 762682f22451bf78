//! Which call is taken back, how much of it, and what is left.

use crate::tools::memory::when;
use haft_core::outcome::Undo;
use haft_core::{CallError, CallId, SessionId};
use haft_store::UndoSelection;
use serde::Serialize;

/// Which calls are taken back or listed, in words: those of a session, of one of its turns, since a time. A turn needs its
/// session.
pub fn selection(
    session: Option<SessionId>,
    turn: Option<u32>,
    since: Option<&str>,
) -> Result<UndoSelection, CallError> {
    if turn.is_some() && session.is_none() {
        return Err(CallError::invalid("a turn needs a session, and none is named")
            .hint("name the session too; `haft changes` shows sessions and turns"));
    }
    let since_ms = since.map(|text| when::read(text, crate::now_ms(), false)).transpose()?;
    Ok(UndoSelection { session, turn, since_ms })
}

/// A call that changed files, as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeEntry {
    /// Which call.
    pub call_id: CallId,
    /// When, in milliseconds of the Unix epoch.
    pub at_ms: i64,
    /// Its tool; `undo` for one that took another one back.
    pub tool: String,
    /// The command that it ran, without secrets.
    pub command: Option<String>,
    /// What it changed, source files first; of many, the first.
    pub files: Vec<String>,
    /// How many paths it changed.
    pub file_count: u32,
    /// Its session.
    pub session: Option<String>,
    /// The turn of its session in which a model asked for it.
    pub turn: Option<u32>,
    /// How much its before-images take.
    pub bytes: i64,
    /// The call that it took back.
    pub undoes: Option<String>,
    /// The call that took it back.
    pub undone_by: Option<String>,
    /// Why it cannot be taken back.
    pub gap: Option<String>,
}

/// What came of taking back all calls of a selection.
#[derive(Debug, Clone)]
pub struct SelectionUndone {
    /// Those that were taken back, the newest first.
    pub undone: Vec<CallUndone>,
    /// Those that cannot be.
    pub passed_over: Vec<PassedOver>,
}

/// A call that was taken back.
#[derive(Debug, Clone, Serialize)]
pub struct CallUndone {
    /// Which call.
    pub undone: CallId,
    /// The call that took it back.
    pub call_id: CallId,
    /// What was restored.
    pub files: Vec<String>,
    /// What was left as it is, and why.
    pub left: Vec<String>,
    /// What else has to be known: why this cannot be taken back in turn, and which versions others wrote meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The call that `undo --last` takes back.
#[derive(Debug, Clone)]
pub struct LastUndoable {
    /// Which call.
    pub call_id: CallId,
    /// Later calls that cannot be taken back.
    pub passed_over: Vec<PassedOver>,
}

/// A call that cannot be taken back.
#[derive(Debug, Clone, Serialize)]
pub struct PassedOver {
    /// Which call.
    pub call_id: CallId,
    /// Why.
    pub reason: String,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl PassedOver {
    /// From the error of taking the call back, which begins with the call where it says that it cannot be done.
    pub(crate) fn new(call_id: CallId, error: CallError) -> Self {
        let CallError { message, hint, .. } = error;
        let reason = message.strip_prefix(&cannot_be_undone(&call_id)).map(str::to_owned);
        Self { call_id, reason: reason.unwrap_or(message), hint }
    }
}

/// How the error of a call begins that cannot be taken back.
pub(crate) fn cannot_be_undone(call: &CallId) -> String {
    format!("{call} cannot be undone: ")
}

/// What came of taking back what can be taken back.
#[derive(Debug, Clone)]
pub struct PartlyUndone {
    /// The call that did so.
    pub call_id: CallId,
    /// What it restored.
    pub undo: Undo,
    /// What was left as it is, and why.
    pub left: Vec<String>,
}

/// How much of a call is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it, or nothing.
    Whole,
    /// What can be.
    Partial,
}
