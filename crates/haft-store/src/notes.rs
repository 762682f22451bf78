//! Notes: what happened outside a conversation and its model has not been told. A note waits here until it is written down as
//! a part of the conversation, and goes in the same transaction: it is told once, whatever dies in between.

use crate::cells;
use crate::db::{Db, DbResult, Row};
use crate::migrate::Step;
use crate::{Mode, Sighting, Store, StoreError, now_ms};
use haft_core::SessionId;
use haft_core::record::Digest;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Notes of every kind, in the place of the reports of children; whether the caller of a stored question was told to wait for
/// it; which state of a file a session was told of; and by what a conversation goes, so that it goes on as it was.
pub(crate) const STEP: Step = Step::alike(
    "CREATE TABLE notes (
        session TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, at_ms INTEGER NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (session, kind, id)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO notes (session, kind, id, at_ms, text) SELECT session, 'report', child, at_ms, text FROM reports;
    DROP TABLE reports;
    ALTER TABLE approvals ADD COLUMN is_deferred INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sightings ADD COLUMN told TEXT;
    ALTER TABLE talks ADD COLUMN models TEXT;
    ALTER TABLE talks ADD COLUMN effort TEXT;
    ALTER TABLE talks ADD COLUMN max_micros INTEGER;
    ALTER TABLE talks ADD COLUMN spent_micros INTEGER;
    ALTER TABLE talks ADD COLUMN max_turns INTEGER;
    ALTER TABLE talks ADD COLUMN max_tokens INTEGER;",
);

/// How many generations above a conversation are told of what concerns them, too.
const FAMILY_MAX: usize = 16;
/// How many files that a session has seen are looked at.
const SEEN_MAX: i64 = 5_000;

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// What a child reports.
    Report,
    /// A call was taken back.
    Undo,
    /// A question was decided that the model was told to wait for.
    Approval,
    /// A command in the background has ended.
    Process,
    /// A file that was seen is another one now.
    Edit,
}

impl NoteKind {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Report, "report"),
        (Self::Undo, "undo"),
        (Self::Approval, "approval"),
        (Self::Process, "process"),
        (Self::Edit, "edit"),
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind)
    }

    /// Whether those above a child are told as well: what it did was for them.
    fn concerns_family(self) -> bool {
        matches!(self, Self::Undo | Self::Approval)
    }
}

/// A note that waits to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// Of which call, task or file. What is left later about the same takes its place.
    pub id: String,
    /// When it was left; no two versions of a note have the same.
    pub at_ms: i64,
    /// What the model is told; empty for a decided question, which says itself what came of it.
    pub text: String,
}

/// A file that a session has seen and that may have changed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenFile {
    /// Where.
    pub path: PathBuf,
    /// As it was seen.
    pub seen: Sighting,
    /// The state that the session was told of since.
    pub told: Option<String>,
}

/// A file that is another one than was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenChange {
    /// Where.
    pub path: PathBuf,
    /// What it is now.
    pub state: String,
    /// What the model is told of it, if it does not know already.
    pub text: Option<String>,
}

fn read(row: &Row<'_>) -> DbResult<Note> {
    let kind: String = row.get(0)?;
    let kind = NoteKind::parse(&kind).ok_or(crate::db::DbError::Odd("a word that nobody here writes".to_owned()))?;
    Ok(Note { kind, id: row.get(1)?, at_ms: row.get(2)?, text: row.get(3)? })
}

fn put(db: &Db<'_>, session: &str, kind: NoteKind, id: &str, text: &str) -> DbResult<()> {
    // A later version has a later time, also within a millisecond: whoever was told the earlier one does not remove it.
    let sql = "INSERT INTO notes (session, kind, id, at_ms, text) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (session, kind, id) DO UPDATE SET text = excluded.text,
        at_ms = CASE WHEN excluded.at_ms > notes.at_ms THEN excluded.at_ms ELSE notes.at_ms + 1 END";
    db.execute(sql, cells![session, kind.as_str(), id, now_ms(), text]).map(drop)
}

/// Leaves a note for a conversation, and for those above it whom it concerns. A session without one is told nothing.
pub(crate) fn leave(db: &Db<'_>, session: &str, kind: NoteKind, id: &str, text: &str) -> DbResult<()> {
    let mut next = Some(session.to_owned());
    for _ in 0..FAMILY_MAX {
        let Some(session) = next.take() else { break };
        let sql = "SELECT above FROM talks WHERE session = ?1";
        let Some(above) = db.first(sql, cells![session], |row| row.get::<Option<String>>(0))? else { break };
        put(db, &session, kind, id, text)?;
        next = above.filter(|_| kind.concerns_family());
    }
    Ok(())
}

/// Removes notes that are a part of the conversation now, in the transaction that makes them one.
pub(crate) fn remove(db: &Db<'_>, session: &str, told: &[Note]) -> DbResult<()> {
    for Note { kind, id, at_ms, .. } in told {
        let sql = "DELETE FROM notes WHERE session = ?1 AND kind = ?2 AND id = ?3 AND at_ms = ?4";
        db.execute(sql, cells![session, kind.as_str(), id, at_ms])?;
    }
    Ok(())
}

fn drop_one(db: &Db<'_>, session: &str, kind: NoteKind, id: &str) -> DbResult<()> {
    let sql = "DELETE FROM notes WHERE session = ?1 AND kind = ?2 AND id = ?3";
    db.execute(sql, cells![session, kind.as_str(), id]).map(drop)
}

