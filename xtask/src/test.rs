//! `cargo xtask test`: everything that must hold, in one command. Each step runs even if one before it
//! failed, so that one run tells all.

use crate::needs::{self, CXX, Need, PYTHON, STRACE, UNSHARE};
use crate::real::postgres::Postgres;
use crate::real::{self, Real};
use crate::{build, sh, soak, tidy};
use anyhow::{Result, bail};

/// What tests use beyond the toolchain.
const NEEDS: &[Need] = &[UNSHARE, PYTHON, STRACE];

pub(crate) fn run() -> Result<()> {
    let mut missing: Vec<String> = NEEDS.iter().filter_map(|need| need.meet().err()).collect();
    // Brought while the rest is built: it mostly waits for registries.
    let bringing = std::thread::spawn(real::meet);
    let (mut passed, mut failed) = (Vec::new(), Vec::new());
    let mut step = |name, result: Result<()>| match result {
        Ok(()) => passed.push(name),
        Err(error) => {
            eprintln!("{error:#}");
            failed.push(name);
        }
    };

    step("programs and examples", build::programs());
    step("tidy", tidy::run());
    match CXX.meet() {
        Ok(_) => step("fuzz targets", build::fuzz_targets()),
        Err(sentence) => missing.push(sentence),
    }
    step("doc tests", cargo(&["test", "--doc"], &[]));
    let mut real = bringing.join().unwrap_or_default();
    let server = real::server(&mut real);
    missing.extend(real.missing.iter().cloned());
    step("soak", soak::run(&sh::root().join("target/debug/haft"), soak::BRIEF));
    step("tests", runner(&real, server.as_ref()));
    drop(server);
    for table in conformance() {
        println!("{table}");
    }

    needs::confess(&missing);
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    println!("passed: {}", passed.join(", "));
    Ok(())
}

/// The tests themselves, last, so that the runner's own closing lines are what one sees.
fn runner(real: &Real, server: Option<&Postgres>) -> Result<()> {
    let (verb, options): (&[&str], &[&str]) = if sh::find(&["cargo-nextest"]).is_some() {
        (&["nextest", "run"], &["--no-fail-fast"])
    } else {
        (&["test"], &["--lib", "--bins", "--tests", "--no-fail-fast"])
    };
    sh::run(
        sh::cargo(verb)
            .args(build::ALL_BUT_FUZZ)
            .args(options)
            .envs(real.exports.iter().cloned())
            .envs(real.settings.iter().copied())
            .envs(server.map(Postgres::told).into_iter().flatten()),
    )
}

/// What the conformance suite found, as its tests left it.
fn conformance() -> Vec<String> {
    let entries = std::fs::read_dir(sh::root().join("target/conformance")).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ext| ext == "md")).collect();
    files.sort();
    files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

fn cargo(verb: &[&str], options: &[&str]) -> Result<()> {
    sh::run(sh::cargo(verb).args(build::ALL_BUT_FUZZ).args(options))
}
