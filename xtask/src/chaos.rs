//! `cargo xtask chaos`: ten thousand steps with effects while workers and the database are killed, on a file and on a server.
//! None may be lost, none done twice, none done before what it waits for. A shorter one is among the tests.

use crate::real::postgres::Postgres;
use crate::sh;
use anyhow::{Context, Result, bail};

/// How many steps where nobody says otherwise.
const STEPS: u32 = 10_000;

/// `cargo xtask chaos [--steps N] [--seed N]`
pub(crate) fn command(args: &[&str]) -> Result<()> {
    let (mut steps, mut seed) = (STEPS, 7_u32);
    for option in args.chunks(2) {
        match option {
            ["--steps", number] => steps = number.parse().context("--steps takes a number")?,
            ["--seed", number] => seed = number.parse().context("--seed takes a number")?,
            other => bail!("chaos takes --steps N and --seed N, not {}", other.join(" ")),
        }
    }
    let server = Postgres::start()?;
    let mut test = sh::cargo(&["test", "--package", "haft-runtime", "--test", "work", "--"]);
    test.args(["chaos::killed", "--nocapture", "--test-threads=1"]).envs(server.told());
    test.env("HAFT_CHAOS_STEPS", steps.to_string()).env("HAFT_CHAOS_SEED", seed.to_string());
    sh::run(&mut test)
}
