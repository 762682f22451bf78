//! The program under measurement, with a store of its own so that nobody's journal is written to.

use crate::sh;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) struct Haft {
    program: PathBuf,
    home: PathBuf,
}

impl Haft {
    /// The release binary, if there is one to build.
    pub(super) fn build() -> Result<Option<Self>> {
        let root = sh::root();
        if !root.join("crates/haft/src/main.rs").is_file() {
            return Ok(None);
        }
        sh::run(&mut sh::cargo(&["build", "--release", "--package", "haft"]))?;
        let home = root.join("target/bench-home");
        fs::create_dir_all(&home)?;
        Ok(Some(Self { program: root.join("target/release/haft"), home }))
    }

    /// `haft call TOOL ARGS --json` in a directory.
    pub(super) fn call(&self, dir: &Path, tool: &str, args: &Value) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["call", tool, &args.to_string(), "--no-input", "--json"]).current_dir(dir);
        command.env_remove("HAFT_STORE").env("HOME", &self.home);
        for variable in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env(variable, self.home.join(variable));
        }
        command
    }

    /// The program itself, and a home that holds nothing of anybody's.
    pub(super) fn program(&self) -> (&Path, &Path) {
        (&self.program, &self.home)
    }

    /// What a call replies.
    pub(super) fn reply(&self, dir: &Path, tool: &str, args: &Value) -> Result<String> {
        Ok(text(&self.outcome(dir, tool, args)?))
    }

    /// All that a call found, even where the reply was cut and only names the rest.
    pub(super) fn whole(&self, dir: &Path, tool: &str, args: &Value) -> Result<String> {
        let outcome = self.outcome(dir, tool, args)?;
        match outcome["full_output"].as_str() {
            Some(path) => fs::read_to_string(dir.join(path)).with_context(|| format!("cannot read {path}")),
            None => Ok(text(&outcome)),
        }
    }

    fn outcome(&self, dir: &Path, tool: &str, args: &Value) -> Result<Value> {
        let said = sh::capture(self.call(dir, tool, args).stdin(Stdio::null()))?;
        serde_json::from_str(&said).context("haft does not print an outcome")
    }
}

fn text(outcome: &Value) -> String {
    outcome["output"].as_str().unwrap_or_default().to_owned()
}

/// The most memory that a process held, in MB. The kernel keeps count in a file that is gone when the
/// process is, so it is read until then; what is missed is at most the last millisecond.
pub(super) fn peak_mb(command: &mut Command) -> Result<f64> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status_file = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak = None;
    let status = loop {
        // A mark that only rises: the last one read is the highest.
        peak = fs::read_to_string(&status_file).ok().and_then(|text| high_water_mb(&text)).or(peak);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    peak.context("the process ended before its memory could be read")
}

/// `VmHWM` of a `/proc/PID/status`. A zombie has none.
fn high_water_mb(status: &str) -> Option<f64> {
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?;
    Some(kilobytes.trim().parse::<f64>().ok()? / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read() {
        assert_eq!(high_water_mb("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"), Some(2.0));
        assert_eq!(high_water_mb("Name:\tx\nState:\tZ (zombie)\n"), None);
    }

    #[test]
    fn a_process_has_a_peak() {
        let peak = peak_mb(Command::new("sleep").arg("0.05")).unwrap();
        assert!(peak > 0.1 && peak < 100.0, "{peak}");
        assert!(peak_mb(Command::new("sh").args(["-c", "sleep 0.05; exit 3"])).is_err());
    }
}
