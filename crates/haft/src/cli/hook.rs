//! Command-line arguments of `haft hook`.

use clap::{Args, ValueEnum};

/// Hook program for coding agents: allow, deny or ask about each call of the agent's own tools, and record it.
///
/// It reads one event of the agent's hooks from standard input, as the agent writes it, and answers in the agent's format.
/// Before a call, haft's policy, shell judgement, rules and approvals decide whether the call may run. After it, haft
/// records the result, so that `haft changes` and `haft undo` know native edits. haft does not sandbox these calls.
#[derive(Debug, Clone, Args)]
pub struct HookArgs {
    /// The coding agent that runs this hook.
    #[arg(value_enum)]
    pub client: HookClientArg,
    /// Where to ask when a call needs approval.
    #[arg(long, value_enum, default_value_t = AskTarget::Auto)]
    pub ask: AskTarget,
    /// How long a call waits in the inbox for an answer, at most 240000 [default: `mcp.wait_ms` of the configuration].
    #[arg(long, value_name = "MS")]
    pub wait_ms: Option<u64>,
    /// How long haft may take to decide before it blocks the call [default: 280000].
    #[arg(long, value_name = "MS", hide = true)]
    pub deadline_ms: Option<u64>,
}

/// An agent that has hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookClientArg {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
    /// goose.
    Goose,
}

/// Where to ask when a call needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AskTarget {
    /// In the agent, if it can ask and its user is present; otherwise in the inbox.
    Auto,
    /// In haft's inbox (`haft approvals` or the web page).
    Inbox,
}
