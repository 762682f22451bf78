//! What tools as files cost their readers: a thousand manifests of every kind, read from disk and checked, and linted by
//! the program. Prints one JSON object. `cargo bench -p haft --bench manifests -- --json`

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

use haft::Store;
use haft::core::manifest::Manifest;
use haft_runtime::registry::Registry;
use haft_runtime::shelf::{Folder, Shelf, Whose};
use serde_json::json;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const COUNT: usize = 1000;
const ROUNDS: usize = 15;

/// As large as tools are: with descriptions, schemas of inputs and outputs, and two examples.
const TOOLS: &[&str] = &[
    include_str!("../../haft-core/tests/tools/web_search/tool.yml"),
    include_str!("../../haft-core/tests/tools/slack_notify/tool.yml"),
    include_str!("../../haft-core/tests/tools/repo_scan/tool.yml"),
    include_str!("../../haft-core/tests/tools/repo_stats/tool.yml"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let root = dir.path().canonicalize()?;
    make(&root)?;
    let load = median(|| load(&root))?;
    let read = median(|| read(&root))?;
    let lint = median(|| lint(&root))?;
    println!("{}", json!({"count": COUNT, "load_ms": load, "read_ms": read, "lint_ms": lint}));
    Ok(())
}

fn make(root: &Path) -> Result<(), Box<dyn Error>> {
    for (index, text) in TOOLS.iter().cycle().take(COUNT).enumerate() {
        let (_, after) = text.split_once("\nname: ").ok_or("a manifest has a name")?;
        let (_, rest) = after.split_once('\n').ok_or("a manifest has more than a name")?;
        let dir = root.join(format!(".haft/tools/tool_{index}"));
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join("tool.yml"), format!("name: tool_{index}\n{rest}"))?;
    }
    std::fs::create_dir_all(root.join("scripts"))?;
    std::fs::write(root.join("scripts/scan_todos.sh"), "#!/bin/sh\n")?;
    Ok(())
}

/// Finds, reads and checks every one, and has them all ready to be called: what a server does when it starts.
fn load(root: &Path) -> Result<Duration, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (store, registry) = (Store::open(&root.join("haft.db"))?, Arc::new(Registry::default()));
    let folder = Folder { path: root.join(".haft/tools"), whose: Whose::Own };
    let shelf = Shelf::new(vec![folder], root, Arc::clone(&registry), store);
    let begun = Instant::now();
    runtime.block_on(shelf.load_all()).map_err(|error| error.message)?;
    let took = begun.elapsed();
    let read = registry.list().len();
    if read == COUNT { Ok(took) } else { Err(format!("only {read} could be read").into()) }
}

/// One after the other on one thread: reading and checking alone.
fn read(root: &Path) -> Result<Duration, Box<dyn Error>> {
    let texts = std::fs::read_dir(root.join(".haft/tools"))?
        .map(|entry| std::fs::read_to_string(entry?.path().join("tool.yml")))
        .collect::<Result<Vec<_>, _>>()?;
    let begun = Instant::now();
    let read = texts.iter().filter(|text| Manifest::read(text).is_ok()).count();
    if read == COUNT { Ok(begun.elapsed()) } else { Err(format!("only {read} could be read").into()) }
}

/// The same by the program, with everything that no schema can say; from its start to its end.
fn lint(root: &Path) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    let ran = Command::new(env!("CARGO_BIN_EXE_haft")).args(["lint", "--json", "--root"]).arg(root).output()?;
    let took = begun.elapsed();
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout)?;
    if report["tools"] == COUNT { Ok(took) } else { Err(format!("not all were linted: {report}").into()) }
}

fn median(mut once: impl FnMut() -> Result<Duration, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut took = (0..ROUNDS).map(|_| once()).collect::<Result<Vec<_>, _>>()?;
    took.sort();
    Ok(took[took.len() / 2].as_secs_f64() * 1e3)
}
