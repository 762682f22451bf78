//! The client as somebody who can be asked: the person behind it by elicitation, its model by sampling.

#![expect(deprecated, reason = "sampling and logging go, but clients of all but the newest version have them")]

use super::Shared;
use super::approval_form::{ApprovalForm, form_params, inert_lines};
use super::bridged::BridgedServers;
use super::client_mode::ClientMode;
use super::rounds::{ClientAnswer, LongCall, TASK_WAIT, Turns};
use haft_core::approval::Decider;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind};
use haft_runtime::{Approver, BoxFuture, Form, Question, Said, Written};
use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, InputRequest, ProtocolVersion,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{RoleServer, ServiceError};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a person has where nothing is configured.
const USUAL_WAIT: Duration = Duration::from_mins(1);
/// No person reads a form and answers it in less. A client that does (an agent that answers itself, a headless mode that
/// declines every form unseen, a key that was pressed before the form came up) is not a person, whatever it says.
const READING_TIME_MIN: Duration = Duration::from_millis(800);
/// How often a form is shown that is answered too fast to be read.
const SHOWINGS_MAX: usize = 2;
/// How long a client's model has.
const SAMPLE_MAX: Duration = Duration::from_mins(5);
/// How much is shown of what a tool says in its form.
const MESSAGE_MAX: usize = 4 << 10;
/// The largest form that a tool may have filled in, and the longest text in it.
const SCHEMA_MAX: usize = 16 << 10;
const TITLE_MAX: usize = 400;

/// The keys of what goes out with an answer: an approval, a tool's form, a request for a model.
const APPROVAL: &str = "approval";
const FORM: &str = "form";
const MODEL: &str = "model";
/// The longest key that a tool may choose.
const KEY_MAX: usize = 64;

/// How a client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// By a request of the server's own, while its request waits.
    Requests,
    /// With the answer (2026-07-28): it asks again with what the person said.
    Rounds,
}

impl Era {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let newest = |version: ProtocolVersion| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str();
        if context.protocol_version().is_some_and(newest) { Self::Rounds } else { Self::Requests }
    }
}

/// By which way a client is asked.
pub(super) enum Way {
    /// By requests.
    Requests(Peer<RoleServer>),
    /// In rounds.
    Rounds(Turns),
}

/// What a client answered to a form.
struct FormAnswer {
    result: ElicitResult,
    /// How long the client had the form before.
    after: Duration,
}

/// Something that a call asked for and its client does not offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// Forms.
    Elicitation,
    /// A model.
    Sampling,
}

/// The client of one call.
pub(super) struct Client {
    shared: Arc<Shared>,
    way: Way,
    /// Who answers behind it.
    decider: Decider,
    able: Able,
    gone: CancellationToken,
    lacks: Mutex<Option<Lack>>,
    mode: ClientMode,
    /// Whether a yes may hold for the session: it must be this client's alone.
    lasts: bool,
}

impl Client {
    pub(super) fn new(
        shared: Arc<Shared>,
        way: Way,
        declared: Option<&ClientCapabilities>,
        mode: ClientMode,
        agent: Option<&str>,
        gone: CancellationToken,
    ) -> Self {
        let decider = shared.options.holder.decider(agent);
        Self { shared, way, decider, able: Able::of(declared), gone, lacks: Mutex::default(), mode, lasts: false }
    }

    /// Of a conversation that is its own, or not.
    pub(super) fn of(mut self, apart: bool) -> Self {
        self.lasts = apart;
        self
    }

