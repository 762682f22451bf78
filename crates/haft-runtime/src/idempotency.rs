//! Idempotency: a call that is sent again under the same id is not made again. Its caller gets the first outcome, waits for it
//! while the call runs, and hears of a conflict where the call says something else.
//!
//! Claimed are calls whose callers chose their ids, and of a program that embeds haft every call that may have an effect: its
//! ids are its own, however it made them. The claim is in the store before anything is decided, and what a process that died
//! had claimed is never made by another.

use crate::approver::Approver;
use crate::halt::Halt;
use crate::inbox::without_secrets;
use crate::pipeline::{Haft, spoken};
use crate::{registry, store_error};
use haft_core::approval::{Decision, Verdict};
use haft_core::record::Kind;
use haft_core::secret::mask;
use haft_core::{Call, CallError, CallId, ErrorKind, Origin, Outcome};
use haft_store::{Claim, ClaimedCall, Entry, Kind as Database, Store, Topic};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often it is looked whether another process has ended a call, of a file, which does not tell.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How often of a server, which does, but not that a process has died.
const LOOK_AGAIN_AT_SERVER: Duration = Duration::from_secs(2);

/// What decided about a call that was sent before.
const REPEAT: &str = "repeat";

/// Whether a call was refused because its id is another call's: it did not come to its tool.
pub fn is_refused_repeat(outcome: &Outcome) -> bool {
    let is_conflict = outcome.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Conflict);
    is_conflict && outcome.verdict.by == REPEAT
}

/// What came of claiming a call.
pub(crate) enum Claimed {
    /// It is to be made, and nothing is kept of it.
    No,
    /// It is to be made, once.
    New(OwnClaim),
    /// It was sent before: this is what its caller gets.
    Before(Box<Outcome>),
}

/// A claim of this process's. If it is dropped, the call counts as cancelled.
pub(crate) struct OwnClaim {
    store: Store,
    owner: String,
    id: CallId,
    tool: String,
    args: Value,
    is_ended: bool,
}

impl OwnClaim {
    /// Keeps the outcome for whoever sends the call again.
    pub(crate) fn end(mut self, outcome: &Outcome) {
        self.is_ended = true;
        self.store.end_claim(&self.owner, &without_secrets(outcome, &self.args));
    }
}

impl Drop for OwnClaim {
    fn drop(&mut self) {
        if !self.is_ended {
            let message = "the caller went away; changes that had begun were carried to their end";
            let error = CallError::new(ErrorKind::Cancelled, message);
            let verdict = registry::undecided("the call did not come to its end");
            self.store.end_claim(&self.owner, &Outcome::failure(self.id.clone(), self.tool.as_str(), error, verdict));
        }
    }
}

impl Haft {
    /// Claims a call, if it is one that can be sent again; or finds out what came of it when it was sent first.
    pub(crate) async fn claim_call(&self, call: &Call, approver: &dyn Approver, halt: &Halt) -> Claimed {
        if !self.is_repeatable(call).await {
            return Claimed::No;
        }
        let content = call.content_digest(&haft_core::path_text::store(self.workspace.project()));
        let owner = crate::new_mark();
        let standing = match self.store.claim_call(&call.id, content, &owner).await {
            Ok(Claim::New) => {
                let (store, tool) = (self.store.clone(), spoken(call));
                let (id, args) = (call.id.clone(), call.args.clone());
                return Claimed::New(OwnClaim { store, owner, id, tool, args, is_ended: false });
            }
            Ok(Claim::Known(standing)) => standing,
            Ok(Claim::Taken) => return self.refuse_repeat(call, taken(&call.id)),
            Err(error) => return self.refuse_repeat(call, store_error(error)),
        };
        let mut changed: Option<watch::Receiver<u64>> = None;
        let (mut standing, mut until) = (Some(standing), None);
        loop {
            let wait = match standing.take() {
                Some(ClaimedCall::Ended(outcome)) => return self.first_outcome(call, outcome),
                Some(ClaimedCall::Running) => None,
                Some(ClaimedCall::Waiting(first)) => {
                    let until = *until.get_or_insert_with(|| Instant::now() + approver.patience());
                    if Instant::now() >= until {
                        let outcome =
                            first.unwrap_or_else(|| Box::new(failure(call, waiting(&call.id), Decision::Ask)));
                        return Claimed::Before(outcome);
                    }
                    Some(until)
                }
                Some(ClaimedCall::Rejected(message)) => return Claimed::Before(Box::new(rejected(call, message))),
                Some(ClaimedCall::Interrupted) => {
                    return Claimed::Before(Box::new(failure(call, interrupted(&call.id), Decision::Deny)));
                }
                Some(ClaimedCall::Redacted) => return self.refuse_repeat(call, redacted(&call.id)),
                Some(ClaimedCall::Differs) => return self.refuse_repeat(call, differs(&call.id)),
                None => return self.refuse_repeat(call, taken(&call.id)),
            };
            let look_again = Instant::now() + self.look_again();
            // Whoever begins to listen looks once more: what happened before is not heard.
            if let Some(changed) = &mut changed {
                tokio::select! {
                    Ok(()) = changed.changed() => {}
                    () = tokio::time::sleep_until(wait.map_or(look_again, |until| until.min(look_again))) => {}
                    error = halt.stopped() => {
                        return Claimed::Before(Box::new(failure(call, unheard(error), Decision::Deny)));
                    }
                }
            } else {
                changed = Some(self.store.changed(Topic::Calls));
            }
            standing = match self.store.claimed_call(&call.id, content).await {
                Ok(standing) => standing,
                Err(error) => return self.refuse_repeat(call, store_error(error)),
            };
        }
    }

