//! What a process costs that does next to nothing: beside `true`, which does nothing.

use super::haft::{Haft, peak_mb};
use super::report::Row;
use super::samples::{Rounds, interleaved};
use super::tree;
use anyhow::Result;
use serde_json::json;
use std::process::Command;

const ROUNDS: Rounds = Rounds { warm_up: 20, counted: 300 };

pub(super) fn rows(haft: &Haft) -> Result<Vec<Row>> {
    let dir = tree::project("bench-start")?;
    let mut peer = Command::new("true");
    peer.current_dir(&dir);
    let mut ours = haft.call(&dir, "calc.eval", &json!({"expression": "2+2"}));
    let (theirs, own) = interleaved(ROUNDS, &mut peer, &mut ours)?;
    // The delay only holds the process long enough to be looked at.
    let delayed = json!({"expression": "2+2", "delay_ms": 300});
    let peak = peak_mb(&mut haft.call(&dir, "calc.eval", &delayed))?;
    Ok(vec![
        Row::beside("`haft call calc.eval` as a process", ("true", &theirs), &own, 4.0),
        Row::within("`haft call calc.eval`, peak memory", peak, "MB", 20.0),
    ])
}
