//! The audit log's laws: what of a call is written down, and how records are chained.
//!
//! A record is one line of JSON. Its hash covers the hash before it, its number and its text, so a record
//! cannot be changed, removed or moved without every later hash giving it away.

use crate::secret::{self, MASK};
use crate::shell::masking;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
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
    /// What records said was removed: of one call, or of all that are older than the retention allows.
    Redaction,
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
            Self::Redaction => "redaction",
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

/// Arguments as they may be written down: bodies, long strings and what is secret by its name or by the tool's schema as
/// hash and size, secrets in commands and URLs masked.
pub fn redact(args: &Value, schema: &Value, bodies: &[&str]) -> Value {
    let Some(object) = args.as_object() else { return redact_value("", args, schema) };
    let words = command_words(object);
    let redacted = object.iter().map(|(name, value)| {
        let property = &schema["properties"][name.as_str()];
        let secret = secret::is_secret_name(name) || secret::is_secret_property(property);
        let value = if bodies.contains(&name.as_str()) || secret {
            fingerprint(value)
        } else if let (true, Some(headers)) = (name == HEADERS, value.as_object()) {
            redact_headers(headers)
        } else if let Some(words) = words.as_ref().filter(|_| is_words(name, value)) {
            redact_value("", words, &Value::Null)
        } else {
            redact_value(name, value, property)
        };
        (name.clone(), value)
    });
    Value::Object(redacted.collect::<Map<_, _>>())
}

/// The parameter in which tools take the headers of a request.
const HEADERS: &str = "headers";
/// Parameters in which tools take a command.
const COMMANDS: &[&str] = &["command", "commands", "cmd", "shell_command", "script", "bash", "shell"];
/// Parameters in which tools take the words of a command.
const WORDS: &[&str] = &["args", "argv", "arguments", "command", "cmd"];

/// Headers carry credentials under more names than parameters do.
fn redact_headers(headers: &Map<String, Value>) -> Value {
    let redacted = headers.iter().map(|(name, value)| {
        let value =
            if secret::is_secret_header(name) { fingerprint(value) } else { redact_value(name, value, &Value::Null) };
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
    redact(args, schema, &[bodies, &unknown].concat())
}

fn redact_value(name: &str, value: &Value, schema: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > CLEAR_MAX => fingerprint(value),
        Value::String(text) => Value::String(masked_text(name, text).into_owned()),
        Value::Array(items) => items.iter().map(|item| redact_value(name, item, &schema["items"])).collect(),
        Value::Object(_) => redact(value, schema, &[]),
        other => other.clone(),
    }
}

/// A text without its secrets: of a command by its syntax, of anything else by their shapes.
fn masked_text<'t>(name: &str, text: &'t str) -> Cow<'t, str> {
    if COMMANDS.contains(&name) { masking::mask_command(text) } else { secret::mask_urls(text) }
}

/// Whether a parameter holds the words of a command, one by one.
fn is_words(name: &str, value: &Value) -> bool {
    WORDS.contains(&name) && value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

/// The words of a command that is given word by word, without its secrets. The program may stand apart.
fn command_words(object: &Map<String, Value>) -> Option<Value> {
    let (_, words) = object.iter().find(|(name, value)| is_words(name, value))?;
    let words = words.as_array()?.iter().filter_map(Value::as_str);
    let program = COMMANDS.iter().find_map(|name| object.get(*name)?.as_str());
    let apart = usize::from(program.is_some());
    let all: Vec<&str> = program.into_iter().chain(words).collect();
    Some(masking::mask_words(&all).into_iter().skip(apart).map(Value::String).collect())
}

/// Arguments as anybody may see them: whole, with everything masked that is secret by its name, by the tool's schema, by
/// the syntax of a command or by its shape. Bodies are shown as they are.
pub fn masked(args: &Value, schema: &Value, bodies: &[&str]) -> Value {
    let Some(object) = args.as_object() else { return masked_value("", args, schema) };
    let words = command_words(object);
    let shown = object.iter().map(|(name, value)| {
        let property = &schema["properties"][name.as_str()];
        let named = secret::is_secret_name(name) || secret::is_secret_property(property);
        let value = match value {
            value if bodies.contains(&name.as_str()) => value.clone(),
            Value::String(text) if named && !text.is_empty() && !text.starts_with(REFERENCE) => MASK.into(),
            Value::Object(headers) if name == HEADERS => masked_headers(headers),
            value => match words.as_ref().filter(|_| is_words(name, value)) {
                Some(words) => words.clone(),
                None => masked_value(name, value, property),
            },
        };
        (name.clone(), value)
    });
    Value::Object(shown.collect())
}

/// What stands for a secret and says none.
const REFERENCE: &str = "secret:";

fn masked_value(name: &str, value: &Value, schema: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(masked_text(name, text).into_owned()),
        Value::Array(items) => items.iter().map(|item| masked_value(name, item, &schema["items"])).collect(),
        Value::Object(_) => masked(value, schema, &[]),
        other => other.clone(),
    }
}

