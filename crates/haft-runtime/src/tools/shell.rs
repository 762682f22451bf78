//! shell.exec: a command in a shell, confined, on a copy-on-write view of the project where the machine has
//! one. What it did to files comes back as changes. It may go on in the background.

use crate::confined::command::Command;
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use crate::tools::running::{self, Stage};
use haft_core::place::Access;
use haft_core::shape::{Keep, Limits};
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_mins(2);
const TIMEOUT_MAX: Duration = Duration::from_mins(10);
/// What the end of a command may take beyond its time.
const SLACK: Duration = Duration::from_secs(10);
/// How much is shown of what is printed: of both streams together.
pub(super) const LIMITS: Limits = Limits { lines: usize::MAX, bytes: 256 << 10, keep: Keep::HeadAndTail };

#[derive(Deserialize)]
struct Args {
    command: String,
    timeout_ms: Option<u64>,
    #[serde(default)]
    background: bool,
    #[serde(default)]
    persist: bool,
    description: Option<String>,
}

/// The tool.
pub fn exec() -> Arc<dyn Tool> {
    Arc::new(Exec(Arc::new(spec())))
}

struct Exec(Arc<ToolSpec>);

impl Tool for Exec {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        running::to_its_end(scene, run)
    }
}

fn spec() -> ToolSpec {
    declare(
        "shell.exec",
        "Run a shell command (bash -c), for example a build, tests or git. Returns its output and exit status; lines \
         from stderr begin with [stderr]. It runs in a sandbox: it reads the project and the system's programs, writes \
         only the project and its own /tmp, and has no network unless the configuration allows it. It gets no input. \
         File changes can be undone. Nothing it starts keeps running, except with background: that returns a task id for \
         process.output, process.status, process.list and process.kill; its changes appear when it ends.",
    )
    .hint("bash terminal command run execute script build test git background task")
    .input(json!({
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1, "maxLength": 131_071, "description": "The shell command"},
            "cwd": {"type": "string", "description": "Working directory (default: the project root)"},
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": u64::try_from(TIMEOUT_MAX.as_millis()).unwrap_or(u64::MAX),
                "description": "Stop it after this many milliseconds (default 120000; in the background 600000)"
            },
            "background": {"type": "boolean", "description": "Run in the background and return a task id at once"},
            "persist": {"type": "boolean", "description": "In the background: keep running when the session ends"},
            "description": {"type": "string", "maxLength": 500, "description": "What it does, in a few words"}
        },
        "required": ["command"],
        "additionalProperties": false
    }))
    .output(json!({
        "type": "object",
        "properties": {
            "exit_code": {"type": ["integer", "null"]},
            "signal": {"type": ["integer", "null"]},
            "duration_ms": {"type": "integer"},
            "run": {"type": "object"},
            "task": {"type": "object", "properties": {"id": {"type": "string"}, "state": {"type": "string"}}}
        },
        "required": ["exit_code", "signal"]
    }))
    .runs()
    .destructive()
    .command("command", None)
    .touches("cwd", Access::Read, Some("."))
    .timeout(TIMEOUT_MAX + SLACK)
    .limits(LIMITS)
}

fn run(stage: &Stage) -> Result<Reply, CallError> {
    let scene = &stage.scene;
    let Args { command: text, timeout_ms, background, persist, description } = scene.parse()?;
    if persist && !background {
        return Err(CallError::invalid("`persist` is about a command in the background").hint("add background: true"));
    }
    let shell = &scene.terms().shell;
    let usual = if background { TIMEOUT_MAX } else { TIMEOUT };
    let timeout = timeout_ms.map_or(usual, Duration::from_millis);
    let command = Command::shell(shell, text.clone(), running::starting_place(scene)?)?.within(Some(timeout));
    let errand = || running::errand(scene, text, description, persist);
    let patience = shell.background_after.filter(|_| scene.call().caller.is_main_agent());
    let reply = match (background, patience) {
        // What it would do is found out by waiting for it.
        _ if scene.is_trial() => running::here(stage, &command),
        (true, _) => running::background(stage, errand(), command),
        (false, Some(patience)) if patience < timeout => running::movable(stage, errand(), command, patience),
        (false, _) => running::here(stage, &command),
    };
    let wants = scene.shell().and_then(|shell| shell.judged.interactive.as_ref());
    let said = wants.map(|program| {
        format!("`{program}` wants a person at a terminal; here its input is closed. Tell it what to do with options instead")
    });
    reply.map(|reply| hint(reply, said))
}

/// Adds what is known about the command to its reply: for one that wants to talk to somebody, that nobody is
/// there. A failure says so as its hint, and a success as a warning.
fn hint(mut reply: Reply, said: Option<String>) -> Reply {
    match (&mut reply.error, said) {
        (Some(error), Some(said)) => drop(error.hint.get_or_insert(said)),
        (None, Some(said)) => reply.warnings.push(said),
        (_, None) => {}
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_for_what_went_wrong() {
        let said = || Some("it wants a terminal, and has none".to_owned());
        assert_eq!(hint(Reply::text("fine"), said()).warnings, said().into_iter().collect::<Vec<_>>());
        assert_eq!(hint(Reply::text("fine"), None), Reply::text("fine"));
        let failed = Reply { error: Some(CallError::failed("exit status 1")), ..Reply::default() };
        assert_eq!(hint(failed, said()).error.and_then(|error| error.hint), said());
    }
}
