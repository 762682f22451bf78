//! The frameworks in which people write agents, each the real package: Pydantic AI, the `OpenAI` Agents SDK, `LangChain`,
//! smolagents and the Vercel AI SDK.
//!
//! Each runs the program of `examples/frameworks` that docs/frameworks.md shows, offline, over stdio (`haft mcp`) and over
//! HTTP (`haft serve`), with the framework's own `OpenAI` model and a scripted model (`haft-stub`) behind real HTTP. What
//! counts is the model's next request: a result that a framework drops never happened for the model.
//!
//! The tests have a `main` of their own, because a framework that cannot run on the machine has to be counted as skipped by
//! the test runner, by name.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

mod framework;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
#[path = "../agent_clients/project.rs"]
mod project;
mod results;
mod structured;

use libtest_mimic::Arguments;
use std::process::ExitCode;

/// The binary under test.
const HAFT: &str = env!("CARGO_BIN_EXE_haft");

fn main() -> ExitCode {
    let trials = results::trials().into_iter().chain(structured::trials()).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
