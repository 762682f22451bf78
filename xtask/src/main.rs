//! The project's chores: one command each, nothing needed but the toolchain.
//!
//! `cargo xtask help` lists them. What a chore could not do for want of a program it says, and goes on.

mod bench;
mod build;
mod chaos;
mod ci;
mod diff;
mod docs;
mod doors;
mod fuzz;
mod needs;
mod real;
mod sh;
mod soak;
mod test;
mod tidy;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test                          everything that must hold: tests, doc tests, examples, fuzz targets, tidy
cargo xtask needs                         install what tests meet (MCP clients and servers, a browser) and print where it is
cargo xtask tidy                          the conventions that a compiler does not check
cargo xtask bench                         measure beside the peers and write BENCHMARKS.md
cargo xtask bench apply [--beside PROGRAM]  the same for applying changes alone, beside this benchmark of another commit
cargo xtask bench sandbox                 the same for confinement alone
cargo xtask bench shell                   the same for understanding shell commands alone
cargo xtask bench web                     the same for reading pages and looking at their text alone
cargo xtask bench doors                   the same for MCP and the gateway alone
cargo xtask bench web                     the same for the way out to the web alone
cargo xtask bench clients                 the same for what haft costs beside coding agents alone
cargo xtask bench tools                   the same for tools as files alone
cargo xtask bench finding                 the same for finding tools alone
cargo xtask bench agents                  the same for conversations alone
cargo xtask bench memory                  the same for memory alone
cargo xtask bench work                    the same for pipelines and tasks alone
cargo xtask soak [--calls N] [--with HAFT]  100 000 calls through every door, and memory must stay flat
cargo xtask chaos [--steps N] [--seed N]  10 000 steps while workers and the database are killed
cargo xtask diff [TEST] [--seed N] [--cases N]  built-in tools beside the programs that people trust
cargo xtask fuzz [TARGET] [--seconds N]   run fuzz targets (20 s each)
cargo xtask fuzz build                    only compile them
cargo xtask docs [--check]                write docs/reference, or say what is stale
cargo xtask docs pictures                 draw the screens of the real MCP clients into docs/images
cargo xtask ci                            what .ci/run does";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<()> {
    match args {
        ["test"] => test::run(),
        ["needs"] => real::print(),
        ["tidy"] => tidy::run(),
        ["bench"] => bench::run(),
        ["bench", "apply"] => bench::apply(None),
        ["bench", "apply", "--beside", program] => bench::apply(Some(program)),
        ["bench", "sandbox"] => bench::sandbox(),
        ["bench", "shell"] => bench::shell(),
        ["bench", "web"] => bench::web(),
        ["bench", "tools"] => bench::tools(),
        ["bench", "doors"] => bench::doors(),
        ["bench", "clients"] => bench::clients(),
        ["bench", "finding"] => bench::finding(),
        ["bench", "agents"] => bench::agents(),
        ["bench", "memory"] => bench::memory(),
        ["bench", "work"] => bench::work(),
        ["chaos", rest @ ..] => chaos::command(rest),
        ["soak", rest @ ..] => soak::command(rest),
        ["fuzz", "build"] => build::fuzz_targets(),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["diff", rest @ ..] => diff::command(rest),
        ["docs"] => docs::run(docs::Mode::Write),
        ["docs", "pictures"] => docs::pictures(),
        ["docs", "--check"] => docs::run(docs::Mode::Check),
        ["ci"] => ci::run(),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        other => bail!("no such chore: {}\n{HELP}", other.join(" ")),
    }
}
