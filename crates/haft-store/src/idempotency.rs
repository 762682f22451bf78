//! Idempotency: which calls were claimed by the ids that their callers gave them, and what came of each.
//!
//! Whoever sends a call again under the same id gets the first outcome. A claim is one row: it is made before the call is
//! decided about, ended with the outcome, and stays. A claim that its process did not end is never taken over, because nobody
//! knows how far the call came.

use crate::approvals::mask_all;
use crate::cells;
use crate::db::{Db, DbError, DbResult};
use crate::host::CallOwner;
use crate::migrate::Step;
use crate::{ApprovalState, Mode, Store, StoreError, Topic, myself, now_ms};
use haft_core::record::{Digest, Kind};
use haft_core::{CallId, ErrorKind, Outcome, ResultContent};
use serde_json::Value;

/// The claims, by the ids of their calls.
pub(crate) const TABLES: Step = Step::alike(
    "CREATE TABLE idempotency_keys (
        call_id TEXT PRIMARY KEY, digest TEXT, state TEXT NOT NULL, outcome TEXT, owner TEXT NOT NULL, at_ms INTEGER NOT NULL,
        pid INTEGER NOT NULL, born TEXT NOT NULL, process TEXT NOT NULL, lock TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;",
);

/// How much of an outcome is kept, as JSON.
const OUTCOME_MAX: usize = 256 << 10;
/// How much of its output then.
const OUTPUT_MAX: usize = 128 << 10;
/// How long an approved call may take to begin before its process counts as gone.
pub(crate) const BEGINS_MS: i64 = 60_000;

const RUNNING: &str = "running";
const ASKED: &str = "asked";
const DONE: &str = "done";
const REDACTED: &str = "redacted";

/// Where a claimed call stands, for whoever sends it again.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimedCall {
    /// It is being made by a process that lives.
    Running,
    /// It waits for a person. The outcome is the first one, if its caller was told that it waits.
    Waiting(Option<Box<Outcome>>),
    /// A person said no, and this is their message.
    Rejected(String),
    /// It is over.
    Ended(Box<Outcome>),
    /// The process that made it ended before the call did, and how far it came is not known.
    Interrupted,
    /// It is over, and what came of it was removed from the log.
    Redacted,
    /// The id is claimed by a call with other content.
    Differs,
}

/// What came of claiming an id.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// The call is the claimant's to make, once.
    New,
    /// The id was claimed before.
    Known(ClaimedCall),
    /// The log has a call of this id that nobody claimed.
    Taken,
}

impl Store {
    /// Claims the id of a call for `owner`, a mark that nobody else has, unless it was claimed before. It need not wait for the
    /// disk: the intent of a call with effects does, and is written after it.
    pub async fn claim_call(&self, id: &CallId, content: Digest, owner: &str) -> Result<Claim, StoreError> {
        let (id, owner, content) = (id.clone(), owner.to_owned(), content.to_string());
        self.insist(Mode::Write, move |db| {
            let (pid, born) = myself();
            if row(db, &id)?.is_none() && is_taken(db, &id)? {
                return Ok(Claim::Taken);
            }
            db.execute(
                "INSERT INTO idempotency_keys (call_id, digest, state, owner, at_ms, pid, born, process, lock)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (call_id) DO NOTHING",
                cells![id.as_str(), content, RUNNING, owner, now_ms(), pid, born, db.process(), db.lock_name()?],
            )?;
            // A lost connection may have undone the claim, or only its acknowledgement.
            match row(db, &id)? {
                Some(row) if row.owner != owner => row.standing(db, &id, &content).map(Claim::Known),
                _ => Ok(Claim::New),
            }
        })
        .await
    }

    /// Where a claimed call stands; none if nobody has claimed the id.
    pub async fn claimed_call(&self, id: &CallId, content: Digest) -> Result<Option<ClaimedCall>, StoreError> {
        let (id, content) = (id.clone(), content.to_string());
        self.insist(Mode::Read, move |db| row(db, &id)?.map(|row| row.standing(db, &id, &content)).transpose()).await
    }

