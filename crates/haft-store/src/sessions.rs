//! Sessions, and what each has seen of the file system.

use crate::cells;
use crate::journal::append;
use crate::{Entry, Mode, Store, StoreError, now_ms};
use haft_core::SessionId;
use haft_core::record::{Digest, Kind};
use serde::Serialize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A conversation, as far as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Session {
    /// Its name.
    pub id: String,
    /// First call.
    pub created_ms: i64,
    /// Latest call.
    pub used_ms: i64,
    /// How many calls it made.
    pub calls: i64,
}

/// What a session knows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Of its content, unless it was too large to hash.
    pub digest: Option<Digest>,
    /// Its size in bytes.
    pub size: i64,
    /// Its modification time.
    pub mtime_ns: i64,
    /// Whether all of it was seen.
    pub whole: bool,
}

impl Store {
    /// Notes that a session made a call, without waiting.
    pub fn touch_session(&self, session: &SessionId) {
        let session = session.clone();
        self.later(move |db| {
            db.keep(|pending| pending.use_session(session.as_str(), now_ms()));
            Ok(())
        });
    }

    /// Makes a session known before its first call. Returns whether it is new.
    pub async fn create_session(&self, session: SessionId) -> Result<bool, StoreError> {
        self.insist(Mode::Durable, move |db| {
            let sql =
                "INSERT INTO sessions (id, created_ms, used_ms, calls) VALUES (?1, ?2, ?2, 0) ON CONFLICT DO NOTHING";
            db.execute(sql, cells![session.as_str(), now_ms()]).map(|made| made > 0)
        })
        .await
    }

    /// All sessions, latest first.
    pub async fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        self.insist(Mode::Read, |db| {
            db.all("SELECT id, created_ms, used_ms, calls FROM sessions ORDER BY used_ms DESC, id", &[], |row| {
                Ok(Session { id: row.get(0)?, created_ms: row.get(1)?, used_ms: row.get(2)?, calls: row.get(3)? })
            })
        })
        .await
    }

    /// Forgets a session: what was said in it, what it has seen and what it was granted. What it asks is not asked any more.
    /// Its records stay. Returns whether there was one.
    pub async fn delete_session(&self, session: SessionId) -> Result<bool, StoreError> {
        self.note_erased();
        self.insist(Mode::Durable, move |db| {
            let asked = "SELECT id FROM approvals WHERE session = ?1 AND state = 'pending'";
            let asked = db.all(asked, cells![session.as_str()], |row| row.get(0))?;
            Self::withdraw_all(db, &asked, "its session was deleted")?;
            let gone = db.execute("DELETE FROM sessions WHERE id = ?1", cells![session.as_str()])? > 0;
            db.execute("DELETE FROM sightings WHERE session = ?1", cells![session.as_str()])?;
            db.execute("DELETE FROM grants WHERE session = ?1", cells![session.as_str()])?;
            db.execute("DELETE FROM messages WHERE session = ?1", cells![session.as_str()])?;
            db.execute("DELETE FROM talks WHERE session = ?1", cells![session.as_str()])?;
            db.execute("DELETE FROM notes WHERE session = ?1", cells![session.as_str()])?;
            if gone {
                append(db, &Entry::new(Kind::Session).with("deleted", session.as_str()))?;
            }
            Ok(gone)
        })
        .await
    }

    /// Notes what a session has seen, without waiting. A part does not make one forget the whole.
    pub fn note_sighting(&self, session: SessionId, path: PathBuf, sighting: Sighting) {
        self.later(move |db| {
            db.execute("INSERT INTO sightings (session, path, digest, size, mtime_ns, whole) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                     ON CONFLICT (session, path) DO UPDATE SET
                        whole = CASE WHEN sightings.whole = 1 AND sightings.digest = excluded.digest THEN 1 ELSE excluded.whole END,
                        digest = excluded.digest, size = excluded.size, mtime_ns = excluded.mtime_ns, told = NULL", cells![
                    session.as_str(),
                    path.as_os_str().as_bytes(),
                    sighting.digest.as_ref().map(Digest::as_bytes),
                    sighting.size,
                    sighting.mtime_ns,
                    sighting.whole,
                ])
                .map(drop)
        });
    }

    /// What a session knows of a file. For threads that may block.
    pub fn sighting_blocking(&self, session: &SessionId, path: &Path) -> Result<Option<Sighting>, StoreError> {
        let (session, path) = (session.clone(), path.to_owned());
        self.run_blocking(Mode::Read, move |db| {
            db.first(
                "SELECT digest, size, mtime_ns, whole FROM sightings WHERE session = ?1 AND path = ?2",
                cells![session.as_str(), path.as_os_str().as_bytes()],
                |row| {
                    let digest: Option<Vec<u8>> = row.get(0)?;
                    Ok(Sighting {
                        digest: digest.and_then(|bytes| Digest::from_bytes(&bytes)),
                        size: row.get(1)?,
                        mtime_ns: row.get(2)?,
                        whole: row.get(3)?,
                    })
                },
            )
        })
    }
}
