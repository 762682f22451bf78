//! What the whole path costs in process, around tools that do nothing. Measured by a benchmark of the
//! library itself, which prints its numbers as JSON.

use super::report::Row;
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;

const READ_ONLY: &str = "the whole path around a read-only no-op";
const EFFECTFUL: &str = "the whole path around an effectful no-op, durable intent included";

pub(super) fn rows() -> Result<Vec<Row>> {
    if !sh::root().join("crates/haft/benches/overhead.rs").is_file() {
        let why = "crates/haft/benches/overhead.rs does not exist yet";
        return Ok(vec![Row::missing(READ_ONLY, why), Row::missing(EFFECTFUL, why)]);
    }
    let said = sh::capture(&mut sh::cargo(&["bench", "--package", "haft", "--bench", "overhead", "--", "--json"]))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    judge(&serde_json::from_str(object)?)
}

fn judge(numbers: &Value) -> Result<Vec<Row>> {
    let number = |name: &str| numbers[name].as_f64().with_context(|| format!("the benchmark does not say {name}"));
    let (fsync, effectful) = (number("fsync_p50_us")?, number("effectful_p50_us")?);
    let beside = format!("one fsync: {fsync:.0} µs");
    Ok(vec![
        Row::within(&format!("{READ_ONLY}, p50"), number("read_only_p50_us")?, "µs", 30.0),
        Row::only(&format!("{READ_ONLY}, p99"), number("read_only_p99_us")?, "µs"),
        Row::within(&format!("{EFFECTFUL}, p50"), effectful, "µs", 600.0).peer(beside, effectful / fsync),
        Row::only(&format!("{EFFECTFUL}, p99"), number("effectful_p99_us")?, "µs"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let whole = serde_json::json!({
            "read_only_p50_us": 12.0, "read_only_p99_us": 20, "effectful_p50_us": 300,
            "effectful_p99_us": 900, "fsync_p50_us": 100,
        });
        assert_eq!(judge(&whole).unwrap().len(), 4);
        assert!(judge(&serde_json::json!({"read_only_p50_us": 12.0})).is_err());
    }
}
