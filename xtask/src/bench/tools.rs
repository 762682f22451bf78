//! What tools as files cost. The library measures itself beside starting an interpreter, and beside a bare confined start.

use super::report::{Row, table};
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;

const WARM_MS: f64 = 1.5;
const FASTER: f64 = 15.0;
const ADDED_MS: f64 = 0.3;

const PROSE: &str = "\
Whole calls, with decision and record. A function of one regular expression, in an interpreter that is warm, beside
starting Python to import the same module and call it once: by itself, and confined as the tool is. A command that runs
`true`, beside the bare confined start of `true` under the same plan. All take turns.

";

/// The section of `BENCHMARKS.md`.
pub(super) fn body() -> Result<String> {
    running()
}

/// What it costs to run them.
fn running() -> Result<String> {
    let said = sh::capture(&mut sh::cargo(&["bench", "--package", "haft", "--bench", "tools", "--", "--json"]))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    Ok(format!("{PROSE}{}", table(&rows(&serde_json::from_str(object)?)?)))
}

fn rows(numbers: &Value) -> Result<Vec<Row>> {
    let number = |name: &str| {
        let found = numbers[name].as_f64().with_context(|| format!("the benchmark does not say {name}"));
        found.map(|micros| micros / 1000.0)
    };
    let (warm, late) = (number("python_warm_p50_us")?, number("python_warm_p99_us")?);
    let (bare, cold) = (number("python_bare_p50_us")?, number("python_cold_p50_us")?);
    let (command, spawn) = (number("command_p50_us")?, number("spawn_p50_us")?);
    Ok(vec![
        Row::within("a warm python call, p50", warm, "ms", WARM_MS),
        Row::only("a warm python call, p99", late, "ms"),
        Row::at_least("the same, faster than starting python3", bare / warm, "×", FASTER)
            .peer(format!("python3 -c: {bare:.1} ms"), warm / bare),
        Row::at_least("the same, faster than starting it confined", cold / warm, "×", FASTER)
            .peer(format!("confined: {cold:.1} ms"), warm / cold),
        Row::within("a command tool, added to the confined start", command - spawn, "ms", ADDED_MS)
            .peer(format!("the bare start: {spawn:.1} ms"), command / spawn),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let mut whole = serde_json::json!({
            "python_warm_p50_us": 900, "python_warm_p99_us": 2000, "python_bare_p50_us": 20000,
            "python_cold_p50_us": 30000, "command_p50_us": 5200, "spawn_p50_us": 5000,
        });
        assert_eq!(rows(&whole).unwrap().len(), 5);
        whole["spawn_p50_us"] = Value::Null;
        assert!(rows(&whole).is_err());
    }
}
