//! git, as it is run outside the sandbox: it reads a repository and fills a copy of one, and starts nothing else.
//!
//! A repository's own configuration may name programs, and so may the user's, for a project's attributes to choose. So git gets
//! no variables but harmless ones, no configuration of the user's, nobody to fetch from, and is not run at all in a repository
//! that names programs which it could start here. All git outside the sandbox is run by this module.

use crate::confined::environment;
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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
        Ok(Self { program, env, dir: dir.to_owned(), ceiling, trusted: Vec::new() })
    }

    /// git in the repository around a directory. One that names programs is refused.
    pub(crate) fn within(project: &Path, dir: &Path) -> Result<Self, CallError> {
        let mut git = Self::beside(project, dir)?;
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
        command.env_clear().envs(own.cloned()).stdin(Stdio::null());
        for name in ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        let said = command.output().map(|output| output.stdout).unwrap_or_default();
        said.split(|byte| *byte == 0)
            .filter(|dir| !dir.is_empty())
            .map(|dir| OsString::from_vec(dir.to_vec()))
            .collect()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.dir).env_clear().envs(self.env.iter().cloned()).stdin(Stdio::null());
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
        let failed = |error| CallError::failed(format!("git cannot be started: {error}"));
        self.command(args).output().map_err(failed)
    }

    /// What a command says, if it ends well.
    pub(crate) fn bytes(&self, args: &[&str]) -> Result<Vec<u8>, CallError> {
        let output = self.output(args)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let what = args.iter().find(|arg| !arg.starts_with('-')).copied().unwrap_or_default();
        Err(CallError::failed(format!("git {what} failed: {}", inert(&words))))
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
