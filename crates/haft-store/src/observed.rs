//! Observed calls: which of an agent's own calls were let through, until the agent says what came of them.
//!
//! The process that decided about such a call (a hook) ends at once, so the call is open as long as the agent lives. What an
//! agent never reported stays known for a while: its report may come late.

use crate::approvals::{By, record as record_decision};
use crate::cells;
use crate::db::{Db, DbError, DbResult, Row};
use crate::host;
use crate::journal::append;
use crate::migrate::Step;
use crate::pending::Opened;
use crate::undo::write_state;
use crate::{Approval, Entry, Mode, Store, StoreError, now_ms};
use haft_core::change::State;
use haft_core::{CallId, Outcome, SessionId};
use std::time::Duration;

/// The calls, by the agent's own names for them.
pub(crate) const TABLES: Step = Step::alike(
    "CREATE TABLE observed_calls (
        call_id TEXT PRIMARY KEY, session TEXT NOT NULL, use_id TEXT NOT NULL, native TEXT NOT NULL, print TEXT NOT NULL,
        asked INTEGER NOT NULL, settled INTEGER NOT NULL, at_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX observed_by_session ON observed_calls (session);",
);

/// How long a late report is waited for: a week.
const LATE_MS: i64 = 7 * 86_400_000;

/// An observed call that was let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCall {
    /// Which.
    pub call_id: CallId,
    /// The agent's conversation.
    pub session: SessionId,
    /// The agent's own id of the call; empty if it has none.
    pub use_id: String,
    /// The agent's own name of the tool.
    pub native: String,
    /// A digest of the arguments as the agent gave them, for agents that have no ids.
    pub print: String,
    /// Whether the agent was told to ask its user.
    pub asked: bool,
    /// Whether its record was closed without a report.
    pub settled: bool,
    /// When it was let through.
    pub at_ms: i64,
}

/// The agent that makes the call, as a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProcess {
    /// Its number.
    pub pid: i64,
    /// When it began, so that no later process of that number passes for it.
    pub born: String,
}

const COLUMNS: &str = "call_id, session, use_id, native, print, asked, settled, at_ms";

fn read(row: &Row<'_>) -> DbResult<ObservedCall> {
    let odd = || DbError::Odd("a word that nobody here writes".to_owned());
    let (id, session): (String, String) = (row.get(0)?, row.get(1)?);
    Ok(ObservedCall {
        call_id: CallId::parse(&id).ok_or_else(odd)?,
        session: SessionId::new(&session).ok_or_else(odd)?,
        use_id: row.get(2)?,
        native: row.get(3)?,
        print: row.get(4)?,
        asked: row.get::<i64>(5)? != 0,
        settled: row.get::<i64>(6)? != 0,
        at_ms: row.get(7)?,
    })
}

impl Store {
    /// Records the intent of an observed call, which is open as long as its agent lives.
    pub async fn open_observed(
        &self,
        call: ObservedCall,
        tool: &str,
        agent: AgentProcess,
        entry: Entry,
        mode: Mode,
    ) -> Result<(), StoreError> {
        let tool = tool.to_owned();
        self.insist(mode, move |db| {
            append(db, &entry)?;
            let process = host::observed_process(agent.pid);
            let opened = Opened {
                call: call.call_id.clone(),
                tool: tool.clone(),
                at_ms: call.at_ms,
                pid: agent.pid,
                born: agent.born.clone(),
                process: Some(process),
            };
            db.keep(|pending| pending.open(opened));
            db.execute("DELETE FROM observed_calls WHERE at_ms < ?1", cells![now_ms() - LATE_MS])?;
            let sql = format!("INSERT INTO observed_calls ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)");
            db.execute(
                &sql,
                cells![
                    call.call_id.as_str(),
                    call.session.as_str(),
                    call.use_id,
                    call.native,
                    call.print,
                    i64::from(call.asked),
                    call.at_ms,
                ],
            )
            .map(drop)
        })
        .await
    }

