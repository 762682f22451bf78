//! What agents know: documents of words, cut into pieces that can be found.
//!
//! A document and its pieces change together, in one transaction: what is gone from a document cannot be found from then
//! on. Pieces that stay the same stay, with their vectors. `memory_state.change` grows with every change, and each
//! document and piece has the number of its last one, so that whoever holds pieces in memory learns what is new.

mod changing;
mod finding;
mod versions;

pub use changing::{Added, By, Edit};
pub use finding::{Held as HeldPiece, News as MemoryNews, Shown as ShownPiece};
pub use versions::Restored;

use crate::db::{Db, DbResult};
use crate::migrate::Step;
use crate::{Mode, Store, StoreError, cells};
use haft_core::memory::Namespace;
use serde::Serialize;

pub(crate) const TABLES: Step = Step::alike(
    "CREATE TABLE memory_state (
        one INTEGER PRIMARY KEY CHECK (one = 1), change INTEGER NOT NULL, next INTEGER NOT NULL, words INTEGER NOT NULL
    ) STRICT;
    INSERT INTO memory_state (one, change, next, words) VALUES (1, 0, 1, 1);
    CREATE TABLE memory_documents (
        namespace TEXT PRIMARY KEY, text TEXT NOT NULL, bytes INTEGER NOT NULL, pieces INTEGER NOT NULL,
        at_ms INTEGER NOT NULL, change INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX memory_documents_by_change ON memory_documents (change);
    CREATE TABLE memory_pieces (
        id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, seq INTEGER NOT NULL, line INTEGER NOT NULL,
        heading TEXT NOT NULL, text TEXT NOT NULL, digest BLOB NOT NULL, tags TEXT NOT NULL, at_ms INTEGER NOT NULL,
        label TEXT, words BLOB NOT NULL, model TEXT, vector BLOB, change INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX memory_pieces_by_place ON memory_pieces (namespace, seq);
    CREATE INDEX memory_pieces_by_change ON memory_pieces (change, id);
    CREATE TABLE memory_versions (
        call_id TEXT PRIMARY KEY, namespace TEXT NOT NULL, at_ms INTEGER NOT NULL, change INTEGER NOT NULL,
        before TEXT, keep INTEGER, label TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX memory_versions_by_change ON memory_versions (change);",
);

/// A namespace that has something in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remembered {
    /// Which.
    pub namespace: String,
    /// How large its document is.
    pub bytes: i64,
    /// Of how many pieces it is.
    pub pieces: i64,
    /// When it was last changed.
    pub at_ms: i64,
}

/// A document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// What it says; nothing if there is none.
    pub text: String,
    /// When it was last changed.
    pub at_ms: i64,
    /// What whoever wrote some of it had heard: `untrusted`, `flagged`.
    pub labels: Vec<String>,
}

impl Store {
    /// What a namespace holds. One that nobody wrote to is empty.
    pub async fn memory_document(&self, namespace: Namespace) -> Result<Document, StoreError> {
        self.run(Mode::Read, move |db| {
            let sql = "SELECT text, at_ms FROM memory_documents WHERE namespace = ?1";
            let found = db.first(sql, cells![namespace.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let Some((text, at_ms)) = found else { return Ok(Document::default()) };
            let sql =
                "SELECT DISTINCT label FROM memory_pieces WHERE namespace = ?1 AND label IS NOT NULL ORDER BY label";
            let labels = db.all(sql, cells![namespace.as_str()], |row| row.get(0))?;
            Ok(Document { text, at_ms, labels })
        })
        .await
    }

    /// All namespaces that have something in them, by name.
    pub async fn memory_namespaces(&self) -> Result<Vec<Remembered>, StoreError> {
        self.run(Mode::Read, |db| {
            let sql = "SELECT namespace, bytes, pieces, at_ms FROM memory_documents WHERE bytes > 0 ORDER BY namespace";
            db.all(sql, &[], |row| {
                Ok(Remembered { namespace: row.get(0)?, bytes: row.get(1)?, pieces: row.get(2)?, at_ms: row.get(3)? })
            })
        })
        .await
    }
}

/// Counts a change, and gives its number.
fn next_change(db: &Db<'_>) -> DbResult<i64> {
    db.execute("UPDATE memory_state SET change = change + 1", &[])?;
    db.one("SELECT change FROM memory_state", &[], |row| row.get(0))
}