    /// Waits until the client has gone.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// What the call asked for last and the client does not offer.
    pub(super) fn lacks(&self) -> Option<Lack> {
        *self.lacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the client does not offer.
    fn misses(&self, what: Lack) {
        *self.lacks.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// Whether a person can be asked in the client. An agent would answer for its own calls.
    fn asks_person(&self) -> bool {
        self.decider.may_decide()
            && self.able.elicits
            && self.mode == ClientMode::Attended
            && self.shared.options.elicitation
    }

    /// Asks in the client. If the call is a task and nobody answers there, waits up to [`TASK_WAIT`]: the decision may come from
    /// the inbox.
    async fn ask_here_or_wait<T: PartialEq>(&self, asking: impl Future<Output = T>, nobody: T) -> T {
        match &self.way {
            Way::Rounds(turns) if turns.long_call == LongCall::Task => {
                let waiting = async {
                    let answer = asking.await;
                    if answer == nobody {
                        self.gone.cancelled().await;
                    }
                    answer
                };
                let answer = tokio::time::timeout(TASK_WAIT, waiting).await;
                answer.unwrap_or(nobody)
            }
            _ => asking.await,
        }
    }

    /// Shows a form. A key that its tool chose is told from those that are chosen here.
    async fn show(&self, (key, named): (String, bool), params: ElicitRequestParams) -> Option<FormAnswer> {
        let answer = async {
            match &self.way {
                Way::Requests(peer) => {
                    let patience = self.shared.options.patience;
                    let wait = if patience.is_zero() { USUAL_WAIT } else { patience };
                    let shown_at = Instant::now();
                    let result = peer.create_elicitation_with_timeout(params, Some(wait)).await.ok()?;
                    Some(FormAnswer { result, after: shown_at.elapsed() })
                }
                Way::Rounds(turns) => {
                    let request = InputRequest::Elicitation(ElicitRequest::new(params));
                    let ClientAnswer { value, after } = turns.ask(key, named, request).await?;
                    Some(FormAnswer { result: serde_json::from_value(value).ok()?, after })
                }
            }
        };
        tokio::select! {
            answer = answer => answer,
            () = self.gone.cancelled() => None,
        }
    }

    async fn put(&self, question: &Question) -> Said {
        if let Some(approver) = &self.shared.approver {
            return approver.ask(question).await;
        }
        // What nobody answers stays in the inbox.
        self.ask_here_or_wait(self.ask_person(question), Said::Nobody).await
    }

    /// Asks the person behind the client. What is answered before it can have been read is asked once more: a person is
    /// slower the second time.
    async fn ask_person(&self, question: &Question) -> Said {
        if !self.asks_person() {
            return Said::Nobody;
        }
        let lasts = self.lasts && question.can_last();
        let mut form = ApprovalForm::new(question, lasts, &self.shared.options.decision_place);
        for _ in 0..SHOWINGS_MAX {
            let Some(params) = form.request() else { return Said::Nobody };
            let Some(answer) = self.show((APPROVAL.to_owned(), false), params).await else { return Said::Nobody };
            let said = form.said(&answer.result);
            if said == Said::Nobody || answer.after >= READING_TIME_MIN {
                return said;
            }
            form = form.again();
        }
        Said::Nobody
    }

    async fn fill_in(&self, form: &Form) -> Written {
        if !self.able.elicits && self.decider.may_decide() {
            self.misses(Lack::Elicitation);
        }
        self.ask_here_or_wait(self.fill_in_at_client(form), Written::Nobody).await
    }

    async fn fill_in_at_client(&self, form: &Form) -> Written {
        if !self.asks_person() || form.schema.to_string().len() > SCHEMA_MAX {
            return Written::Nobody;
        }
        let message = format!("{} asks: {}", inert(&form.from), inert_lines(&form.message, MESSAGE_MAX));
        let Some(params) = form_params(message, tamed(form.schema.clone())) else { return Written::Nobody };
        match self.show(key(form), params).await.map(|answer| answer.result) {
            Some(ElicitResult { action: ElicitationAction::Accept, content, .. }) => {
                Written::Answer(content.unwrap_or_else(|| json!({})))
            }
            Some(ElicitResult { action: ElicitationAction::Decline, .. }) => Written::Declined,
            Some(_) => Written::Cancelled,
            None => Written::Nobody,
        }
    }

    async fn let_answer(&self, request: &Value) -> Result<Value, CallError> {
        if !self.able.samples {
            self.misses(Lack::Sampling);
            return Err(upstream("the client offers no model")
                .hint("use a client that offers sampling, or a tool that needs none"));
        }
        let params: CreateMessageRequestParams = serde_json::from_value(request.clone())
            .map_err(|error| CallError::invalid(format!("this is no request for a model: {error}")))?;
        let answer = async {
            match &self.way {
                Way::Requests(peer) => sampled(peer, params).await,
                Way::Rounds(turns) => {
                    let request = InputRequest::CreateMessage(CreateMessageRequest::new(params));
                    let answer = turns.ask(MODEL.to_owned(), false, request).await;
                    answer
                        .map(|answer| answer.value)
                        .ok_or_else(|| upstream("the client did not come back with an answer"))
                }
            }
        };
        tokio::select! {
            answer = answer => answer,
            () = self.gone.cancelled() => Err(upstream("the client has gone")),
        }
    }
}

fn upstream(why: impl Into<String>) -> CallError {
    CallError::new(ErrorKind::Upstream, why.into())
}

/// Lets the client's model answer while the request waits.
async fn sampled(peer: &Peer<RoleServer>, params: CreateMessageRequestParams) -> Result<Value, CallError> {
    match tokio::time::timeout(SAMPLE_MAX, peer.create_message(params)).await {
        Ok(Ok(answer)) => serde_json::to_value(answer).map_err(|error| upstream(error.to_string())),
        Ok(Err(ServiceError::McpError(error))) => Err(upstream(format!("the client refused: {}", error.message))),
        Ok(Err(error)) => Err(upstream(format!("the client did not answer: {error}"))),
        Err(_) => Err(upstream(format!("the client's model took longer than {} s", SAMPLE_MAX.as_secs()))),
    }
}

/// Under which key a form goes out, and whether its tool chose it: the title of its schema, if that is a plain word
/// and none that is used here.
fn key(form: &Form) -> (String, bool) {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let word = |title: &&str| (1..=KEY_MAX).contains(&title.len()) && title.chars().all(plain);
    match form.schema.get("title").and_then(Value::as_str).filter(word) {
        Some(title) if ![APPROVAL, FORM, MODEL].contains(&title) => (title.to_owned(), true),
        _ => (FORM.to_owned(), false),
    }
}

/// What a client can do.
struct Able {
    elicits: bool,
    samples: bool,
}

impl Able {
    fn of(declared: Option<&ClientCapabilities>) -> Self {
        // One that names no form of elicitation means forms.
        let forms = |declared: &ClientCapabilities| {
            declared.elicitation.as_ref().is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
        };
        Self {
            elicits: declared.is_some_and(forms),
            samples: declared.is_some_and(|declared| declared.sampling.is_some()),
        }
    }
}

impl Approver for Client {
    fn decider(&self) -> Decider {
        self.shared.approver.as_ref().map_or_else(|| self.decider.clone(), |approver| approver.decider())
    }

    fn form_decider(&self) -> Decider {
        self.decider.clone()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(self.put(question))
    }

    fn patience(&self) -> Duration {
        let patience = self.shared.options.patience;
        match (&self.shared.approver, &self.way) {
            (Some(approver), _) => approver.patience(),
            // A task of an agent's waits for a person elsewhere, because nothing is asked of the agent.
            (None, Way::Rounds(turns)) if turns.long_call == LongCall::Task && !self.decider.may_decide() => {
                patience.max(TASK_WAIT)
            }
            // Whoever is patient at all is asked in the inbox, too, while the question is out for a long time.
            (None, Way::Rounds(turns)) if self.asks_person() || turns.long_call == LongCall::Task => {
                patience.max(Duration::from_millis(1))
            }
            (None, _) => patience,
        }
    }

    fn elicit<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Written> {
        Box::pin(self.fill_in(form))
    }

    fn has_model(&self) -> bool {
        self.able.samples
    }

    /// In front of a server, what the client cannot do is withheld from the server. Otherwise a form of a client that shows
    /// none may be filled in elsewhere.
    fn has_forms(&self) -> bool {
        self.able.elicits || !self.shared.bridged.as_ref().is_some_and(BridgedServers::is_front)
    }

    fn has_tasks(&self) -> bool {
        matches!(&self.way, Way::Rounds(turns) if turns.long_call == LongCall::Task)
    }

    fn goes_on_as_task(&self) {
        if let Way::Rounds(turns) = &self.way {
            turns.go_on_as_task();
        }
    }

    fn sample<'a>(&'a self, request: &'a Value) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(self.let_answer(request))
    }
}

/// What a server wrote into its form cannot act on whoever shows it.
fn tamed(schema: Value) -> Value {
    match schema {
        Value::String(text) => cut(&inert(&text), TITLE_MAX).into(),
        Value::Array(items) => items.into_iter().map(tamed).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, tamed(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_called_what_its_tool_calls_it_unless_that_means_something_here() {
        let called =
            |title: &str| key(&Form { from: String::new(), message: String::new(), schema: json!({ "title": title }) });
        assert_eq!(called("user_name"), ("user_name".to_owned(), true));
        for other in ["approval", "model", "form", "Your name", "", "a.b", &"x".repeat(KEY_MAX + 1)] {
            assert_eq!(called(other), (FORM.to_owned(), false));
        }
    }

    #[test]
    fn a_form_of_a_servers_cannot_act() {
        let schema =
            json!({"properties": {"a": {"title": "\u{202e}evil", "description": "x\u{1b}[2J", "type": "string"}}});
        let text = tamed(schema).to_string();
        assert!(!text.contains('\u{202e}') && !text.contains("u001b"), "{text}");
    }
}