    /// Keeps what came of a call that a person approved later, if its caller can send it again.
    pub(crate) fn end_approved_claim(&self, call: &Call, outcome: &Outcome) {
        if call.origin == Origin::Approval {
            self.store.end_approved_claim(&without_secrets(outcome, &call.args));
        }
    }

    /// Whether a caller can send this call again. What another call makes is a part of that one, steps have a lease, and what
    /// a person approved is run under the id that it was asked about by.
    async fn is_repeatable(&self, call: &Call) -> bool {
        let is_made_by_caller = call.parents.is_empty()
            && matches!(call.origin, Origin::Cli | Origin::Library | Origin::Mcp | Origin::Gateway | Origin::Page);
        if !is_made_by_caller || !call.id.is_generated() {
            return is_made_by_caller;
        }
        // A tool that cannot be made ready is said to be none when the call is carried.
        call.origin == Origin::Library
            && self.ready(call).await.is_ok()
            && self.registry.resolve(call).is_ok_and(|meant| !meant.entry.spec().read_only())
    }

    /// The first outcome, for a conversation that hears it once more.
    fn first_outcome(&self, call: &Call, outcome: Box<Outcome>) -> Claimed {
        self.note_source(&call.session, &outcome);
        Claimed::Before(outcome)
    }

    /// Refuses a call that cannot be made under its id. The record does not name the id as its call's: that is another one's.
    fn refuse_repeat(&self, call: &Call, error: CallError) -> Claimed {
        let outcome = failure(call, error, Decision::Deny);
        let first = outcome.error.as_ref().map(|error| json!({"kind": error.kind, "message": mask(&error.message)}));
        let entry = Entry::new(Kind::Refused)
            .with("tool", outcome.tool.as_str())
            .with("success", false)
            .with("repeats", call.id.as_str())
            .with("args", self.loggable(call))
            .with("session", call.session.as_str())
            .with("error", first.unwrap_or_default());
        self.store.record_later(entry);
        Claimed::Before(Box::new(outcome))
    }

    fn look_again(&self) -> Duration {
        match self.store.kind() {
            Database::Lite => LOOK_AGAIN,
            Database::Post => LOOK_AGAIN_AT_SERVER,
        }
    }
}

fn failure(call: &Call, error: CallError, decision: Decision) -> Outcome {
    let reason = match error.kind {
        ErrorKind::Rejected => "a person rejected the call with this id",
        ErrorKind::ApprovalRequired => "the call with this id waits for approval",
        _ => "a call with this id was sent before",
    };
    let verdict = Verdict::new(decision, REPEAT, reason);
    Outcome::failure(call.id.clone(), spoken(call), error, verdict)
}

fn rejected(call: &Call, message: String) -> Outcome {
    let message = if message.is_empty() { "This tool has been rejected by the user.".to_owned() } else { message };
    failure(call, CallError::new(ErrorKind::Rejected, message), Decision::Deny)
}

fn waiting(id: &CallId) -> CallError {
    CallError::new(ErrorKind::ApprovalRequired, "a person has to decide: the call was sent before, and waits")
        .hint(format!("`haft approvals approve {id}` runs it, `haft approvals reject {id}` does not"))
        .details(json!({ "approval_id": id }))
}

fn interrupted(id: &CallId) -> CallError {
    CallError::failed(format!(
        "interrupted: the process that made call {id} ended before the call did, and how far it came is not known"
    ))
    .hint(format!(
        "it is not made again under this id; `haft log {id}` and `haft changes {id}` show how far it came. Send it under \
         another id if it has to be made again"
    ))
    .details(json!({ "interrupted": true }))
}

fn redacted(id: &CallId) -> CallError {
    CallError::conflict(format!("call {id} was made before, and what came of it was removed from the log"))
        .hint(format!("it is not made again under this id; `haft log {id}` shows when it was made"))
}

fn differs(id: &CallId) -> CallError {
    CallError::conflict(format!(
        "call {id} was sent before with other content: its tool, arguments, dialect, door, session, agent or project"
    ))
    .hint("send exactly the same call again to get its outcome, or choose another id for another call")
}

fn taken(id: &CallId) -> CallError {
    CallError::conflict(format!("the id {id} already belongs to another call"))
        .hint("choose another id; a UUID is a good one")
}

/// What ended the wait for an outcome, which did not end the call.
fn unheard(error: CallError) -> CallError {
    let message = format!("{}; the first call with this id still runs", error.message);
    CallError { message, ..error }.hint("send it again to get its outcome")
}
