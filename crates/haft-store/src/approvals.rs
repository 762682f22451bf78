//! Calls that wait for a person. Each is decided once, by whoever comes first, in whatever process.

use crate::cells;
use crate::db::{Cell, Db, DbError, DbResult, Kind as Database, Row};
use crate::host::machine;
use crate::journal::append;
use crate::notes::{self, NoteKind};
use crate::{Entry, Mode, Store, StoreError, Topic, now_ms};
use haft_core::approval::{Decider, DeciderIdentity, DecisionRefused, DecisionScope};
use haft_core::executed::{ExecutedFile, TrialResult};
use haft_core::record::Kind;
use haft_core::secret::mask;
use haft_core::{Call, Outcome};
use serde::Serialize;
use serde_json::Value;

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has decided.
    Pending,
    /// Somebody said yes; the call runs or its process died.
    Approved,
    /// Somebody said yes and the call ended.
    Done,
    /// Somebody said no.
    Rejected,
}

impl ApprovalState {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Pending, "pending"), (Self::Approved, "approved"), (Self::Done, "done"), (Self::Rejected, "rejected")];

    /// From the word for it.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(state, _)| *state)
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, word)| word)
    }
}

/// A stored question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Approval {
    /// Its name; the same as its call's.
    pub id: String,
    /// Where it stands.
    pub state: ApprovalState,
    /// The canonical tool.
    pub tool: String,
    /// One line about the call.
    pub preview: String,
    /// Why it is asked.
    pub reason: String,
    /// The project it is about.
    pub root: String,
    /// The digest of what was asked: arguments, where they lead, what would change.
    pub basis: String,
    /// When it was asked.
    pub asked_ms: i64,
    /// Who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Value>,
    /// The conversation it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The door it came through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The agent that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// What the conversation has heard that might have put the idea there: where from, and by which tool.
    pub sources: Vec<String>,
    /// The machine that it is about, of a store that many share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Who said yes on another machine. It runs where it was asked, or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent: Option<String>,
    /// What a person is to fill in, if they are not asked for a yes: who wants it, what they say, and its schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    /// The files that the call runs, and their digests when it was asked or last looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executed: Vec<ExecutedFile>,
    /// What came of trying the call when it was asked, until it is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialResult>,
}

impl Approval {
    /// The name of the machine that it is about, if that is another one: what it says of files is not true here.
    pub fn elsewhere(&self) -> Option<&str> {
        let host = self.host.as_deref().filter(|host| *host != machine())?;
        host.split('/').next()
    }
}

const COLUMNS: &str = "id, state, tool, preview, reason, root, asked_ms, decided_by, outcome, basis, session, origin, caller, sources, host, consent, CASE WHEN id LIKE 'form-%' THEN call END, executed, trial";
/// How long the outcome of a decided call can be fetched: a week.
const OUTCOME_KEPT_MS: i64 = 7 * 86_400_000;
/// How much text of an outcome is kept.
const OUTPUT_MAX: usize = 256 << 10;
/// How much data, as text.
const DATA_MAX: usize = 256 << 10;

fn read(row: &Row<'_>) -> DbResult<Approval> {
    let (word, outcome, sources): (String, Option<String>, Option<String>) = (row.get(1)?, row.get(8)?, row.get(13)?);
    Ok(Approval {
        id: row.get(0)?,
        state: ApprovalState::parse(&word).ok_or(DbError::Odd("a word that nobody here writes".to_owned()))?,
        tool: row.get(2)?,
        preview: row.get(3)?,
        reason: row.get(4)?,
        root: row.get(5)?,
        basis: row.get(9)?,
        asked_ms: row.get(6)?,
        decided_by: row.get(7)?,
        outcome: outcome.and_then(|text| serde_json::from_str(&text).ok()),
        session: row.get(10)?,
        origin: row.get(11)?,
        caller: row.get(12)?,
        sources: sources.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        host: row.get(14)?,
        consent: row.get(15)?,
        form: row.get::<Option<String>>(16)?.and_then(|text| serde_json::from_str(&text).ok()),
        executed: row.get::<Option<String>>(17)?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        trial: row.get::<Option<String>>(18)?.and_then(|text| serde_json::from_str(&text).ok()),
    })
}

