//! The labelled set: tools as services declare them, what people ask for, and how well a ranking answers.
//!
//! Every second question of each kind was tuned on; the others are held out.

use haft_core::ToolSpec;
use haft_core::finding::{Asked, Card, Index, Meaning, Weights};
use haft_core::memory;
use serde_json::{Map, Value, json};

/// How many of the best are looked at.
const LOOKED_AT: usize = 10;

/// A question, and the tools that are right.
pub(crate) struct Labelled {
    pub(crate) kind: &'static str,
    pub(crate) query: &'static str,
    pub(crate) right: Vec<String>,
    pub(crate) held_out: bool,
}

/// All tools: those of the file as bridged ones, and haft's own.
pub(crate) fn tools() -> Vec<ToolSpec> {
    let mut server = "";
    let mut all = Vec::new();
    for line in lines(include_str!("tools.txt")) {
        if let Some(name) = line.strip_prefix("# ") {
            server = name;
            continue;
        }
        let parts: Vec<&str> = line.splitn(3, " |").map(str::trim).collect();
        let params: Map<String, Value> = parts[2]
            .split(';')
            .filter_map(|param| param.split_once(": "))
            .map(|(name, said)| (name.trim().to_owned(), json!({"type": "string", "description": said})))
            .collect();
        let spec = ToolSpec::new(&format!("mcp:{server}:{}", parts[0]), parts[1]).unwrap();
        all.push(spec.input(json!({"type": "object", "properties": params})));
    }
    all.extend(haft_runtime::tools::all().iter().map(|tool| ToolSpec::clone(tool.spec())));
    all
}

/// All questions.
pub(crate) fn questions() -> Vec<Labelled> {
    let (mut kind, mut number) = ("", 0_usize);
    let mut all = Vec::new();
    for line in lines(include_str!("queries.txt")) {
        if let Some(name) = line.strip_prefix("# ") {
            (kind, number) = (name, 0);
            continue;
        }
        let (query, right) = line.split_once(" | ").unwrap();
        let named = |name: &str| if name.contains(':') { format!("mcp:{name}") } else { name.to_owned() };
        let right = right.split(", ").map(named).collect();
        all.push(Labelled { kind, query, right, held_out: number % 2 == 1 });
        number += 1;
    }
    all
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with("//"))
}

/// How well a ranking answers, on the average.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    /// How often the first is right.
    pub(crate) first: f64,
    /// The share of the right ones among the first five.
    pub(crate) five: f64,
    pub(crate) ndcg: f64,
    /// One over the place of the first right one.
    pub(crate) mrr: f64,
}

/// Measures a ranking: names, best first.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
pub(crate) fn measured<'q>(
    questions: impl Iterator<Item = &'q Labelled>,
    rank: impl Fn(&str) -> Vec<String>,
) -> Measured {
    let (mut sum, mut count) = (Measured::default(), 0.0);
    for question in questions {
        let names = rank(question.query);
        let is_right = |name: &String| question.right.contains(name);
        let places: Vec<usize> =
            names.iter().take(LOOKED_AT).enumerate().filter(|(_, name)| is_right(name)).map(|(at, _)| at).collect();
        let gain = |at: usize| 1.0 / ((at + 2) as f64).log2();
        let ideal: f64 = (0..question.right.len()).map(gain).sum();
        sum.first += f64::from(u8::from(places.first() == Some(&0)));
        sum.five += places.iter().filter(|at| **at < 5).count() as f64 / question.right.len() as f64;
        sum.ndcg += places.iter().copied().map(gain).sum::<f64>() / ideal;
        sum.mrr += places.first().map_or(0.0, |at| 1.0 / (at + 1) as f64);
        count += 1.0;
    }
    Measured { first: sum.first / count, five: sum.five / count, ndcg: sum.ndcg / count, mrr: sum.mrr / count }
}

/// An index of tools.
pub(crate) fn indexed(tools: &[ToolSpec], meaning: Option<Meaning<'_>>) -> Index {
    let mut index = Index::default();
    for spec in tools {
        index.insert(&Card::of(spec), meaning);
    }
    index
}

/// The ranking that haft has.
pub(crate) fn ranked(index: &Index, query: &str, meaning: Option<Meaning<'_>>, weights: &Weights) -> Vec<String> {
    let asked = Asked { text: query, meaning, wanted: &|_| true, limit: LOOKED_AT, weights };
    index.search(&asked).into_iter().map(|found| found.name).collect()
}

/// Plain BM25 over the same text, with the same words.
pub(crate) struct Plain {
    names: Vec<String>,
    index: memory::Index,
}

impl Plain {
    pub(crate) fn new(tools: &[ToolSpec]) -> Self {
        let mut index = memory::Index::default();
        for (id, spec) in (0..).zip(tools) {
            let Card { name, aliases, hint, description, params } = Card::of(spec);
            // With what separates the words of a name taken out, as the other has it.
            let name = name.replace(['.', ':'], " ");
            let texts = [name, aliases.join(" "), hint, description, params];
            let words = memory::Counted::of(&texts.each_ref().map(String::as_str));
            index.insert(memory::Entry { id, namespace: 0, at_ms: -id, tags: Vec::new(), words, vector: None });
        }
        Self { names: tools.iter().map(|spec| spec.name.to_string()).collect(), index }
    }

    pub(crate) fn ranked(&self, query: &str) -> Vec<String> {
        let mut words = Vec::new();
        memory::words(query, |word| {
            let word = memory::hash(word);
            if !words.contains(&word) {
                words.push(word);
            }
        });
        let weights = memory::Weights::default();
        let asked = memory::Asked { words: &words, vector: None, wanted: &|_| true, limit: LOOKED_AT, weights };
        let hits = self.index.search(&asked).into_iter();
        hits.filter_map(|hit| self.names.get(usize::try_from(hit.id).ok()?).cloned()).collect()
    }
}

/// The score that haft had before: words of the name count most, then the hint's, then the description's.
pub(crate) fn once(tools: &[ToolSpec], query: &str) -> Vec<String> {
    let asked = split(query);
    let mut found: Vec<(u32, &ToolSpec)> =
        tools.iter().map(|spec| (score(spec, query, &asked), spec)).filter(|(score, _)| *score > 0).collect();
    found.sort_by(|(a, one), (b, other)| b.cmp(a).then(one.name.cmp(&other.name)));
    found.into_iter().take(LOOKED_AT).map(|(_, spec)| spec.name.to_string()).collect()
}

fn split(text: &str) -> Vec<String> {
    let split = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1);
    split.map(str::to_lowercase).collect()
}

fn score(spec: &ToolSpec, query: &str, wanted: &[String]) -> u32 {
    let name = spec.name.as_str();
    if name.eq_ignore_ascii_case(query.trim()) || spec.name.api_name().eq_ignore_ascii_case(query.trim()) {
        return u32::MAX;
    }
    let fields = [(8, split(name)), (4, split(spec.search_hint)), (2, split(&spec.description))];
    let alike = |a: &str, b: &str| {
        let shared = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
        shared >= 4 && shared + 3 >= a.len().max(b.len())
    };
    let weigh = |word: &String| {
        let each = fields.iter().map(|(weight, text)| {
            if text.contains(word) {
                weight * 2
            } else if text.iter().any(|other| other.starts_with(word.as_str()) || alike(other, word)) {
                *weight
            } else {
                0
            }
        });
        each.sum::<u32>()
    };
    wanted.iter().map(weigh).sum()
}
