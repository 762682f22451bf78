//! What agents proposed to keep: tools, skills, reflections. Who made what is known from here, never from what they made.

use crate::cells;
use crate::db::{Db, DbResult};
use crate::journal::append;
use crate::{Entry, Mode, Store, StoreError, now_ms};
use haft_core::record::{Digest, Kind};
use haft_core::{CallId, SessionId};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
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
    /// Its files, by their paths from its directory.
    pub files: BTreeMap<String, Digest>,
}

/// How many proposals there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Of one session, ever.
    pub session: u32,
    /// Of one agent in a project, as long as nobody has decided about them; whatever session it says it is in.
    pub agent: u32,
    /// Of all agents in a project, likewise: who an agent is, it says itself.
    pub project: u32,
}

/// What came of noting a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It is noted.
    Noted,
    /// The session has made as many as it may.
    SessionFull,
    /// So many of this agent wait already.
    AgentFull,
    /// So many wait already in this project.
    ProjectFull,
}

/// How long what nobody keeps a question for counts as waiting: somebody may be looking at it.
const LOOKED_AT_MS: i64 = 3_600_000;

impl Store {
    /// Notes a proposal and records it, unless there are as many as there may be. In one transaction: however many
    /// processes propose at once, no more than that are noted.
    pub async fn propose(&self, root: &Path, proposal: Proposal, caps: Caps) -> Result<Room, StoreError> {
        let root = haft_core::path_text::store(root);
        self.run(Mode::Durable, move |db| {
            let full = full(db, &root, &proposal, caps)?;
            if full != Room::Noted {
                return Ok(full);
            }
            let Proposal { call, what, name, digest, session, creator, permissions, files } = proposal;
            db.execute(
                "INSERT INTO proposals (call_id, root, what, name, digest, session, creator, at_ms, files)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                     ON CONFLICT (call_id) DO UPDATE SET root = excluded.root, what = excluded.what,
                     name = excluded.name, digest = excluded.digest, session = excluded.session,
                     creator = excluded.creator, at_ms = excluded.at_ms, files = excluded.files, approved_by = NULL,
                     rejected_by = NULL",
                cells![
                    call.as_str(),
                    root,
                    what,
                    name,
                    digest.as_bytes(),
                    session.as_str(),
                    creator,
                    now_ms(),
                    serde_json::json!(files).to_string()
                ],
            )?;
            let entry = Entry::new(Kind::Made)
                .call(&call)
                .with("said", format!("{}_CREATED", what.to_uppercase()))
                .with("name", name)
                .with("creator", creator)
                .with("session", session.as_str())
                .with("digest", digest.to_string());
            append(db, &permissions.into_iter().fold(entry, |entry, value| entry.with("permissions", value)))?;
            Ok(Room::Noted)
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

    /// Notes that a person rejected what a call proposed: nothing waits there any more. The call's own record says the rest.
    pub async fn reject_proposal(&self, call: &CallId, by: &str) -> Result<(), StoreError> {
        let (call, by) = (call.clone(), by.to_owned());
        self.run(Mode::Durable, move |db| {
            let rejected = "UPDATE proposals SET rejected_by = ?2 WHERE call_id = ?1";
            db.execute(rejected, cells![call.as_str(), by.as_str()]).map(drop)
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
        let (root, name) = (haft_core::path_text::store(root), name.to_owned());
        self.run_blocking(Mode::Read, move |db| maker(db, &root, what, &name, digest))
    }

    /// The files that approved proposals of this name had, each as it was. For threads that may block.
    pub fn made_files_blocking(
        &self,
        root: &Path,
        (what, name): (&'static str, &str),
    ) -> Result<HashSet<(String, Digest)>, StoreError> {
        let (root, name) = (haft_core::path_text::store(root), name.to_owned());
        self.run_blocking(Mode::Read, move |db| {
            let all = db.all(
                "SELECT files FROM proposals
                 WHERE root = ?1 AND what = ?2 AND name = ?3 AND approved_by IS NOT NULL AND files IS NOT NULL",
                cells![root, what, name],
                |row| row.get::<String>(0),
            )?;
            // What cannot be read is nobody's work.
            let read = |files: &String| serde_json::from_str::<BTreeMap<String, Digest>>(files).unwrap_or_default();
            Ok(all.iter().flat_map(read).collect())
        })
    }

    /// Who made the tool that was accepted under this name, if an agent did. `server` is what its pin is kept under.
    pub async fn maker_of_accepted(&self, root: &Path, server: &str, name: &str) -> Result<Option<String>, StoreError> {
        let (root, server, name) = (haft_core::path_text::store(root), server.to_owned(), name.to_owned());
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

/// Whether there is room for one more.
fn full(db: &Db<'_>, root: &str, proposal: &Proposal, caps: Caps) -> DbResult<Room> {
    let call = proposal.call.as_str();
    let made: i64 = db.one(
        "SELECT count(*) FROM proposals WHERE session = ?1 AND call_id <> ?2",
        cells![proposal.session.as_str(), call],
        |row| row.get(0),
    )?;
    let (by_agent, all): (i64, i64) = db.one(
        "SELECT count(*) FILTER (WHERE made.creator = ?3), count(*) FROM proposals AS made
             LEFT JOIN approvals AS asked ON asked.id = made.call_id
             WHERE made.root = ?1 AND made.call_id <> ?2 AND made.approved_by IS NULL AND made.rejected_by IS NULL
             AND (asked.state = 'pending' OR (asked.id IS NULL AND made.at_ms > ?4))",
        cells![root, call, proposal.creator, now_ms() - LOOKED_AT_MS],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(match caps {
        Caps { session, .. } if made >= i64::from(session) => Room::SessionFull,
        Caps { agent, .. } if by_agent >= i64::from(agent) => Room::AgentFull,
        Caps { project, .. } if all >= i64::from(project) => Room::ProjectFull,
        _ => Room::Noted,
    })
}

fn maker(db: &Db<'_>, root: &str, what: &str, name: &str, digest: Digest) -> DbResult<Option<String>> {
    db.first(
        "SELECT creator FROM proposals WHERE root = ?1 AND what = ?2 AND name = ?3 AND digest = ?4
             AND approved_by IS NOT NULL LIMIT 1",
        cells![root, what, name, digest.as_bytes()],
        |row| row.get(0),
    )
}
