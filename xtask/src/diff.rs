//! `cargo xtask diff`: built-in tools beside the programs that people trust, on generated input.

use crate::{real, sh};
use anyhow::{Context, Result, bail};

/// Cases of every comparison, if nobody says how many.
const CASES: &str = "2000";
const USAGE: &str = "cargo xtask diff [TEST] [--seed N] [--cases N]";

pub(crate) fn command(args: &[&str]) -> Result<()> {
    let (mut test, mut seed, mut cases) = (None, None, CASES);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match *arg {
            "--seed" => seed = Some(rest.next().context(USAGE)?),
            "--cases" => cases = rest.next().context(USAGE)?,
            name if !name.starts_with('-') && test.is_none() => test = Some(name),
            other => bail!("{other} is not known: {USAGE}"),
        }
    }
    let real = real::meet();
    let mut run = sh::cargo(&["test", "--package", "haft-runtime", "--test", "differential", "--no-fail-fast", "--"]);
    run.args(test).args(["--include-ignored"]);
    run.envs(real.exports).envs(real.settings).env("HAFT_DIFF_CASES", cases);
    if let Some(seed) = seed {
        run.env("HAFT_DIFF_SEED", seed);
    }
    sh::run(&mut run)
}
