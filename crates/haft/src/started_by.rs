//! Who started this process: a person, or an agent's call. A command that an agent runs is not its user's word.
//!
//! Two things are looked at. A process above this one that is haft itself runs this one for a call of an agent's. And
//! coding agents mark the programs that their shells start with a variable. A program that is confined sees neither; it
//! cannot see the store, either.

use haft_core::CallError;
use haft_core::approval::{Decider, DeciderIdentity, DecisionRefused, DecisionScope};
use haft_core::observed::HookClient;
use std::os::unix::fs::MetadataExt;

/// The variables by which coding agents mark what their own shells start, and the agents' names.
const MARKS: &[(&str, &str)] = &[
    ("CLAUDECODE", "Claude Code"),
    ("CODEX_SANDBOX", "Codex"),
    ("CODEX_THREAD_ID", "Codex"),
    ("GEMINI_CLI", "Gemini CLI"),
    ("CURSOR_AGENT", "Cursor"),
    ("OPENCODE", "opencode"),
];
/// How many processes above this one are looked at.
const DEPTH_MAX: usize = 64;

/// By what an agent is known to have started this command, in words; none if nothing says so.
pub(crate) fn agent_sign() -> Option<String> {
    call_sign().or_else(|| {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let mark = MARKS.iter().find(|(name, _)| set(name));
        mark.map(|(name, agent)| format!("{name} is set, as by the shell of {agent}"))
    })
}

/// By what a call of haft's is known to have started this process. Clients start MCP servers with their own environment, so
/// that says nothing there.
pub(crate) fn call_sign() -> Option<String> {
    let own = identity_of("self")?;
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..DEPTH_MAX {
        if pid <= 1 {
            return None;
        }
        // That of another user's process cannot be read, and is not this haft. One that was replaced by a newer version while
        // it ran is another file, under the same name.
        if identity_of(&pid.to_string()) == Some(own) || is_named_haft(pid) {
            return Some(format!("process {pid} above it is haft"));
        }
        pid = parent_of(pid)?;
    }
    None
}

/// The file that a process runs.
fn identity_of(process: &str) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(format!("/proc/{process}/exe")).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Whether a process runs a file of the name `haft`, even one that is there no more.
fn is_named_haft(pid: u32) -> bool {
    let Ok(exe) = std::fs::read_link(format!("/proc/{pid}/exe")) else { return false };
    let name = exe.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(" (deleted)").unwrap_or(&name) == "haft"
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Who decides by a command: the user, unless an agent runs it.
pub(crate) fn command_line() -> Decider {
    let user = || std::env::var("USER").ok().filter(|name| !name.is_empty());
    let identity = match agent_sign() {
        Some(sign) => DeciderIdentity::AgentProgram { sign },
        None => DeciderIdentity::CommandLine { user: user() },
    };
    identity.into()
}

/// Who answers at the prompt of a coding agent that asks by haft's hook: its user, unless a call of haft's started the agent.
pub(crate) fn client_prompt(client: HookClient) -> Decider {
    let prompt = || DeciderIdentity::ClientPrompt { client: client.title().to_owned() };
    call_sign().map_or_else(prompt, |sign| DeciderIdentity::AgentProgram { sign }).into()
}

/// Who decides in this process as this identity: an agent's program is nobody else.
pub(crate) fn unless_agent(identity: DeciderIdentity) -> Decider {
    agent_sign().map_or(identity, |sign| DeciderIdentity::AgentProgram { sign }).into()
}

/// Refuses a command that is the user's word if an agent runs it.
pub(crate) fn require_user() -> Result<(), CallError> {
    command_line().check("", DecisionScope::Lasting).map_err(DecisionRefused::into_error)
}
