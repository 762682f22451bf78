//! Running other programs: from the repository's root, without stdin, with errors that name the command.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// A program with arguments, to be run at the repository's root.
pub(crate) fn command(program: impl AsRef<OsStr>, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root()).stdin(Stdio::null());
    command
}

/// The cargo that runs this chore, with the environment of a shell.
///
/// `cargo run` tells xtask about xtask's own package in variables that build scripts of dependencies look at (ring's does).
/// If they were passed on, every switch between `cargo xtask` and plain `cargo` would build those dependencies again.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(describes_running_package) {
            command.env_remove(name);
        }
    }
    command
}

fn describes_running_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

/// Runs a program and passes its output on. What is run is said on stderr: stdout may be for another program.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", said(command));
    let status = command.status().with_context(|| format!("cannot start `{}`", said(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", said(command));
    }
    Ok(())
}

/// Runs a program and gives its stdout; its stderr is in the error if it fails.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start `{}`", said(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}: {}", said(command), output.status, stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first of some programs that PATH leads to.
pub(crate) fn find(programs: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    programs.iter().find_map(|program| dirs.iter().map(|dir| dir.join(program)).find(|file| file.is_file()))
}

/// Whether this is the superuser, who may install packages.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Every file that git knows, relative to the root.
pub(crate) fn tracked() -> Result<Vec<PathBuf>> {
    // Files not yet added count too: a convention should be met before the commit, not after.
    let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    // A checkout may belong to somebody else than who tests it; listing it harms neither.
    let listed = capture(command("git", &["-c", "safe.directory=*"]).args(listing))?;
    let files = listed.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(files.filter(|file| root().join(file).is_file()).collect())
}

/// The command as one would type it, with the program's directory left out.
fn said(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    std::iter::once(program).chain(command.get_args()).map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