    /// Keeps the outcome of a call for whoever sends it again. Nobody waits for it.
    pub fn end_claim(&self, owner: &str, outcome: &Outcome) {
        let asks = outcome.error.as_ref().is_some_and(|error| error.kind == ErrorKind::ApprovalRequired);
        let state = if asks { ASKED } else { DONE };
        let (id, owner, outcome) = (outcome.call_id.clone(), owner.to_owned(), bounded(outcome));
        self.later(move |db| {
            // Somebody who approved it elsewhere may have ended it already.
            let sql = "UPDATE idempotency_keys SET state = ?3, outcome = ?4
                       WHERE call_id = ?1 AND owner = ?2 AND state = 'running'";
            db.notify(Topic::Calls);
            db.execute(sql, cells![id.as_str(), owner, state, outcome]).map(drop)
        });
    }

    /// The same for a call that a person approved later, by whatever process: if somebody claimed it, it is over now.
    pub fn end_approved_claim(&self, outcome: &Outcome) {
        let (id, outcome) = (outcome.call_id.clone(), bounded(outcome));
        self.later(move |db| {
            let sql = "UPDATE idempotency_keys SET state = 'done', outcome = ?2
                       WHERE call_id = ?1 AND state IN ('running', 'asked')";
            if db.execute(sql, cells![id.as_str(), outcome])? > 0 {
                db.notify(Topic::Calls);
            }
            Ok(())
        });
    }
}

/// Removes what is kept of a call. Its id stays claimed, so that it is not made again.
pub(crate) fn redact(db: &Db<'_>, id: &CallId) -> DbResult<()> {
    let sql = "UPDATE idempotency_keys SET state = ?2, digest = NULL, outcome = NULL WHERE call_id = ?1";
    db.execute(sql, cells![id.as_str(), REDACTED]).map(drop)
}

/// Whether the store knows a call of this id that nobody claimed. A dry run makes no call.
fn is_taken(db: &Db<'_>, id: &CallId) -> DbResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM journal WHERE call_id = ?1 AND kind IN ('intent', 'refused', 'undo', 'interrupted'))
               OR EXISTS (SELECT 1 FROM approvals WHERE id = ?1) OR EXISTS (SELECT 1 FROM open_calls WHERE call_id = ?1)";
    db.one(sql, cells![id.as_str()], |row| row.get(0))
}

/// A claim as it is stored.
struct ClaimRow {
    digest: Option<String>,
    state: String,
    outcome: Option<String>,
    owner: String,
    /// The process that makes the call.
    maker: CallOwner,
}

fn row(db: &Db<'_>, id: &CallId) -> DbResult<Option<ClaimRow>> {
    let sql = "SELECT digest, state, outcome, owner, process, pid, born, lock, at_ms FROM idempotency_keys WHERE call_id = ?1";
    db.first(sql, cells![id.as_str()], |row| {
        let maker = CallOwner::read(row, 4)?;
        Ok(ClaimRow { digest: row.get(0)?, state: row.get(1)?, outcome: row.get(2)?, owner: row.get(3)?, maker })
    })
}

impl ClaimRow {
    /// Where the call stands.
    fn standing(&self, db: &Db<'_>, id: &CallId, content: &str) -> DbResult<ClaimedCall> {
        if self.state == REDACTED {
            return Ok(ClaimedCall::Redacted);
        }
        if self.digest.as_deref() != Some(content) {
            return Ok(ClaimedCall::Differs);
        }
        let kept = self.outcome.as_deref().map(read_outcome).transpose()?;
        let question = question(db, id)?;
        match (self.state.as_str(), kept) {
            (DONE, Some(outcome)) => Ok(ClaimedCall::Ended(outcome)),
            (RUNNING, None) if self.maker.lives(db)? => Ok(match question {
                Some(Question { state: ApprovalState::Pending, .. }) => ClaimedCall::Waiting(None),
                _ => ClaimedCall::Running,
            }),
            (RUNNING | ASKED, first) => match question {
                Some(question) => question.standing(db, id, first),
                None if is_under_way(db, id)? => Ok(ClaimedCall::Running),
                // A question that is over for long is forgotten.
                None => Ok(first.map_or(ClaimedCall::Interrupted, ClaimedCall::Ended)),
            },
            _ => Err(DbError::Odd(format!("the claim of call {id} is in no state that is known here"))),
        }
    }
}

