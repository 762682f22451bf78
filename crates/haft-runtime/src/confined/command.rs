//! A tool's program: what runs, where it starts and for how long; and running it to its end.

use super::terms::Settled;
use super::{Guard, Job, Ran, Terms, environment, explain};
use crate::output::{Collector, Order};
use crate::tool::Staging;
use crate::workspace::Workspace;
use haft_core::{CallError, CallId, ErrorKind};
use haft_sandbox::watch::{self, Hit, Sink, Watch};
use haft_sandbox::{Bounds, End, Network, Program, Stdio};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// From being asked to end to being made to.
const GRACE: Duration = Duration::from_secs(5);
/// Shells that are found by name: all read the same language, more or less.
pub const SHELLS: &[&str] = &["bash", "sh", "dash", "ash", "zsh", "ksh", "mksh"];
const PLACES: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin"];
/// The usual one first.
const USUAL: &[&str] = &["bash", "sh"];

/// How commands are run in a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shell {
    /// Which: one of [`SHELLS`] or a path; otherwise the usual one.
    pub program: Option<PathBuf>,
    /// How long a main agent waits before a command goes on in the background; none is for ever.
    pub background_after: Option<Duration>,
    /// In which order what is printed is shown.
    pub order: Order,
}

impl Default for Shell {
    fn default() -> Self {
        Self { program: None, background_after: Some(Duration::from_secs(15)), order: Order::default() }
    }
}

impl Shell {
    /// Whether it reads a command as bash does.
    pub(crate) fn reads(&self, command: &str) -> bool {
        let path = self.path().unwrap_or_default();
        match path.file_name().and_then(OsStr::to_str) {
            Some("bash") => true,
            Some("sh" | "dash") => haft_core::shell::is_portable(command),
            _ => false,
        }
    }

    /// The shell's file.
    fn path(&self) -> Result<PathBuf, CallError> {
        let find = |name: &str| PLACES.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists());
        let found = match &self.program {
            Some(path) if path.is_absolute() => Some(path.clone()).filter(|path| path.exists()),
            Some(name) => name.to_str().and_then(find),
            None => USUAL.iter().find_map(|name| find(name)),
        };
        found.ok_or_else(|| match &self.program {
            Some(program) => CallError::failed(format!("the shell {} is not on this machine", program.display()))
                .hint("choose another with shell.program in the configuration"),
            None => CallError::failed("there is no shell on this machine"),
        })
    }
}

/// What runs, where it starts, and for how long.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Command {
    argv: Vec<String>,
    #[serde(with = "haft_core::path_text::stored")]
    pub(crate) cwd: PathBuf,
    pub(crate) timeout: Option<Duration>,
}

impl Command {
    /// A text in the language of the shell.
    pub(crate) fn shell(shell: &Shell, text: String, cwd: PathBuf) -> Result<Self, CallError> {
        let program = shell.path()?.to_string_lossy().into_owned();
        Ok(Self { argv: vec![program, "-c".to_owned(), text], cwd, timeout: None })
    }

    /// A program and its arguments, as they are. One that is nowhere is found out here: later nobody may be
    /// listening.
    pub(crate) fn program(program: String, args: Vec<String>, cwd: PathBuf) -> Result<Self, CallError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let there = if program.contains('/') {
            cwd.join(&program).is_file()
        } else {
            std::env::split_paths(&path).any(|dir| dir.join(&program).is_file())
        };
        if !there {
            let shown = haft_core::preview::cut(&haft_core::preview::inert(&program), 80);
            return Err(CallError::not_found(format!("there is no program `{shown}`"))
                .hint("is it installed, and on the PATH? A relative path starts at cwd"));
        }
        Ok(Self { argv: std::iter::once(program).chain(args).collect(), cwd, timeout: None })
    }

    /// At most for so long.
    #[must_use]
    pub(crate) fn within(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    pub(super) fn prepared(&self, terms: &Terms) -> Result<Program, CallError> {
        let mut env = environment::make(&terms.pass, &terms.secrets).map_err(|missing| {
            CallError::failed(missing.to_string()).hint("set it, or take it out of permissions.secrets")
        })?;
        if terms.network == Network::None {
            environment::add_no_network(&mut env);
        }
        let argv = self.argv.iter().map(Into::into).collect();
        Ok(Program { argv, env, shares_job: false, cwd: self.cwd.clone() })
    }
}

