//! The agents that people use, each the real program: Claude Code, Gemini CLI, opencode and goose.
//!
//! Every client runs headless and offline, with haft as its MCP server and a scripted model (`haft-stub`) behind real
//! HTTP. What counts is the model's next request: a result that a client drops never happened for the model.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

mod client;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod project;
mod results;

/// The binary under test.
const HAFT: &str = env!("CARGO_BIN_EXE_haft");
