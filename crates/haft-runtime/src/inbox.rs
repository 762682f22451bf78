//! The inbox: questions that are stored, so that whoever comes first decides them, in whatever process.
//!
//! The decider runs the call. A door whose call waits gets the outcome of that run; the store hands a call to one
//! decider only, so it runs once.

use crate::approver::{Approver, Question, Said, request_decision};
use crate::events::Event;
use crate::pipeline::{Haft, Stop};
use crate::store_error;
use haft_core::approval::{Decider, DeciderIdentity, Decision, Verdict};
use haft_core::outcome::{Label, Source};
use haft_core::{Call, CallError, CallId, ErrorKind, Outcome, Pending, SessionId};
use haft_store::{Approval, ApprovalState, Topic};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// How often the store is asked whether another process has decided. This process hears of its own at once.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How long an approved call may run elsewhere beyond its own time before its process counts as gone.
const GRACE: Duration = Duration::from_secs(30);
/// What is kept of what a conversation has heard: so many tools for each label. Much of one kind must not make one forget
/// another.
const SOURCES_MAX: usize = 8;
const SESSIONS_MAX: usize = 1024;
/// How long it may be before another process's labels are seen.
const HEARD_AGAIN: Duration = Duration::from_secs(1);

/// What one conversation has heard, as far as this process knows.
#[derive(Debug)]
pub(crate) struct Conversation {
    lines: Vec<(Source, i64)>,
    /// When the store was last asked for what others noted.
    asked: tokio::time::Instant,
}

impl Conversation {
    /// Adds what was noted elsewhere.
    fn join(&mut self, noted: Vec<(Source, i64)>) {
        for (source, at_ms) in noted {
            let known = self.lines.iter().any(|(known, at)| *known == source && *at >= at_ms);
            if !known {
                add(&mut self.lines, source, at_ms);
            }
        }
    }
}

/// What came of waiting for an answer.
pub(crate) enum Heard {
    /// An answer, and whose it is: of whoever is asked at this door, or one that was kept for it. If the question was
    /// stored, it is decided by it.
    Said(Said, Decider),
    /// Somebody else decided, and this came of it.
    Elsewhere(Box<Outcome>),
    /// Nobody has decided yet. The question stays stored.
    Nobody,
}

impl Haft {
    /// Puts a question to the approver, and meanwhile to everybody who looks into the inbox.
    pub(crate) async fn put(
        &self,
        pending: &Pending,
        question: &Question,
        approver: &dyn Approver,
    ) -> Result<Heard, Stop> {
        let patience = approver.patience();
        if patience.is_zero() {
            return match request_decision(approver, question).await {
                Said::Nobody => {
                    self.store_question(pending, question).await?;
                    self.try_stored(pending, question).await;
                    let deferred = self.store.defer(question.call_id.as_str()).await;
                    deferred.map(|_| Heard::Nobody).map_err(|error| stopped(pending, store_error(error)))
                }
                said => Ok(Heard::Said(said, approver.decider())),
            };
        }
        self.store_question(pending, question).await?;
        // Counted from here: asking at the door is part of the wait.
        let until = tokio::time::Instant::now() + patience;
        let elsewhere = self.decided(pending, question);
        tokio::pin!(elsewhere);
        let (asking, trying) = (request_decision(approver, question), self.try_stored(pending, question));
        tokio::pin!(asking);
        tokio::pin!(trying);
        let mut is_tried = false;
        let asked = loop {
            tokio::select! {
                biased;
                said = &mut asking => break said,
                decided = &mut elsewhere => return decided,
                () = &mut trying, if !is_tried => is_tried = true,
            }
        };
        if matches!(asked, Said::Try | Said::Edit(_)) {
            return Ok(Heard::Said(asked, approver.decider()));
        }
        let answered = asked != Said::Nobody
            && self.claim(question, &approver.decider(), &asked).await.map_err(|error| stopped(pending, error))?;
        if answered {
            return Ok(Heard::Said(asked, approver.decider()));
        }
        // Nobody answers here; or somebody was faster, or has made another question of it since it was shown here.
        let wait = tokio::time::sleep_until(until);
        tokio::pin!(wait);
        loop {
            tokio::select! {
                biased;
                decided = &mut elsewhere => return decided,
                () = &mut wait => break,
                () = &mut trying, if !is_tried => is_tried = true,
            }
        }
        match self.store.defer(question.call_id.as_str()).await {
            // Patience was for an answer, and there is one.
            Ok(false) => elsewhere.await,
            _ => Ok(Heard::Nobody),
        }
    }