/// Files as they are stored; nothing for calls that run none.
fn written(executed: &[ExecutedFile]) -> Option<String> {
    (!executed.is_empty()).then(|| serde_json::to_string(executed).unwrap_or_default())
}

/// The first question that a condition is true of.
pub(crate) fn first_where(db: &Db<'_>, condition: &str, values: &[Cell<'_>]) -> DbResult<Option<Approval>> {
    db.first(&format!("SELECT {COLUMNS} FROM approvals WHERE {condition}"), values, read)
}

/// On whose account a question changes.
#[derive(Clone, Copy)]
pub(crate) enum By<'b> {
    /// Nobody's: it is asked, or is another question now.
    None,
    /// The caller's, who does not want it any more.
    Caller,
    /// An identity's that answers it.
    Decider(&'b Decider),
}

/// The name of whoever takes back what they asked.
pub(crate) const CALLER: &str = "caller";

pub(crate) fn record(db: &Db<'_>, id: &str, said: &str, by: By<'_>) -> DbResult<()> {
    let mut entry = Entry::new(Kind::Approval).with("call", id).with("said", said);
    match by {
        By::None => {}
        By::Caller => entry = entry.with("by", CALLER),
        By::Decider(decider) => {
            let identity = serde_json::to_value(decider).unwrap_or_default();
            entry = entry.with("by", decider.to_string()).with("decider", identity);
        }
    }
    db.notify(Topic::Approvals);
    append(db, &entry).map(drop)
}

