//! What the guarded way out costs. The library measures itself beside the same client without the guard.

use super::report::{Row, table};
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;

const ADDED_US: f64 = 100.0;

const PROSE: &str = "\
A GET of 4 KiB from a server on this machine, over a connection that is kept: by the guarded way, with judging, counting
and recording, and by the same client without it, in turns.

";

/// The section of `BENCHMARKS.md`.
pub(super) fn body() -> Result<String> {
    let said = sh::capture(&mut sh::cargo(&["bench", "--package", "haft", "--bench", "web", "--", "--json"]))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    Ok(format!("{PROSE}{}", table(&rows(&serde_json::from_str(object)?)?)))
}

fn rows(numbers: &Value) -> Result<Vec<Row>> {
    let number = |name: &str| numbers[name].as_f64().with_context(|| format!("the benchmark does not say {name}"));
    let row = |percent: &str| -> Result<(f64, f64, String)> {
        let (with, without) = (number(&format!("guarded_{percent}_us"))?, number(&format!("bare_{percent}_us"))?);
        Ok((with - without, with / without, format!("without the guard: {without:.0} µs")))
    };
    let (added, ratio, peer) = row("p50")?;
    let (late, late_ratio, late_peer) = row("p99")?;
    Ok(vec![
        Row::within("a request, added by the guard, p50", added, "µs", ADDED_US).peer(peer, ratio),
        Row::only("a request, added by the guard, p99", late, "µs").peer(late_peer, late_ratio),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let mut whole =
            serde_json::json!({"bare_p50_us": 90, "bare_p99_us": 200, "guarded_p50_us": 120, "guarded_p99_us": 400});
        assert_eq!(rows(&whole).unwrap().len(), 2);
        whole["guarded_p99_us"] = Value::Null;
        assert!(rows(&whole).is_err());
    }
}
