//! How the bridged servers are, for whoever asks.

use serde::Serialize;

/// How one server is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Its name here.
    pub name: String,
    /// Where it stands.
    #[serde(flatten)]
    pub state: State,
    /// Its tools, by their names here.
    pub tools: Vec<String>,
    /// Those that are not what was accepted, and why. They are asked about before they are used.
    pub altered: Vec<String>,
    /// Those that are not offered, and why.
    pub refused: Vec<String>,
    /// What model providers cannot take of its tools as they are, each with the tool, the provider and the rule.
    pub provider_warnings: Vec<String>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it printed that is not MCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub garbage: Option<Garbage>,
}

/// Where a server stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Not started: nobody has wanted it yet.
    Idle,
    /// On its way.
    Starting,
    /// It answers.
    Ready,
    /// It has failed, and is tried again.
    Waiting {
        /// In so many milliseconds.
        retry_in_ms: u64,
        /// Why.
        why: String,
    },
    /// It has failed, and is tried again when somebody wants it.
    Failed,
    /// It is not wanted any more.
    Closed,
}

impl State {
    /// The state in one word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Waiting { .. } => "waiting",
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}

/// Lines on a server's output that are not MCP. They are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// How many.
    pub lines: u64,
    /// The last one, or the beginning of it.
    pub last: String,
}
