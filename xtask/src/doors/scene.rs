//! A project, a home, and haft serving them.

use super::Address;
use crate::sh;
use anyhow::{Context, Result};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A directory below `target` with a project and a home, made anew.
pub(crate) struct Scene {
    haft: PathBuf,
    dir: PathBuf,
}

impl Scene {
    pub(crate) fn new(name: &str, haft: &Path, config: &str) -> Result<Self> {
        let dir = sh::root().join("target").join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("project/.git"))?;
        fs::create_dir_all(dir.join("home/.config/haft"))?;
        fs::write(dir.join("project/small.txt"), "A small file, as they are read all the time.\n".repeat(20))?;
        fs::write(dir.join("home/.config/haft/config.yml"), config)?;
        Ok(Self { haft: haft.to_owned(), dir })
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.join("project")
    }

    /// Any program in the project, with the home; on one core if so said.
    pub(crate) fn command(&self, program: &Path, args: &[&str], pin: Pin) -> Command {
        let mut command = match (pin, sh::find(&["taskset"])) {
            (Pin::OneCore, Some(taskset)) => {
                let mut command = Command::new(taskset);
                command.args(["-c", "0"]).arg(program);
                command
            }
            _ => Command::new(program),
        };
        command.args(args).current_dir(self.project()).env("HOME", self.dir.join("home"));
        for variable in ["HAFT_STORE", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(variable);
        }
        command
    }

    /// `haft` with arguments.
    pub(crate) fn haft(&self, args: &[&str], pin: Pin) -> Command {
        self.command(&self.haft, args, pin)
    }

    /// `haft serve` on a free port.
    pub(crate) fn gateway(&self) -> Result<Gateway> {
        let mut command = self.haft(&["serve", "--listen", "127.0.0.1:0", "--print-url"], Pin::Anywhere);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut serving = Serving(command.spawn().context("cannot start haft serve")?);
        let mut line = String::new();
        if let Some(stdout) = serving.0.stdout.as_mut() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        Ok(Gateway { serving, address: Address::read(&line).with_context(|| format!("haft serve said {line:?}"))? })
    }
}

/// A gateway that runs until it is dropped.
pub(crate) struct Gateway {
    serving: Serving,
    pub(crate) address: Address,
}

impl Gateway {
    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.serving.0.id()
    }
}

struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where a process may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pin {
    Anywhere,
    OneCore,
}
