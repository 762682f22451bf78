//! A few lines from deep inside a large file: beside `sed`, which also has to walk there.

use super::haft::{Haft, peak_mb};
use super::report::Row;
use super::samples::{Rounds, interleaved};
use super::tree;
use anyhow::{Result, ensure};
use serde_json::json;
use std::process::Command;

const ROUNDS: Rounds = Rounds { warm_up: 2, counted: 15 };
const FIRST: usize = 900_000;
const LAST: usize = 900_050;
/// There is no promise for time, only for memory; walking no slower than sed is what one may expect.
const RATIO: f64 = 1.0;
/// A process's own memory and a buffer; the file is fifty times as large.
const MEMORY_MB: f64 = 20.0;

pub(super) fn rows(haft: &Haft) -> Result<Vec<Row>> {
    let (dir, file) = tree::large_file()?;
    let script = format!("{FIRST},{LAST}p;{LAST}q");
    let mut peer = Command::new("sed");
    peer.args(["-n", &script, file]).current_dir(&dir);
    let args = json!({"path": file, "offset": FIRST, "limit": LAST - FIRST + 1});

    let said = haft.reply(&dir, "file.read", &args)?;
    for number in [FIRST, LAST] {
        ensure!(said.contains(&tree::line_mark(number)), "file.read does not give line {number}");
    }
    for number in [FIRST - 1, LAST + 1] {
        ensure!(!said.contains(&tree::line_mark(number)), "file.read gives line {number}, which nobody asked for");
    }
    let (theirs, own) = interleaved(ROUNDS, &mut peer, &mut haft.call(&dir, "file.read", &args))?;
    let peak = peak_mb(&mut haft.call(&dir, "file.read", &args))?;
    Ok(vec![
        Row::beside("file.read, lines 900000–900050 of a 1 GB file", ("sed", &theirs), &own, RATIO),
        Row::within("the same, peak memory", peak, "MB", MEMORY_MB),
    ])
}
