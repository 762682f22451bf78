//! How well what is asked for is found: by words, by meaning, by both, and by plain fusion of ranks.

use crate::Labelled;
use haft_core::memory::{Asked, Counted, Entry, Hit, Index, Weights, hash, words};
use haft_runtime::memory::Table;
use serde_json::{Value, json};

const DEEP: usize = 10;

/// All four, on one half of the set. The weights were tuned on the other.
pub(crate) fn measured(set: &[Labelled], table: &Table) -> Value {
    let index = indexed(set, table);
    let half: Vec<usize> = (0..set.len()).filter(|number| number % 2 == 1).collect();
    let ranked = |weights: Weights, by_words: bool, by_meaning: bool| -> (f64, f64) {
        let found = half.iter().map(|number| {
            let hits = asked(&index, &set[*number].query, by_meaning.then_some(table), weights, by_words);
            hits.iter().position(|hit| hit.id == id(*number))
        });
        scores(found, half.len())
    };
    let usual = Weights::default();
    let keyword = ranked(usual, true, false);
    let vector = ranked(Weights { meaning: 1.0, like: -1.0, ..usual }, false, true);
    let hybrid = ranked(usual, true, true);
    let fused = half.iter().map(|number| {
        let query = &set[*number].query;
        let one = asked(&index, query, None, usual, true);
        let other = asked(&index, query, Some(table), Weights { meaning: 1.0, like: -1.0, ..usual }, false);
        plain(&one, &other).iter().position(|found| *found == id(*number))
    });
    let fused = scores(fused, half.len());
    json!({
        "set": half.len(), "keyword_recall": keyword.0, "keyword_ndcg": keyword.1, "vector_recall": vector.0,
        "vector_ndcg": vector.1, "hybrid_recall": hybrid.0, "hybrid_ndcg": hybrid.1, "ranks_recall": fused.0,
        "ranks_ndcg": fused.1,
    })
}

/// What the weights are chosen by: nDCG on the half that is not reported, for a row of them.
pub(crate) fn tuned(set: &[Labelled], table: &Table) -> Vec<(f32, f64)> {
    let index = indexed(set, table);
    let half: Vec<usize> = (0..set.len()).filter(|number| number % 2 == 0).collect();
    let with = |meaning: f32| {
        let weights = Weights { meaning, ..Weights::default() };
        let found = half.iter().map(|number| {
            let hits = asked(&index, &set[*number].query, Some(table), weights, true);
            hits.iter().position(|hit| hit.id == id(*number))
        });
        (meaning, scores(found, half.len()).1)
    };
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6].map(with).to_vec()
}

fn id(number: usize) -> i64 {
    i64::try_from(number).unwrap_or_default()
}

fn indexed(set: &[Labelled], table: &Table) -> Index {
    let texts: Vec<String> = set.iter().map(|item| item.text.clone()).collect();
    let mut index = Index::default();
    for (number, (text, vector)) in texts.iter().zip(table.embed(&texts)).enumerate() {
        let words = Counted::of(&[text]);
        index.insert(Entry { id: id(number), namespace: 0, at_ms: 0, tags: Vec::new(), words, vector: Some(vector) });
    }
    index
}

fn asked(index: &Index, query: &str, table: Option<&Table>, weights: Weights, by_words: bool) -> Vec<Hit> {
    let mut all = Vec::new();
    words(query, |word| all.push(hash(word)));
    all.sort_unstable();
    all.dedup();
    let vector = table.and_then(|table| table.embed(&[query.to_owned()]).pop());
    let words = if by_words { &all[..] } else { &[] };
    index.search(&Asked { words, vector: vector.as_deref(), wanted: &|_| true, limit: 100, weights })
}

/// Fusion of ranks as it is usually done.
fn plain(one: &[Hit], other: &[Hit]) -> Vec<i64> {
    let mut all: std::collections::HashMap<i64, f64> = std::collections::HashMap::new();
    for hits in [one, other] {
        for (rank, hit) in (61_u32..).zip(hits) {
            *all.entry(hit.id).or_default() += f64::from(rank).recip();
        }
    }
    let mut ranked: Vec<(i64, f64)> = all.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.into_iter().map(|(id, _)| id).collect()
}

/// Recall and nDCG among the first ten, where one text is relevant.
#[expect(clippy::cast_precision_loss, reason = "counts of questions")]
fn scores(found: impl Iterator<Item = Option<usize>>, count: usize) -> (f64, f64) {
    let (mut recall, mut gain) = (0.0, 0.0);
    for rank in found.flatten().filter(|rank| *rank < DEEP) {
        recall += 1.0;
        gain += (rank as f64 + 2.0).log2().recip();
    }
    (recall / count as f64, gain / count as f64)
}
