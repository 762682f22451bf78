//! Which project configurations the user has looked at and accepted, by their exact content.

use crate::journal::append;
use crate::{Entry, Mode, Store, StoreError, now_ms};
use haft_core::record::{Digest, Kind};
use rusqlite::{OptionalExtension, params};
use std::path::Path;

impl Store {
    /// The content that was trusted for a project. For start-up, before anything is async.
    pub fn trusted_blocking(&self, root: &Path) -> Result<Option<Digest>, StoreError> {
        let root = root.to_string_lossy().into_owned();
        self.run_blocking(Mode::Read, move |connection| {
            let found: Option<Vec<u8>> = connection
                .query_row("SELECT digest FROM trust WHERE root = ?1", [root], |row| row.get(0))
                .optional()?;
            Ok(found.and_then(|bytes| Digest::from_bytes(&bytes)))
        })
    }

    /// Trusts exactly this content for a project; none withdraws trust.
    pub async fn trust(&self, root: &Path, digest: Option<Digest>) -> Result<(), StoreError> {
        let root = root.to_string_lossy().into_owned();
        self.run(Mode::Durable, move |connection| {
            connection.execute("DELETE FROM trust WHERE root = ?1", [&root])?;
            if let Some(digest) = digest {
                let sql = "INSERT INTO trust (root, digest, at_ms) VALUES (?1, ?2, ?3)";
                connection.execute(sql, params![root, digest.as_bytes(), now_ms()])?;
            }
            let said = digest.map_or_else(|| "withdrawn".to_owned(), |digest| digest.to_string());
            append(connection, &Entry::new(Kind::Trust).with("root", root.as_str()).with("content", said)).map(drop)
        })
        .await
    }
}
