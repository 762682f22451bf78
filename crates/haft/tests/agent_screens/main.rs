//! The agents that people use, as a person sits in front of them: the real Claude Code, Codex, goose, Gemini CLI and
//! opencode in a terminal, with haft as their MCP server and a scripted model (`haft-stub`) behind real HTTP.
//!
//! What counts is the screen: that the question is there, that its first lines are the decision, and that a key answers
//! it. With `HAFT_PICTURES=DIR` the screens are drawn into that directory (`cargo xtask docs pictures`).
//!
//! The tests have a `main` of their own, because a client that cannot run on the machine has to be counted as skipped by
//! the test runner, by name, and the built-in harness decides that when it compiles.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

mod client;
mod forms;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod picture;
mod tasks;
mod terminal;

use libtest_mimic::Arguments;
use std::process::ExitCode;

/// The binary under test.
const HAFT: &str = env!("CARGO_BIN_EXE_haft");

fn main() -> ExitCode {
    let trials = [forms::trials(), tasks::trials()].into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