fn masked_headers(headers: &Map<String, Value>) -> Value {
    let shown = headers.iter().map(|(name, value)| {
        let refers = value.as_str().is_some_and(|text| text.contains(REFERENCE) || text.contains("${"));
        let value = if secret::is_secret_header(name) && !refers {
            MASK.into()
        } else {
            masked_value(name, value, &Value::Null)
        };
        (name.clone(), value)
    });
    Value::Object(shown.collect())
}

/// Arguments that were edited while their secrets were masked, with the secrets back in place. None: a mask is left of which
/// it cannot be told what it stands for.
pub fn unmasked(edited: Value, before: &Value, shown: &Value) -> Option<Value> {
    Some(match (edited, before, shown) {
        (edited, before, shown) if edited == *shown => {
            drop(edited);
            before.clone()
        }
        (Value::String(edited), Value::String(before), Value::String(shown)) => {
            masking::unmask(&edited, before, shown)?.into()
        }
        (Value::Object(edited), before, shown) => {
            let restored = edited.into_iter().map(|(name, value)| {
                let known = before.get(&name).unwrap_or(&Value::Null);
                let masked = shown.get(&name).unwrap_or(&Value::Null);
                Some((name, unmasked(value, known, masked)?))
            });
            Value::Object(restored.collect::<Option<_>>()?)
        }
        (Value::Array(edited), before, shown) => {
            let restored = edited.into_iter().enumerate().map(|(at, value)| {
                unmasked(value, before.get(at).unwrap_or(&Value::Null), shown.get(at).unwrap_or(&Value::Null))
            });
            Value::Array(restored.collect::<Option<_>>()?)
        }
        (Value::String(edited), ..) if edited.contains(MASK) => return None,
        (edited, ..) => edited,
    })
}

/// The secrets of the commands in a call's arguments, for masking what is said about the call.
pub fn secrets_in(args: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_secrets("", args, &mut found);
    found.sort_by_key(|secret: &String| std::cmp::Reverse(secret.len()));
    found.dedup();
    found
}

fn collect_secrets(name: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if COMMANDS.contains(&name) => found.extend(masking::command_secrets(text)),
        Value::Array(items) => items.iter().for_each(|item| collect_secrets(name, item, found)),
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| collect_secrets(name, value, found));
            let given =
                members.iter().find(|(name, value)| is_words(name, value)).and_then(|(_, words)| words.as_array());
            let shown = command_words(members);
            let pairs = given.into_iter().flatten().zip(shown.iter().filter_map(Value::as_array).flatten());
            for (word, shown) in pairs.filter_map(|(word, shown)| Some((word.as_str()?, shown.as_str()?))) {
                found.extend(masking::hidden_in(word, shown));
            }
        }
        _ => {}
    }
}

/// A text or value about a call, with the secrets of its commands masked.
pub fn without(mut about: Value, secrets: &[String]) -> Value {
    mask_all(&mut about, secrets);
    about
}

fn mask_all(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => *text = secret::mask_urls(&masking::mask_quoted(text, secrets)).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| mask_all(item, secrets)),
        Value::Object(members) => members.values_mut().for_each(|value| mask_all(value, secrets)),
        _ => {}
    }
}