    /// Decides a stored question by an answer at this door: only if it still is what was shown here, and if nobody was
    /// faster.
    async fn claim(&self, question: &Question, by: &Decider, said: &Said) -> Result<bool, CallError> {
        let id = &question.call_id;
        if let Said::Reject(message) = said {
            let won = self.store.reject(id.as_str(), by, message).await.map_err(store_error)?;
            if won {
                self.tell_decided(id, "rejected", by);
            }
            return Ok(won);
        }
        // Noted before it is true: whoever is dropped half-way still settles it, and what is not theirs is not settled.
        self.claims().insert(id.clone(), by.clone());
        let won = self.store.approve(id.as_str(), by, &question.basis.to_string()).await.map_err(store_error)?;
        if won.is_some() {
            self.tell_decided(id, "approved", by);
        } else {
            self.claims().remove(id);
        }
        Ok(won.is_some())
    }

    /// The questions that this process has decided and whose calls have not come to their end.
    pub(crate) fn claims(&self) -> std::sync::MutexGuard<'_, HashMap<CallId, Decider>> {
        self.claimed.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Keeps what came of a call whose question this process decided.
    pub(crate) async fn settle_claim(&self, call: &Call, outcome: &Outcome) {
        let id = &call.id;
        let mine = self.claims().remove(id);
        if let Some(by) = mine {
            let outcome = &without_secrets(outcome, &call.args);
            // If this cannot be written the outcome still reaches its caller; the log has it, too.
            let _ = self.store.finish_approval(id.as_str(), &by, outcome).await;
        }
    }

    /// Takes a stored question away whose call is to become another one at its own door.
    pub(crate) async fn unask(&self, id: &CallId) -> Result<(), CallError> {
        let taken = self.store.unask(id.as_str()).await.map_err(store_error)?;
        if taken { Ok(()) } else { Err(CallError::conflict(format!("{id} was decided elsewhere in the meantime"))) }
    }

    /// Waits until somebody else has decided about a call: what came of it if it ran, or why it did not.
    async fn decided(&self, pending: &Pending, question: &Question) -> Result<Heard, Stop> {
        let ran = |outcome: Outcome| Ok(Heard::Elsewhere(Box::new(outcome)));
        let checked = pending.checked();
        let id = &checked.call().id;
        let mut events = self.events.listen();
        let mut again = tokio::time::interval(LOOK_AGAIN);
        again.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut elsewhere = self.store.changed_elsewhere(Topic::Approvals);
        let mut approved: Option<tokio::time::Instant> = None;
        loop {
            tokio::select! {
                _ = again.tick() => {}
                // A server says at once that somebody decided something; a file does not.
                Ok(()) = elsewhere.changed() => {}
                told = events.recv() => match told {
                    Ok(Event::CallEnd { outcome, .. }) if outcome.call_id == *id => return ran(*outcome),
                    Ok(Event::Decided { call_id, .. }) if call_id == *id => {}
                    // Somebody else's, or too many to hear them all; the store is looked at soon.
                    _ => continue,
                },
            }
            let Ok(Some(found)) = self.store.approval(id.as_str()).await else { continue };
            match found.state {
                // Said where the files are not: it is for this door to run it.
                ApprovalState::Pending if found.consent.is_some() => {
                    let by = Decider::from(DeciderIdentity::Stored { by: found.consent.unwrap_or_default() });
                    let won = self.claim(question, &by, &Said::Once).await;
                    if won.map_err(|error| stopped(pending, error))? {
                        return Ok(Heard::Said(Said::Once, by));
                    }
                }
                ApprovalState::Pending => {}
                ApprovalState::Approved => {
                    if approved.is_none() && !self.claims().contains_key(id) {
                        self.events.send_with(|| Event::RunsElsewhere { call_id: id.clone() });
                    }
                    let since = *approved.get_or_insert_with(tokio::time::Instant::now);
                    if since.elapsed() > checked.spec().timeout + GRACE {
                        return Err(refused(pending, &found, gone()));
                    }
                }
                ApprovalState::Rejected => return Err(refused(pending, &found, rejection(&found))),
                ApprovalState::Done => {
                    let kept = found.outcome.clone().and_then(|value| serde_json::from_value(value).ok());
                    return kept.map_or_else(|| Err(refused(pending, &found, gone())), ran);
                }
            }
        }
    }

