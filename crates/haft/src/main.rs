//! The `haft` command.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    haft::commands::run(haft::cli::Cli::parse())
}
