//! No confinement at all, said honestly. For systems without a warden, and for who insists.

use crate::backend::{Backend, End, Plan, Program, Run, SandboxError, Stdio, Usage};
use crate::confinement::{Confinement, Writes};
use crate::standing::{Machine, Standing};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const WHY: &str = "there is no confinement on this system";

/// Runs programs as they are. It still gives them an environment made from nothing and a process group of
/// their own.
pub struct Bare(Machine);

impl Default for Bare {
    fn default() -> Self {
        Self(Machine::bare(WHY))
    }
}

impl Backend for Bare {
    fn machine(&self) -> &Machine {
        &self.0
    }

    fn plan(&self, confinement: Confinement) -> Result<Plan, SandboxError> {
        if confinement.writes != Writes::Direct {
            return Err(SandboxError::Unenforceable(format!("{WHY}, so nothing can be tried without doing it")));
        }
        Ok(Plan { confinement, standing: Standing::bare(WHY), env: Vec::new(), told: None, inside: None })
    }

    fn start(&self, _: &Plan, program: &Program, stdio: Stdio) -> Result<Box<dyn Run>, SandboxError> {
        let Some((name, args)) = program.argv.split_first() else {
            return Err(SandboxError::Unclear("there is no program to start".to_owned()));
        };
        let child = Command::new(name)
            .args(args)
            .env_clear()
            .envs(program.env.iter().cloned())
            .current_dir(&program.cwd)
            .stdin(stdio.stdin)
            .stdout(stdio.stdout)
            .stderr(stdio.stderr)
            .process_group(0)
            .spawn();
        let fail = |error| SandboxError::Program { program: name.to_string_lossy().into_owned(), error };
        Ok(Box::new(Running(child.map_err(fail)?)))
    }
}

struct Running(Child);

impl Running {
    fn group(&self, signal: rustix::process::Signal) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw) {
            // Gone already is as good as killed.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

impl Run for Running {
    fn wait(&mut self, at_most: Duration) -> Result<Option<End>, SandboxError> {
        let until = Instant::now() + at_most;
        loop {
            if let Some(status) = self.0.try_wait().map_err(SandboxError::step("wait"))? {
                let end = status.signal().map_or_else(|| End::Exited(status.code().unwrap_or(1)), End::Signalled);
                return Ok(Some(end));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
    }

    fn bell(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    fn signal(&self, signal: i32) {
        if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
            self.group(signal);
        }
    }

    fn kill(&mut self) {
        self.group(rustix::process::Signal::KILL);
    }

    fn usage(&self, _: u64) -> Usage {
        Usage::default()
    }

    fn contacts(&mut self) -> Vec<crate::net::Contact> {
        Vec::new()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}