/// A value of which nothing may be written down but its hash and size.
pub fn sealed(value: &Value) -> Value {
    fingerprint(value)
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
        let text = redact(&args, &Value::Null, &["content"]).to_string();
        assert!(text.contains("a.txt"));
        let headers = json!({"headers": {"Cookie": "id=7", "X-Signing-Key": "abc", "Accept": "text/html"}});
        let shown = redact(&headers, &Value::Null, &[]).to_string();
        assert!(shown.contains("text/html") && !shown.contains("id=7") && !shown.contains("abc\""), "{shown}");
        let url =
            json!({"url": "https://a.test/x?page=2&token=abc&sig=d%3D", "urls": ["https://b.test/?password=abc"]});
        let shown = redact(&url, &Value::Null, &[]).to_string();
        assert!(shown.contains("a.test/x?page=2&token=[secret]") && !shown.contains("abc"), "{shown}");
        for hidden in ["hello", "\"k\"", "ghp_0123", "xxxx", "\"p\""] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }

    #[test]
    fn commands_are_recorded_without_their_secrets() {
        let args = json!({"command": "PGPASSWORD=hunter2 psql -h db", "cwd": "/w"});
        assert_eq!(redact(&args, &Value::Null, &[])["command"], "PGPASSWORD=[secret] psql -h db");
        assert_eq!(secrets_in(&args), ["hunter2"]);
        let words = json!({"command": "mysql", "args": ["-phunter2", "shop"]});
        assert_eq!(redact(&words, &Value::Null, &[]), json!({"command": "mysql", "args": ["-p[secret]", "shop"]}));
        assert_eq!(masked(&words, &Value::Null, &[]), redact(&words, &Value::Null, &[]));
        let long = redact(&json!({"args": ["x".repeat(600)]}), &Value::Null, &[]);
        assert_eq!(long["args"][0]["bytes"], 600);
        assert_eq!(secrets_in(&words), ["hunter2"]);
        assert_eq!(
            without(json!({"reason": "`-phunter2` is odd"}), &secrets_in(&words))["reason"],
            "`-p[secret]` is odd"
        );
    }

    #[test]
    fn a_schema_says_what_is_secret() {
        let schema = json!({"properties": {
            "phrase": {"type": "string", "format": "password"}, "pin": {"type": "string", "writeOnly": true},
            "seed": {"type": "string", "x-secret": true}, "user": {"type": "string"},
            "login": {"properties": {"word": {"format": "password"}}},
            "all": {"items": {"properties": {"word": {"format": "password"}}}},
        }});
        let args = json!({"phrase": "abc", "pin": "def", "seed": "ghi", "user": "u", "login": {"word": "jkl"}, "all": [{"word": "mno"}]});
        for text in [redact(&args, &schema, &[]).to_string(), masked(&args, &schema, &[]).to_string()] {
            assert!(text.contains("\"u\""), "{text}");
            for hidden in ["abc\"", "def\"", "ghi\"", "jkl\"", "mno\""] {
                assert!(!text.contains(hidden), "{hidden} in {text}");
            }
        }
    }

    #[test]
    fn edited_arguments_get_their_secrets_back() {
        let before = json!({"command": "curl -u a:hunter2 https://a.test/", "env": {"token": "t"}, "n": 1});
        let shown = masked(&before, &Value::Null, &[]);
        assert_eq!(unmasked(shown.clone(), &before, &shown), Some(before.clone()));
        let mut edited = shown.clone();
        edited["command"] = json!("curl -u a:[secret] https://b.test/");
        edited["n"] = json!(2);
        let restored = unmasked(edited, &before, &shown).unwrap();
        assert_eq!(restored["command"], "curl -u a:hunter2 https://b.test/");
        assert_eq!((&restored["env"]["token"], &restored["n"]), (&json!("t"), &json!(2)));
        let mut unclear = shown.clone();
        unclear["command"] = json!("curl -u [secret]:[secret] https://b.test/");
        assert_eq!(unmasked(unclear, &before, &shown), None);
        let words = json!({"args": ["mysql", "-phunter2", "shop"]});
        let shown = masked(&words, &Value::Null, &[]);
        let moved = json!({"args": ["mysql", "shop", "-p[secret]"]});
        assert_eq!(unmasked(moved, &words, &shown), None, "a mask is not run as if it were the secret");
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
