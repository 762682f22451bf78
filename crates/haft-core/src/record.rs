//! The audit log's laws: what of a call is written down, and how records are chained.
//!
//! A record is one line of JSON. Its hash covers the hash before it, its number and its text, so a record
//! cannot be changed, removed or moved without every later hash giving it away.

use crate::secret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A SHA-256 digest, written as hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Before the first record.
    pub const ZERO: Self = Self([0; 32]);

    /// Of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// From a hasher that was fed piece by piece.
    pub fn from_hasher(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    /// From its 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let nibble = |c: u8| char::from(c).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let bytes: Option<Vec<u8>> =
            text.as_bytes().chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?)).collect();
        bytes.and_then(|bytes| Self::from_bytes(&bytes)).ok_or_else(|| format!("`{text}` is not a SHA-256 digest"))
    }
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A call is about to run.
    Intent,
    /// A call ended.
    Outcome,
    /// A call was stopped before it ran.
    Refused,
    /// A process died between intent and outcome.
    Interrupted,
    /// A call waits for a person, or a person decided.
    Approval,
    /// A grant was given, used up or expired.
    Grant,
    /// A project's configuration was trusted or distrusted.
    Trust,
    /// A call was taken back.
    Undo,
    /// A session was deleted.
    Session,
    /// What a call left running in the background ended.
    Task,
    /// A bridged tool's declaration was accepted or forgotten.
    Pin,
    /// Somebody that a call talks to asked back: for a person's words, or for a model's.
    Back,
    /// A call asked something of the web.
    Request,
    /// Something that an agent made was proposed, approved or run.
    Made,
    /// A run of a pipeline began or ended, or a person settled one of its steps.
    Work,
    /// A hook of the user's put something else in place, marked a call as failed, or could not be asked.
    Hook,
}

impl Kind {
    /// The word in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Outcome => "outcome",
            Self::Refused => "refused",
            Self::Interrupted => "interrupted",
            Self::Approval => "approval",
            Self::Grant => "grant",
            Self::Trust => "trust",
            Self::Undo => "undo",
            Self::Session => "session",
            Self::Task => "task",
            Self::Pin => "pin",
            Self::Back => "back",
            Self::Request => "request",
            Self::Made => "made",
            Self::Work => "work",
            Self::Hook => "hook",
        }
    }
}

/// The hash of a record: over the one before, its number and its text.
pub fn link(previous: &Digest, number: i64, text: &str) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update(previous.0);
    hasher.update(number.to_be_bytes());
    hasher.update(text.as_bytes());
    Digest::from_hasher(hasher)
}

/// Strings longer than this are recorded as hash and size.
const CLEAR_MAX: usize = 512;

/// Arguments as they may be written down: bodies and long strings as hash and size, secrets masked.
pub fn redact(args: &Value, bodies: &[&str]) -> Value {
    let Some(object) = args.as_object() else { return redact_value(args) };
    let redacted = object.iter().map(|(name, value)| {
        let value = if bodies.contains(&name.as_str()) || secret::is_secret_name(name) {
            fingerprint(value)
        } else if let (true, Some(headers)) = (name == HEADERS, value.as_object()) {
            redact_headers(headers)
        } else {
            redact_value(value)
        };
        (name.clone(), value)
    });
    Value::Object(redacted.collect::<Map<_, _>>())
}

/// The parameter in which tools take the headers of a request.
const HEADERS: &str = "headers";

/// Headers carry credentials under more names than parameters do.
fn redact_headers(headers: &Map<String, Value>) -> Value {
    let redacted = headers.iter().map(|(name, value)| {
        let value = if secret::is_secret_header(name) { fingerprint(value) } else { redact_value(value) };
        (name.clone(), value)
    });
    Value::Object(redacted.collect())
}

/// Arguments that were not found valid: what the tool does not know may be anything, so only its hash and
/// size are written down.
pub fn redact_unchecked(args: &Value, schema: &Value, bodies: &[&str]) -> Value {
    let Some(object) = args.as_object() else { return fingerprint(args) };
    let known = |name: &str| schema["properties"].get(name).is_some();
    let unknown: Vec<&str> = object.keys().map(String::as_str).filter(|name| !known(name)).collect();
    redact(args, &[bodies, &unknown].concat())
}

/// A value of which nothing may be written down but its hash and size.
pub fn sealed(value: &Value) -> Value {
    fingerprint(value)
}

fn redact_value(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > CLEAR_MAX => fingerprint(value),
        Value::String(text) => Value::String(secret::mask_urls(text).into_owned()),
        Value::Array(items) => items.iter().map(redact_value).collect(),
        Value::Object(_) => redact(value, &[]),
        other => other.clone(),
    }
}

/// Hash and size in place of a value.
fn fingerprint(value: &Value) -> Value {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    json!({ "sha256": Digest::of(text.as_bytes()).to_string(), "bytes": text.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_and_secrets_are_not_written_in_clear() {
        let args = json!({"path": "a.txt", "content": "hello", "api_key": "k", "note": "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
            "long": "x".repeat(600), "nested": {"password": "p"}});
        let text = redact(&args, &["content"]).to_string();
        assert!(text.contains("a.txt"));
        let headers = json!({"headers": {"Cookie": "id=7", "X-Signing-Key": "abc", "Accept": "text/html"}});
        let shown = redact(&headers, &[]).to_string();
        assert!(shown.contains("text/html") && !shown.contains("id=7") && !shown.contains("abc\""), "{shown}");
        let url =
            json!({"url": "https://a.test/x?page=2&token=abc&sig=d%3D", "urls": ["https://b.test/?password=abc"]});
        let shown = redact(&url, &[]).to_string();
        assert!(shown.contains("a.test/x?page=2&token=[secret]") && !shown.contains("abc"), "{shown}");
        for hidden in ["hello", "\"k\"", "ghp_0123", "xxxx", "\"p\""] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }

    #[test]
    fn a_digest_survives_its_written_form() {
        let digest = Digest::of(b"haft");
        assert_eq!(Digest::try_from(digest.to_string()), Ok(digest));
        assert!(Digest::try_from("xyz".to_owned()).is_err());
    }

    #[test]
    fn the_chain_depends_on_everything() {
        let base = link(&Digest::ZERO, 1, "a");
        assert_ne!(base, link(&Digest::ZERO, 2, "a"));
        assert_ne!(base, link(&Digest::ZERO, 1, "b"));
        assert_ne!(base, link(&base, 1, "a"));
    }
}