impl Store {
    /// Stores a question durably. A call that is asked about again (it was tried) has one question; one that has been
    /// decided stays decided, and then this is false.
    pub async fn ask(&self, approval: Approval, call: &Call) -> Result<bool, StoreError> {
        let call = serde_json::to_string(call).unwrap_or_default();
        self.insist(Mode::Durable, move |db| {
            let asked = db.execute(
                "INSERT INTO approvals
                 (id, state, call, tool, preview, reason, root, asked_ms, basis, session, origin, caller, sources, host,
                  executed)
                 VALUES (?1, 'pending', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
                 ON CONFLICT (id) DO UPDATE SET call = excluded.call, tool = excluded.tool, preview = excluded.preview,
                 reason = excluded.reason, basis = excluded.basis, sources = excluded.sources, host = excluded.host,
                 executed = excluded.executed, consent = NULL
                 WHERE approvals.state = 'pending'",
                cells![
                    approval.id,
                    call,
                    approval.tool,
                    approval.preview,
                    approval.reason,
                    approval.root,
                    now_ms(),
                    approval.basis,
                    approval.session,
                    approval.origin,
                    approval.caller,
                    serde_json::to_string(&approval.sources).unwrap_or_default(),
                    (db.kind() == Database::Post).then(machine),
                    written(&approval.executed),
                ],
            )?;
            let old = now_ms() - OUTCOME_KEPT_MS;
            let sql = "UPDATE approvals SET outcome = NULL WHERE decided_ms < ?1 AND outcome IS NOT NULL";
            db.execute(sql, cells![old])?;
            if asked > 0 {
                record(db, &approval.id, "asked", By::None)?;
            }
            Ok(asked > 0)
        })
        .await
    }

    /// All questions, or only the undecided ones, oldest first.
    pub async fn approvals(&self, only_pending: bool) -> Result<Vec<Approval>, StoreError> {
        self.insist(Mode::Read, move |db| {
            let only = if only_pending { "WHERE state = 'pending'" } else { "" };
            let sql = format!("SELECT {COLUMNS} FROM approvals {only} ORDER BY asked_ms, id");
            db.all(&sql, &[], read)
        })
        .await
    }

    /// One question.
    pub async fn approval(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        let id = id.to_owned();
        self.insist(Mode::Read, move |db| {
            let sql = format!("SELECT {COLUMNS} FROM approvals WHERE id = ?1");
            db.first(&sql, cells![id], read)
        })
        .await
    }

    /// The call that waits under this id, to look at.
    pub async fn waiting_call(&self, id: &str) -> Result<Option<Call>, StoreError> {
        let id = id.to_owned();
        self.insist(Mode::Read, move |db| waiting(db, &id)).await
    }

    /// Keeps what came of trying an undecided call, without its secrets.
    pub async fn note_trial(&self, id: &str, trial: &TrialResult) -> Result<(), StoreError> {
        let kept = TrialResult {
            printed: mask(&trial.printed).into_owned(),
            diff: mask(&trial.diff).into_owned(),
            problem: trial.problem.as_ref().map(|problem| mask(problem).into_owned()),
            ..trial.clone()
        };
        let (id, trial) = (id.to_owned(), serde_json::to_string(&kept).unwrap_or_default());
        self.insist(Mode::Write, move |db| {
            let sql = "UPDATE approvals SET trial = ?2 WHERE id = ?1 AND state = 'pending'";
            db.notify(Topic::Approvals);
            db.execute(sql, cells![id, trial]).map(drop)
        })
        .await
    }

    /// Notes what a question is about now, after somebody has looked at it.
    pub async fn rebase(
        &self,
        id: &str,
        basis: &str,
        reason: &str,
        executed: &[ExecutedFile],
    ) -> Result<(), StoreError> {
        let (id, basis, reason, executed) = (id.to_owned(), basis.to_owned(), reason.to_owned(), written(executed));
        self.insist(Mode::Durable, move |db| {
            let sql = "UPDATE approvals SET basis = ?2, reason = ?3, executed = ?4, consent = NULL
                 WHERE id = ?1 AND state = 'pending'";
            db.execute(sql, cells![id, basis, reason, executed])?;
            record(db, &id, "changed", By::None)
        })
        .await
    }

    /// Puts other arguments in the place of those that wait. Returns whether it was still undecided.
    pub async fn amend(&self, approval: Approval, call: &Call, by: &Decider) -> Result<bool, StoreError> {
        self.authorize(&approval.id, by, DecisionScope::Once).await?;
        self.note_erased();
        let (call, by) = (serde_json::to_string(call).unwrap_or_default(), by.clone());
        self.run(Mode::Durable, move |db| {
            let sql = "UPDATE approvals SET call = ?2, preview = ?3, reason = ?4, basis = ?5, tool = ?6, executed = ?7, consent = NULL
                       WHERE id = ?1 AND state = 'pending'";
            let Approval { id, preview, reason, basis, tool, executed, .. } = approval;
            if db.execute(sql, cells![id, call, preview, reason, basis, tool, written(&executed)])? == 0 {
                return Ok(false);
            }
            record(db, &id, "amended", By::Decider(&by)).map(|()| true)
        })
        .await
    }

    /// Says yes to a question on this basis, if nobody has decided before. Returns the call to run: exactly one caller
    /// ever gets it, and from here on its arguments are no longer kept.
    pub async fn approve(&self, id: &str, by: &Decider, basis: &str) -> Result<Option<Call>, StoreError> {
        self.authorize(id, by, DecisionScope::Once).await?;
        self.note_erased();
        let (id, by, basis) = (id.to_owned(), by.clone(), basis.to_owned());
        self.insist(Mode::Durable, move |db| {
            let same = "SELECT EXISTS (SELECT 1 FROM approvals WHERE id = ?1 AND basis = ?2)";
            if !db.one(same, cells![id, basis], |row| row.get::<bool>(0))? {
                return Ok(None);
            }
            if !is_kept_yes(db, &id, &by)? {
                return Ok(None);
            }
            let Some(call) = waiting(db, &id)? else { return Ok(None) };
            decide(db, &id, ApprovalState::Approved, &by.to_string())?;
            record(db, &id, "approved", By::Decider(&by))?;
            note_decided(db, &id)?;
            Ok(Some(call))
        })
        .await
    }

    /// Says yes to a question on this basis from another machine than the one it is about: whoever is there runs it. Returns
    /// whether it was still undecided.
    pub async fn consent(&self, id: &str, by: &Decider, basis: &str) -> Result<bool, StoreError> {
        self.authorize(id, by, DecisionScope::Once).await?;
        let (id, by, basis) = (id.to_owned(), by.clone(), basis.to_owned());
        self.insist(Mode::Durable, move |db| {
            let sql = "UPDATE approvals SET consent = ?2 WHERE id = ?1 AND state = 'pending' AND basis = ?3";
            if db.execute(sql, cells![id, by.to_string(), basis])? == 0 {
                return Ok(false);
            }
            record(db, &id, "allowed", By::Decider(&by)).map(|()| true)
        })
        .await
    }

    /// Notes that the caller of an undecided question was told to wait for a person, and goes on meanwhile: from now on its
    /// conversation is told what is decided. Returns whether it was undecided.
    pub async fn defer(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.insist(Mode::Durable, move |db| {
            let sql = "UPDATE approvals SET is_deferred = 1 WHERE id = ?1 AND state = 'pending'";
            db.execute(sql, cells![id]).map(|changed| changed > 0)
        })
        .await
    }

    /// Takes an undecided question away: its call becomes another one. Returns whether it was undecided.
    pub async fn unask(&self, id: &str) -> Result<bool, StoreError> {
        self.note_erased();
        let id = id.to_owned();
        self.insist(Mode::Durable, move |db| {
            if db.execute("DELETE FROM approvals WHERE id = ?1 AND state = 'pending'", cells![&id])? == 0 {
                return Ok(false);
            }
            record(db, &id, "taken back", By::None).map(|()| true)
        })
        .await
    }

    /// Says no, if nobody has decided before. Returns whether it counted.
    pub async fn reject(&self, id: &str, by: &Decider, message: &str) -> Result<bool, StoreError> {
        self.authorize(id, by, DecisionScope::Once).await?;
        self.note_erased();
        let (id, by, message) = (id.to_owned(), by.clone(), message.to_owned());
        self.insist(Mode::Durable, move |db| close(db, &id, By::Decider(&by), &message)).await
    }

    /// Takes a question back that its caller does not want answered any more, if nobody has decided before. Returns whether
    /// it counted.
    pub async fn withdraw(&self, id: &str, why: &str) -> Result<bool, StoreError> {
        self.note_erased();
        let (id, why) = (id.to_owned(), why.to_owned());
        self.insist(Mode::Durable, move |db| close(db, &id, By::Caller, &why)).await
    }

    /// Lets an identity through that may answer this question, for so long. Of any other the log keeps that it tried.
    /// Whatever changes what a question becomes goes through here.
    pub async fn authorize(&self, id: &str, decider: &Decider, scope: DecisionScope) -> Result<(), StoreError> {
        let refused = match decider.check(id, scope) {
            Ok(()) if self.is_accepted(id, decider).await? => return Ok(()),
            Ok(()) => DecisionRefused { decider: decider.clone() },
            Err(refused) => refused,
        };
        let (id, decider) = (id.to_owned(), decider.clone());
        let noted = self.insist(Mode::Durable, move |db| record(db, &id, "refused", By::Decider(&decider))).await;
        noted.and(Err(StoreError::MayNotDecide(refused)))
    }

    /// Whether an identity that repeats a yes repeats one that was accepted. Any other speaks for itself.
    async fn is_accepted(&self, id: &str, decider: &Decider) -> Result<bool, StoreError> {
        if !matches!(decider.identity(), DeciderIdentity::Stored { .. }) {
            return Ok(true);
        }
        let (id, decider) = (id.to_owned(), decider.clone());
        self.insist(Mode::Read, move |db| is_kept_yes(db, &id, &decider)).await
    }

    /// Takes back the questions of steps that are not wanted any more, in the transaction that ends them.
    pub(crate) fn withdraw_all(db: &Db<'_>, ids: &[String], why: &str) -> DbResult<()> {
        for id in ids {
            close(db, id, By::Caller, why)?;
        }
        Ok(())
    }

    /// Keeps what came of a call that `by` approved.
    pub async fn finish_approval(&self, id: &str, by: &Decider, outcome: &Outcome) -> Result<(), StoreError> {
        let outcome = serde_json::to_string(&kept(outcome)).unwrap_or_default();
        let (id, by) = (id.to_owned(), by.to_string());
        self.insist(Mode::Durable, move |db| {
            let sql = "UPDATE approvals SET state = 'done', outcome = ?3
                       WHERE id = ?1 AND state = 'approved' AND decided_by = ?2";
            db.notify(Topic::Approvals);
            if db.execute(sql, cells![id, by, outcome])? > 0 {
                note_decided(db, &id)?;
            }
            Ok(())
        })
        .await
    }
}

/// Ends an undecided question with a no. Returns whether it was undecided.
fn close(db: &Db<'_>, id: &str, by: By<'_>, message: &str) -> DbResult<bool> {
    let name = match by {
        By::Decider(decider) => decider.to_string(),
        By::Caller | By::None => CALLER.to_owned(),
    };
    if decide(db, id, ApprovalState::Rejected, &name)? == 0 {
        return Ok(false);
    }
    let outcome = serde_json::json!({ "rejected": message }).to_string();
    db.execute("UPDATE approvals SET outcome = ?2 WHERE id = ?1", cells![id, outcome])?;
    record(db, id, "rejected", by)?;
    if matches!(by, By::Decider(_)) {
        note_decided(db, id)?;
    }
    Ok(true)
}

/// Leaves a note for the conversation whose model was told that a person has to decide, in the transaction that says what they
/// decided or what came of it.
fn note_decided(db: &Db<'_>, id: &str) -> DbResult<()> {
    let sql = "SELECT session FROM approvals WHERE id = ?1 AND is_deferred = 1";
    match db.first(sql, cells![id], |row| row.get::<Option<String>>(0))?.flatten() {
        Some(session) => notes::leave(db, &session, NoteKind::Approval, id, ""),
        None => Ok(()),
    }
}

/// Whether a yes that is said to have been kept is the one that this question has. Any other identity has said its own.
fn is_kept_yes(db: &Db<'_>, id: &str, by: &Decider) -> DbResult<bool> {
    let DeciderIdentity::Stored { by } = by.identity() else { return Ok(true) };
    let kept = "SELECT EXISTS (SELECT 1 FROM approvals WHERE id = ?1 AND consent = ?2)";
    db.one(kept, cells![id, by], |row| row.get::<bool>(0))
}

/// What is kept of an outcome: bounded, and without secrets.
fn kept(outcome: &Outcome) -> Outcome {
    let mut kept = outcome.clone();
    kept.output = mask(&kept.output).into_owned();
    if kept.output.len() > OUTPUT_MAX {
        kept.output.truncate(kept.output.floor_char_boundary(OUTPUT_MAX));
        kept.truncated = true;
        kept.warnings.push("only the beginning of the output was kept".to_owned());
    }
    if kept.data.as_ref().is_some_and(|data| data.to_string().len() > DATA_MAX) {
        kept.data = None;
        kept.warnings.push("the data was too large to be kept".to_owned());
    }
    if let Some(data) = &mut kept.data {
        mask_all(data);
    }
    kept
}

/// Masks secrets in every text of a value.
pub(crate) fn mask_all(value: &mut Value) {
    match value {
        Value::String(text) => *text = mask(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(mask_all),
        Value::Object(members) => members.values_mut().for_each(mask_all),
        _ => {}
    }
}

fn waiting(db: &Db<'_>, id: &str) -> DbResult<Option<Call>> {
    let stored: Option<String> = db
        .first("SELECT call FROM approvals WHERE id = ?1 AND state = 'pending'", cells![id], |row| row.get(0))?
        .flatten();
    Ok(stored.and_then(|text| serde_json::from_str(&text).ok()))
}

pub(crate) fn decide(db: &Db<'_>, id: &str, state: ApprovalState, by: &str) -> DbResult<usize> {
    db.execute("UPDATE approvals SET state = ?2, decided_by = ?3, decided_ms = ?4, call = NULL, trial = NULL WHERE id = ?1 AND state = 'pending'", cells![id, state.as_str(), by, db.now_ms()?])
}
