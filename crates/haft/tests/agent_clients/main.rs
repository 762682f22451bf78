//! The agents that people use, each the real program: Claude Code, Codex, Gemini CLI, opencode and goose.
//!
//! Every client runs headless and offline, with haft as its MCP server and a scripted model (`haft-stub`) behind real
//! HTTP. What counts is the model's next request: a result that a client drops never happened for the model.
//!
//! The tests have a `main` of their own, because a client that cannot run on the machine has to be counted as skipped by
//! the test runner, by name, and the built-in harness decides that when it compiles.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

mod beside;
mod client;
mod context_cost;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod overrides;
mod project;
mod replace;
mod results;
mod skills;
mod structured;
mod subagents;
mod trials;
mod waiting;

use libtest_mimic::Arguments;
use std::process::ExitCode;

/// The binary under test.
const HAFT: &str = env!("CARGO_BIN_EXE_haft");

fn main() -> ExitCode {
    let trials = [
        results::trials(),
        replace::trials(),
        overrides::trials(),
        subagents::trials(),
        context_cost::trials(),
        skills::trials(),
        structured::trials(),
        waiting::trials(),
    ];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
