//! `cargo xtask fuzz`: libFuzzer on the stable toolchain. The instrumentation flags are those cargo-fuzz
//! passes, minus the sanitizers, which are nightly only: without unsafe code a finding is a panic.

use crate::needs::CXX;
use crate::sh;
use anyhow::{Context, Result, bail};
use std::fs;

const SECONDS: u32 = 20;

/// Coverage feedback, kept in a target directory of its own: these flags rebuild every dependency.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];

/// Runs one target, or each in turn.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let (target, seconds) = match args {
        [] => (None, SECONDS),
        [target] => (Some(*target), SECONDS),
        ["--seconds", n] => (None, n.parse()?),
        [target, "--seconds", n] | ["--seconds", n, target] => (Some(*target), n.parse()?),
        other => bail!("usage: cargo xtask fuzz [TARGET] [--seconds N], not {}", other.join(" ")),
    };
    if let Err(sentence) = CXX.meet() {
        bail!(sentence);
    }
    let known = targets()?;
    let chosen: Vec<&String> = known.iter().filter(|name| target.is_none_or(|target| target == *name)).collect();
    if chosen.is_empty() {
        bail!("no such target: {} (there are {})", target.unwrap_or_default(), known.join(", "));
    }
    chosen.into_iter().try_for_each(|name| run_one(name, seconds))
}

fn targets() -> Result<Vec<String>> {
    let dir = sh::root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn run_one(name: &str, seconds: u32) -> Result<()> {
    let host = host()?;
    let place = ["--profile", "fuzz", "--target", &host, "--target-dir", "target/fuzz"];
    let build = ["build", "--package", "haft-fuzz", "--bin", name];
    // Naming the target keeps the flags off build scripts, which cannot be linked with them.
    sh::run(sh::cargo(&build).args(place).env("RUSTFLAGS", FLAGS.join(" ")))?;

    let (corpus, artifacts) = (format!("fuzz/corpus/{name}"), format!("fuzz/artifacts/{name}/"));
    fs::create_dir_all(sh::root().join(&corpus))?;
    fs::create_dir_all(sh::root().join(&artifacts))?;
    let program = sh::root().join(format!("target/fuzz/{host}/fuzz/{name}"));
    let limits = ["-max_len=4096", "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"];
    let mut fuzz = sh::command(program, &limits);
    fuzz.args([format!("-max_total_time={seconds}"), format!("-artifact_prefix={artifacts}"), corpus]);
    sh::run(&mut fuzz).with_context(|| format!("{name} found something; the input is in {artifacts}"))
}

fn host() -> Result<String> {
    let said = sh::capture(&mut sh::command("rustc", &["-vV"]))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say its host")
}
