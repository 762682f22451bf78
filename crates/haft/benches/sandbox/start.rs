//! `true`, which does nothing, so that all of its time is the start: plain, confined, from a process that
//! holds a gigabyte, and by other sandboxes.

use super::large::Large;
use super::race::{Contestant, Times, race};
use super::{Ground, Result};
use haft::new_call_id;
use haft_runtime::confined::{self, Job, Ran};
use haft_runtime::tool::Staging;
use haft_sandbox::watch::{Watch, nothing};
use haft_sandbox::{Confinement, Program, Stdio, Writes, backend, roots};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 300;
/// What every program gets, confined or not.
pub(crate) const ENV: [(&str, &str); 2] = [("PATH", "/usr/bin:/bin"), ("HOME", "/home/somebody")];
const TRUE: &str = "/bin/true";

/// Another way to start a program.
pub(crate) struct Peer {
    name: String,
    argv: Vec<String>,
    env: Vec<(String, String)>,
}

impl Peer {
    pub(crate) fn read(value: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let argv = value["argv"].as_array().into_iter().flatten().map(text).collect();
        let env = value["env"].as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value)));
        Self { name: text(&value["name"]), argv, env: env.collect() }
    }

    fn once(&self, project: &Path) -> Result<()> {
        let (program, args) = self.argv.split_first().ok_or("no program")?;
        let mut command = Command::new(program);
        command.args(args).current_dir(project).env_clear().envs(self.env.iter().cloned());
        finish(&mut command)
    }
}

pub(crate) fn times(ground: &Ground) -> Result<Times> {
    let project = ground.project.as_path();
    let large = Large::start(project)?;
    let mut contestants = vec![
        Contestant::new("plain", || plain(project)),
        Contestant::new("direct", || direct(project, &[TRUE]).map(drop)),
        Contestant::new("layered", || layered(project, &ground.data, &[TRUE]).map(drop)),
        Contestant::timed("large_plain", || large.ask("plain")),
        Contestant::timed("large_direct", || large.ask("direct")),
        Contestant::timed("large_fork", || large.ask("fork")),
    ];
    contestants.extend(ground.peers.iter().map(|peer| Contestant::new(&peer.name, || peer.once(project))));
    race(ROUNDS, contestants)
}

/// The standard library starts it with `posix_spawn`.
pub(crate) fn plain(project: &Path) -> Result<()> {
    finish(Command::new(TRUE).current_dir(project).env_clear().envs(ENV))
}

/// Runs a program whose output nobody reads. Its complaints go where those of this program go: if it fails,
/// they are the reason.
pub(crate) fn finish(command: &mut Command) -> Result<()> {
    let silent = std::process::Stdio::null;
    let status = command.stdin(silent()).stdout(silent()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}

/// Confined, with the real project to write to.
pub(crate) fn direct(project: &Path, argv: &[&str]) -> Result<Ran> {
    run(project, Writes::Direct, argv, None)
}

/// Confined, on a copy-on-write view of the project, with what that takes: making the layer and telling
/// what changed on it. It is removed when the result is dropped.
pub(crate) fn layered(project: &Path, data: &Path, argv: &[&str]) -> Result<Ran> {
    let staging = Staging::create(data, &new_call_id())?;
    run(project, Writes::Layered(staging.path().to_owned()), argv, Some(staging))
}

fn run(project: &Path, writes: Writes, argv: &[&str], staging: Option<std::sync::Arc<Staging>>) -> Result<Ran> {
    let wanted = Confinement { write: vec![project.to_owned()], writes, ..Confinement::default() };
    let backend = backend();
    let plan = backend.plan(roots::resolve(wanted, project)?)?;
    let os = |text: &str| OsString::from(text);
    let program = Program {
        shares_job: false,
        argv: argv.iter().map(|arg| os(arg)).collect(),
        env: ENV.iter().map(|(name, value)| (os(name), os(value))).collect(),
        cwd: project.to_owned(),
    };
    let stdio = Stdio { stdin: nothing()?, stdout: silence()?, stderr: silence()? };
    let how = Watch::unattended(plan.bounds());
    let ran = confined::run(Job { backend, plan: &plan, program: &program, staging, begun: &|| {} }, stdio, how)?;
    match ran.watched.end.code() {
        0 => Ok(ran),
        code => Err(format!("{argv:?} ended with {code}").into()),
    }
}

fn silence() -> Result<std::os::fd::OwnedFd> {
    Ok(std::fs::OpenOptions::new().write(true).open("/dev/null")?.into())
}
