//! What it costs to change files so that it can be taken back, and so that nothing of anybody else's is replaced.

use super::report::Row;
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;

/// How many files a call changes.
const SIZES: [usize; 3] = [1, 100, 10_000];

pub(super) fn rows() -> Result<Vec<Row>> {
    let said = sh::capture(&mut sh::cargo(&["bench", "--package", "haft-runtime", "--bench", "apply"]))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    judge(&serde_json::from_str(object)?)
}

fn judge(numbers: &Value) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (verb, done) in [("edit", "edited"), ("create", "created")] {
        for size in SIZES {
            let name = format!("{verb}_{size}_p50_ms");
            let number = numbers[&name].as_f64().with_context(|| format!("the benchmark does not say {name}"))?;
            let files = if size == 1 { "file".to_owned() } else { format!("{size} files") };
            let what = format!("{files} {done} with before-images, on the disk, p50");
            rows.push(Row::only(&what, number, "ms"));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let mut whole = serde_json::Map::new();
        for name in ["edit", "create"] {
            for size in SIZES {
                whole.insert(format!("{name}_{size}_p50_ms"), serde_json::json!(1.5));
            }
        }
        assert_eq!(judge(&Value::Object(whole.clone())).unwrap().len(), 6);
        whole.remove("edit_100_p50_ms");
        assert!(judge(&Value::Object(whole)).is_err());
    }
}
