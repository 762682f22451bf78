//! `cargo xtask ci`: the same script that the continuous integration runs, so that the two cannot drift.

use crate::sh;
use anyhow::Result;

pub(crate) fn run() -> Result<()> {
    sh::run(&mut sh::command("bash", &[".ci/run"]))
}
