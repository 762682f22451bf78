//! Which project configurations the user has looked at and accepted, by their exact content.

use crate::cells;
use crate::journal::append;
use crate::{Entry, Mode, Store, StoreError, now_ms};
use haft_core::record::{Digest, Kind};
use std::path::Path;

impl Store {
    /// The content that was trusted for a project. For start-up, before anything is async.
    pub fn trusted_blocking(&self, root: &Path) -> Result<Option<Digest>, StoreError> {
        let root = haft_core::path_text::store(root);
        self.run_blocking(Mode::Read, move |db| {
            let found: Option<Vec<u8>> =
                db.first("SELECT digest FROM trust WHERE root = ?1", cells![root], |row| row.get(0))?;
            Ok(found.and_then(|bytes| Digest::from_bytes(&bytes)))
        })
    }

    /// Trusts exactly this content for a project; none withdraws trust.
    pub async fn trust(&self, root: &Path, digest: Option<Digest>) -> Result<(), StoreError> {
        let root = haft_core::path_text::store(root);
        self.insist(Mode::Durable, move |db| {
            db.execute("DELETE FROM trust WHERE root = ?1", cells![&root])?;
            if let Some(digest) = digest {
                let sql = "INSERT INTO trust (root, digest, at_ms) VALUES (?1, ?2, ?3)";
                db.execute(sql, cells![root, digest.as_bytes(), now_ms()])?;
            }
            let said = digest.map_or_else(|| "withdrawn".to_owned(), |digest| digest.to_string());
            append(db, &Entry::new(Kind::Trust).with("root", root.as_str()).with("content", said)).map(drop)
        })
        .await
    }
}
