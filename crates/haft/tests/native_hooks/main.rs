//! `haft hook` in the agents that people use, each the real program with its own tools: Claude Code, Codex, Gemini CLI,
//! goose.
//!
//! Every client runs headless and offline, with `haft hook` in its own hook settings and a scripted model (`haft-stub`)
//! behind real HTTP. What counts is what happened to the files, what the model was told, and what haft's log says.
//!
//! The tests have a `main` of their own, because a client that cannot run on the machine has to be counted as skipped by
//! the test runner, by name, and the built-in harness decides that when it compiles.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

mod attended;
mod bad_input;
mod client;
mod decisions;
mod edits;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod project;
mod unconfined;

use client::NativeClient;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// The binary under test.
const HAFT: &str = env!("CARGO_BIN_EXE_haft");

fn main() -> ExitCode {
    let mut trials = bad_input::trials();
    trials.extend(attended::trials());
    trials.extend(decisions::trials());
    trials.extend(edits::trials());
    trials.extend(unconfined::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// One test for each client. It is skipped, by name, where the client cannot run.
fn for_every_client(name: &str, test: fn(NativeClient)) -> Vec<Trial> {
    for_clients(&NativeClient::ALL, name, test)
}

/// One test for each of these clients. It is skipped, by name, where the client cannot run.
fn for_clients(clients: &[NativeClient], name: &str, test: fn(NativeClient)) -> Vec<Trial> {
    let left_out = std::env::var_os("HAFT_TEST_WITHOUT_MCP").is_some_and(|value| value == "1");
    let runs_here = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let trial = |client: &NativeClient| {
        let client = *client;
        let trial = Trial::test(format!("{}::{name}", client.name()), move || {
            test(client);
            Ok(())
        });
        trial.with_ignored_flag(left_out || !runs_here)
    };
    clients.iter().map(trial).collect()
}

/// A test that needs no client.
fn plain(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
