//! Why there is no answer: every provider's way of saying so, as one of few kinds, and in words that say what to do.
//!
//! What a provider says is somebody else's text: it is cut, made inert, and the key is hidden in it.

use super::key::Key;
use super::later;
use crate::agent::model::ModelRef;
use crate::http;
use haft_core::agent::turns::{Failure, FailureKind};
use haft_core::agent::wire::Broken;
use haft_core::preview::{cut, inert};
use haft_core::web::Target;
use haft_core::{CallError, ErrorKind};
use serde_json::Value;

/// How much of what a provider says is passed on.
const SHOWN: usize = 300;

/// What a model takes no more of, in the words of those who say so.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "context_length_exceeded",
    "maximum context length",
    "maximum prompt length",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "exceeds the available context size",
    "exceed_context_size_error",
    "context window",
    "context overflow",
    "context size has been exceeded",
    "request_too_large",
    "request too large",
    "too many tokens",
];

/// Nobody pays: to wait does not help.
const UNPAID: &[&str] = &[
    "insufficient_quota",
    "credit balance is too low",
    "billing_hard_limit",
    "insufficient balance",
    "insufficient credits",
];

/// The key is none.
const KEYLESS: &[&str] = &[
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "api_key_invalid",
    "api key not valid",
    "unauthenticated",
    "permission_denied",
];

/// Too much to do, or too much asked.
const BUSY: &[&str] = &[
    "overloaded",
    "rate_limit",
    "rate limit",
    "resource_exhausted",
    "unavailable",
    "too_many_requests",
    "too many requests",
];

/// The request is wrong.
const WRONG: &[&str] = &["invalid_request", "invalid_argument", "not_found", "failed_precondition", "invalid_prompt"];

/// Says why a model does not answer.
pub(super) struct Trouble<'a> {
    pub(super) name: &'a ModelRef,
    pub(super) keys: &'a [String],
    pub(super) key: Option<&'a Key>,
}

