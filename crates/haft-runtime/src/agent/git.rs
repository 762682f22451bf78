//! git, as it is run outside the sandbox: it reads a repository and fills a copy of one, and starts nothing else.
//!
//! A repository's own configuration may name programs, and so may the user's, for a project's attributes to choose. So git gets
//! no variables but harmless ones, no configuration of the user's, nobody to fetch from, and is not run at all in a repository
//! that names programs which it could start here. All git outside the sandbox is run by this module, for a while at most: what a
//! project has in its repository may keep git waiting for ever, or make much out of little.

use crate::confined::environment;
use crate::halt::Halt;
use haft_core::preview::{cut, inert, size};
use haft_core::{CallError, ErrorKind};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long it may take, each time.
const TIME_MAX: Duration = Duration::from_mins(5);
/// How much it may say.
const SAID_MAX: u64 = 256 << 20;
/// How often what it fills is weighed.
const WEIGH: Duration = Duration::from_millis(500);

/// What is said to git before anything else. A repository's own word counts for less.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "filter.lfs.process=",
    "filter.lfs.smudge=",
    "filter.lfs.clean=",
    "filter.lfs.required=false",
    "maintenance.auto=false",
    "gc.auto=0",
];
/// Its variables besides the harmless ones.
const VARIABLES: &[(&str, &str)] = &[
    ("HOME", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // None has this name, so none is allowed.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
];
/// Settings of a repository that name a program, or whom to fetch from while something is only read: section and name.
const PROGRAMS: &[(&str, &str)] = &[
    ("extensions", "partialclone"),
    ("remote", "promisor"),
    ("remote", "partialclonefilter"),
    ("remote", "uploadpack"),
    ("remote", "receivepack"),
    ("remote", "vcs"),
    ("core", "sshcommand"),
    ("core", "gitproxy"),
    ("core", "askpass"),
    ("core", "alternaterefscommand"),
    ("uploadpack", "packobjectshook"),
    ("filter", "clean"),
    ("filter", "smudge"),
    ("filter", "process"),
];
/// Who may have filters all the same: what is said to git above turns them off.
const KNOWN_FILTER: &str = "lfs";

/// git in a directory.
pub(crate) struct Git {
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
    dir: PathBuf,
    /// Where it stops looking upwards for a repository.
    ceiling: Option<PathBuf>,
    /// Whose repositories are read although they are somebody else's, as the user has said.
    trusted: Vec<OsString>,
    /// What ends it before its end.
    halt: Halt,
}

impl Git {
    /// git in a directory of haft's own: what is around that is not looked at. Not a git that lies in the project.
    pub(crate) fn beside(project: &Path, dir: &Path) -> Result<Self, CallError> {
        let program = environment::installed("git", &[project]).ok_or_else(|| {
            CallError::failed("git is not installed").hint("install git, outside the project, or use the mode sync")
        })?;
        let mut env = environment::make(&[], &[]).map_err(|error| CallError::internal(error.to_string()))?;
        let path = ("PATH".into(), environment::outside(project).path.clone());
        let own = VARIABLES.iter().map(|(name, value)| (name.into(), value.into())).chain([path]);
        for (name, value) in own.collect::<Vec<(OsString, OsString)>>() {
            env.retain(|(known, _)| *known != name);
            env.push((name, value));
        }
        let ceiling = dir.parent().map(Path::to_owned);
        Ok(Self { program, env, dir: dir.to_owned(), ceiling, trusted: Vec::new(), halt: Halt::new() })
    }

    /// The same, ended with a call.
    #[must_use]
    pub(crate) fn until(mut self, halt: &Halt) -> Self {
        self.halt = halt.clone();
        self
    }

    /// git in the repository around a directory. One that names programs is refused.
    pub(crate) fn within(project: &Path, dir: &Path, halt: &Halt) -> Result<Self, CallError> {
        let mut git = Self::beside(project, dir)?.until(halt);
        (git.ceiling, git.trusted) = (None, git.trusted_by_user());
        let names = git.bytes(&["config", "--list", "--name-only", "-z"])?;
        let names = names.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned());
        let mut found: Vec<String> = names.filter(|name| names_program(name)).collect();
        found.sort();
        found.dedup();
        if found.is_empty() {
            return Ok(git);
        }
        let shown = cut(&inert(&found.join(", ")), 300);
        Err(CallError::invalid(format!("the repository of {} names programs or whom to fetch from: {shown}", dir.display()))
            .hint("there is no copy of such a one: they would run where nothing holds them. Take that out of its configuration, or use the mode sync"))
    }

    /// What the user says of other people's repositories, in a configuration that is not read otherwise.
    fn trusted_by_user(&self) -> Vec<OsString> {
        let mut command = Command::new(&self.program);
        command.current_dir("/").args(["config", "--includes", "--type=path", "--get-all", "-z", "safe.directory"]);
        let own = self.env.iter().filter(|(name, _)| !VARIABLES.iter().any(|(own, _)| name == own));
        command.env_clear().envs(own.cloned());
        for name in ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        let said = self.run(command, None).map(|output| output.stdout).unwrap_or_default();
        said.split(|byte| *byte == 0)
            .filter(|dir| !dir.is_empty())
            .map(|dir| OsString::from_vec(dir.to_vec()))
            .collect()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.dir).env_clear().envs(self.env.iter().cloned());
        command.envs(self.ceiling.iter().map(|dir| ("GIT_CEILING_DIRECTORIES", dir)));
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for dir in &self.trusted {
            let mut setting = OsString::from("safe.directory=");
            setting.push(dir);
            command.arg("-c").arg(setting);
        }
        command.args(args);
        command
    }

    /// What a command says and how it ends.
    pub(crate) fn output(&self, args: &[&str]) -> Result<Output, CallError> {
        self.run(self.command(args), None)
    }

    /// Runs it to its end, or ends it with all that it started: with the call, after its time, and once there is more than
    /// `most` in the directory that it fills.
    fn run(&self, mut command: Command, most: Option<u64>) -> Result<Output, CallError> {
        let failed = |error: std::io::Error| CallError::failed(format!("git cannot be started: {error}"));
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let output = std::thread::scope(|scope| {
            let (stdout, stderr) = (scope.spawn(move || heard(stdout)), scope.spawn(move || heard(stderr)));
            let ended = self.wait(&child, most);
            // Before it is reaped: the number may be somebody else's after that. Nobody is heard after it, either.
            let _ = pid(&child).map(|group| kill_process_group(group, Signal::KILL));
            let status = child.wait().map_err(failed);
            let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
            ended?;
            Ok(Output { status: status?, stdout, stderr })
        })?;
        if output.stdout.len() as u64 > SAID_MAX {
            return Err(CallError::failed(format!("git says more than {} MiB", SAID_MAX >> 20)));
        }
        self.weigh(most)?;
        Ok(output)
    }

    /// Waits for its end, and leaves it to be reaped.
    fn wait(&self, child: &Child, most: Option<u64>) -> Result<(), CallError> {
        let (began, mut pause, mut weighed) = (Instant::now(), Duration::from_millis(1), Instant::now());
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let runs = |pid| waitid(WaitId::Pid(pid), options).is_ok_and(|ended| ended.is_none());
        while pid(child).is_some_and(runs) {
            self.halt.check()?;
            if began.elapsed() >= TIME_MAX {
                let limit = TIME_MAX.as_secs() / 60;
                let message = format!("git did not finish within {limit} minutes in {}", self.dir.display());
                return Err(CallError::new(ErrorKind::Timeout, message));
            }
            if weighed.elapsed() >= WEIGH {
                self.weigh(most)?;
                weighed = Instant::now();
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Errs if there is more in its directory than there may be.
    fn weigh(&self, most: Option<u64>) -> Result<(), CallError> {
        match most {
            Some(most) if weight(&self.dir) > most => Err(too_much(most)),
            _ => Ok(()),
        }
    }

    /// Has a command fill the directory, with so much at most.
    pub(crate) fn fill(&self, args: &[&str], most: u64) -> Result<(), CallError> {
        said(args, self.run(self.command(args), Some(most))?).map(drop)
    }

    /// What a command says, if it ends well.
    pub(crate) fn bytes(&self, args: &[&str]) -> Result<Vec<u8>, CallError> {
        said(args, self.output(args)?)
    }

    /// The one path that a command says.
    pub(crate) fn path(&self, args: &[&str]) -> Result<PathBuf, CallError> {
        let said = self.bytes(args)?;
        Ok(PathBuf::from(std::ffi::OsStr::from_bytes(said.strip_suffix(b"\n").unwrap_or(&said))))
    }

    /// The one line that a command says.
    pub(crate) fn line(&self, args: &[&str]) -> Result<String, CallError> {
        Ok(String::from_utf8_lossy(&self.bytes(args)?).trim_end_matches('\n').to_owned())
    }
}

/// What a command said, if it ended well.
fn said(args: &[&str], output: Output) -> Result<Vec<u8>, CallError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let what = args.iter().find(|arg| !arg.starts_with('-')).copied().unwrap_or_default();
    Err(CallError::failed(format!("git {what} failed: {}", inert(&words))))
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// What a pipe says. Who says too much finds it closed.
fn heard(pipe: Option<impl Read>) -> Vec<u8> {
    let mut heard = Vec::new();
    let _ = pipe.map(|pipe| pipe.take(SAID_MAX + 1).read_to_end(&mut heard));
    heard
}

/// How much is in a directory.
fn weight(dir: &Path) -> u64 {
    let (mut sum, mut dirs) = (0_u64, vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => dirs.push(entry.path()),
                Ok(meta) => sum = sum.saturating_add(meta.len()),
                Err(_) => {}
            }
        }
    }
    sum
}

