//! Short scripts that call tools: ten calls for one turn, and what is only on the way stays out of the conversation.
//!
//! ```text
//! tool.script ──── code ───►  host: Lua, in a process that the kernel holds
//!      ▲  │ ◄── wanted calls ──┘  ▲
//!      │  └── Back ► Haft::call   │
//!      └───── what came of them ──┘
//! ```
//!
//! The host (`host.rs`) has no files, no network, no environment and no clock; it only speaks JSON lines with whoever
//! started it. Every call it wants goes the path of every call, on the other side of the pipe.

mod host;
mod values;

pub use host::host;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The word by which a program becomes a host.
pub const WORD: &str = "script";
/// The longest line that either side takes.
pub(crate) const LINE_MAX: usize = 16 << 20;

/// What a host is told first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The script.
    pub(crate) code: String,
}

/// A call that a script wants made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) tool: String,
    pub(crate) args: Value,
}

/// What came of a call, as a script is told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Came {
    pub(crate) ok: bool,
    #[serde(default)]
    pub(crate) output: String,
    #[serde(default)]
    pub(crate) data: Value,
    /// Whether `output` is only a part.
    #[serde(default)]
    pub(crate) truncated: bool,
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// What a host says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// It wants these calls made.
    Calls(Vec<Wanted>),
    /// The script is over.
    Done { value: Value, printed: String },
    /// It failed.
    Failed { message: String, printed: String },
}
