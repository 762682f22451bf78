//! How well tools are found, and what that costs. The library measures itself beside plain BM25.

use super::report::{Row, table};
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write as _;

const SEARCH_MS: f64 = 3.0;

const PROSE: &str = "\
Ten of 10 000 tools for a question, with a look at who may see them. The peer is plain BM25 over the same text with the same
words, as memory has it, without that look.

";

const QUALITY: &str = "
How well: tools as well-known servers and services declare them, with haft's own, and questions that were written before
anything was tuned; most share few words with what is right. Weights were chosen on every second question of each kind; this
is the other half, and beside it nDCG on the half that was tuned on.

";

/// The section of `BENCHMARKS.md`.
pub(super) fn body() -> Result<String> {
    let wheel = crate::real::found("HAFT_TEST_WORDLLAMA")?;
    let mut bench = sh::cargo(&["bench", "--package", "haft-runtime", "--bench", "finding"]);
    let said = sh::capture(bench.env("HAFT_TEST_WORDLLAMA", wheel))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    let numbers = serde_json::from_str(object)?;
    Ok(format!("{PROSE}{}{QUALITY}{}", table(&rows(&numbers)?), quality(&numbers)?))
}

fn rows(numbers: &Value) -> Result<Vec<Row>> {
    let said = |name: &str| numbers[name].as_f64().with_context(|| format!("the benchmark does not say {name}"));
    let (search, bm25) = (said("search_p50_ms")?, said("bm25_p50_ms")?);
    Ok(vec![
        Row::within("finding tools, p50", search, "ms", SEARCH_MS).peer(format!("BM25: {bm25:.1} ms"), search / bm25),
        Row::only("finding tools, p99", said("search_p99_ms")?, "ms"),
        Row::only("the first search, which makes the index", said("first_ms")?, "ms"),
        Row::only("a search after one tool has changed", said("changed_ms")?, "ms"),
    ])
}

fn quality(numbers: &Value) -> Result<String> {
    let count = |name: &str| numbers[name].as_u64().with_context(|| format!("the benchmark does not say {name}"));
    let mut text = format!(
        "| {} questions, {} tools | recall@1 | recall@5 | nDCG@10 | MRR | nDCG@10, tuned half | nDCG@10, paraphrases |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
        count("questions")?,
        count("tools")?
    );
    for (what, name) in [
        ("plain BM25", "bm25"),
        ("what haft did before", "once"),
        ("tool.search by words alone", "words"),
        ("**tool.search with word vectors**", "fused"),
    ] {
        let number = |half: &str, at: usize| {
            let found = numbers[name][half][at].as_f64();
            found.with_context(|| format!("the benchmark does not say {name} {half} {at}"))
        };
        let held: Vec<f64> = (0..4).map(|at| number("held", at)).collect::<Result<_>>()?;
        let (tuned, far) = (number("tuned", 2)?, number("paraphrase", 2)?);
        let [first, five, ndcg, mrr] = held[..] else { continue };
        writeln!(text, "| {what} | {first:.3} | {five:.3} | {ndcg:.3} | {mrr:.3} | {tuned:.3} | {far:.3} |")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let one = serde_json::json!({"held": [0.5, 0.6, 0.7, 0.8], "tuned": [0.5, 0.6, 0.75, 0.8],
            "paraphrase": [0.1, 0.2, 0.3, 0.4]});
        let mut whole = serde_json::json!({
            "tools": 700, "questions": 370, "search_p50_ms": 1.5, "search_p99_ms": 3, "bm25_p50_ms": 0.5,
            "first_ms": 300, "changed_ms": 5, "bm25": one, "once": one, "words": one, "fused": one,
        });
        assert_eq!(rows(&whole).unwrap().len(), 4);
        assert!(quality(&whole).unwrap().contains("| 0.500 | 0.600 | 0.700 | 0.800 | 0.750 | 0.300 |"));
        whole["fused"]["held"][3] = Value::Null;
        assert!(quality(&whole).is_err());
        whole["first_ms"] = Value::Null;
        assert!(rows(&whole).is_err());
    }
}
