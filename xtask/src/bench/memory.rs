//! What memory costs, and how well it finds. The library measures itself beside the database's own full-text search.

use super::report::{Row, table};
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write as _;

const SEARCH_MS: f64 = 8.0;
const INDEX_PER_S: f64 = 2000.0;

const PROSE: &str = "\
Whole calls, with decision and record, over 100 documents of 1 000 sections of prose on SQLite; questions are sentences
with all their frequent words. Indexing is writing the documents, counting all words once more and making all vectors.
The peer is FTS5's `bm25` over the same pieces, asked for any of the words.

";

const QUALITY: &str = "
How well: the docstrings of Python's standard library. The question is the first paragraph, the one relevant text is the
rest without it. Weights were tuned on the even half (`cargo bench -p haft --bench memory -- --tune`); this is the odd one.

";

/// The section of `BENCHMARKS.md`.
pub(super) fn body() -> Result<String> {
    let wheel = crate::real::found("HAFT_TEST_WORDLLAMA")?;
    let mut bench = sh::cargo(&["bench", "--package", "haft", "--bench", "memory", "--", "--json"]);
    let said = sh::capture(bench.env("HAFT_TEST_WORDLLAMA", wheel))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    let numbers = serde_json::from_str(object)?;
    Ok(format!("{PROSE}{}{QUALITY}{}", table(&rows(&numbers)?), quality(&numbers)?))
}

fn number(numbers: &Value, name: &str) -> Result<f64> {
    numbers[name].as_f64().with_context(|| format!("the benchmark does not say {name}"))
}

fn rows(numbers: &Value) -> Result<Vec<Row>> {
    let said = |name: &str| number(numbers, name);
    let (search, fts5) = (said("search_p50_ms")?, said("fts5_p50_ms")?);
    Ok(vec![
        Row::within("memory.search, p50", search, "ms", SEARCH_MS).peer(format!("FTS5: {fts5:.1} ms"), search / fts5),
        Row::only("memory.search, p99", said("search_p99_ms")?, "ms"),
        Row::only("memory.search by words alone, p50", said("keyword_p50_ms")?, "ms"),
        Row::only("the first search after indexing", said("first_ms")?, "ms"),
        Row::at_least("indexing, pieces a second", said("index_per_s")?, "/s", INDEX_PER_S),
        Row::at_least("writing documents alone, pieces a second", said("write_per_s")?, "/s", INDEX_PER_S),
    ])
}

fn quality(numbers: &Value) -> Result<String> {
    let mut text = format!(
        "| {} questions | recall@10 | nDCG@10 |\n|---|--:|--:|\n",
        numbers["set"].as_u64().context("the benchmark does not say how large the set is")?
    );
    for (what, name) in [
        ("words alone (BM25)", "keyword"),
        ("meaning alone", "vector"),
        ("plain fusion of ranks", "ranks"),
        ("**what memory.search does**", "hybrid"),
    ] {
        let (recall, ndcg) = (number(numbers, &format!("{name}_recall"))?, number(numbers, &format!("{name}_ndcg"))?);
        writeln!(text, "| {what} | {recall:.3} | {ndcg:.3} |")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_needed() {
        let mut whole = serde_json::json!({
            "search_p50_ms": 5, "search_p99_ms": 9, "keyword_p50_ms": 2, "first_ms": 300, "index_per_s": 3000,
            "write_per_s": 9000, "fts5_p50_ms": 60, "set": 500, "keyword_recall": 0.7, "keyword_ndcg": 0.5,
            "vector_recall": 0.6, "vector_ndcg": 0.4, "ranks_recall": 0.7, "ranks_ndcg": 0.5, "hybrid_recall": 0.8,
            "hybrid_ndcg": 0.6,
        });
        assert_eq!(rows(&whole).unwrap().len(), 6);
        assert!(quality(&whole).unwrap().contains("| 0.800 | 0.600 |"));
        whole["hybrid_ndcg"] = Value::Null;
        assert!(quality(&whole).is_err());
        whole["first_ms"] = Value::Null;
        assert!(rows(&whole).is_err());
    }
}
