//! What documents said before: enough to take a change back as long as nobody has made another since.

use super::changing::{text_of, write};
use super::next_change;
use crate::db::{Db, DbResult};
use crate::{Mode, Store, StoreError, cells, now_ms};
use haft_core::CallId;

/// So many changes can be taken back.
const VERSIONS_MAX: i64 = 100;
/// A larger document that is replaced is not kept.
const BEFORE_MAX: usize = 1 << 20;

/// What became of taking a change back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// The document says what it said before.
    Done {
        /// Which document.
        namespace: String,
    },
    /// Somebody has changed it since.
    ChangedSince {
        /// Which document.
        namespace: String,
    },
}

/// Keeps what it takes to undo a change: for a note that was added, how long the document was.
pub(super) fn keep(
    db: &Db<'_>,
    (call, name, change): (&CallId, &str, i64),
    before: &str,
    keep: Option<usize>,
) -> DbResult<()> {
    if keep.is_none() && before.len() > BEFORE_MAX {
        return Ok(());
    }
    let length = keep.and_then(|bytes| i64::try_from(bytes).ok());
    let before = length.is_none().then_some(before);
    db.execute(
        "INSERT INTO memory_versions (call_id, namespace, at_ms, change, before, keep, label)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (call_id) DO NOTHING",
        cells![call.as_str(), name, now_ms(), change, before, length, label_of(db, name)?],
    )?;
    db.execute(
        "DELETE FROM memory_versions WHERE call_id IN (
             SELECT call_id FROM memory_versions ORDER BY change DESC LIMIT 1000000 OFFSET ?1)",
        cells![VERSIONS_MAX],
    )
    .map(drop)
}

/// The strictest of what those had heard who wrote what a document says now.
fn label_of(db: &Db<'_>, name: &str) -> DbResult<Option<String>> {
    let sql = "SELECT label FROM memory_pieces WHERE namespace = ?1 AND label IS NOT NULL ORDER BY label LIMIT 1";
    db.first(sql, cells![name], |row| row.get(0))
}

impl Store {
    /// Whether a call changed a document in a way that can be taken back.
    pub async fn memory_can_undo(&self, call: &CallId) -> Result<bool, StoreError> {
        let call = call.clone();
        self.run(Mode::Read, move |db| {
            let sql = "SELECT namespace FROM memory_versions WHERE call_id = ?1";
            Ok(db.first(sql, cells![call.as_str()], |row| row.get::<String>(0))?.is_some())
        })
        .await
    }

    /// Takes back what a call changed; nothing if it changed no document. `by` is the call that does it.
    pub async fn memory_undo(&self, call: &CallId, by: &CallId) -> Result<Option<Restored>, StoreError> {
        let (call, by) = (call.clone(), by.clone());
        self.run(Mode::Durable, move |db| {
            let sql = "SELECT namespace, change, before, keep, label FROM memory_versions WHERE call_id = ?1";
            let found = db.first(sql, cells![call.as_str()], |row| {
                let (before, length): (Option<String>, Option<i64>) = (row.get(2)?, row.get(3)?);
                Ok((row.get::<String>(0)?, row.get::<i64>(1)?, before, length, row.get::<Option<String>>(4)?))
            })?;
            let Some((namespace, change, before, length, label)) = found else { return Ok(None) };
            let sql = "SELECT change FROM memory_documents WHERE namespace = ?1";
            if db.first(sql, cells![namespace], |row| row.get::<i64>(0))? != Some(change) {
                return Ok(Some(Restored::ChangedSince { namespace }));
            }
            let now = text_of(db, &namespace)?;
            let cut = || usize::try_from(length.unwrap_or_default()).ok().and_then(|length| now.get(..length));
            let text = before.unwrap_or_else(|| cut().unwrap_or_default().to_owned());
            let change = next_change(db)?;
            keep(db, (&by, &namespace, change), &now, None)?;
            db.execute("DELETE FROM memory_versions WHERE call_id = ?1", cells![call.as_str()])?;
            write(db, (&namespace, change), &text, label.as_deref())?;
            Ok(Some(Restored::Done { namespace }))
        })
        .await
    }
}