/// Where a command runs, and on what terms.
pub(crate) struct Site<'s> {
    pub(crate) workspace: &'s Workspace,
    pub(crate) terms: &'s Terms,
    pub(crate) call: &'s CallId,
}

/// What may come to a command from outside while it runs.
pub(crate) struct Reins<'r> {
    /// Whether somebody wants it to end.
    pub(crate) stop: &'r dyn Fn() -> bool,
    /// A signal for it.
    pub(crate) signal: &'r dyn Fn() -> Option<i32>,
    /// Told once it runs.
    pub(crate) begun: &'r dyn Fn(),
}

/// A command that ran.
pub(crate) struct Done {
    ran: Ran,
    guard: Guard,
    took: Duration,
}

/// Runs a command to its end. Nothing of what it does on layers has happened yet when this returns.
pub(crate) fn run(
    command: &Command,
    site: &Site<'_>,
    reins: &Reins<'_>,
    collector: &mut Collector<'_>,
) -> Result<Done, CallError> {
    let begun = Instant::now();
    let staging = site.terms.stage(site.call).map_err(|error| {
        CallError::internal(format!("no room for what the command changes: {error}")).hint("check the data directory")
    })?;
    let mut settled = site.terms.settle(site.workspace, staging.path()).map_err(|error| explain(&error))?;
    settled.plan.confinement.bounds = Bounds { wall: command.timeout, ..settled.plan.confinement.bounds };
    let program = command.prepared(site.terms)?;
    let readied = Readied { settled, program, staging: Some(staging), stdin: None, begun };
    let mut sink = |number: usize, bytes: &[u8]| collector.take(number, bytes);
    carry(readied, reins, &mut sink)
}

/// A program, how it is held, and what it starts with.
pub(crate) struct Readied {
    pub(crate) settled: Settled,
    pub(crate) program: Program,
    /// Where its layers are, if it has any.
    pub(crate) staging: Option<Arc<Staging>>,
    /// What it reads; nothing otherwise.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) begun: Instant,
}

/// Runs what is ready to its end.
pub(crate) fn carry<'s>(readied: Readied, reins: &'s Reins<'s>, sink: &'s mut Sink<'s>) -> Result<Done, CallError> {
    let Readied { settled, program, staging, stdin, begun } = readied;
    let (stdio, pipes) = stdio(stdin).map_err(|error| CallError::internal(format!("no pipes: {error}")))?;
    let bounds = settled.plan.confinement.bounds;
    let how = Watch {
        pipes,
        stop: reins.stop,
        signal: reins.signal,
        grace: GRACE,
        sink: Some(sink),
        ..Watch::unattended(&bounds)
    };
    let job = Job { backend: settled.backend, plan: &settled.plan, program: &program, staging, begun: reins.begun };
    let ran = super::run(job, stdio, how).map_err(|error| explain(&error))?;
    Ok(Done { ran, guard: settled.guard, took: begun.elapsed() })
}

/// What it reads, and two pipes to write to.
fn stdio(stdin: Option<OwnedFd>) -> std::io::Result<(Stdio, Vec<OwnedFd>)> {
    let ((out, stdout), (err, stderr)) = (watch::pipe()?, watch::pipe()?);
    let stdin = stdin.map_or_else(watch::nothing, Ok)?;
    Ok((Stdio { stdin, stdout, stderr }, vec![out, err]))
}