impl Store {
    /// Leaves a note for the conversation of a session, if it has one. What was left about the same before is replaced.
    pub async fn leave_note(
        &self,
        session: &SessionId,
        kind: NoteKind,
        id: &str,
        text: String,
    ) -> Result<(), StoreError> {
        let (session, id) = (session.clone(), id.to_owned());
        self.insist(Mode::Durable, move |db| leave(db, session.as_str(), kind, &id, &text)).await
    }

    /// The same for threads that may block.
    pub fn leave_note_blocking(
        &self,
        session: &SessionId,
        kind: NoteKind,
        id: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        let (session, id, text) = (session.clone(), id.to_owned(), text.to_owned());
        self.run_blocking(Mode::Write, move |db| leave(db, session.as_str(), kind, &id, &text))
    }

    /// What a conversation has not been told, the oldest first. What children report is for [`Self::reports`].
    pub async fn notes(&self, session: &SessionId) -> Result<Vec<Note>, StoreError> {
        let session = session.clone();
        self.insist(Mode::Read, move |db| {
            let sql = "SELECT kind, id, at_ms, text FROM notes WHERE session = ?1 AND kind <> 'report' ORDER BY at_ms, kind, id";
            db.all(sql, cells![session.as_str()], read)
        })
        .await
    }

    /// Forgets a note, without waiting: the model knows it already, by a call of its own.
    pub fn drop_note(&self, session: &SessionId, kind: NoteKind, id: &str) {
        let (session, id) = (session.clone(), id.to_owned());
        self.later(move |db| drop_one(db, session.as_str(), kind, &id));
    }

    /// Keeps what a child has to say to its parent's conversation, until that has heard it. What it says last counts.
    pub async fn leave_report(&self, session: &SessionId, child: &str, text: String) -> Result<(), StoreError> {
        let (session, child) = (session.clone(), child.to_owned());
        self.insist(Mode::Durable, move |db| put(db, session.as_str(), NoteKind::Report, &child, &text)).await
    }

    /// What children had to say that a conversation has not heard: each with its words, the oldest first.
    pub async fn reports(&self, session: &SessionId) -> Result<Vec<(String, String)>, StoreError> {
        let session = session.clone();
        self.insist(Mode::Read, move |db| {
            let sql = "SELECT id, text FROM notes WHERE session = ?1 AND kind = 'report' ORDER BY at_ms, id";
            db.all(sql, cells![session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        })
        .await
    }

    /// A conversation has heard what a child had to say.
    pub async fn drop_report(&self, session: &SessionId, child: &str) -> Result<(), StoreError> {
        let (session, child) = (session.clone(), child.to_owned());
        self.insist(Mode::Durable, move |db| drop_one(db, session.as_str(), NoteKind::Report, &child)).await
    }

    /// The files that a session has seen, as it knows them.
    pub async fn seen_files(&self, session: &SessionId) -> Result<Vec<SeenFile>, StoreError> {
        let session = session.clone();
        self.insist(Mode::Read, move |db| seen(db, session.as_str())).await
    }

    /// The same for threads that may block.
    pub fn seen_files_blocking(&self, session: &SessionId) -> Result<Vec<SeenFile>, StoreError> {
        let session = session.clone();
        self.run_blocking(Mode::Read, move |db| seen(db, session.as_str()))
    }

    /// Notes what became of files that a session has seen, and leaves the notes about it: each state is told once.
    pub async fn note_changes(&self, session: &SessionId, changes: Vec<SeenChange>) -> Result<(), StoreError> {
        let session = session.clone();
        self.insist(Mode::Durable, move |db| note_changes(db, session.as_str(), &changes)).await
    }

    /// The same for threads that may block.
    pub fn note_changes_blocking(&self, session: &SessionId, changes: Vec<SeenChange>) -> Result<(), StoreError> {
        let session = session.clone();
        self.run_blocking(Mode::Write, move |db| note_changes(db, session.as_str(), &changes))
    }
}

fn seen(db: &Db<'_>, session: &str) -> DbResult<Vec<SeenFile>> {
    let sql =
        "SELECT path, digest, size, mtime_ns, whole, told FROM sightings WHERE session = ?1 ORDER BY path LIMIT ?2";
    db.all(sql, cells![session, SEEN_MAX], |row| {
        let (path, digest): (Vec<u8>, Option<Vec<u8>>) = (row.get(0)?, row.get(1)?);
        let seen = Sighting {
            digest: digest.and_then(|bytes| Digest::from_bytes(&bytes)),
            size: row.get(2)?,
            mtime_ns: row.get(3)?,
            whole: row.get(4)?,
        };
        Ok(SeenFile { path: PathBuf::from(OsString::from_vec(path)), seen, told: row.get(5)? })
    })
}

fn note_changes(db: &Db<'_>, session: &str, changes: &[SeenChange]) -> DbResult<()> {
    for SeenChange { path, state, text } in changes {
        let sql = "UPDATE sightings SET told = ?3 WHERE session = ?1 AND path = ?2";
        db.execute(sql, cells![session, path.as_os_str().as_bytes(), state])?;
        let id = haft_core::path_text::store(path);
        match text {
            Some(text) => leave(db, session, NoteKind::Edit, &id, text)?,
            // The model knows of it otherwise, and of nothing that was there before.
            None => drop_one(db, session, NoteKind::Edit, &id)?,
        }
    }
    Ok(())
}
