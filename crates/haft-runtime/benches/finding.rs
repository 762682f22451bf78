//! How well tools are found, and what that costs among 10 000 of them, beside plain BM25 over the same text. Prints one JSON
//! object. `cargo bench -p haft-runtime --bench finding`
//!
//! The table of word vectors is made from the wheel that `HAFT_TEST_WORDLLAMA` names, or fetched.

#![expect(clippy::print_stdout, reason = "the numbers are its output")]
#![expect(clippy::unwrap_used, reason = "a set that cannot be read is no set")]

#[path = "../tests/finding/set.rs"]
mod set;

use haft_core::finding::{Meaning, Weights};
use haft_core::{CallError, Caller, ToolSpec};
use haft_runtime::memory::{Table, setup, table_file};
use haft_runtime::{BoxFuture, Haft, Reply, Scene, Settings, Tool, Workspace};
use haft_store::Store;
use serde_json::{Value, json};
use set::{Labelled, Measured, Plain, indexed, measured, once, questions, ranked, tools};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many tools there are when time is measured.
const MANY: usize = 10_000;

/// Any failure ends the whole benchmark: a number that is missing must not look like one that is small.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let file = table_file(&dir.path().join("data"));
    match std::env::var_os("HAFT_TEST_WORDLLAMA") {
        Some(wheel) => setup::install(Path::new(&wheel), &file)?,
        None => setup::fetch(&file)?,
    };
    let table = Table::read(&file).ok_or("the table is not there")?;
    let (tools, questions) = (tools(), questions());
    let mut numbers = quality(&tools, &questions, &table);
    let times = times(dir.path(), &tools, &questions)?;
    if let (Value::Object(all), Value::Object(times)) = (&mut numbers, times) {
        all.extend(times);
    }
    println!("{numbers}");
    Ok(())
}

fn quality(tools: &[ToolSpec], questions: &[Labelled], table: &Table) -> Value {
    let (of, knows) = (|text: &str| table.embed_one(text), |word: &str| table.knows(word));
    let meaning = Some(Meaning { of: &of, knows: &knows });
    let (with, without, plain) = (indexed(tools, meaning), indexed(tools, None), Plain::new(tools));
    let weights = Weights::default();
    let both = |rank: &dyn Fn(&str) -> Vec<String>| {
        let half = |held: bool| shown(measured(questions.iter().filter(|one| one.held_out == held), rank));
        let kind = |kind: &str| shown(measured(questions.iter().filter(|one| one.kind == kind), rank));
        json!({"tuned": half(false), "held": half(true), "plain": kind("plain"), "paraphrase": kind("paraphrase"),
            "typo": kind("typo"), "name": kind("name")})
    };
    json!({
        "tools": tools.len(), "questions": questions.len(),
        "bm25": both(&|query| plain.ranked(query)),
        "once": both(&|query| once(tools, query)),
        "words": both(&|query| ranked(&without, query, None, &weights)),
        "fused": both(&|query| ranked(&with, query, meaning, &weights)),
    })
}

fn shown(Measured { first, five, ndcg, mrr }: Measured) -> Value {
    json!([first, five, ndcg, mrr])
}

/// A tool that is only declared.
struct Declared(Arc<ToolSpec>);

impl Tool for Declared {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn act<'a>(&'a self, _: &'a Scene) -> BoxFuture<'a, std::result::Result<Reply, CallError>> {
        Box::pin(std::future::ready(Ok(Reply::text(""))))
    }
}

/// The tools of the set again and again, as of other servers.
fn many(tools: &[ToolSpec]) -> Vec<ToolSpec> {
    let again = |number: usize| {
        let spec = &tools[number % tools.len()];
        let name = spec.name.as_str().replace("mcp:", &format!("mcp:tenant{}-", number / tools.len()));
        let name = if name.contains(':') { name } else { format!("mcp:haft{}:{name}", number / tools.len()) };
        let mut spec = spec.clone();
        spec.name = haft_core::ToolName::new(&name).unwrap();
        spec
    };
    (0..MANY).map(again).collect()
}

fn times(dir: &Path, tools: &[ToolSpec], questions: &[Labelled]) -> Result<Value> {
    let project = dir.join("project");
    std::fs::create_dir_all(project.join(".git"))?;
    let haft =
        Haft::new(Workspace::new(&project)?, Store::open(&dir.join("haft.db"))?, Settings::new(dir.join("data")));
    let many = many(tools);
    for spec in &many {
        haft.registry().replace(Arc::new(Declared(Arc::new(spec.clone()))));
    }
    let plain = Plain::new(&many);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let caller = Caller::default();
    let find = |query: &str| runtime.block_on(haft.find_tools(query, 10, &caller)).len();
    let begun = Instant::now();
    find("to begin with");
    let first = begun.elapsed();
    let begun = Instant::now();
    haft.registry().replace(Arc::new(Declared(Arc::new(many[7].clone()))));
    find("once more");
    let changed = begun.elapsed();
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for question in questions.iter().chain(questions) {
        ours.push(timed(|| find(question.query)));
        peer.push(timed(|| plain.ranked(question.query).len()));
    }
    Ok(json!({
        "many": haft.registry().names().len(), "first_ms": millis(first), "changed_ms": millis(changed),
        "search_p50_ms": at(&mut ours, 50), "search_p99_ms": at(&mut ours, 99), "bm25_p50_ms": at(&mut peer, 50),
    }))
}

fn timed(work: impl FnOnce() -> usize) -> Duration {
    let begun = Instant::now();
    std::hint::black_box(work());
    begun.elapsed()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn at(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    millis(times.get(times.len() * percent / 100).copied().unwrap_or_default())
}
