//! What an agent says came of a call of its own, or that it says nothing.

use super::print_of;
use crate::pipeline::Haft;
use crate::{now_ms, store_error};
use haft_core::observed::{HookClient, McpTarget, NativeToolKind, meaning};
use haft_core::outcome::Undo;
use haft_core::preview::cut;
use haft_core::record::{Digest, Kind};
use haft_core::secret::mask;
use haft_core::{CallError, CallId, SessionId};
use haft_store::{Entry, ObservedCall};
use serde_json::{Value, json};

/// What an agent reports about a call of its own.
#[derive(Debug, Clone)]
pub struct NativeToolReport {
    /// Whose tool it is.
    pub client: HookClient,
    /// The agent's conversation.
    pub session: SessionId,
    /// The agent's id of the call, if it has one.
    pub use_id: Option<String>,
    /// What the agent calls the tool.
    pub tool: String,
    /// The MCP server's words for it, if the agent says so.
    pub target: Option<McpTarget>,
    /// The arguments in the agent's words.
    pub input: Value,
    /// What came of it.
    pub result: NativeToolOutcome,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub enum NativeToolOutcome {
    /// It ran; this is what the agent got.
    Success(Value),
    /// It ran and failed, and why.
    Failure(String),
}

impl NativeToolReport {
    /// The call that it is about.
    fn find<'c>(&self, calls: &'c [ObservedCall]) -> Option<&'c ObservedCall> {
        if let Some(id) = self.use_id.as_ref().filter(|id| !id.is_empty()) {
            return calls.iter().find(|call| call.use_id == *id);
        }
        let print = print_of(&self.tool, &self.input);
        let mut open = calls.iter().filter(|call| call.use_id.is_empty() && call.native == self.tool);
        open.clone().find(|call| call.print == print).or_else(|| {
            // The user may have edited the arguments after haft was asked; where only one call can be meant, it is.
            let only = open.next().filter(|call| !call.settled)?;
            open.next().is_none().then_some(only)
        })
    }
}

impl Haft {
    /// Records what came of a call that an agent made by itself.
    pub async fn report(&self, report: &NativeToolReport) -> Result<(), CallError> {
        let internal =
            matches!(meaning(report.client, &report.tool, &report.input), Some(NativeToolKind::Internal { .. }));
        if internal || self.serves(report.client, &report.tool, report.target.as_ref()) {
            return Ok(());
        }
        let calls = self.store.observed_calls(&report.session).await.map_err(store_error)?;
        let Some(call) = report.find(&calls) else {
            self.store.record_later(unasked(report));
            return Ok(());
        };
        let undo = self.note_after_images(&call.call_id).await?;
        let mut entry = ended(call, undo.as_ref());
        entry = match &report.result {
            NativeToolOutcome::Success(value) => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let output = json!({"sha256": Digest::of(text.as_bytes()), "bytes": text.len()});
                entry.with("success", true).with("output", output)
            }
            NativeToolOutcome::Failure(why) => {
                let first = why.lines().next().unwrap_or_default();
                let error = json!({"kind": "tool_failed", "message": mask(&cut(first, 400))});
                entry.with("success", false).with("error", error)
            }
        };
        if call.asked {
            // The client asked its user and then ran the call, so the user approved it.
            entry = entry.with("approved_by", format!("the user of {}", report.client.title()));
        }
        if call.settled {
            entry = entry.with("late", true);
        }
        self.store.close_observed(&call.call_id, entry).await.map_err(store_error)
    }

    /// Closes the record of a call that its agent is told not to make after all.
    pub(super) async fn close_not_run(
        &self,
        call: &CallId,
        session: &SessionId,
        why: &CallError,
    ) -> Result<(), CallError> {
        let error = json!({"kind": why.kind, "message": mask(&cut(&why.message, 400))});
        let entry = Entry::new(Kind::Outcome).call(call).with("session", session.as_str()).with("observed", true);
        let entry = entry.with("success", false).with("error", error);
        self.store.close_observed(call, entry).await.map_err(store_error)
    }

    /// Closes the records of calls that an agent let end without a report: those with these ids, or all of a conversation.
    /// Such a call was not made, as far as anybody said.
    pub async fn settle_unreported(
        &self,
        client: HookClient,
        session: &SessionId,
        ids: Option<&[String]>,
    ) -> Result<(), CallError> {
        let calls = self.store.observed_calls(session).await.map_err(store_error)?;
        let meant = |call: &&ObservedCall| !call.settled && ids.is_none_or(|ids| ids.contains(&call.use_id));
        for call in calls.iter().filter(meant) {
            let undo = self.note_after_images(&call.call_id).await?;
            let title = client.title();
            let message = match (ids, call.asked) {
                (Some(_), true) => format!("{title} did not run it: its user did not agree"),
                (Some(_), false) => format!("{title} did not run it"),
                (None, true) => format!("{title} reported no result: its user may not have agreed"),
                (None, false) => format!("{title} reported no result"),
            };
            let entry = ended(call, undo.as_ref()).with("success", false).with("reported", false);
            let entry = entry.with("error", json!({"kind": "cancelled", "message": message}));
            self.store.settle_observed(&call.call_id, entry).await.map_err(store_error)?;
        }
        Ok(())
    }
}

fn ended(call: &ObservedCall, undo: Option<&Undo>) -> Entry {
    let entry = Entry::new(Kind::Outcome)
        .call(&call.call_id)
        .with("session", call.session.as_str())
        .with("spoken", mask(&cut(&call.native, 120)).into_owned())
        .with("observed", true)
        .with("duration_ms", now_ms().saturating_sub(call.at_ms));
    match undo {
        Some(undo) => entry.with("undo", serde_json::to_value(undo).unwrap_or_default()),
        None => entry,
    }
}

/// A call that an agent made without asking: its hook before the call was not run, or not to the end.
fn unasked(report: &NativeToolReport) -> Entry {
    let client = report.client.word();
    Entry::new(Kind::Outcome)
        .with("session", report.session.as_str())
        .with("spoken", mask(&cut(&report.tool, 120)).into_owned())
        .with("observed", json!({"client": client, "confined": false, "unasked": true}))
        .with("success", matches!(report.result, NativeToolOutcome::Success(_)))
}
