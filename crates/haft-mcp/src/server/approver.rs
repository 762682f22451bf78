//! The client as somebody who can be asked: the person behind it by elicitation, its model by sampling.

#![expect(deprecated, reason = "sampling and logging go, but clients of all but the newest version have them")]

use super::Shared;
use super::rounds::Turns;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind};
use haft_runtime::{Approver, BoxFuture, Form, Question, Said, Written};
use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, ProtocolVersion,
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
/// declines every form unseen) is not a person, whatever it says.
const READING_TIME_MIN: Duration = Duration::from_millis(500);
/// How long a client's model has.
const SAMPLE_MAX: Duration = Duration::from_mins(5);
/// How much is shown of what was printed or said.
const DIFF_MAX: usize = 4 << 10;
/// How much there may be of what is approved; more is for the inbox.
const WHOLE_MAX: usize = 16 << 10;
/// The largest form that a tool may have filled in, and the longest text in it.
const SCHEMA_MAX: usize = 16 << 10;
const TITLE_MAX: usize = 400;
/// How much of each other part.
const LINES_MAX: usize = 20;

/// The keys of what goes out with an answer: an approval, a tool's form, a request for a model.
const APPROVAL: &str = "approval";
const FORM: &str = "form";
const MODEL: &str = "model";
/// The longest key that a tool may choose.
const KEY_MAX: usize = 64;

const ONCE: &str = "approve once";
const SESSION: &str = "approve for this session";
const REJECT: &str = "reject";

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
    name: String,
    able: Able,
    gone: CancellationToken,
    lacks: Mutex<Option<Lack>>,
    /// Whether a yes may hold for the session: it must be this client's alone.
    lasts: bool,
}

