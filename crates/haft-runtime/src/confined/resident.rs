//! A program that stays: it runs confined beside haft and is spoken to through its pipes, until it ends or nobody
//! wants it any more.

use super::{Terms, environment, explain};
use crate::workspace::Workspace;
use haft_core::CallError;
use haft_sandbox::watch::{self, Hit, Watch};
use haft_sandbox::{Backend, End, Plan, Program, Stdio, Usage};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// From being asked to end to being made to.
const GRACE: Duration = Duration::from_millis(500);

/// A program that is to stay, and what it may reach besides the project, which it may read.
#[derive(Debug, Clone, Default)]
pub struct Errand {
    /// Itself and its arguments.
    pub argv: Vec<String>,
    /// Variables of its own.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts; the project's root otherwise.
    pub cwd: Option<PathBuf>,
    /// What it may read besides.
    pub read: Vec<PathBuf>,
    /// Where it may write, straight into the files.
    pub write: Vec<PathBuf>,
}

/// Our ends of its pipes.
#[derive(Debug)]
pub struct Pipes {
    /// To its input.
    pub stdin: OwnedFd,
    /// From its output.
    pub stdout: OwnedFd,
    /// From its complaints.
    pub stderr: OwnedFd,
}

/// A program that runs. Dropping this ends it and everything it started.
#[derive(Debug)]
pub struct Resident {
    stop: Arc<AtomicBool>,
    /// Closing it wakes whoever watches.
    _wake: OwnedFd,
    ended: Option<oneshot::Receiver<String>>,
}

impl Resident {
    /// Starts a program. It runs until it ends by itself or this is dropped.
    pub async fn start(terms: Terms, workspace: Arc<Workspace>, errand: Errand) -> Result<(Self, Pipes), CallError> {
        Self::begun_by(move || begin(&terms, &workspace, &errand), (), |_| false).await
    }

    /// Starts a program that somebody else has planned. What is held goes when the program has gone.
    pub(crate) async fn planned(
        backend: &'static dyn Backend,
        plan: Plan,
        program: Program,
        held: impl Send + 'static,
    ) -> Result<(Self, Pipes), CallError> {
        Self::begun_by(move || launch(backend, &plan, &program), held, |_| false).await
    }

