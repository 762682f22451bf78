//! What applying file changes costs: from the moment a tool returned its changes to the end of its call, with the before-images,
//! the record and every wait for the disk. One file, a hundred and ten thousand are edited, and as many are created. Prints one
//! JSON object. `cargo bench -p haft-runtime --bench apply`
//!
//! To compare with another commit, build this file there, and give the program to `cargo xtask bench apply --beside`.
//!
//! `HAFT_BENCH_DIR` names the directory to measure in; the default is the build directory, which is on a disk.

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

use haft_core::change::{Change, State};
use haft_core::{Call, ToolSpec};
use haft_runtime::{Blocking, Haft, Halt, Reply, Settings, Workspace, Yes, files, new_call_id};
use haft_store::Store;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many files a call changes, and how often it is made.
const SIZES: [(usize, usize); 3] = [(1, 40), (100, 20), (10_000, 5)];

/// Any failure ends the whole benchmark: a number that is missing must not look like one that is small.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let base = std::env::var_os("HAFT_BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut numbers = serde_json::Map::new();
    for (files, rounds) in SIZES {
        let dir = tempfile::tempdir_in(&base)?;
        let bench = ApplyBench::new(dir.path(), files)?;
        for verb in ["edit", "create"] {
            let mut times = Vec::new();
            for _ in 0..rounds {
                times.push(runtime.block_on(bench.call(verb))?);
            }
            times.sort_unstable();
            let median = times[times.len() / 2].as_secs_f64() * 1e3;
            numbers.insert(format!("{verb}_{files}_p50_ms"), json!(median));
        }
    }
    println!("{}", serde_json::Value::Object(numbers));
    Ok(())
}

/// A project, and a haft with one tool that edits every file of it, and one that creates as many.
struct ApplyBench {
    haft: Haft,
    returned: Arc<Mutex<Option<Instant>>>,
}

impl ApplyBench {
    fn new(dir: &Path, files: usize) -> Result<Self> {
        let root = dir.join("project");
        std::fs::create_dir_all(root.join("edited"))?;
        for number in 0..files {
            std::fs::write(root.join(format!("edited/{number:05}")), "line of text\n".repeat(80))?;
        }
        let root = root.canonicalize()?;
        let haft =
            Haft::new(Workspace::new(&root)?, Store::open(&dir.join("haft.db"))?, Settings::new(dir.join("data")));
        let returned = Arc::new(Mutex::new(None));
        for verb in ["edit", "create"] {
            let (root, returned, rounds) = (root.clone(), Arc::clone(&returned), Arc::new(AtomicU64::new(0)));
            let spec = ToolSpec::new(&format!("bench.{verb}"), "A benchmark")?.changes_files();
            let tool = Blocking::tool(spec, move |_| {
                // A call is looked at before it is run, and both must see the same changes.
                let round = rounds.fetch_add(1, Ordering::Relaxed) / 2;
                let content = format!("round {round}\n").repeat(80).into_bytes();
                let changes = (0..files).filter_map(|number| {
                    let (path, before) = if verb == "edit" {
                        let path = root.join(format!("edited/{number:05}"));
                        (path.clone(), files::state(&path).ok()?)
                    } else {
                        (root.join(format!("created-{round}/{number:05}")), State::Absent)
                    };
                    Some(Change::Write { path, content: content.clone(), before, mode: None })
                });
                let reply = Reply::text("done").changes(changes.collect());
                *returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                Ok(reply)
            });
            haft.registry().register(tool)?;
        }
        Ok(Self { haft, returned })
    }

    async fn call(&self, verb: &str) -> Result<Duration> {
        let call = Call::new(new_call_id(), format!("bench.{verb}"), json!({}));
        let outcome = self.haft.call(call, &Yes, &Halt::new()).await;
        let end = Instant::now();
        if !outcome.success {
            return Err(format!("{outcome:?}").into());
        }
        let returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(returned.map_or(Duration::ZERO, |begun| end - begun))
    }
}