impl Trouble<'_> {
    fn failure(&self, kind: FailureKind, why: &str) -> Failure {
        Failure { kind, message: format!("{}: {}", inert(&self.name.to_string()), self.hidden(why)) }
    }

    fn hidden(&self, text: &str) -> String {
        self.key.map_or_else(|| text.to_owned(), |key| key.hidden(text))
    }

    /// Somebody else's text, as it may be shown. The key is hidden before it is cut: half of one is one.
    fn shown(&self, text: &str, columns: usize) -> String {
        cut(&inert(&self.hidden(text)), columns)
    }

    /// There is no key.
    pub(super) fn no_key(&self) -> Failure {
        let names = self.keys.join(" or ");
        let first = self.keys.first().map_or("NAME", String::as_str);
        self.failure(
            FailureKind::Denied,
            &format!("there is no key; set {names}, or keep one with `haft secret set {first}`"),
        )
    }

    /// Nobody was reached.
    pub(super) fn unreached(&self, target: &Target, error: &http::Error) -> Failure {
        let CallError { kind, message, .. } = crate::web::unreached(target, error);
        self.failure(if kind == ErrorKind::Denied { FailureKind::Denied } else { FailureKind::Away }, &message)
    }

    /// The connection broke.
    pub(super) fn cut_off(&self, error: &http::Error) -> Failure {
        let why = crate::web::cause(error);
        self.failure(FailureKind::Away, &format!("the connection was cut in the middle of its answer ({why})"))
    }

    /// It says more than anybody reads.
    pub(super) fn endless(&self) -> Failure {
        self.failure(FailureKind::Odd, "its answer has no end")
    }

    /// The stream says so.
    pub(super) fn broken(&self, broken: &Broken) -> Failure {
        match broken {
            Broken::Said { kind, message } => {
                self.said(None, None, &format!("{kind} {message}"), &self.shown(&spoken(kind, message), SHOWN))
            }
            Broken::Odd(_) => self.failure(FailureKind::Odd, &self.shown(&broken.to_string(), SHOWN)),
            Broken::Cut => self.failure(FailureKind::Away, "its answer was cut off"),
        }
    }

    /// It answered well, but with no stream.
    pub(super) fn no_stream(&self, body: &[u8]) -> Failure {
        match serde_json::from_slice::<Value>(body).ok().as_ref().and_then(error_in) {
            Some((error, words)) => self.said(None, later::told(error), &error.to_string(), &self.shown(&words, SHOWN)),
            None => self.failure(FailureKind::Odd, &self.odd(body)),
        }
    }

    /// By status.
    pub(super) fn refused(&self, status: u16, after: Option<i64>, body: &[u8]) -> Failure {
        let read = serde_json::from_slice::<Value>(body).ok();
        let Some((error, words)) = read.as_ref().and_then(error_in) else {
            let odd = if body.trim_ascii().is_empty() { "no more is said".to_owned() } else { self.odd(body) };
            let kind = match self.said(Some(status), after, "", "").kind {
                // Whoever answers so is not who was asked.
                FailureKind::Invalid if is_page(body) => FailureKind::Odd,
                kind => kind,
            };
            return self.failure(kind, &self.explained(kind, &format!("{status}: {odd}")));
        };
        self.said(
            Some(status),
            after.or_else(|| later::told(error)),
            &error.to_string(),
            &format!("{status}: {}", self.shown(&words, SHOWN)),
        )
    }

    /// By status first, and by words where the status leaves it open: a rate limit may be told in the words of an overflow
    /// ("too many tokens"), and shortening what is sent does not lift it.
    fn said(&self, status: Option<u16>, after: Option<i64>, words: &str, told: &str) -> Failure {
        let words = words.to_lowercase();
        let any = |list: &[&str]| list.iter().any(|word| words.contains(word));
        let kind = match status {
            // An account without money gives the status of a rate limit, which no wait lifts.
            Some(429) if any(UNPAID) => FailureKind::Denied,
            Some(429 | 503 | 529) => FailureKind::Busy(after),
            Some(401..=403) => FailureKind::Denied,
            Some(413) => FailureKind::Overflow,
            // Some servers on this machine break down (500) over a request that is too long.
            Some(400 | 422 | 500) if any(OVERFLOW) => FailureKind::Overflow,
            _ if any(UNPAID) || any(KEYLESS) => FailureKind::Denied,
            Some(408 | 500..) => FailureKind::Away,
            Some(_) => FailureKind::Invalid,
            None if any(BUSY) => FailureKind::Busy(after),
            None if any(OVERFLOW) => FailureKind::Overflow,
            None if any(WRONG) => FailureKind::Invalid,
            None => FailureKind::Away,
        };
        self.failure(kind, &self.explained(kind, told))
    }

    /// What came where something else was meant to.
    fn odd(&self, body: &[u8]) -> String {
        let text = self.shown(&String::from_utf8_lossy(body), 120);
        if is_page(body) {
            format!(
                "a web page came instead of an answer; is its URL right, and is nothing in between? It begins: {text}"
            )
        } else {
            format!("what came is no answer: {text}")
        }
    }

    fn explained(&self, kind: FailureKind, told: &str) -> String {
        let key = self.key.map_or_else(|| self.keys.join(" or "), |key| key.name().to_owned());
        match kind {
            FailureKind::Busy(_) => format!("it has too much to do ({told})"),
            FailureKind::Denied if key.is_empty() => format!(
                "it does not let us in ({told}); it wants a key, and none is named for it: see models.providers"
            ),
            FailureKind::Denied => format!("it does not let us in ({told}); look at the key in {key}"),
            FailureKind::Overflow => format!("it was given more than it takes ({told})"),
            FailureKind::Invalid => format!("it does not take the request ({told})"),
            FailureKind::Away => format!("it has broken down ({told})"),
            FailureKind::Odd => told.to_owned(),
        }
    }
}

/// A failure in an answer's body, and what it says. Every server has its own place for it.
fn error_in(body: &Value) -> Option<(&Value, String)> {
    let body = if body.is_array() { &body[0] } else { body };
    let error = match &body["error"] {
        Value::Null if body["object"] == "error" || body["detail"].is_string() => body,
        Value::Null => return body["message"].is_string().then(|| (body, words(body))),
        error => error,
    };
    Some((error, words(error)))
}

fn words(error: &Value) -> String {
    if let Some(text) = error.as_str() {
        return text.to_owned();
    }
    let text = |names: &[&str]| names.iter().find_map(|name| error[*name].as_str()).unwrap_or_default().to_owned();
    let (kind, message) = (text(&["code", "status", "type"]), text(&["message", "detail"]));
    if kind.is_empty() && message.is_empty() { error.to_string() } else { spoken(&kind, &message) }
}

fn spoken(kind: &str, message: &str) -> String {
    match (kind, message) {
        ("", message) => message.to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, message) => format!("{kind}: {message}"),
    }
}

fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}
