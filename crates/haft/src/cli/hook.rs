//! What can be typed about the hooks of coding agents: `haft hook`.

use clap::{Args, ValueEnum};

/// Decide about a coding agent's own tool calls: a program for the agent's hook settings.
///
/// It reads one event of the agent's hooks from standard input, as the agent writes it, and answers in the agent's format.
/// Before a call it says whether the call may run, by haft's policy, shell judgement, rules and approvals; after it, haft
/// records what came of it, so that `haft changes` and `haft undo` know native edits. Nothing of haft's confines such a call.
#[derive(Debug, Args)]
pub struct HookArgs {
    /// Whose hooks call it.
    #[arg(value_enum)]
    pub client: HookClientWord,
    /// Where a question goes that haft's policy leaves to a person.
    #[arg(long, value_enum, default_value_t = HookAsk::Auto)]
    pub ask: HookAsk,
    /// How long a call waits in the inbox for an answer [default: mcp.wait_ms of the configuration].
    #[arg(long, value_name = "MS")]
    pub wait_ms: Option<u64>,
}

/// An agent that has hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookClientWord {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
}

/// Where questions go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookAsk {
    /// To the agent's user, if the agent can ask and somebody attends it; else to the inbox.
    Auto,
    /// To haft's inbox: the page, `haft approvals`.
    Inbox,
}
