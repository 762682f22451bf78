//! What whoever searches asks of the store: what is new, what pieces say, and which have no vector yet.

use super::next_change;
use crate::db::{DbResult, Row};
use crate::{Mode, Store, StoreError, cells};
use haft_core::memory::{Counted, Entry, hash};

/// So many pieces are told at once, so that others get their turn.
const AT_ONCE: i64 = 4096;

/// What changed since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// The number of the last change that is told.
    pub change: i64,
    /// The last piece of it that is told: of one change there may be more than is told at once.
    pub after: i64,
    /// Whether there is more.
    pub more: bool,
    /// New pieces, and those that have a new vector.
    pub pieces: Vec<Held>,
    /// Documents that changed, and the pieces that each has now. Told with the last of the pieces.
    pub documents: Vec<(String, Vec<i64>)>,
}

/// A piece as it is held in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its namespace by name; in `entry` there is none yet.
    pub namespace: String,
    /// The rest.
    pub entry: Entry,
}

/// A piece as it is shown, with those around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its number.
    pub id: i64,
    /// Its namespace.
    pub namespace: String,
    /// The line that it begins in.
    pub line: u32,
    /// What it says.
    pub text: String,
    /// The headings above it.
    pub heading: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// When it was written.
    pub at_ms: i64,
    /// What whoever wrote it had heard.
    pub label: Option<String>,
    /// What its neighbours say, each with the line that it begins in.
    pub around: [Option<(u32, String)>; 2],
}

fn held(row: &Row<'_>, model: Option<&str>) -> DbResult<(i64, Held)> {
    let (tags, words): (String, Vec<u8>) = (row.get(4)?, row.get(5)?);
    let made_by: Option<String> = row.get(6)?;
    let vector: Option<Vec<u8>> = if made_by.as_deref() == model { row.get(7)? } else { None };
    let entry = Entry {
        id: row.get(1)?,
        namespace: 0,
        at_ms: row.get(3)?,
        tags: tags.split_whitespace().map(hash).collect(),
        words: Counted::from_bytes(&words),
        vector: vector.map(|bytes| bytes.into_iter().map(u8::cast_signed).collect()),
    };
    Ok((row.get(0)?, Held { namespace: row.get(2)?, entry }))
}

impl Store {
    /// The number of the last change.
    pub async fn memory_change(&self) -> Result<i64, StoreError> {
        self.run(Mode::Read, |db| db.one("SELECT change FROM memory_state", &[], |row| row.get(0))).await
    }

    /// What changed after a change and a piece of it, with the vectors of a model, and which documents changed after
    /// `documents`. To be asked again while there is more.
    pub async fn memory_news(
        &self,
        since: (i64, i64),
        documents: i64,
        model: Option<String>,
    ) -> Result<News, StoreError> {
        self.run(Mode::Read, move |db| {
            let (change, after) = since;
            let sql = "SELECT change, id, namespace, at_ms, tags, words, model, vector FROM memory_pieces
                       WHERE (change, id) > (?1, ?2) ORDER BY change, id LIMIT ?3";
            let rows = db.all(sql, cells![change, after, AT_ONCE], |row| held(row, model.as_deref()))?;
            let mut news = News { change, after, ..News::default() };
            if rows.len() == usize::try_from(AT_ONCE).unwrap_or_default() {
                news.more = true;
                (news.change, news.after) = rows.last().map_or(since, |(change, held)| (*change, held.entry.id));
                news.pieces = rows.into_iter().map(|(_, held)| held).collect();
                return Ok(news);
            }
            news.pieces = rows.into_iter().map(|(_, held)| held).collect();
            news.change = db.one("SELECT change FROM memory_state", &[], |row| row.get(0))?;
            news.after = i64::MAX;
            let sql = "SELECT namespace FROM memory_documents WHERE change > ?1 ORDER BY change";
            for name in db.all(sql, cells![documents], |row| row.get::<String>(0))? {
                let sql = "SELECT id FROM memory_pieces WHERE namespace = ?1";
                let ids = db.all(sql, cells![name], |row| row.get(0))?;
                news.documents.push((name, ids));
            }
            Ok(news)
        })
        .await
    }

    /// What pieces say, in the order in which they are asked for. What is gone is left out.
    pub async fn memory_pieces(&self, ids: Vec<i64>) -> Result<Vec<Shown>, StoreError> {
        self.run(Mode::Read, move |db| {
            let mut all = Vec::with_capacity(ids.len());
            for id in ids {
                let sql =
                    "SELECT namespace, line, text, heading, tags, at_ms, label, seq FROM memory_pieces WHERE id = ?1";
                let found = db.first(sql, cells![id], |row| {
                    let tags: String = row.get(4)?;
                    let tags = tags.split_whitespace().map(str::to_owned).collect();
                    let shown = Shown {
                        id,
                        namespace: row.get(0)?,
                        line: row.get(1)?,
                        text: row.get(2)?,
                        heading: row.get(3)?,
                        tags,
                        at_ms: row.get(5)?,
                        label: row.get(6)?,
                        around: [None, None],
                    };
                    Ok((shown, row.get::<i64>(7)?))
                })?;
                let Some((mut shown, seq)) = found else { continue };
                let sql = "SELECT line, text FROM memory_pieces WHERE namespace = ?1 AND seq = ?2";
                for (slot, seq) in shown.around.iter_mut().zip([seq - 1, seq + 1]) {
                    *slot = db.first(sql, cells![shown.namespace, seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
                }
                all.push(shown);
            }
            Ok(all)
        })
        .await
    }

    /// What to make vectors of, for these pieces: each with the headings above it. What is gone is left out.
    pub async fn memory_texts(&self, ids: Vec<i64>) -> Result<Vec<(i64, String)>, StoreError> {
        self.run(Mode::Read, move |db| {
            let mut all = Vec::with_capacity(ids.len());
            for id in ids {
                let sql = "SELECT heading, text FROM memory_pieces WHERE id = ?1";
                all.extend(db.first(sql, cells![id], |row| {
                    let (heading, text): (String, String) = (row.get(0)?, row.get(1)?);
                    Ok((id, if heading.is_empty() { text } else { format!("{heading}\n{text}") }))
                })?);
            }
            Ok(all)
        })
        .await
    }

    /// Keeps vectors of a model. A piece that is gone since stays gone.
    pub async fn memory_keep_vectors(&self, model: String, vectors: Vec<(i64, Vec<i8>)>) -> Result<(), StoreError> {
        self.run(Mode::Write, move |db| {
            let change = next_change(db)?;
            for (id, vector) in vectors {
                let bytes: Vec<u8> = vector.into_iter().map(i8::cast_unsigned).collect();
                let sql = "UPDATE memory_pieces SET model = ?2, vector = ?3, change = ?4 WHERE id = ?1";
                db.execute(sql, cells![id, model, bytes, change])?;
            }
            Ok(())
        })
        .await
    }
}
