//! What memory costs and how well it finds: whole calls over 100 000 pieces, beside the database's own full-text search
//! over the same; and a labelled set. Prints one JSON object. `cargo bench -p haft --bench memory -- --json`
//!
//! The table of word vectors is made from the wheel that `HAFT_TEST_WORDLLAMA` names, or fetched.

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

#[path = "memory/quality.rs"]
mod quality;

use haft::{Call, Haft, Halt, Settings, Store, Workspace, Yes, new_call_id};
use haft_core::memory::pieces;
use haft_runtime::memory::{Table, setup, table_file};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const DOCUMENTS: usize = 100;
const SECTIONS: usize = 1000;
const QUESTIONS: usize = 300;

/// Any failure ends the whole benchmark: a number that is missing must not look like one that is small.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A question and the text that answers it.
#[derive(Deserialize)]
pub(crate) struct Labelled {
    pub(crate) query: String,
    pub(crate) text: String,
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let file = table_file(&dir.path().join("data"));
    match std::env::var_os("HAFT_TEST_WORDLLAMA") {
        Some(wheel) => setup::install(Path::new(&wheel), &file)?,
        None => setup::fetch(&file)?,
    };
    let set = labelled()?;
    let table = Table::read(&file).ok_or("the table is not there")?;
    if std::env::args().any(|arg| arg == "--tune") {
        for (meaning, ndcg) in quality::tuned(&set, &table) {
            println!("meaning {meaning}: nDCG {ndcg:.4}");
        }
    }
    let mut numbers = quality::measured(&set, &table);
    let ground = Ground::new(dir.path(), set)?;
    let more = ground.measured()?;
    if let (Value::Object(all), Value::Object(more)) = (&mut numbers, more) {
        all.extend(more);
    }
    println!("{numbers}");
    Ok(())
}

fn labelled() -> Result<Vec<Labelled>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/memory/docstrings.py");
    let said = std::process::Command::new("python3").arg(script).output()?;
    let text = String::from_utf8(said.stdout)?;
    let set: Vec<Labelled> = text.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
    if set.len() < 500 { Err("the labelled set is too small".into()) } else { Ok(set) }
}

struct Ground {
    set: Vec<Labelled>,
    haft: Haft,
    runtime: tokio::runtime::Runtime,
    documents: Vec<String>,
    database: rusqlite::Connection,
}

impl Ground {
    fn new(dir: &Path, set: Vec<Labelled>) -> Result<Self> {
        let project = dir.join("project");
        std::fs::create_dir_all(project.join(".git"))?;
        let settings = Settings::new(dir.join("data"));
        let haft = Haft::new(Workspace::new(&project)?, Store::open(&dir.join("haft.db"))?, settings);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let documents = documents(&set);
        let database = rusqlite::Connection::open(dir.join("peer.db"))?;
        Ok(Self { set, haft, runtime, documents, database })
    }

    fn measured(&self) -> Result<Value> {
        let (count, begun) = (self.documents.iter().map(|text| pieces(text).len()).sum::<usize>(), Instant::now());
        for (number, document) in self.documents.iter().enumerate() {
            self.call("memory.write", json!({"namespace": format!("docs/{number}"), "content": document}))?;
        }
        let written = begun.elapsed();
        // Counts words once more and makes all vectors.
        self.call("memory.reindex", json!({}))?;
        let indexed = begun.elapsed();
        let begun = Instant::now();
        self.call("memory.search", json!({"query": "to begin with"}))?;
        let first = begun.elapsed();
        self.peer()?;
        let (mut hybrid, mut keyword, mut peer) = (Vec::new(), Vec::new(), Vec::new());
        for item in self.set.iter().step_by(self.set.len() / QUESTIONS) {
            let query = &item.query;
            hybrid.push(timed(|| self.call("memory.search", json!({"query": query})))?);
            keyword.push(timed(|| self.call("memory.search", json!({"query": query, "keyword_only": true})))?);
            peer.push(timed(|| self.full_text(query))?);
        }
        let rate = |time: Duration| json!(per_second(count, time));
        Ok(json!({
            "pieces": count, "write_per_s": rate(written), "index_per_s": rate(indexed),
            "first_ms": first.as_secs_f64() * 1e3, "search_p50_ms": at(&mut hybrid, 50),
            "search_p99_ms": at(&mut hybrid, 99), "keyword_p50_ms": at(&mut keyword, 50),
            "keyword_p99_ms": at(&mut keyword, 99), "fts5_p50_ms": at(&mut peer, 50), "fts5_p99_ms": at(&mut peer, 99),
        }))
    }

    /// The same pieces in the database's own index.
    fn peer(&self) -> Result<()> {
        self.database.execute_batch("CREATE VIRTUAL TABLE peer USING fts5(text, tokenize = 'porter'); BEGIN")?;
        for document in &self.documents {
            for piece in pieces(document) {
                self.database.execute("INSERT INTO peer (text) VALUES (?1)", [piece.text])?;
            }
        }
        Ok(self.database.execute_batch("COMMIT")?)
    }

    fn full_text(&self, query: &str) -> Result<()> {
        let words: Vec<String> = query
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| format!("\"{word}\""))
            .collect();
        let sql = "SELECT rowid, bm25(peer) FROM peer WHERE peer MATCH ?1 ORDER BY rank LIMIT 10";
        let mut statement = self.database.prepare_cached(sql)?;
        let found = statement.query_map([words.join(" OR ")], |row| row.get::<_, i64>(0))?;
        found.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(())
    }

    fn call(&self, tool: &str, args: Value) -> Result<()> {
        let call = Call::new(new_call_id(), tool, args);
        let outcome = self.runtime.block_on(self.haft.call(call, &Yes, &Halt::new()));
        match outcome.error {
            None => Ok(()),
            Some(error) => Err(error.message.into()),
        }
    }
}

/// Documents of sections of about a piece each, from the set's own sentences: words as frequent as they are in prose.
fn documents(set: &[Labelled]) -> Vec<String> {
    let sentences: Vec<&str> = set
        .iter()
        .flat_map(|item| item.text.split(['.', '\n']))
        .map(str::trim)
        .filter(|text| text.len() > 30 && !text.starts_with(['>', '#', '-']))
        .collect();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut any = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        sentences[usize::try_from(seed % sentences.len() as u64).unwrap_or_default()]
    };
    let mut section = |number: usize| {
        let mut text = format!("# Section {number}\n");
        while text.len() < 640 {
            text.push_str(any());
            text.push_str(".\n");
        }
        text
    };
    (0..DOCUMENTS).map(|_| (0..SECTIONS).map(&mut section).collect()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a count of pieces")]
fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

fn at(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    times.get(times.len() * percent / 100).copied().unwrap_or_default().as_secs_f64() * 1e3
}
