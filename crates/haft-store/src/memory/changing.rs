//! Changing a document, and its pieces with it.

use super::next_change;
use crate::db::{Db, DbError, DbResult};
use crate::heard::HOLDS_MS;
use crate::{Mode, Store, StoreError, cells, now_ms};
use haft_core::memory::{Counted, DOCUMENT_MAX, Namespace, Note, WORDS_VERSION, holds, pieces};
use haft_core::record::Digest;
use haft_core::{CallId, SessionId};
use std::collections::HashMap;

/// So many pieces are counted anew at once.
const AT_ONCE: i64 = 1024;

/// What is done to a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// It says this from now on.
    Replace(String),
    /// A note is added, unless the document holds it already.
    Add(Note),
    /// It is forgotten, with all that could bring it back.
    Forget,
}

/// Whose change it is: by which call it is taken back, and what its session has heard.
#[derive(Debug, Clone)]
pub struct By {
    /// The call.
    pub call: CallId,
    /// Its session.
    pub session: SessionId,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The document was changed; it has so many bytes, and so many pieces of which so many are new.
    Changed {
        /// The document's size.
        bytes: usize,
        /// How many pieces it has.
        pieces: usize,
        /// How many of them were not there before.
        fresh: usize,
    },
    /// It says that already.
    Same,
    /// It would be larger than a document may be, or all of them together than they may be.
    TooLarge {
        /// What it would have, in bytes.
        bytes: usize,
        /// The most that it may have.
        most: usize,
    },
}

impl Store {
    /// Changes a document. All documents together may have `all_max` bytes.
    pub async fn memory_edit(
        &self,
        namespace: Namespace,
        edit: Edit,
        by: By,
        all_max: usize,
    ) -> Result<Added, StoreError> {
        if edit == Edit::Forget {
            self.note_erased();
        }
        self.run(Mode::Durable, move |db| {
            let name = namespace.as_str();
            let before = text_of(db, name)?;
            let (text, keep) = match &edit {
                Edit::Replace(text) => (text.clone(), None),
                Edit::Add(note) if holds(&before, note) => return Ok(Added::Same),
                Edit::Add(note) => (with(&before, note), Some(before.len())),
                Edit::Forget => (String::new(), None),
            };
            if text == before && edit != Edit::Forget {
                return Ok(Added::Same);
            }
            if let Some(too_large) = too_large(db, (before.len(), text.len()), all_max)? {
                return Ok(too_large);
            }
            let change = next_change(db)?;
            if edit == Edit::Forget {
                db.execute("DELETE FROM memory_versions WHERE namespace = ?1", cells![name])?;
            } else {
                super::versions::keep(db, (&by.call, name, change), &before, keep)?;
            }
            write(db, (name, change), &text, label(db, &by.session)?.as_deref())
        })
        .await
    }

    /// Counts the words of all pieces anew if they were counted in another way than today, or if that is asked for; then
    /// their vectors go, too. Says how many pieces there are.
    pub async fn memory_rebuild(&self, always: bool) -> Result<usize, StoreError> {
        let stale = |db: &Db<'_>| db.one("SELECT words FROM memory_state", &[], |row| row.get::<i64>(0));
        if !always && self.run(Mode::Read, stale).await? == WORDS_VERSION {
            return Ok(0);
        }
        let (mut after, mut count) = (0, 0);
        loop {
            // A part at a time, so that others get their turn.
            let done: Vec<i64> = self.run(Mode::Write, move |db| recount(db, after, always)).await?;
            let Some(last) = done.last() else { break };
            (after, count) = (*last, count + done.len());
        }
        let done = |db: &Db<'_>| db.execute("UPDATE memory_state SET words = ?1", cells![WORDS_VERSION]).map(drop);
        self.run(Mode::Write, done).await.map(|()| count)
    }
}

