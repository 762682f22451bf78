//! The corpus of the deciding crate, as far as the command line needs it.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// One entry; what it says beyond these fields is tested where the judge lives.
#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    pub(super) command: String,
    pub(super) verdict: String,
    pub(super) twin: Option<String>,
}

/// All entries of all files.
pub(super) fn entries() -> Vec<Entry> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-core/tests/shell/corpus");
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files = paths.iter().filter(|path| path.extension().is_some_and(|ext| ext == "yml"));
    files
        .flat_map(|path| serde_saphyr::from_str::<Vec<Entry>>(&std::fs::read_to_string(path).unwrap()).unwrap())
        .collect()
}

/// Every command that should be read-only.
pub(super) fn harmless() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in entries() {
        all.extend((entry.verdict == "allow").then_some(entry.command));
        all.extend(entry.twin);
    }
    all
}
