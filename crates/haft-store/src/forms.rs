//! Forms that wait for a person. Each is a row among the approvals, so that every inbox shows it; where a call waits
//! there, here is the form, and what somebody wrote is where an outcome would be. Its id begins with `form-`.
//!
//! What a person wrote is for the one who asked: it is taken out as it is read.

use crate::approvals::{By, decide, record};
use crate::{Approval, ApprovalState, Mode, Store, StoreError, Topic, cells, now_ms};
use haft_core::approval::{Decider, DecisionScope};
use serde_json::{Value, json};

/// How the id of a form begins.
pub const FORM_PREFIX: &str = "form-";
/// How long a form may wait. Whoever asked is gone by then.
const KEPT_MS: i64 = 86_400_000;

/// What became of a form.
#[derive(Debug, Clone, PartialEq)]
pub enum Filled {
    /// Nobody has looked at it.
    Waits,
    /// Somebody filled it in.
    Answer(Value),
    /// Somebody would not, or it is gone.
    Declined,
}

impl Store {
    /// Stores a form durably. Those that have waited for a day are put away.
    pub async fn ask_form(&self, approval: Approval) -> Result<(), StoreError> {
        self.insist(Mode::Durable, move |db| {
            let old = now_ms() - KEPT_MS;
            let sql = "UPDATE approvals SET state = 'rejected', decided_by = 'time', decided_ms = ?2, call = NULL
                       WHERE state = 'pending' AND id LIKE 'form-%' AND asked_ms < ?1";
            db.execute(sql, cells![old, now_ms()])?;
            db.execute(
                "INSERT INTO approvals (id, state, call, tool, preview, reason, root, asked_ms, basis, session, origin, caller, sources)
                 VALUES (?1, 'pending', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, '[]')",
                cells![
                    approval.id,
                    approval.form.as_ref().map(ToString::to_string).unwrap_or_default(),
                    approval.tool,
                    approval.preview,
                    approval.reason,
                    approval.root,
                    now_ms(),
                    approval.basis,
                    approval.session,
                    approval.origin,
                    approval.caller,
                ],
            )?;
            record(db, &approval.id, "asked", By::None)
        })
        .await
    }

    /// Fills a form in, if nobody has before. Returns whether it counted.
    pub async fn fill_form(&self, id: &str, by: &Decider, answer: &Value) -> Result<bool, StoreError> {
        self.authorize(id, by, DecisionScope::Once).await?;
        self.note_erased();
        let (id, by, answer) = (id.to_owned(), by.clone(), json!({ "answer": answer }).to_string());
        self.insist(Mode::Durable, move |db| {
            if decide(db, &id, ApprovalState::Done, &by.to_string())? == 0 {
                return Ok(false);
            }
            db.execute("UPDATE approvals SET outcome = ?2 WHERE id = ?1", cells![id, answer])?;
            record(db, &id, "answered", By::Decider(&by))?;
            Ok(true)
        })
        .await
    }

    /// What became of a form. An answer is given once.
    pub async fn filled_form(&self, id: &str) -> Result<Filled, StoreError> {
        let Some(found) = self.approval(id).await? else { return Ok(Filled::Declined) };
        match (found.state, found.outcome.and_then(|outcome| outcome.get("answer").cloned())) {
            (ApprovalState::Pending, _) => Ok(Filled::Waits),
            (ApprovalState::Done, Some(answer)) => {
                self.note_erased();
                let id = id.to_owned();
                let said = json!({ "answered": true }).to_string();
                self.insist(Mode::Durable, move |db| {
                    db.notify(Topic::Approvals);
                    db.execute("UPDATE approvals SET outcome = ?2 WHERE id = ?1", cells![id, said]).map(drop)
                })
                .await?;
                Ok(Filled::Answer(answer))
            }
            _ => Ok(Filled::Declined),
        }
    }
}