/// The question of a claimed call.
struct Question {
    state: ApprovalState,
    decided_ms: Option<i64>,
    outcome: Option<String>,
}

fn question(db: &Db<'_>, id: &CallId) -> DbResult<Option<Question>> {
    let sql = "SELECT state, decided_ms, outcome FROM approvals WHERE id = ?1";
    db.first(sql, cells![id.as_str()], |row| {
        let word: String = row.get(0)?;
        let state = ApprovalState::parse(&word).ok_or(DbError::Odd("a word that nobody here writes".to_owned()))?;
        Ok(Question { state, decided_ms: row.get(1)?, outcome: row.get(2)? })
    })
}

impl Question {
    /// Where a call stands whose first process is not making it any more.
    fn standing(self, db: &Db<'_>, id: &CallId, first: Option<Box<Outcome>>) -> DbResult<ClaimedCall> {
        match self.state {
            ApprovalState::Pending => Ok(ClaimedCall::Waiting(first)),
            ApprovalState::Approved => {
                let is_young = self.decided_ms.is_some_and(|at| db.now_ms().is_ok_and(|now| now - at < BEGINS_MS));
                let runs = is_under_way(db, id)? || (is_young && !is_open(db, id)? && !is_interrupted(db, id)?);
                Ok(if runs { ClaimedCall::Running } else { ClaimedCall::Interrupted })
            }
            ApprovalState::Rejected => {
                let said: Value = self.outcome.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
                Ok(ClaimedCall::Rejected(said["rejected"].as_str().unwrap_or_default().to_owned()))
            }
            ApprovalState::Done => match self.outcome.as_deref().map(read_outcome).transpose() {
                Ok(Some(outcome)) => Ok(ClaimedCall::Ended(outcome)),
                // Its outcome was removed.
                _ => Ok(ClaimedCall::Redacted),
            },
        }
    }
}

fn open_in(db: &Db<'_>, id: &CallId) -> DbResult<Option<CallOwner>> {
    let sql = format!("SELECT {} FROM open_calls WHERE call_id = ?1", CallOwner::COLUMNS);
    db.first(&sql, cells![id.as_str()], |row| CallOwner::read(row, 0))
}

fn is_open(db: &Db<'_>, id: &CallId) -> DbResult<bool> {
    open_in(db, id).map(|open| open.is_some())
}

/// Whether it is known that the process died that made the call.
fn is_interrupted(db: &Db<'_>, id: &CallId) -> DbResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM journal WHERE call_id = ?1 AND kind = ?2)";
    db.one(sql, cells![id.as_str(), Kind::Interrupted.as_str()], |row| row.get(0))
}

/// Whether a process that lives has the call open.
fn is_under_way(db: &Db<'_>, id: &CallId) -> DbResult<bool> {
    open_in(db, id)?.map_or(Ok(false), |maker| maker.lives(db))
}

fn read_outcome(text: &str) -> DbResult<Box<Outcome>> {
    serde_json::from_str(text).map(Box::new).map_err(|error| DbError::Odd(format!("an outcome that was kept: {error}")))
}

/// An outcome as it is kept: without secrets, and not larger than it may be.
fn bounded(outcome: &Outcome) -> String {
    let mut value = serde_json::to_value(outcome).unwrap_or_default();
    for part in ["output", "data", "content", "error", "warnings"] {
        if let Some(part) = value.get_mut(part) {
            mask_all(part);
        }
    }
    let text = value.to_string();
    if text.len() <= OUTCOME_MAX {
        return text;
    }
    let Ok(mut kept) = serde_json::from_value::<Outcome>(value) else { return text };
    kept.output.truncate(kept.output.floor_char_boundary(OUTPUT_MAX));
    kept.truncated = true;
    (kept.data, kept.content) = (None, ResultContent::default());
    if let Some(error) = &mut kept.error {
        error.details = None;
    }
    let whole = kept.full_output.as_deref().map(|path| format!("; the whole output is in {path}")).unwrap_or_default();
    let why = format!(
        "the outcome was larger than {} KiB and only its beginning was kept; `haft log {}` shows what was recorded{whole}",
        OUTCOME_MAX >> 10,
        kept.call_id,
    );
    kept.warnings = vec![why];
    serde_json::to_string(&kept).unwrap_or_default()
}
