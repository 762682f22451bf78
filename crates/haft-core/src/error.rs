//! What went wrong with a call, in words for the caller and a kind from which exit code and blame follow.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Every way a call can end other than success. The list is part of the wire contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No tool answers to the spoken name.
    UnknownTool,
    /// The arguments do not fit the tool's schema, or cannot be understood at all.
    InvalidInput,
    /// Policy or a rule said no.
    Denied,
    /// A person has to decide and none could be asked; the call waits under an approval id.
    ApprovalRequired,
    /// A person said no.
    Rejected,
    /// The deadline passed.
    Timeout,
    /// The caller withdrew the call.
    Cancelled,
    /// The kernel could not be made to enforce what the tool declares.
    Confinement,
    /// What the call names does not exist.
    NotFound,
    /// The world is not as the caller believed: changed, already there, never read.
    Conflict,
    /// The tool ran and failed.
    Failed,
    /// A service the tool depends on failed.
    Upstream,
    /// haft itself failed.
    Internal,
}

/// Who can mend an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The caller: say it differently.
    Caller,
    /// Policy or a person: ask for permission.
    Policy,
    /// The tool or the world it met.
    Tool,
    /// The machine haft runs on, or haft.
    Host,
}

impl ErrorKind {
    /// The process exit code that the command line promises for this kind.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Failed | Self::NotFound | Self::Conflict | Self::Upstream | Self::Cancelled => 1,
            Self::UnknownTool | Self::InvalidInput => 2,
            Self::Denied | Self::Confinement => 3,
            Self::ApprovalRequired => 4,
            Self::Rejected => 5,
            Self::Timeout => 6,
            Self::Internal => 7,
        }
    }

    /// Who can mend it.
    pub const fn blame(self) -> Blame {
        match self {
            Self::UnknownTool | Self::InvalidInput | Self::Cancelled => Blame::Caller,
            Self::Denied | Self::ApprovalRequired | Self::Rejected => Blame::Policy,
            Self::NotFound | Self::Conflict | Self::Failed | Self::Upstream | Self::Timeout => Blame::Tool,
            Self::Confinement | Self::Internal => Blame::Host,
        }
    }

    /// The word used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::InvalidInput => "invalid_input",
            Self::Denied => "denied",
            Self::ApprovalRequired => "approval_required",
            Self::Rejected => "rejected",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Confinement => "confinement",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
            Self::Upstream => "upstream",
            Self::Internal => "internal",
        }
    }
}

/// An error as the caller sees it: what happened, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Which of the known ways this is.
    pub kind: ErrorKind,
    /// What happened and why, in one or a few lines.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Machine-readable particulars (violations, candidates, ids).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl CallError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, details: None }
    }

    /// The arguments are wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// What was named is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The world is not as the caller believed.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// The tool ran and failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// haft itself failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds machine-readable particulars.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_word_is_the_serialised_form() {
        for kind in [ErrorKind::UnknownTool, ErrorKind::ApprovalRequired, ErrorKind::NotFound, ErrorKind::Internal] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
