//! The providers' words: streams event by event, and failures.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use crate::Wire::{self, Anthropic, Chat, Gemini, Responses};
use crate::reply::{Reply, Trouble};
use crate::server::Asked;
use serde_json::{Value, json};

/// How many characters come at once.
const PIECE: usize = 12;

/// An answer as a stream, event by event.
pub(crate) fn events(wire: Wire, asked: &Asked, reply: &Reply) -> Vec<String> {
    match wire {
        Wire::Anthropic => anthropic::events(asked, reply),
        Wire::Responses => responses::events(asked, reply),
        Wire::Chat => chat::events(asked, reply),
        Wire::Gemini => gemini::events(asked, reply),
    }
}

/// An answer in one piece, where the request asks for no stream: both forms of `OpenAI`'s have this.
pub(crate) fn whole(wire: Wire, asked: &Asked, reply: &Reply) -> Option<String> {
    if asked.body["stream"] == true {
        return None;
    }
    match wire {
        Wire::Responses => Some(responses::whole(asked, reply)),
        Wire::Chat => Some(chat::whole(asked, reply)),
        Wire::Anthropic | Wire::Gemini => None,
    }
}

/// The headers of a stream.
pub(crate) fn headers(wire: Wire) -> Vec<(String, String)> {
    let each: &[(&str, &str)] = match wire {
        Wire::Anthropic => &[
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            ("request-id", "req_011CStub"),
            ("anthropic-ratelimit-requests-remaining", "49"),
        ],
        Wire::Responses | Wire::Chat => &[
            ("content-type", "text/event-stream; charset=utf-8"),
            ("x-request-id", "req_stub"),
            ("openai-processing-ms", "12"),
        ],
        Wire::Gemini => &[("content-type", "text/event-stream"), ("server-timing", "gfet4t7; dur=12")],
    };
    each.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A request that is refused for this.
pub(crate) fn wrong(wire: Wire, why: &str) -> String {
    said(wire, 400, ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"), why).to_string()
}

/// A failure: its status and its body.
pub(crate) fn trouble(wire: Wire, trouble: Trouble) -> (u16, String) {
    let (status, kinds, words) = words(wire, trouble);
    (status, said(wire, status, kinds, words).to_string())
}

/// A failure in the middle of a stream, as an object.
fn broken(wire: Wire, trouble: Trouble) -> Value {
    let (status, kinds, words) = words(wire, trouble);
    said(wire, status, kinds, words)
}

/// The status, Anthropic's, `OpenAI`'s and Google's name for it, and what is said.
fn words(wire: Wire, trouble: Trouble) -> (u16, (&'static str, &'static str, &'static str), &'static str) {
    match (trouble, wire) {
        (Trouble::Limited, Anthropic) => (
            429,
            ("rate_limit_error", "", ""),
            "This request would exceed your organization's rate limit of 50 requests per minute.",
        ),
        (Trouble::Limited, Chat | Responses) => (
            429,
            ("", "rate_limit_exceeded", ""),
            "Rate limit reached for gpt-5 in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.",
        ),
        (Trouble::Limited, Gemini) => (
            429,
            ("", "", "RESOURCE_EXHAUSTED"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        (Trouble::Overloaded, Anthropic) => (529, ("overloaded_error", "", ""), "Overloaded"),
        (Trouble::Overloaded, Chat | Responses) => {
            (503, ("", "server_overloaded", ""), "The engine is currently overloaded, please try again later.")
        }
        (Trouble::Overloaded, Gemini) => {
            (503, ("", "", "UNAVAILABLE"), "The model is overloaded. Please try again later.")
        }
        (Trouble::BadKey, Anthropic) => (401, ("authentication_error", "", ""), "invalid x-api-key"),
        (Trouble::BadKey, Chat | Responses) => (
            401,
            ("", "invalid_api_key", ""),
            "Incorrect API key provided: sk-wr**ong. You can find your API key at https://platform.openai.com/account/api-keys.",
        ),
        (Trouble::BadKey, Gemini) => {
            (400, ("", "", "INVALID_ARGUMENT"), "API key not valid. Please pass a valid API key.")
        }
        (Trouble::NoMoney, Anthropic) => (
            400,
            ("invalid_request_error", "", ""),
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        (Trouble::NoMoney, Chat | Responses) => (
            429,
            ("", "insufficient_quota", ""),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        (Trouble::NoMoney, Gemini) => {
            (403, ("", "", "PERMISSION_DENIED"), "This API method requires billing to be enabled.")
        }
        (Trouble::Overflow, Anthropic) => {
            (400, ("invalid_request_error", "", ""), "prompt is too long: 214315 tokens > 200000 maximum")
        }
        (Trouble::Overflow, Chat | Responses) => (
            400,
            ("", "context_length_exceeded", ""),
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.",
        ),
        (Trouble::Overflow, Gemini) => (
            400,
            ("", "", "INVALID_ARGUMENT"),
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        (Trouble::NoModel, Anthropic) => (404, ("not_found_error", "", ""), "model: nobody-1"),
        (Trouble::NoModel, Chat | Responses) => {
            (404, ("", "model_not_found", ""), "The model `nobody-1` does not exist or you do not have access to it.")
        }
        (Trouble::NoModel, Gemini) => (
            404,
            ("", "", "NOT_FOUND"),
            "models/nobody-1 is not found for API version v1beta, or is not supported for generateContent.",
        ),
        (Trouble::Wrong, _) => {
            (400, ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"), "temperature: not a number")
        }
        (Trouble::Broken, Anthropic) => (500, ("api_error", "", ""), "Internal server error"),
        (Trouble::Broken, Chat | Responses) => {
            (500, ("", "server_error", ""), "The server had an error while processing your request. Sorry about that!")
        }
        (Trouble::Broken, Gemini) => {
            (500, ("", "", "INTERNAL"), "An internal error has occurred. Please retry or report.")
        }
    }
}

fn said(wire: Wire, status: u16, (anthropic, openai, google): (&str, &str, &str), words: &str) -> Value {
    match wire {
        Wire::Anthropic => {
            json!({"type": "error", "error": {"type": anthropic, "message": words}, "request_id": "req_011CStub"})
        }
        Wire::Chat | Wire::Responses => {
            let kind = match openai {
                "rate_limit_exceeded" => "requests",
                "context_length_exceeded" | "model_not_found" | "invalid_api_key" => "invalid_request_error",
                other => other,
            };
            let code =
                if openai == "server_error" || openai == "invalid_request_error" { Value::Null } else { openai.into() };
            json!({"error": {"message": words, "type": kind, "param": null, "code": code}})
        }
        Wire::Gemini => {
            let details = match google {
                "RESOURCE_EXHAUSTED" => json!([
                    {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaMetric": "generate_content_free_tier_requests"}]},
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.074824224s"},
                ]),
                _ if words.starts_with("API key") => json!([
                    {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
                ]),
                _ => json!([]),
            };
            json!({"error": {"code": status, "message": words, "status": google, "details": details}})
        }
    }
}

/// A text in the pieces in which it comes.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

/// A name that tells one answer's parts from those of all others.
fn id(prefix: &str, asked: &Asked, at: usize) -> String {
    format!("{prefix}{:04x}{at:04x}", asked.number)
}

/// An event with its name.
fn named(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
