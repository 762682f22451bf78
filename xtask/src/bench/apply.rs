//! What it costs to change files so that it can be taken back, and so that nothing of anybody else's is replaced. Beside
//! another version where its benchmark is there: the same program, built from another commit.

use super::report::Row;
use super::samples::Samples;
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// How many files a call changes.
const SIZES: [usize; 3] = [1, 100, 10_000];
/// What is done to them, and what a row calls it.
const VERBS: [(&str, &str); 2] = [("edit", "edited"), ("create", "created")];
/// How often the two versions take turns.
const TURNS: usize = 3;
/// How many times as long a call may take as before.
const MOST: f64 = 1.3;

/// Measures this version; beside another, if its benchmark's program is given.
pub(super) fn rows(beside: Option<&str>) -> Result<Vec<Row>> {
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..if beside.is_some() { TURNS } else { 1 } {
        // Who goes first changes, and with it who meets a disk that is busy with what the other left.
        let is_first = turn % 2 == 0;
        if is_first {
            own.push(numbers(&mut sh::cargo(&["bench", "--package", "haft-runtime", "--bench", "apply"]))?);
        }
        if let Some(program) = beside {
            theirs.push(numbers(&mut Command::new(program))?);
        }
        if !is_first {
            own.push(numbers(&mut sh::cargo(&["bench", "--package", "haft-runtime", "--bench", "apply"]))?);
        }
    }
    judge(&own, &theirs)
}

fn numbers(command: &mut Command) -> Result<Value> {
    let said = sh::capture(command)?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    Ok(serde_json::from_str(object)?)
}

fn judge(own: &[Value], theirs: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (verb, done) in VERBS {
        for size in SIZES {
            let name = format!("{verb}_{size}_p50_ms");
            let files = if size == 1 { "a file".to_owned() } else { format!("{size} files") };
            let what = format!("{files} {done} with before-images, on the disk, p50");
            let ours = samples(own, &name)?;
            rows.push(if theirs.is_empty() {
                Row::only(&what, ours.p50().as_secs_f64() * 1e3, "ms")
            } else {
                Row::beside(&what, ("the other version", &samples(theirs, &name)?), &ours, MOST)
            });
        }
    }
    Ok(rows)
}

/// What each turn says under a name.
fn samples(turns: &[Value], name: &str) -> Result<Samples> {
    let time = |turn: &Value| {
        let millis = turn[name].as_f64().with_context(|| format!("the benchmark does not say {name}"))?;
        Ok(Duration::from_secs_f64(millis / 1e3))
    };
    Ok(Samples::new(turns.iter().map(time).collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> serde_json::Map<String, Value> {
        let names = VERBS.iter().flat_map(|(verb, _)| SIZES.map(|size| format!("{verb}_{size}_p50_ms")));
        names.map(|name| (name, serde_json::json!(1.5))).collect()
    }

    #[test]
    fn every_number_is_needed() {
        let mut numbers = whole();
        assert_eq!(judge(&[Value::Object(numbers.clone())], &[]).unwrap().len(), 6);
        numbers.remove("edit_100_p50_ms");
        assert!(judge(&[Value::Object(numbers.clone())], &[]).is_err());
        assert!(judge(&[Value::Object(whole())], &[Value::Object(numbers)]).is_err());
    }

    #[test]
    fn another_version_is_a_peer() {
        let turns = vec![Value::Object(whole()); TURNS];
        let table = super::super::report::table(&judge(&turns, &turns).unwrap());
        assert!(table.contains("1.00×") && table.contains("≤ 1.3×") && !table.contains("NOT MET"), "{table}");
    }
}
