//! Forms that a person fills in: at the door of the call, or, where its approver is patient, in whatever inbox
//! somebody looks into first. Whoever asked gets one answer.

use crate::approver::{Approver, request_form};
use crate::back::{Form, Written};
use crate::events::Event;
use crate::halt::Halt;
use crate::journal::Opened;
use crate::pipeline::Haft;
use crate::{new_call_id, store_error};
use haft_core::approval::{Decider, Decision, DecisionScope, Verdict};
use haft_core::preview::{cut, inert};
use haft_core::record::Digest;
use haft_core::schema::Schema;
use haft_core::{CallError, CallId};
use haft_store::{Approval, ApprovalState, FORM_PREFIX, Filled, Topic};
use serde_json::Value;
use std::time::Duration;

/// How often the store is asked whether another process has filled it in.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How much of what is asked stands in a list.
const PREVIEW: usize = 120;
/// How large an answer may be.
const ANSWER_MAX: usize = 64 << 10;

impl Haft {
    /// Lets whoever is there fill in a form. A call that is halted does not wait for that.
    pub(crate) async fn fill_in(&self, opened: &Opened, approver: &dyn Approver, halt: &Halt, form: &Form) -> Written {
        let stopped = async {
            halt.stopped().await;
            Written::Cancelled
        };
        let patience = approver.patience();
        // One that cannot be stored is still asked about at the door.
        let stored = if patience.is_zero() { None } else { self.store_form(opened, form).await };
        let Some(id) = stored else {
            return tokio::select! {
                written = request_form(approver, form) => written,
                written = stopped => written,
            };
        };
        let written = tokio::select! {
            written = self.wherever(&id, approver, patience, form) => written,
            written = stopped => Some(written),
        };
        match written {
            Some(written) => {
                self.take_form_back(&id).await;
                written
            }
            // It was filled in elsewhere, which the store knows.
            None => match self.store.filled_form(id.as_str()).await {
                Ok(Filled::Answer(answer)) => Written::Answer(answer),
                _ => Written::Declined,
            },
        }
    }

    /// What is written at the door; none if somebody was faster elsewhere.
    async fn wherever(&self, id: &CallId, approver: &dyn Approver, patience: Duration, form: &Form) -> Option<Written> {
        let until = tokio::time::Instant::now() + patience;
        let elsewhere = self.filled(id);
        tokio::pin!(elsewhere);
        let here = tokio::select! {
            written = request_form(approver, form) => written,
            () = &mut elsewhere => return None,
        };
        if here != Written::Nobody {
            return Some(here);
        }
        tokio::select! {
            () = &mut elsewhere => None,
            () = tokio::time::sleep_until(until) => Some(Written::Nobody),
        }
    }

    /// Waits until somebody else has filled a form in, or would not.
    async fn filled(&self, id: &CallId) {
        let mut events = self.events.listen();
        let mut elsewhere = self.store.changed_elsewhere(Topic::Approvals);
        let mut again = tokio::time::interval(LOOK_AGAIN);
        again.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = again.tick() => {}
                Ok(()) = elsewhere.changed() => {}
                told = events.recv() => match told {
                    Ok(Event::Decided { call_id, .. }) if call_id == *id => {}
                    _ => continue,
                },
            }
            // A store that is busy for a moment is asked again.
            let found = self.store.approval(id.as_str()).await;
            if found.is_ok_and(|found| found.is_none_or(|found| found.state != ApprovalState::Pending)) {
                return;
            }
        }
    }

    async fn store_form(&self, opened: &Opened, form: &Form) -> Option<CallId> {
        let checked = opened.admitted().checked();
        let call = checked.call();
        let id = CallId::parse(&format!("{FORM_PREFIX}{}", new_call_id()))?;
        let reason = format!("{} wants to know", inert(&form.from));
        let origin = serde_json::to_value(call.origin).ok();
        let written = serde_json::to_value(form).ok()?;
        let approval = Approval {
            id: id.to_string(),
            state: ApprovalState::Pending,
            tool: checked.spec().name.to_string(),
            preview: cut(&inert(&form.message.replace('\n', " ")), PREVIEW),
            reason: reason.clone(),
            root: haft_core::path_text::store(self.workspace.project()),
            basis: Digest::of(written.to_string().as_bytes()).to_string(),
            asked_ms: 0,
            decided_by: None,
            outcome: None,
            session: Some(call.session.to_string()),
            origin: origin.and_then(|value| value.as_str().map(str::to_owned)),
            caller: call.caller.agent.clone(),
            sources: Vec::new(),
            host: None,
            consent: None,
            form: Some(written),
            executed: Vec::new(),
            trial: None,
        };
        let preview = approval.preview.clone();
        self.store.ask_form(approval).await.ok()?;
        self.events.send_with(|| Event::Approval {
            call_id: id.clone(),
            session: call.session.clone(),
            preview,
            verdict: Verdict::new(Decision::Ask, "form", reason),
        });
        Some(id)
    }

    /// Takes a form out of the inboxes: it was filled in at its own door, or nobody waits for it.
    async fn take_form_back(&self, id: &CallId) {
        if self
            .store
            .withdraw(id.as_str(), "it was answered at its own door, or is not asked any more")
            .await
            .unwrap_or(false)
        {
            self.tell_withdrawn(id);
        }
    }

    /// Fills in a form that waits in the inbox, for whatever process asked. What does not fit is refused, and the form
    /// waits on.
    pub async fn answer_form(&self, id: &str, by: &Decider, answer: Value) -> Result<(), CallError> {
        self.store.authorize(id, by, DecisionScope::Once).await.map_err(store_error)?;
        let found = self.store.approval(id).await.map_err(store_error)?;
        let unknown = || {
            CallError::not_found(format!("there is no question `{}`", inert(id)))
                .hint("`haft approvals` lists what waits")
        };
        let found = found.ok_or_else(unknown)?;
        let decided = || CallError::conflict(format!("{id} has been answered already, or is not asked any more"));
        let form = match found.form {
            Some(form) if found.state == ApprovalState::Pending => form,
            None if !id.starts_with(FORM_PREFIX) => {
                return Err(CallError::invalid(format!("{id} asks for a yes or no, not for an answer"))
                    .hint(format!("`haft approvals approve {id}` runs it, `haft approvals reject {id}` does not")));
            }
            _ => return Err(decided()),
        };
        let answer = fitting(&form["schema"], answer)?;
        if !self.store.fill_form(id, by, &answer).await.map_err(store_error)? {
            return Err(decided());
        }
        if let Some(form) = CallId::parse(id) {
            self.tell_decided(&form, "answered", by);
        }
        Ok(())
    }
}

/// An answer that fits what was asked for, with what was left out where there is a default.
fn fitting(schema: &Value, mut answer: Value) -> Result<Value, CallError> {
    if answer.to_string().len() > ANSWER_MAX {
        return Err(CallError::invalid(format!("an answer has at most {} KiB", ANSWER_MAX >> 10)));
    }
    let schema = Schema::compile(schema)
        .map_err(|error| CallError::invalid(format!("this form cannot be filled in: {error}")))?;
    schema.prepare(&mut answer);
    let violations = schema.violations(&answer);
    if violations.is_empty() {
        return Ok(answer);
    }
    let line = |v: &haft_core::schema::Violation| {
        format!("{}: expected {}, got {}", v.pointer.trim_start_matches('/'), v.expected, v.found)
    };
    let lines: Vec<String> = violations.iter().map(line).collect();
    Err(CallError::invalid(format!("the answer does not fit: {}", lines.join("; ")))
        .details(serde_json::json!({ "violations": violations })))
}
