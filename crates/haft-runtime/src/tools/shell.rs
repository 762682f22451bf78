//! shell.exec: a command in a shell, confined, on a copy-on-write view of the project where the machine has
//! one. What it did to files comes back as changes.

use crate::confined::{self, Job, Ran, environment};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::place::Access;
use haft_core::shape::{Keep, Limits};
use haft_core::{CallError, ErrorKind, ToolSpec};
use haft_sandbox::watch::{self, Hit, Watch};
use haft_sandbox::{Bounds, End, Program, Stdio};
use serde::Deserialize;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// From being asked to end to being made to.
const GRACE: Duration = Duration::from_secs(5);
const TIMEOUT_MS: u64 = 120_000;
const TIMEOUT_MAX_MS: u64 = 600_000;
/// Shells, the usual one first.
const SHELLS: &[&str] = &["/bin/bash", "/usr/bin/bash", "/bin/sh"];

#[derive(Deserialize)]
struct Args {
    command: String,
    timeout_ms: Option<u64>,
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

    /// Waits for the end also when the call is halted: the watch hears of it, and only the end of the run
    /// is the end of everything it started.
    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        let scene = scene.clone();
        Box::pin(async move {
            let ran = tokio::task::spawn_blocking(move || run(&scene)).await;
            ran.unwrap_or_else(|crash| Err(CallError::internal(format!("the tool crashed: {crash}"))))
        })
    }
}

fn spec() -> ToolSpec {
    declare(
        "shell.exec",
        "Run a command in a shell (bash -c) and return what it prints and its exit status. It starts in the project, may \
         read the project and the system's programs, writes only the project and its own /tmp, and has no network unless \
         the configuration gives it some. What it changes can be undone. Nothing it starts outlives it.",
    )
    .hint("bash terminal command run execute script build test git")
    .input(json!({
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1, "maxLength": 131_072, "description": "The command"},
            "cwd": {"type": "string", "description": "Where it starts (default: the project root)"},
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "maximum": TIMEOUT_MAX_MS,
                "description": "End it after so many milliseconds (default 120000)"
            },
            "description": {"type": "string", "maxLength": 500, "description": "What it is for, in a few words"}
        },
        "required": ["command"],
        "additionalProperties": false
    }))
    .output(json!({
        "type": "object",
        "properties": {
            "exit_code": {"type": ["integer", "null"]},
            "signal": {"type": ["integer", "null"]},
            "run": {"type": "object"}
        },
        "required": ["exit_code", "signal", "run"]
    }))
    .runs()
    .destructive()
    .command("command", None)
    .touches("cwd", Access::Read, Some("."))
    .timeout(Duration::from_millis(TIMEOUT_MAX_MS) + GRACE * 2)
    .limits(Limits { lines: 4000, bytes: 200_000, keep: Keep::HeadAndTail })
}

fn run(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let (terms, workspace) = (scene.terms(), scene.workspace());
    let refuse = |error: &haft_sandbox::SandboxError| confined::explain(error);
    let staging = terms.stage(&scene.call().id).map_err(|error| {
        CallError::internal(format!("no room for what the command changes: {error}")).hint("check the data directory")
    })?;
    let mut settled = terms.settle(workspace, staging.path()).map_err(|error| refuse(&error))?;
    settled.plan.confinement.bounds = Bounds {
        wall: Some(Duration::from_millis(args.timeout_ms.unwrap_or(TIMEOUT_MS))),
        ..settled.plan.confinement.bounds
    };
    let program = program(scene, args.command)?;
    let (stdio, pipes) = stdio().map_err(|error| CallError::internal(format!("no pipes: {error}")))?;
    let bounds = settled.plan.confinement.bounds;
    let how = Watch {
        bounds: &bounds,
        pipes,
        stop: &|| scene.halt().check().is_err(),
        signal: &|| None,
        wake: None,
        grace: GRACE,
    };
    let job = Job { backend: settled.backend, plan: &settled.plan, program: &program, staging: Some(staging) };
    let ran = confined::run(job, stdio, how).map_err(|error| refuse(&error))?;
    // A caller who cancelled hears that, and nothing is kept.
    scene.halt().check()?;
    Ok(reply(ran, &settled.guard, &|path| scene.shown(path)))
}