fn recount(db: &Db<'_>, after: i64, vectors_go: bool) -> DbResult<Vec<i64>> {
    let sql = "SELECT id, heading, text FROM memory_pieces WHERE id > ?1 ORDER BY id LIMIT ?2";
    let rows: Vec<(i64, String, String)> =
        db.all(sql, cells![after, AT_ONCE], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let change = next_change(db)?;
    for (id, heading, text) in &rows {
        let words = Counted::of(&[heading, text]).to_bytes();
        db.execute("UPDATE memory_pieces SET words = ?2, change = ?3 WHERE id = ?1", cells![*id, words, change])?;
        if vectors_go {
            db.execute("UPDATE memory_pieces SET model = NULL, vector = NULL WHERE id = ?1", cells![*id])?;
        }
    }
    Ok(rows.into_iter().map(|(id, ..)| id).collect())
}

pub(super) fn text_of(db: &Db<'_>, name: &str) -> DbResult<String> {
    let sql = "SELECT text FROM memory_documents WHERE namespace = ?1";
    Ok(db.first(sql, cells![name], |row| row.get(0))?.unwrap_or_default())
}

fn with(before: &str, note: &Note) -> String {
    let item = note.to_markdown();
    match before.trim_end() {
        "" => format!("{item}\n"),
        // A list goes on; after anything else it begins.
        text => {
            let last = text.lines().next_back().unwrap_or_default();
            let gap = if last.starts_with("- ") || last.starts_with("  ") { "\n" } else { "\n\n" };
            format!("{text}{gap}{item}\n")
        }
    }
}

fn too_large(db: &Db<'_>, (before, after): (usize, usize), all_max: usize) -> DbResult<Option<Added>> {
    if after > DOCUMENT_MAX {
        return Ok(Some(Added::TooLarge { bytes: after, most: DOCUMENT_MAX }));
    }
    if after <= before {
        return Ok(None);
    }
    let sql = "SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM memory_documents";
    let all: i64 = db.one(sql, &[], |row| row.get(0))?;
    let all = usize::try_from(all).unwrap_or_default() - before.min(usize::try_from(all).unwrap_or_default()) + after;
    Ok((all > all_max).then_some(Added::TooLarge { bytes: all, most: all_max }))
}

/// The strictest of what a session has heard lately: what it writes may come from there.
fn label(db: &Db<'_>, session: &SessionId) -> DbResult<Option<String>> {
    let sql = "SELECT label FROM heard WHERE session = ?1 AND at_ms > ?2 AND label IN ('untrusted', 'flagged')
               ORDER BY label LIMIT 1";
    db.first(sql, cells![session.as_str(), now_ms() - HOLDS_MS], |row| row.get(0))
}

/// Writes a document and its pieces. What was there already stays as it is, but for its place.
pub(super) fn write(db: &Db<'_>, (name, change): (&str, i64), text: &str, label: Option<&str>) -> DbResult<Added> {
    let cut = pieces(text);
    let mut old = standing(db, name)?;
    let mut next: i64 = db.one("SELECT next FROM memory_state", &[], |row| row.get(0))?;
    let (now, first) = (now_ms(), next);
    for (seq, piece) in cut.iter().enumerate() {
        let seq = i64::try_from(seq).unwrap_or(i64::MAX);
        let digest = Digest::of(format!("{}\0{}", piece.heading, piece.text).as_bytes());
        if let Some((id, place)) = old.get_mut(digest.as_bytes().as_slice()).and_then(Vec::pop) {
            if place != (seq, i64::from(piece.line)) {
                let sql = "UPDATE memory_pieces SET seq = ?2, line = ?3 WHERE id = ?1";
                db.execute(sql, cells![id, seq, piece.line])?;
            }
            continue;
        }
        let words = Counted::of(&[&piece.heading, piece.text]).to_bytes();
        db.execute(
            "INSERT INTO memory_pieces (id, namespace, seq, line, heading, text, digest, tags, at_ms, label, words, change)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            cells![
                next,
                name,
                seq,
                piece.line,
                piece.heading,
                piece.text,
                digest.as_bytes(),
                piece.tags.join(" "),
                piece.at_ms.unwrap_or(now),
                label,
                words,
                change
            ],
        )?;
        next += 1;
    }
    for (id, _) in old.into_values().flatten() {
        db.execute("DELETE FROM memory_pieces WHERE id = ?1", cells![id])?;
    }
    db.execute("UPDATE memory_state SET next = ?1", cells![next])?;
    let count = |number: usize| i64::try_from(number).map_err(|error| DbError::Odd(error.to_string()));
    db.execute(
        "INSERT INTO memory_documents (namespace, text, bytes, pieces, at_ms, change) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (namespace) DO UPDATE SET text = excluded.text, bytes = excluded.bytes, pieces = excluded.pieces,
            at_ms = excluded.at_ms, change = excluded.change",
        cells![name, text, count(text.len())?, count(cut.len())?, now, change],
    )?;
    let fresh = usize::try_from(next - first).unwrap_or_default();
    Ok(Added::Changed { bytes: text.len(), pieces: cut.len(), fresh })
}

type Standing = HashMap<Vec<u8>, Vec<(i64, (i64, i64))>>;

/// The pieces that a document has, by what they say, with their places. The same may be said several times.
fn standing(db: &Db<'_>, name: &str) -> DbResult<Standing> {
    let mut all = Standing::new();
    let sql = "SELECT digest, id, seq, line FROM memory_pieces WHERE namespace = ?1 ORDER BY seq DESC";
    db.each(sql, cells![name], |row| {
        let digest: Vec<u8> = row.get(0)?;
        all.entry(digest).or_default().push((row.get(1)?, (row.get(2)?, row.get(3)?)));
        Ok(true)
    })?;
    Ok(all)
}
