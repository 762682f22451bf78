//! Built-in tools beside the programs that people trust, on generated input: file.grep beside ripgrep, calc.eval beside Python
//! and so on. `cargo xtask diff` runs many cases, `cargo xtask test` a bounded number of them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so, and a failure how to repeat it")]

mod batch;
mod calc;
mod cases;
mod edit;
mod git;
mod glob;
mod grep;
mod ignore;
mod json;
mod list;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod pages;
mod project;
mod python;
mod read;
mod server;
mod texts;