    /// The same, with somebody who is told what it uses whenever that is looked at, and says whether it has to go.
    pub(crate) async fn tended(
        (backend, plan, program): (&'static dyn Backend, Plan, Program),
        tend: impl Fn(&Usage) -> bool + Send + 'static,
    ) -> Result<(Self, Pipes), CallError> {
        Self::begun_by(move || launch(backend, &plan, &program), (), tend).await
    }

    async fn begun_by(
        begin: impl FnOnce() -> Result<Started, CallError> + Send + 'static,
        held: impl Send + 'static,
        tend: impl Fn(&Usage) -> bool + Send + 'static,
    ) -> Result<(Self, Pipes), CallError> {
        let lost = |error: std::io::Error| CallError::internal(format!("no pipes for the program: {error}"));
        let (asleep, wake) = watch::pipe().map_err(lost)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (first, started) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let watcher = Watcher { stop: Arc::clone(&stop), asleep };
        // A thread of its own: whoever starts a program stays with it to its end.
        let thread = std::thread::Builder::new().name("haft-resident".to_owned());
        let work = move || {
            let why = watcher.run(begin, first, &tend);
            drop(held);
            // Nobody may be left who wants to know.
            let _ = end.send(why);
        };
        thread.spawn(work).map_err(|error| CallError::internal(format!("no thread for the program: {error}")))?;
        let gone = || CallError::internal("the program's thread ended before the program began");
        let pipes = started.await.map_err(|_| gone())??;
        Ok((Self { stop, _wake: wake, ended: Some(ended) }, pipes))
    }

    /// Ends it if it does not do so by itself within a moment, waits until it and all it started are gone, and says how
    /// that came.
    pub(crate) async fn end(mut self, moment: Duration) -> String {
        let Some(mut ended) = self.ended.take() else { return "it ended".to_owned() };
        let soon = tokio::time::timeout(moment, &mut ended).await;
        drop(self);
        let why = match soon {
            Ok(why) => why,
            Err(_) => ended.await,
        };
        why.unwrap_or_else(|_| "it ended".to_owned())
    }

    /// Waits for its end, and says how that came. Of use once.
    pub async fn ended(&mut self) -> String {
        match self.ended.take() {
            Some(ended) => ended.await.unwrap_or_else(|_| "it ended".to_owned()),
            None => "it ended".to_owned(),
        }
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Whoever starts a program and stays with it.
struct Watcher {
    stop: Arc<AtomicBool>,
    asleep: OwnedFd,
}

type Begun = oneshot::Sender<Result<Pipes, CallError>>;

impl Watcher {
    fn run(
        &self,
        begin: impl FnOnce() -> Result<Started, CallError>,
        first: Begun,
        tend: &dyn Fn(&Usage) -> bool,
    ) -> String {
        let (mut run, bounds, pipes) = match begin() {
            Ok(started) => started,
            Err(error) => {
                let why = error.message.clone();
                let _ = first.send(Err(error));
                return why;
            }
        };
        // If nobody waits for it any more, its pipes are closed here and it is told to end.
        if first.send(Ok(pipes)).is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        let stop = || self.stop.load(Ordering::Relaxed);
        let seen = |usage: &Usage| {
            if tend(usage) {
                self.stop.store(true, Ordering::Relaxed);
            }
        };
        let how = Watch {
            stop: &stop,
            wake: Some(&self.asleep),
            grace: GRACE,
            seen: Some(&seen),
            ..Watch::unattended(&bounds)
        };
        match watch::watch(&mut *run, how) {
            Ok(watched) => said(watched.end, watched.hit),
            Err(error) => error.to_string(),
        }
    }
}

type Started = (Box<dyn haft_sandbox::Run>, haft_sandbox::Bounds, Pipes);

fn begin(terms: &Terms, workspace: &Workspace, errand: &Errand) -> Result<Started, CallError> {
    let mut env = environment::make(&terms.pass, &terms.secrets).map_err(|missing| {
        CallError::failed(missing.to_string()).hint("set it, or take it out of the entry's permissions.secrets")
    })?;
    env.retain(|(name, _)| !errand.env.iter().any(|(own, _)| own == name));
    env.extend(errand.env.iter().cloned());
    let read: Vec<PathBuf> = errand.read.iter().cloned().chain(own_file(&errand.argv)).collect();
    let settled = terms.settle_resident(workspace, &read, &errand.write).map_err(|error| explain(&error))?;
    let cwd = errand.cwd.as_ref().map_or_else(|| workspace.root().to_owned(), |dir| workspace.root().join(dir));
    let argv = errand.argv.iter().map(Into::into).collect();
    let program = Program { argv, env, shares_job: false, cwd };
    launch(settled.backend, &settled.plan, &program)
}

fn launch(backend: &dyn Backend, plan: &Plan, program: &Program) -> Result<Started, CallError> {
    let lost = |error: std::io::Error| CallError::internal(format!("no pipes for the program: {error}"));
    let ((theirs, stdin), (stdout, out), (stderr, err)) =
        (watch::pipe().map_err(lost)?, watch::pipe().map_err(lost)?, watch::pipe().map_err(lost)?);
    let ends = Stdio { stdin: theirs, stdout: out, stderr: err };
    let run = backend.start(plan, program, ends).map_err(|error| explain(&error))?;
    Ok((run, plan.confinement.bounds, Pipes { stdin, stdout, stderr }))
}

/// The program's own file, where it is named in full: whoever wants it to run wants it to be read.
fn own_file(argv: &[String]) -> Option<PathBuf> {
    let path = Path::new(argv.first()?);
    let plain = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
    (path.is_absolute() && plain).then(|| path.to_owned())
}

fn said(end: End, hit: Option<Hit>) -> String {
    match (hit, end) {
        (Some(hit), _) => format!("it reached its limit of {}", hit.noun()),
        (None, End::Exited(code)) => format!("it ended with exit status {code}"),
        (None, End::Signalled(signal)) => format!("it was ended by signal {signal}"),
    }
}