fn program(scene: &Scene, command: String) -> Result<Program, CallError> {
    let terms = scene.terms();
    let shell = SHELLS.iter().find(|shell| Path::new(shell).exists());
    let shell = shell.ok_or_else(|| CallError::failed("there is no shell on this machine"))?;
    let env = environment::make(&terms.pass, &terms.secrets).map_err(|missing| {
        CallError::failed(missing.to_string()).hint("set it, or take it out of permissions.secrets")
    })?;
    let argv = vec![(*shell).into(), "-c".into(), command.into()];
    let place = scene.place("cwd")?;
    if !place.real.is_dir() {
        return Err(CallError::not_found(format!("{} is not a directory to start in", place.shown)));
    }
    if !place.inside {
        return Err(CallError::invalid(format!("{} is not something that the command may read", place.shown))
            .hint("start it in the project, or name the directory under files.read"));
    }
    Ok(Program { argv, env, shares_job: false, cwd: place.real.clone() })
}

fn stdio() -> std::io::Result<(Stdio, Vec<std::os::fd::OwnedFd>)> {
    let ((out, stdout), (err, stderr)) = (watch::pipe()?, watch::pipe()?);
    Ok((Stdio { stdin: watch::nothing()?, stdout, stderr }, vec![out, err]))
}

fn reply(mut ran: Ran, guard: &confined::Guard, shown: &dyn Fn(&Path) -> String) -> Reply {
    let mut text = output(&ran);
    let (exit_code, signal) = match ran.watched.end {
        End::Exited(code) => (Some(code), None),
        End::Signalled(signal) => (None, Some(signal)),
    };
    let data = json!({"exit_code": exit_code, "signal": signal, "run": ran.record()});
    let mut warnings = ran.warnings(shown);
    warnings.extend(ran.refusals());
    let allowed = ran.contacts.iter().filter(|contact| contact.allowed);
    let contacted: Vec<String> = allowed.map(|contact| format!("{}:{}", contact.host, contact.port)).collect();
    if !contacted.is_empty() {
        warnings.push(format!("it contacted {}", contacted.join(", ")));
    }
    let (changes, error) = match (ended_early(&ran), ran.keepable(guard, shown)) {
        // What was cut off half-way is not kept: nobody meant that state.
        (Some(error), _) | (None, Err(error)) => (Vec::new(), Some(error)),
        (None, Ok(changes)) => (changes, failed(ran.watched.end)),
    };
    if let Some(error) = &error {
        text =
            format!("{}{}[{}]\n", text, if text.is_empty() || text.ends_with('\n') { "" } else { "\n" }, error.message);
    }
    Reply { text, data: Some(data), changes, warnings, error, staging: ran.staging.take(), ..Reply::default() }
}

/// What it printed: complaints after the output, and marked.
fn output(ran: &Ran) -> String {
    let text =
        |number: usize| ran.watched.output.get(number).map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    let (stdout, stderr) = (text(0), text(1));
    match (stdout.is_empty(), stderr.is_empty()) {
        (_, true) => stdout.into_owned(),
        (true, false) => stderr.into_owned(),
        (false, false) => {
            let break_line = if stdout.ends_with('\n') { "" } else { "\n" };
            format!("{stdout}{break_line}[stderr]\n{stderr}")
        }
    }
}

fn ended_early(ran: &Ran) -> Option<CallError> {
    let kept = if ran.diffed.is_some() { "; what it had changed was discarded" } else { "" };
    match ran.watched.hit {
        Some(Hit::Wall) => Some(
            CallError::new(ErrorKind::Timeout, format!("the command did not finish in time{kept}"))
                .hint("give it more with timeout_ms"),
        ),
        Some(hit) => Some(
            CallError::failed(format!("the command reached its limit of {}{kept}", hit.noun()))
                .hint("the limits are under `confinement.limits` in the configuration"),
        ),
        None => None,
    }
}

fn failed(end: End) -> Option<CallError> {
    match end {
        End::Exited(0) => None,
        End::Exited(code) => Some(CallError::failed(format!("exit status {code}"))),
        End::Signalled(signal) => Some(CallError::failed(format!("ended by signal {signal}"))),
    }
}
