//! What work that lasts costs: steps on a file and on a server, by one process and by several, beside durable workflows of
//! DBOS on the same server.

use super::report::{Row, grid, table};
use crate::{real, sh};
use anyhow::{Context, Result};
use serde_json::Value;

const SCHEDULER_US: f64 = 300.0;
const PARALLEL_S: f64 = 5.0;
const PER_S: f64 = 2000.0;
const CLAIM_MS: f64 = 2.0;
/// With how many processes the target is to be reached.
const WORKERS: u64 = 4;
/// How long the longest bar of the picture is.
const BAR: f64 = 40.0;

const PROSE: &str = "\
A step is a whole call of a tool that does nothing and counts as one that does something: validated, decided, its intent on
disk before it runs, its outcome recorded, its end noted with all that follows from it; 64 are under way at once. The server
is PostgreSQL with its usual settings, on the same two cores as the workers. A claim takes 16 of 1 000 000 stored steps, of which half are over; due tasks are looked for among 1 000 000.

";

const GROWTH: &str = "
Durable steps a second by the number of worker processes, on one server and two cores. The peer is DBOS, whose step is one
row of a result: without a decision, an intent, a record in a chained log, or another process taking the step over. It is
Python, and does 4 000 steps in rounds of 64; haft does 10 000 without rounds. All of haft's writers take turns, because the log
has one end, so more processes are no promise of more steps.

";

/// The section of `BENCHMARKS.md`.
pub(super) fn body() -> Result<String> {
    let server = real::postgres::Postgres::start()?;
    let mut bench = sh::cargo(&["bench", "--package", "haft", "--bench", "work", "--", "--json"]);
    let said = sh::capture(bench.envs(server.told()))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    let numbers: Value = serde_json::from_str(object)?;
    let peer = real::durable_peer()?;
    let script = sh::root().join("crates/haft/benches/work/dbos_peer.py");
    let mut by_peer = Vec::new();
    for (workers, _) in by_workers(&numbers)? {
        let mut peer = std::process::Command::new(&peer);
        peer.arg(&script).arg(server.named(&format!("peer{workers}"))).arg(workers.to_string()).arg("4000");
        by_peer.push(sh::capture(&mut peer)?.trim().parse::<f64>().context("the peer says no number")?);
    }
    Ok(format!("{PROSE}{}{GROWTH}{}", table(&rows(&numbers, &by_peer)?), growth(&numbers, &by_peer)?))
}

fn number(numbers: &Value, part: &str, name: &str) -> Result<f64> {
    numbers[part][name].as_f64().with_context(|| format!("the benchmark does not say {part}.{name}"))
}

fn by_workers(numbers: &Value) -> Result<Vec<(u64, f64)>> {
    let all = numbers["server_by_workers"].as_array().context("the benchmark does not say how many workers do what")?;
    let one = |item: &Value| Some((item["workers"].as_u64()?, item["per_s"].as_f64()?));
    all.iter().map(|item| one(item).context("a number of workers is missing")).collect()
}

fn rows(numbers: &Value, by_peer: &[f64]) -> Result<Vec<Row>> {
    let said = |part: &str, name: &str| number(numbers, part, name);
    let workers = by_workers(numbers)?;
    let at = workers.iter().position(|(count, _)| *count == WORKERS).context("it was not tried with four workers")?;
    let (ours, theirs) = (workers[at].1, by_peer.get(at).copied().context("the peer was not tried with four")?);
    Ok(vec![
        Row::within("a step on a file, its whole call included", said("file", "step_us")?, "µs", SCHEDULER_US),
        Row::within("10 000 parallel steps on a file, whole", said("file", "all_s")?, "s", PARALLEL_S),
        Row::only("the same on a server, one process", said("server", "all_s")?, "s"),
        Row::at_least("durable steps on a server, 4 workers", ours, "/s", PER_S)
            .peer(format!("DBOS: {theirs:.0} /s"), ours / theirs),
        Row::within("a claim among 1 000 000 on a file, p50", said("file_many", "claim_p50_ms")?, "ms", CLAIM_MS),
        Row::within("a claim among 1 000 000 on a server, p50", said("server_many", "claim_p50_ms")?, "ms", CLAIM_MS),
        Row::only("the same, p99", said("server_many", "claim_p99_ms")?, "ms"),
        Row::within("due tasks among 1 000 000 on a file, p50", said("file_many", "due_p50_ms")?, "ms", CLAIM_MS),
        Row::within("due tasks among 1 000 000 on a server, p50", said("server_many", "due_p50_ms")?, "ms", CLAIM_MS),
    ])
}

/// The picture: a bar for each number of workers.
fn growth(numbers: &Value, by_peer: &[f64]) -> Result<String> {
    let workers = by_workers(numbers)?;
    let most = workers.iter().map(|(_, rate)| *rate).chain(by_peer.iter().copied()).fold(1.0, f64::max);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few dozen characters")]
    let bar = |rate: f64| "█".repeat((rate / most * BAR).round() as usize);
    let lines: Vec<[String; 4]> = workers
        .iter()
        .zip(by_peer)
        .map(|((count, ours), theirs)| [count.to_string(), format!("{ours:.0}"), bar(*ours), format!("{theirs:.0}")])
        .collect();
    let mut all = vec![["workers", "steps/s", "", "DBOS steps/s"]];
    all.extend(lines.iter().map(|line| line.each_ref().map(String::as_str)));
    Ok(grid(&all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let mut whole = serde_json::json!({
            "file": {"step_us": 200.0, "all_s": 2.0}, "server": {"all_s": 9.0},
            "file_many": {"claim_p50_ms": 1.0, "due_p50_ms": 1.0},
            "server_many": {"claim_p50_ms": 1.0, "claim_p99_ms": 2.0, "due_p50_ms": 1.0},
            "server_by_workers": [{"workers": 1, "per_s": 1000.0}, {"workers": 4, "per_s": 2500.0}],
        });
        assert_eq!(rows(&whole, &[500.0, 900.0]).unwrap().len(), 9);
        assert!(growth(&whole, &[500.0, 900.0]).unwrap().contains(&"█".repeat(40)));
        assert!(rows(&whole, &[500.0]).is_err());
        whole["server_many"]["due_p50_ms"] = Value::Null;
        assert!(rows(&whole, &[500.0, 900.0]).is_err());
    }
}
