//! The seam between what is wanted and who enforces it. macOS has another warden (Seatbelt) with the same
//! three acts: say what you offer, plan, start. Paths, addresses and process ids stay behind it.

use crate::confinement::{Bounds, Confinement};
use crate::net::{Inside, Told};
use crate::standing::{Machine, Standing};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Unclear(String),
    /// What was asked for cannot be enforced here.
    #[error("{0}")]
    Unenforceable(String),
    /// A step of building the confinement failed.
    #[error("the confinement could not be built: {step}: {error}")]
    Step {
        /// Which.
        step: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The confinement stands, but the program could not be started in it.
    #[error("{program}: {error}")]
    Program {
        /// Which.
        program: String,
        /// What the kernel said.
        error: io::Error,
    },
}

impl SandboxError {
    pub(crate) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let step = step.into();
        move |error| Self::Step { step, error }
    }
}

/// A program and what it is started with. Its environment is made from nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Itself and its arguments.
    pub argv: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Whether it shares the terminal and the job of whoever starts it, so that job control holds it, too.
    /// Otherwise it gets a session of its own.
    pub shares_job: bool,
    /// Where it starts.
    #[serde(with = "as_bytes")]
    pub cwd: PathBuf,
}

/// A path as the bytes that it is: it need not be text.
mod as_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(deserializer).map(PathBuf::from)
    }
}

/// What becomes of a program's first three descriptors. All others are closed.
#[derive(Debug)]
pub struct Stdio {
    /// Its input.
    pub stdin: OwnedFd,
    /// Its output.
    pub stdout: OwnedFd,
    /// Its complaints.
    pub stderr: OwnedFd,
}

/// A confinement that can be enforced, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is wanted, with every path resolved.
    pub confinement: Confinement,
    /// By what each permission is enforced.
    pub standing: Standing,
    /// Variables that the program needs to find the way out, if it has one.
    pub env: Vec<(OsString, OsString)>,
    /// Whoever wants to hear of each contact through the gate when it ends.
    pub told: Option<Told>,
    /// Whoever is asked, at each contact, whether a service inside that the rules admit is open at that moment.
    pub inside: Option<Inside>,
}

impl Plan {
    /// What the program may use up.
    pub fn bounds(&self) -> &Bounds {
        &self.confinement.bounds
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
}

impl End {
    /// The exit status as a shell would report it.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
        }
    }
}

/// What a program and all that it started use at the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory, in bytes.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Processor time.
    pub cpu: Duration,
    /// Written to disk, in bytes.
    pub written: u64,
}

/// A program that runs under a plan. Dropping it kills everything it started.
pub trait Run: Send {
    /// Waits at most so long for the end.
    fn wait(&mut self, at_most: Duration) -> Result<Option<End>, SandboxError>;
    /// A descriptor that becomes readable when `wait` has something to say.
    fn bell(&self) -> Option<std::os::fd::BorrowedFd<'_>>;
    /// Asks the program to end.
    fn signal(&self, signal: i32);
    /// Ends the program and everything it started.
    fn kill(&mut self);
    /// What it uses. Of more processes than `enough`, only that they are more.
    fn usage(&self, enough: u64) -> Usage;
    /// Whom it contacted, where somebody watches. Asked once, after the end.
    fn contacts(&mut self) -> Vec<crate::net::Contact>;
}

/// Who enforces confinements.
pub trait Backend: Send + Sync {
    /// What it has to work with.
    fn machine(&self) -> &Machine;
    /// How a confinement would be enforced, or why it cannot be.
    fn plan(&self, confinement: Confinement) -> Result<Plan, SandboxError>;
    /// Starts a program under a plan.
    fn start(&self, plan: &Plan, program: &Program, stdio: Stdio) -> Result<Box<dyn Run>, SandboxError>;
}

/// The warden of this system.
#[cfg(target_os = "linux")]
pub fn backend() -> &'static dyn Backend {
    crate::linux::Linux::here()
}

/// On other systems: none, and it says so.
#[cfg(not(target_os = "linux"))]
pub fn backend() -> &'static dyn Backend {
    static NONE: std::sync::LazyLock<crate::Bare> = std::sync::LazyLock::new(crate::Bare::default);
    &*NONE
}
