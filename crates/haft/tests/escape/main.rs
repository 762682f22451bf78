//! What a confined program must not be able to do, tried: see the crate `haft-escapes`, which is both the
//! attacker and the judge. It has its own `main` because a confined copy of this very program attacks.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    haft_escapes::main(Path::new(env!("CARGO_BIN_EXE_haft")))
}