/// How a command ended, in the words of a reply.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ending {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<CallError>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    pub(crate) run: Value,
}

impl Done {
    /// Whether it ended because somebody wanted it to.
    pub(crate) fn stopped(&self) -> bool {
        self.ran.watched.stopped && self.ran.watched.hit.is_none()
    }

    /// What it changed and may be kept, and how it ended. `cut_off` is why nobody waits for it any more: then
    /// nothing of it is kept.
    pub(crate) fn settle(self, cut_off: Option<CallError>, shown: &dyn Fn(&Path) -> String) -> (Kept, Ending) {
        self.settle_within(&[0], cut_off, shown)
    }

    /// The same for a program that may end with these statuses.
    pub(crate) fn settle_within(
        mut self,
        fine: &[i32],
        cut_off: Option<CallError>,
        shown: &dyn Fn(&Path) -> String,
    ) -> (Kept, Ending) {
        let (exit_code, signal) = match self.ran.watched.end {
            End::Exited(code) => (Some(code), None),
            End::Signalled(signal) => (None, Some(signal)),
        };
        self.ran.take_git_refusals(&self.guard);
        let mut warnings = self.ran.warnings(shown);
        warnings.extend(self.ran.refusals());
        let allowed = self.ran.contacts.iter().filter(|contact| contact.allowed);
        let contacted: Vec<String> = allowed.map(|contact| format!("{}:{}", contact.host, contact.port)).collect();
        if !contacted.is_empty() {
            warnings.push(format!("it contacted {}", contacted.join(", ")));
        }
        let run = self.ran.record();
        let early = cut_off.or_else(|| ended_early(&self.ran));
        let (changes, error) = match (early, self.ran.keepable(&self.guard, shown)) {
            // What was cut off half-way is not kept: nobody meant that state.
            (Some(error), _) | (None, Err(error)) => (Vec::new(), Some(error)),
            (None, Ok(changes)) => (changes, failed(self.ran.watched.end, fine)),
        };
        let duration_ms = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        (Kept { changes, staging: self.ran.staging }, Ending { exit_code, signal, duration_ms, error, warnings, run })
    }
}

/// What of a command's changes may be kept.
pub(crate) struct Kept {
    pub(crate) changes: Vec<haft_core::change::Change>,
    pub(crate) staging: Option<Arc<Staging>>,
}

fn ended_early(ran: &Ran) -> Option<CallError> {
    let kept = if ran.diffed.is_some() { "; what it had changed was discarded" } else { "" };
    match ran.watched.hit {
        Some(Hit::Wall) => Some(
            CallError::new(ErrorKind::Timeout, format!("the command did not finish in time{kept}"))
                .hint("give it more with timeout_ms, or run it in the background"),
        ),
        Some(hit) => Some(
            CallError::failed(format!("the command reached its limit of {}{kept}", hit.noun()))
                .hint("the limits are under `confinement.limits` in the configuration"),
        ),
        None => None,
    }
}

fn failed(end: End, fine: &[i32]) -> Option<CallError> {
    match end {
        End::Exited(code) if fine.contains(&code) => None,
        End::Exited(code) => Some(CallError::failed(format!("exit status {code}"))),
        End::Signalled(signal) => Some(CallError::failed(format!("ended by signal {signal}"))),
    }
}

/// From when on a reply says how long it took.
const LONG_MS: u64 = 5000;

impl Ending {
    /// What a reply says after the output.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.error.iter().map(|error| format!("[{}]", error.message)).collect();
        if self.duration_ms >= LONG_MS {
            lines.push(format!("[took {}]", seconds(self.duration_ms)));
        }
        lines
    }
}

/// Milliseconds as people say them.
pub(crate) fn seconds(ms: u64) -> String {
    if ms < 120_000 { format!("{}.{} s", ms / 1000, ms % 1000 / 100) } else { format!("{} min", ms / 60_000) }
}