    /// The observed calls of a conversation that were not reported, oldest first; also those whose records are closed.
    pub async fn observed_calls(&self, session: &SessionId) -> Result<Vec<ObservedCall>, StoreError> {
        let session = session.to_string();
        self.insist(Mode::Read, move |db| {
            let sql = format!("SELECT {COLUMNS} FROM observed_calls WHERE session = ?1 ORDER BY at_ms, call_id");
            db.all(&sql, cells![session], read)
        })
        .await
    }

    /// Records what came of an observed call, as its agent reported it.
    pub async fn close_observed(&self, call: &CallId, entry: Entry) -> Result<(), StoreError> {
        let call = call.clone();
        self.insist(Mode::Write, move |db| {
            append(db, &entry)?;
            db.keep(|pending| pending.close(call.clone()));
            db.execute("DELETE FROM observed_calls WHERE call_id = ?1", cells![call.as_str()]).map(drop)
        })
        .await
    }

    /// Closes the record of an observed call that its agent did not report.
    pub async fn settle_observed(&self, call: &CallId, entry: Entry) -> Result<(), StoreError> {
        let call = call.clone();
        self.insist(Mode::Write, move |db| {
            append(db, &entry)?;
            db.keep(|pending| pending.close(call.clone()));
            db.execute("UPDATE observed_calls SET settled = 1 WHERE call_id = ?1", cells![call.as_str()]).map(drop)
        })
        .await
    }

    /// Notes what an observed call's steps left, now that it is known. For threads that may block.
    pub fn note_undo_after_blocking(&self, call: &CallId, after: Vec<State>) -> Result<(), StoreError> {
        let call = call.clone();
        self.run_blocking(Mode::Durable, move |db| {
            for (number, state) in after.iter().enumerate() {
                let number = i64::try_from(number).unwrap_or(i64::MAX);
                let sql = "UPDATE undo_steps SET after = ?3 WHERE call_id = ?1 AND step = ?2";
                db.execute(sql, cells![call.as_str(), number, write_state(state)])?;
            }
            Ok(())
        })
    }

    /// The question about just this observed call that waits, or that was approved within this time and not used.
    pub async fn observed_question(
        &self,
        session: &SessionId,
        basis: &str,
        holds: Duration,
    ) -> Result<Option<Approval>, StoreError> {
        let holds_ms = i64::try_from(holds.as_millis()).unwrap_or(i64::MAX);
        let (session, basis) = (session.to_string(), basis.to_owned());
        self.insist(Mode::Read, move |db| {
            crate::approvals::first_where(
                db,
                "basis = ?1 AND session = ?2 AND origin = 'hook'
                 AND (state = 'pending' OR (state = 'approved' AND decided_ms > ?3)) ORDER BY asked_ms DESC LIMIT 1",
                cells![basis, session, now_ms().saturating_sub(holds_ms)],
            )
        })
        .await
    }

    /// Uses the approval of an observed call up. Exactly one caller is ever told that it may.
    pub async fn use_observed_approval(&self, id: &str, outcome: &Outcome) -> Result<bool, StoreError> {
        let outcome = serde_json::to_string(outcome).unwrap_or_default();
        let id = id.to_owned();
        self.insist(Mode::Durable, move |db| {
            let sql = "UPDATE approvals SET state = 'done', outcome = ?2 WHERE id = ?1 AND state = 'approved'";
            if db.execute(sql, cells![id, outcome])? == 0 {
                return Ok(false);
            }
            record_decision(db, &id, "used", By::None).map(|()| true)
        })
        .await
    }
}

/// Forgets that a call is observed; says whether it was.
pub(crate) fn forget(db: &Db<'_>, call: &CallId) -> DbResult<bool> {
    Ok(db.execute("DELETE FROM observed_calls WHERE call_id = ?1", cells![call.as_str()])? > 0)
}
