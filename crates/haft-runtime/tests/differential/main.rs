//! Built-in tools beside the programs that people trust, on generated input: file.grep beside ripgrep, calc.eval beside Python
//! and so on. `cargo xtask diff` runs many cases, `cargo xtask test` a bounded number of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod calc;
mod cases;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod project;
mod python;
