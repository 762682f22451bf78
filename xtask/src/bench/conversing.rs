//! What a conversation costs beyond the model's time, beside the `OpenAI` Agents SDK with the same server.

use super::report::{Row, table};
use crate::{real, sh};
use anyhow::{Context, Result};
use serde_json::Value;

const TURN_MS: f64 = 2.0;
const START_MS: f64 = 5.0;
const SESSIONS_MB: f64 = 300.0;

const PROSE: &str = "\
A model that answers at once, told of 200 tools, with 200 000 tokens of history. A turn is all that haft does from one request
to the next: the answer is read, written down, its call decided, recorded and made, the result written down and the next body
made. Over HTTP a server on this machine hears each body (about a megabyte) as well. A start is from the end of a call's
arguments to the tool. The peer is the OpenAI Agents SDK for Python with the same tools, history and server; it keeps nothing,
decides nothing and records nothing. Memory is what the whole process needed at the most, with 20 000 tokens of history in each
conversation.

";

/// The section of `BENCHMARKS.md`.
pub(super) fn body() -> Result<String> {
    let mut bench = sh::cargo(&["bench", "--package", "haft-runtime", "--bench", "conversing"]);
    let said = sh::capture(bench.env("HAFT_BENCH_AGENTS", real::agents_peer()?))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    Ok(format!("{PROSE}{}", table(&rows(&serde_json::from_str(object)?)?)))
}

fn rows(numbers: &Value) -> Result<Vec<Row>> {
    let said = |name: &str| numbers[name].as_f64().with_context(|| format!("the benchmark does not say {name}"));
    let (ours, theirs) = (said("http_turn_p50_ms")?, said("peer_turn_p50_ms")?);
    Ok(vec![
        Row::within("a turn, p50", said("turn_p50_ms")?, "ms", TURN_MS),
        Row::only("a turn, p99", said("turn_p99_ms")?, "ms"),
        Row::only("a turn over HTTP on this machine, p50", ours, "ms")
            .peer(format!("OpenAI Agents SDK: {theirs:.1} ms"), theirs / ours),
        Row::within("from a call's arguments to its start, p50", said("start_p50_ms")?, "ms", START_MS),
        Row::only("from a call's arguments to its start, p99", said("start_p99_ms")?, "ms"),
        Row::within("100 conversations at once", said("sessions_mb")?, "MB", SESSIONS_MB),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let names = [
            "turn_p50_ms",
            "turn_p99_ms",
            "http_turn_p50_ms",
            "peer_turn_p50_ms",
            "start_p50_ms",
            "start_p99_ms",
            "sessions_mb",
        ];
        let whole: Value = names.iter().map(|name| ((*name).to_owned(), Value::from(1.5))).collect();
        assert!(rows(&whole).is_ok());
        for name in names {
            let mut part = whole.clone();
            part.as_object_mut().map(|part| part.remove(name));
            assert!(rows(&part).is_err(), "{name}");
        }
    }
}
