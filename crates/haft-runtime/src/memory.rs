//! What agents know: finding it by words and by meaning.
//!
//! The store has the documents and their pieces. A process that searches holds all pieces in memory (`held.rs`), in step
//! with the store by its number of changes. Meaning comes from an embedder (`embedder.rs`): a table of word vectors that
//! is fetched once (`setup.rs`, `table.rs`), or a model behind an address. Without either, words alone count.

mod embedder;
mod fill;
mod held;
mod room;
mod search;
pub mod setup;
mod table;

pub(crate) use room::Room;
pub use search::{Answer, Found, Question};
pub use table::Table;
#[cfg(test)]
pub(crate) use table::tests::small as small_table;

use crate::media::Endpoint;
use embedder::Embedder;
use held::Held;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long a model that failed is left alone.
const LEFT_ALONE: Duration = Duration::from_mins(1);

/// What memory goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySettings {
    /// Where meaning comes from.
    pub embeddings: Embeddings,
    /// The most that all documents together may have, in bytes.
    pub max_total_bytes: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { embeddings: Embeddings::default(), max_total_bytes: 256 << 20 }
    }
}

/// Where meaning comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Embeddings {
    /// The table of word vectors, if it was fetched.
    #[default]
    Table,
    /// A model behind an address.
    Endpoint(Endpoint),
    /// Nowhere: words alone count.
    Off,
}

/// What all calls share of memory.
pub struct Memory {
    settings: MemorySettings,
    file: PathBuf,
    /// Read when it is first needed: most processes never search.
    table: OnceLock<Option<Arc<Table>>>,
    held: RwLock<Held>,
    /// Held by whoever brings `held` up to date.
    syncing: tokio::sync::Mutex<()>,
    /// Who makes vectors after their call; they end with this.
    filling: Mutex<JoinSet<()>>,
    /// A model that failed is left alone until then, and why.
    left_alone: Mutex<Option<(Instant, String)>>,
}

impl Memory {
    /// Memory by these settings. The table of word vectors is kept below `data_dir`.
    pub fn new(settings: MemorySettings, data_dir: &Path) -> Self {
        Self {
            settings,
            file: table_file(data_dir),
            table: OnceLock::new(),
            held: RwLock::default(),
            syncing: tokio::sync::Mutex::default(),
            filling: Mutex::default(),
            left_alone: Mutex::default(),
        }
    }

    /// What it goes by.
    pub fn settings(&self) -> &MemorySettings {
        &self.settings
    }

    /// Where meaning comes from, as far as that is there.
    pub(crate) async fn embedder(&self) -> Option<Embedder> {
        match &self.settings.embeddings {
            Embeddings::Off => None,
            Embeddings::Endpoint(endpoint) => Some(Embedder::Endpoint(endpoint.clone())),
            Embeddings::Table => self.table().await.map(Embedder::Table),
        }
    }

    /// The table of word vectors, if it is there and meaning counts.
    pub(crate) async fn word_vectors(&self) -> Option<Arc<Table>> {
        if self.settings.embeddings == Embeddings::Off { None } else { self.table().await }
    }

    async fn table(&self) -> Option<Arc<Table>> {
        if let Some(known) = self.table.get() {
            return known.clone();
        }
        let file = self.file.clone();
        let read = tokio::task::spawn_blocking(move || Table::read(&file).map(Arc::new)).await.unwrap_or_default();
        // It may be fetched while this process runs; then the next search finds it.
        read.map(|table| self.table.get_or_init(|| Some(table)).clone()).unwrap_or_default()
    }
}

/// Where the table of word vectors is kept.
pub fn table_file(data_dir: &Path) -> PathBuf {
    data_dir.join("memory").join("words-1.bin")
}