impl Client {
    pub(super) fn new(
        shared: Arc<Shared>,
        way: Way,
        declared: Option<&ClientCapabilities>,
        agent: Option<&str>,
        gone: CancellationToken,
    ) -> Self {
        let name = format!("elicitation by {}", agent.unwrap_or("an MCP client"));
        Self { shared, way, name, able: Able::of(declared), gone, lacks: Mutex::default(), lasts: false }
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

    fn asks_person(&self) -> bool {
        self.able.elicits && self.shared.options.elicitation
    }

    /// Shows a form. A key that its tool chose is told from those that are chosen here.
    async fn show(&self, (key, named): (String, bool), params: ElicitRequestParams) -> Option<ElicitResult> {
        let answer = async {
            match &self.way {
                Way::Requests(peer) => {
                    let patience = self.shared.options.patience;
                    let wait = if patience.is_zero() { USUAL_WAIT } else { patience };
                    peer.create_elicitation_with_timeout(params, Some(wait)).await.ok()
                }
                Way::Rounds(turns) => {
                    let request = InputRequest::Elicitation(ElicitRequest::new(params));
                    serde_json::from_value(turns.ask(key, named, request).await?).ok()
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
        if !self.asks_person() {
            return Said::Nobody;
        }
        let lasts = self.lasts && question.can_last();
        let Some(params) = approval_form(question, lasts) else { return Said::Nobody };
        let shown_at = Instant::now();
        let answer = self.show((APPROVAL.to_owned(), false), params).await;
        if shown_at.elapsed() < READING_TIME_MIN {
            // The question stays in the inbox.
            return Said::Nobody;
        }
        match answer.map_or(Said::Nobody, said) {
            // It was not offered.
            Said::Session if !lasts => Said::Nobody,
            said => said,
        }
    }

    async fn fill_in(&self, form: &Form) -> Written {
        if !self.able.elicits {
            self.misses(Lack::Elicitation);
        }
        if !self.asks_person() || form.schema.to_string().len() > SCHEMA_MAX {
            return Written::Nobody;
        }
        let message = format!("{} asks: {}", inert(&form.from), inert_lines(&form.message, DIFF_MAX));
        let Some(params) = form_params(message, tamed(form.schema.clone())) else { return Written::Nobody };
        match self.show(key(form), params).await {
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
                    answer.ok_or_else(|| upstream("the client did not come back with an answer"))
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
    fn name(&self) -> &str {
        self.shared.approver.as_ref().map_or(&self.name, |approver| approver.name())
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(self.put(question))
    }

    fn patience(&self) -> Duration {
        let patience = self.shared.options.patience;
        match (&self.shared.approver, &self.way) {
            (Some(approver), _) => approver.patience(),
            // Whoever is patient at all is asked in the inbox, too, while the question is out for a long time.
            (None, Way::Rounds(_)) if self.asks_person() => patience.max(Duration::from_millis(1)),
            (None, _) => patience,
        }
    }

    fn elicit<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Written> {
        Box::pin(self.fill_in(form))
    }

    fn sample<'a>(&'a self, request: &'a Value) -> BoxFuture<'a, Result<Value, CallError>> {
        Box::pin(self.let_answer(request))
    }
}

/// What a person said in the form of an approval. Anything unclear is no yes.
fn said(answer: ElicitResult) -> Said {
    let content = answer.content.unwrap_or_default();
    let decision = content.get("decision").and_then(Value::as_str).unwrap_or_default();
    match (&answer.action, decision) {
        (ElicitationAction::Accept, ONCE) => Said::Once,
        (ElicitationAction::Accept, SESSION) => Said::Session,
        (ElicitationAction::Accept, REJECT) | (ElicitationAction::Decline, _) => {
            Said::Reject("This tool has been rejected by the user.".to_owned())
        }
        _ => Said::Nobody,
    }
}

/// The form by which a person approves: one required choice. There is no optional text field, because Codex's terminal
/// interface cannot submit an empty one.
fn approval_form(question: &Question, lasts: bool) -> Option<ElicitRequestParams> {
    let answers: &[&str] = if lasts { &[ONCE, SESSION, REJECT] } else { &[ONCE, REJECT] };
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "enum": answers}
        },
        "required": ["decision"]
    });
    form_params(shown(question)?, schema)
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

fn form_params(message: String, schema: Value) -> Option<ElicitRequestParams> {
    let requested_schema = serde_json::from_value::<ElicitationSchema>(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// The question as text that cannot act. None if it does not fit: nobody may say yes to what they were not shown.
///
/// Some clients show only the first lines, so they hold the decision: what, how severe, where. The effect follows, and the
/// reason comes last.
fn shown(question: &Question) -> Option<String> {
    let mut text = format!("{} ({} severity)", question.preview, question.severity.as_str());
    let mut part = |head: &str, lines: &[String]| {
        if !lines.is_empty() {
            let lines: Vec<String> = lines.iter().take(LINES_MAX).map(|line| cut(&inert(line), 200)).collect();
            text.push_str(&format!("\n{head}: {}", lines.join(", ")));
        }
    };
    part("Where", &question.places);
    part("This conversation has read", &question.sources);
    part("It would fail", question.problem.as_slice());
    // The effect where it is known; otherwise everything that is asked for.
    let (head, body) = match &question.diff {
        Some(diff) => ("What it would change", diff.clone()),
        None => ("Arguments", written_out(&question.args)),
    };
    text.push_str(&format!("\n{head}:\n{}", whole(&body, WHOLE_MAX)?));
    if let Some(tried) = question.tried.as_ref().filter(|tried| !tried.is_empty()) {
        text.push_str(&format!("\nWhat it printed when tried:\n{}", inert_lines(tried, DIFF_MAX)));
    }
    text.push_str(&format!("\nWhy this is asked: {}", inert(&question.verdict.reason)));
    Some(text)
}

/// Arguments as a person reads them: a line each, and texts of several lines as such.
fn written_out(args: &Value) -> String {
    let Some(fields) = args.as_object() else { return args.to_string() };
    let line = |(name, value): (&String, &Value)| match value.as_str() {
        Some(text) if text.contains('\n') => format!("{name}:\n{text}"),
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {value}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// All of a text, as lines that cannot act; none if that is too much.
fn whole(text: &str, max: usize) -> Option<String> {
    (text.len() <= max).then(|| text.lines().map(inert).collect::<Vec<_>>().join("\n"))
}

/// Lines that cannot act, at most so many bytes of them.
fn inert_lines(text: &str, max: usize) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let line = inert(line);
        if shown.len() + line.len() > max {
            shown.push_str("[more is not shown]\n");
            break;
        }
        shown.push_str(&line);
        shown.push('\n');
    }
    shown.truncate(shown.trim_end().len());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(value: Value) -> Said {
        said(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let accept = |decision: &str| answer(json!({"action": "accept", "content": {"decision": decision}}));
        assert_eq!(accept(ONCE), Said::Once);
        assert_eq!(accept(SESSION), Said::Session);
        for unclear in ["", "yes", "APPROVE ONCE"] {
            assert_eq!(accept(unclear), Said::Nobody);
        }
        assert_eq!(answer(json!({"action": "accept"})), Said::Nobody);
        assert_eq!(answer(json!({"action": "cancel", "content": {"decision": ONCE}})), Said::Nobody);
        let declined = answer(json!({"action": "decline", "content": {"decision": ONCE}}));
        assert!(matches!(declined, Said::Reject(_)));
        assert!(matches!(accept(REJECT), Said::Reject(_)));
    }

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
    fn all_that_is_approved_is_shown_or_nobody_is_asked() {
        let args = json!({"command": format!("touch a # {}\necho PWNED > b", "x".repeat(300)), "n": 7});
        let text = written_out(&args);
        assert!(whole(&text, WHOLE_MAX).unwrap().contains("\necho PWNED > b\nn: 7"), "{text}");
        assert_eq!(whole(&"x".repeat(WHOLE_MAX + 1), WHOLE_MAX), None);
    }

    #[test]
    fn a_form_of_a_servers_cannot_act() {
        let schema =
            json!({"properties": {"a": {"title": "\u{202e}evil", "description": "x\u{1b}[2J", "type": "string"}}});
        let text = tamed(schema).to_string();
        assert!(!text.contains('\u{202e}') && !text.contains("u001b"), "{text}");
    }

    #[test]
    fn what_is_shown_is_bounded_and_cannot_act() {
        let text = inert_lines(&"+\u{1b}[31mred\n".repeat(10_000), 100);
        assert!(text.len() < 200 && !text.contains('\u{1b}') && text.ends_with("[more is not shown]"), "{text}");
    }
}