/// What is said of a copy that would be larger than it may be.
pub(crate) fn too_much(most: u64) -> CallError {
    let limit = size(usize::try_from(most).unwrap_or(usize::MAX));
    CallError::conflict(format!("what was last committed is more than {limit}, the limit of a copy"))
        .hint("use the mode sync, or take out of the repository what is that large")
}

/// Whether a setting names a program that git could start here.
fn names_program(setting: &str) -> bool {
    let (section, rest) = setting.split_once('.').unwrap_or((setting, ""));
    let (within, name) = rest.rsplit_once('.').unwrap_or(("", rest));
    let is = |known: &(&str, &str)| section.eq_ignore_ascii_case(known.0) && name.eq_ignore_ascii_case(known.1);
    PROGRAMS.iter().any(is) && !(section == "filter" && within == KNOWN_FILTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_has_nothing_but_what_it_needs() {
        let dir = tempfile::tempdir().unwrap();
        let git = Git::beside(Path::new("/nowhere"), dir.path()).unwrap();
        let env = git.line(&["-c", "alias.env=!env", "env"]).unwrap();
        // CARGO_PKG_NAME is set for every test.
        assert!(!env.contains("CARGO_PKG_NAME"), "{env}");
        for held in ["GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/dev/null"]
        {
            assert!(env.lines().any(|line| line == held), "{held}: {env}");
        }
        git.bytes(&["init", "--quiet"]).unwrap();
        let from = dir.path().display().to_string();
        let fetched = git.bytes(&["clone", "--no-local", &from, "elsewhere"]).unwrap_err();
        assert!(fetched.message.contains("not allowed"), "{fetched:?}");
    }

    /// Whether nothing runs with these words any more.
    fn gone(words: &str) -> bool {
        let lines = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = lines.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok());
        !lines.any(|line| line.contains(words))
    }

    #[test]
    fn git_ends_with_its_call_and_so_does_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let halt = Halt::new().within(Duration::from_millis(300));
        let git = Git::beside(Path::new("/nowhere"), dir.path()).unwrap().until(&halt);
        let late = git.bytes(&["-c", "alias.wait=!sleep 3471.5; true", "wait"]).unwrap_err();
        assert_eq!(late.kind, ErrorKind::Timeout, "{late:?}");
        let halt = Halt::new();
        let git = git.until(&halt);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                halt.cancel();
            });
            let cancelled = git.bytes(&["-c", "alias.wait=!sleep 3471.5; true", "wait"]).unwrap_err();
            assert_eq!(cancelled.kind, ErrorKind::Cancelled, "{cancelled:?}");
        });
        assert!(began.elapsed() < Duration::from_mins(1));
        assert!(gone("3471.5"));
    }

    #[test]
    fn what_fills_more_than_it_may_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let git = Git::beside(Path::new("/nowhere"), dir.path()).unwrap();
        let fill = |much: &str| {
            let alias = format!("alias.fill=!mkdir -p d && head -c {much} /dev/zero > d/filled");
            git.fill(&["-c", &alias, "fill"], 1 << 20)
        };
        fill("1000").unwrap();
        let much = fill("2000000").unwrap_err();
        assert!(much.message.contains("more than 1"), "{much:?}");
        let slow = "alias.fill=!head -c 2000000 /dev/zero > filled; sleep 3472.5; true";
        assert!(git.fill(&["-c", slow, "fill"], 1 << 20).is_err());
        assert!(gone("3472.5"));
    }

    #[test]
    fn settings_that_name_programs_are_known() {
        for setting in [
            "extensions.partialclone",
            "remote.origin.promisor",
            "remote.a.b.uploadpack",
            "core.sshcommand",
            "core.sshCommand",
            "filter.x.smudge",
            "filter.lfsx.process",
            "filter.lfs.x.process",
        ] {
            assert!(names_program(setting), "{setting}");
        }
        for setting in ["core.bare", "remote.origin.url", "filter.lfs.process", "branch.promisor.remote", "user.name"] {
            assert!(!names_program(setting), "{setting}");
        }
    }
}
