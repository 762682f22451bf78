//! Judges any program that speaks the flags of `haft confine`:
//! `HAFT_ESCAPES_PROGRAM=PROGRAM cargo run -p haft-escapes --example judge -- [PART OF A NAME]…`

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    haft_escapes::main(Path::new("/usr/bin/false"))
}
