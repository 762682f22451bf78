//! What tools as files cost their readers.

use super::report::{Row, table};
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;

const LOAD_MS: f64 = 150.0;
const LINT_MS: f64 = 300.0;

const PROSE: &str = "\
A thousand tools of three kinds, with schemas and examples. Loading finds, reads and checks each against the schema and has
it ready to be called; linting is the whole program, from its start to its end.

";

/// The section of `BENCHMARKS.md`.
pub(super) fn body() -> Result<String> {
    let said = sh::capture(&mut sh::cargo(&["bench", "--package", "haft", "--bench", "manifests", "--", "--json"]))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    Ok(format!("{PROSE}{}", table(&rows(&serde_json::from_str(object)?)?)))
}

fn rows(numbers: &Value) -> Result<Vec<Row>> {
    let number = |name: &str| numbers[name].as_f64().with_context(|| format!("the benchmark does not say {name}"));
    Ok(vec![
        Row::within("loading 1000 manifests", number("load_ms")?, "ms", LOAD_MS),
        Row::only("reading and checking them, on one thread", number("read_ms")?, "ms"),
        Row::within("`haft lint` of 1000 manifests", number("lint_ms")?, "ms", LINT_MS),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let mut whole = serde_json::json!({"load_ms": 90, "read_ms": 120, "lint_ms": 200});
        assert_eq!(rows(&whole).unwrap().len(), 3);
        whole["lint_ms"] = Value::Null;
        assert!(rows(&whole).is_err());
    }
}
