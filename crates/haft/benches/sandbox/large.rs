//! A second process that holds a gigabyte, and starts programs when it is told to: so that starting from
//! there and from a small process can take turns.

use super::{Result, start};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How this program is told to be that process.
pub(crate) const FLAG: &str = "--large";
const SIZE: usize = 1 << 30;

/// The line to it. It ends when the line does.
pub(crate) struct Large {
    _process: Child,
    line: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Large {
    pub(crate) fn start(project: &Path) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.arg(FLAG).arg(project).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let ends = process.stdin.take().zip(process.stdout.take()).ok_or("no line to the large process")?;
        Ok(Self { _process: process, line: Mutex::new((ends.0, BufReader::new(ends.1))) })
    }

    /// Has it do something once, and hears how long that took.
    pub(crate) fn ask(&self, what: &str) -> Result<Duration> {
        let (to, from) = &mut *self.line.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(to, "{what}")?;
        to.flush()?;
        let mut said = String::new();
        from.read_line(&mut said)?;
        Ok(Duration::from_nanos(said.trim().parse().map_err(|_| format!("it said {said:?}"))?))
    }
}

/// What the large process does.
#[expect(clippy::print_stdout, reason = "its answers")]
pub(crate) fn serve(project: &Path) -> Result<()> {
    haft_sandbox::Linux::prepare()?;
    let held = vec![1_u8; SIZE];
    for word in std::io::stdin().lines() {
        let word = word?;
        let begun = Instant::now();
        match word.as_str() {
            "plain" => start::plain(project)?,
            "direct" => drop(start::direct(project, &["/bin/true"])?),
            _ => fork(project)?,
        }
        println!("{}", begun.elapsed().as_nanos());
        black_box(&held);
    }
    Ok(())
}

/// To become a user, even the one it is, the standard library has to fork.
fn fork(project: &Path) -> Result<()> {
    let own = std::fs::metadata("/proc/self")?.uid();
    start::finish(Command::new("/bin/true").current_dir(project).env_clear().envs(start::ENV).uid(own))
}
