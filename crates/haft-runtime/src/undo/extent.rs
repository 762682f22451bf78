//! Which call is taken back, how much of it, and what is left.

use haft_core::CallId;
use haft_core::outcome::Undo;
use serde::Serialize;

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