    /// Takes a question back that nobody has decided: its caller is gone.
    pub(crate) async fn withdraw(&self, id: &CallId) {
        let taken = self.store.withdraw(id.as_str(), "withdrawn by the caller").await;
        if taken.unwrap_or(false) {
            self.tell_withdrawn(id);
        } else {
            // It may have been approved here, and run.
            self.cancel(id);
        }
    }

    pub(crate) fn tell_decided(&self, id: &CallId, state: &'static str, by: &Decider) {
        self.events.send_with(|| Event::Decided { call_id: id.clone(), state, by: by.to_string() });
    }

    /// Says that a question is not asked any more: its caller has taken it back.
    pub(crate) fn tell_withdrawn(&self, id: &CallId) {
        let by = "caller".to_owned();
        self.events.send_with(|| Event::Decided { call_id: id.clone(), state: "withdrawn", by });
    }

    /// Stores a question that nobody could answer now.
    pub(crate) async fn store_question(&self, pending: &Pending, question: &Question) -> Result<(), Stop> {
        let call = pending.checked().call();
        let approval = self.approval(pending, question);
        self.shown_questions.note(question);
        // One that has been decided in the meantime stays decided; whoever waits for it finds that out.
        self.store.ask(approval, call).await.map(drop).map_err(|error| stopped(pending, store_error(error)))
    }

    /// The question as it is stored.
    pub(crate) fn approval(&self, pending: &Pending, question: &Question) -> Approval {
        let call = pending.checked().call();
        let origin = serde_json::to_value(call.origin).ok();
        Approval {
            id: call.id.to_string(),
            state: ApprovalState::Pending,
            tool: question.tool.to_string(),
            preview: question.preview.clone(),
            reason: question.why(),
            root: haft_core::path_text::store(self.workspace.project()),
            basis: question.basis.to_string(),
            asked_ms: 0,
            decided_by: None,
            outcome: None,
            session: Some(call.session.to_string()),
            origin: origin.and_then(|value| value.as_str().map(str::to_owned)),
            caller: call.caller.agent.clone(),
            sources: question.sources.clone(),
            host: None,
            consent: None,
            form: None,
            executed: question.executed.files.clone(),
            trial: None,
        }
    }

    /// What a conversation has heard that somebody else may have written.
    pub(crate) fn sources(&self, session: &SessionId) -> Vec<String> {
        self.heard_here(session).iter().map(ToString::to_string).collect()
    }

    /// The same, for those who decide: with what other processes noted, before this one and beside it. If that cannot be
    /// known, the conversation may have heard anything.
    pub(crate) async fn heard_in(&self, session: &SessionId) -> Vec<Source> {
        let now = tokio::time::Instant::now();
        let fresh = self.heard().get(session).is_some_and(|known| now.duration_since(known.asked) < HEARD_AGAIN);
        if fresh {
            return self.heard_here(session);
        }
        match self.store.heard(session).await {
            Ok(noted) => {
                let mut heard = self.heard();
                if heard.len() >= SESSIONS_MAX && !heard.contains_key(session) {
                    heard.pop_first();
                }
                // What this process has noted since may not be in the store yet, so nothing is forgotten here.
                let known = heard.entry(session.clone());
                let known = known.or_insert_with(|| Conversation { lines: Vec::new(), asked: now });
                known.asked = now;
                known.join(noted);
                drop(heard);
                self.heard_here(session)
            }
            Err(_) => vec![Source { label: Label::Flagged, tool: "somebody (the store cannot be read)".to_owned() }],
        }
    }

