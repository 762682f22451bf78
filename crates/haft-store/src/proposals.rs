//! What agents proposed to keep: tools, skills, reflections. Who made what is known from here, never from what they made.

use crate::cells;
use crate::db::{Db, DbResult};
use crate::journal::append;
use crate::{Entry, Mode, Store, StoreError, now_ms};
use haft_core::record::{Digest, Kind};
use haft_core::{CallId, SessionId};
use serde_json::Value;
use std::path::Path;

/// Something that an agent proposes.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The call that proposes it.
    pub call: CallId,
    /// `tool`, `skill` or `reflection`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Of its main file, as it would be.
    pub digest: Digest,
    /// In which session.
    pub session: SessionId,
    /// Who proposes it.
    pub creator: String,
    /// What it would be permitted, for the log.
    pub permissions: Option<Value>,
}

impl Store {
    /// Notes a proposal and records it, unless the session has made as many as it may. Returns whether it was noted. In
    /// one transaction: however many processes propose at once, no more than that are noted.
    pub async fn propose(&self, root: &Path, proposal: Proposal, most: u32) -> Result<bool, StoreError> {
        let root = root.to_string_lossy().into_owned();
        self.run(Mode::Durable, move |db| {
            let Proposal { call, what, name, digest, session, creator, permissions } = proposal;
            let made: i64 = db.one(
                "SELECT count(*) FROM proposals WHERE session = ?1 AND call_id <> ?2",
                cells![session.as_str(), call.as_str()],
                |row| row.get(0),
            )?;
            if made >= i64::from(most) {
                return Ok(false);
            }
            db.execute(
                "INSERT INTO proposals (call_id, root, what, name, digest, session, creator, at_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                     ON CONFLICT (call_id) DO UPDATE SET root = excluded.root, what = excluded.what,
                     name = excluded.name, digest = excluded.digest, session = excluded.session,
                     creator = excluded.creator, at_ms = excluded.at_ms, approved_by = NULL",
                cells![call.as_str(), root, what, name, digest.as_bytes(), session.as_str(), creator, now_ms()],
            )?;
            let entry = Entry::new(Kind::Made)
                .call(&call)
                .with("said", format!("{}_CREATED", what.to_uppercase()))
                .with("name", name)
                .with("creator", creator)
                .with("session", session.as_str())
                .with("digest", digest.to_string());
            append(db, &permissions.into_iter().fold(entry, |entry, value| entry.with("permissions", value)))?;
            Ok(true)
        })
        .await
    }

    /// Notes that a person approved what a call proposed, and records it. Returns whether there was such a proposal.
    pub async fn approve_proposal(&self, call: &CallId, by: &str) -> Result<bool, StoreError> {
        let (call, by) = (call.clone(), by.to_owned());
        self.run(Mode::Durable, move |db| {
            let found: Option<(String, String)> = db.first(
                "UPDATE proposals SET approved_by = ?2 WHERE call_id = ?1 RETURNING what, name",
                cells![call.as_str(), by.as_str()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            let Some((what, name)) = found else { return Ok(false) };
            let entry = Entry::new(Kind::Made).call(&call).with("said", format!("{}_APPROVED", what.to_uppercase()));
            append(db, &entry.with("name", name).with("approver", by))?;
            Ok(true)
        })
        .await
    }

    /// Who made what stands there now: the creator of the approved proposal of exactly this content. For threads that may
    /// block.
    pub fn maker_blocking(
        &self,
        root: &Path,
        (what, name): (&'static str, &str),
        digest: Digest,
    ) -> Result<Option<String>, StoreError> {
        let (root, name) = (root.to_string_lossy().into_owned(), name.to_owned());
        self.run_blocking(Mode::Read, move |db| maker(db, &root, what, &name, digest))
    }

    /// Who made the tool that was accepted under this name, if an agent did. `server` is what its pin is kept under.
    pub async fn maker_of_accepted(&self, root: &Path, server: &str, name: &str) -> Result<Option<String>, StoreError> {
        let (root, server, name) = (root.to_string_lossy().into_owned(), server.to_owned(), name.to_owned());
        self.run(Mode::Read, move |db| {
            db.first(
                "SELECT creator FROM proposals AS made
                     JOIN pins ON pins.server = ?2 AND pins.tool = made.name AND pins.digest = made.digest
                     WHERE made.root = ?1 AND made.what = 'tool' AND made.name = ?3 AND made.approved_by IS NOT NULL
                     LIMIT 1",
                cells![root, server, name],
                |row| row.get(0),
            )
        })
        .await
    }
}

fn maker(db: &Db<'_>, root: &str, what: &str, name: &str, digest: Digest) -> DbResult<Option<String>> {
    db.first(
        "SELECT creator FROM proposals WHERE root = ?1 AND what = ?2 AND name = ?3 AND digest = ?4
             AND approved_by IS NOT NULL LIMIT 1",
        cells![root, what, name, digest.as_bytes()],
        |row| row.get(0),
    )
}