    fn heard_here(&self, session: &SessionId) -> Vec<Source> {
        let since = crate::now_ms() - haft_store::HOLDS_MS;
        let heard = self.heard();
        let lines = heard.get(session).map(|known| known.lines.as_slice()).unwrap_or_default();
        lines.iter().filter(|(_, at)| *at > since).map(|(source, _)| source.clone()).collect()
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, BTreeMap<SessionId, Conversation>> {
        self.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Notes what a call brought into its conversation, here and for processes to come.
    pub(crate) fn note_source(&self, session: &SessionId, outcome: &Outcome) {
        self.note_labels(session, &outcome.labels, &outcome.tool);
    }

    /// The same for what is known to come from somewhere.
    pub(crate) fn note_labels(&self, session: &SessionId, labels: &[Label], tool: &str) {
        if labels.is_empty() {
            return;
        }
        let source = |label: &Label| Source { label: *label, tool: tool.to_owned() };
        let sources: Vec<Source> = labels.iter().map(source).collect();
        self.store.note_heard(session, sources.clone());
        // What was never asked about is learnt from the store, with this in it, when it is.
        if let Some(known) = self.heard().get_mut(session) {
            for source in sources {
                add(&mut known.lines, source, crate::now_ms());
            }
        }
    }

    /// Cancels a call that runs in this process. Returns whether there was one.
    pub fn cancel(&self, call: &CallId) -> bool {
        let found = self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get(call).cloned();
        found.inspect(|(_, halt)| halt.cancel()).is_some()
    }
}

/// An outcome that is kept, whose verdict and error do not quote the secrets of the call's command.
pub(crate) fn without_secrets(outcome: &Outcome, args: &Value) -> Outcome {
    let secrets = haft_core::record::secrets_in(args);
    let quoted = |text: &str| haft_core::shell::masking::mask_quoted(text, &secrets).into_owned();
    let mut kept = outcome.clone();
    kept.verdict.reason = quoted(&kept.verdict.reason);
    if let Some(error) = &mut kept.error {
        error.message = quoted(&error.message);
    }
    kept
}

/// Adds what was heard; of each label the latest are kept.
fn add(lines: &mut Vec<(Source, i64)>, source: Source, at_ms: i64) {
    lines.retain(|(known, _)| *known != source);
    let same = |(known, _): &(Source, i64)| known.label == source.label;
    if lines.iter().filter(|line| same(line)).count() >= SOURCES_MAX
        && let Some(oldest) = lines.iter().position(same)
    {
        lines.remove(oldest);
    }
    lines.push((source, at_ms));
}

/// What the caller is told whose question nobody has answered.
pub(crate) fn required(pending: Pending, question: &Question) -> Stop {
    let id = &question.call_id;
    let message = format!("a person has to decide: {}", question.verdict.reason);
    let error = CallError::new(ErrorKind::ApprovalRequired, message)
        .hint(format!("`haft approvals approve {id}` runs it, `haft approvals reject {id}` does not"))
        .details(json!({ "approval_id": id }));
    pending.defer(error).into()
}

fn stopped(pending: &Pending, error: CallError) -> Stop {
    Stop { tool: pending.checked().spec().name.to_string(), verdict: pending.verdict().clone(), error }
}

fn gone() -> CallError {
    CallError::internal("it was approved elsewhere, but what came of it is not known: that process may have died")
        .hint("`haft log` shows what happened")
}

pub(crate) fn rejection(found: &Approval) -> CallError {
    let message = found.outcome.as_ref().and_then(|value| value.get("rejected")).and_then(Value::as_str);
    let message = message.filter(|text| !text.is_empty()).unwrap_or("This tool has been rejected by the user.");
    CallError::new(ErrorKind::Rejected, message)
}

/// A call that somebody decided about elsewhere and that did not run; its own door records that.
pub(crate) fn refused(pending: &Pending, found: &Approval, error: CallError) -> Stop {
    let by = found.decided_by.clone().unwrap_or_default();
    let verdict = Verdict::new(Decision::Deny, by, "decided by a person");
    Stop { tool: pending.checked().spec().name.to_string(), verdict, error }
}
