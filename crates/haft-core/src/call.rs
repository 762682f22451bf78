//! One request to run a tool, as it came through a door.

use crate::dialect::Dialect;
use crate::error::CallError;
use crate::policy::Autonomy;
use crate::record::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;

/// Names one call for ever: in replies, in the audit log, for undo.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct CallId(String);

impl TryFrom<String> for CallId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{}` is not a call id", crate::preview::inert(&text)))
    }
}

impl CallId {
    /// An id from a clock and a source of chance: sorts by time, distinct within a millisecond.
    pub fn new(unix_ms: u64, chance: u64) -> Self {
        let mut text = String::with_capacity(18);
        push_base32(&mut text, unix_ms, 9);
        text.push('-');
        push_base32(&mut text, chance, 8);
        Self(text)
    }

    /// An id that was written down earlier.
    pub fn parse(text: &str) -> Option<Self> {
        let ok = !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        ok.then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it has the form of the ids that [`CallId::new`] makes.
    pub fn is_generated(&self) -> bool {
        is_generated(&self.0)
    }

    /// An id that a caller chose for its own call. Ids that look like those of haft's are refused, so that no caller's id
    /// meets one that haft gives.
    pub fn chosen(text: &str) -> Result<Self, CallError> {
        let shown = || crate::preview::cut(&crate::preview::inert(text), 80);
        // Digits alone are the number of a record, and a hyphen begins an option.
        let is_word =
            text.starts_with(|c: char| c.is_ascii_alphanumeric()) && !text.bytes().all(|b| b.is_ascii_digit());
        let id = Self::parse(text).filter(|_| is_word).ok_or_else(|| {
            let why = "it has 1 to 64 letters, digits and hyphens, begins with a letter or a digit, and is no number";
            CallError::invalid(format!("`{}` is not a call id: {why}", shown())).hint("a UUID is a good one")
        })?;
        let reserved = RESERVED.iter().any(|prefix| text.starts_with(prefix));
        if reserved || id.is_generated() {
            return Err(CallError::invalid(format!("`{}` has the form of the ids that haft gives", shown()))
                .hint("choose another call id; a UUID is a good one"));
        }
        Ok(id)
    }

    /// The id of the call that a caller names by an idempotency key: the same for the same key at the same door in the same
    /// session.
    pub fn for_key(key: &str, origin: Origin, session: &SessionId) -> Result<Self, CallError> {
        let fits = (1..=KEY_MAX).contains(&key.len()) && key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !fits {
            let why = format!("an idempotency key has 1 to {KEY_MAX} printable ASCII characters");
            return Err(CallError::invalid(why).hint("a UUID is a good one"));
        }
        let scope = json!([origin, session.repeat_scope(origin), key]);
        Ok(Self(format!("{KEY_PREFIX}{}", &Digest::of(scope.to_string().as_bytes()).to_string()[..KEY_DIGITS])))
    }
}

/// What the ids of calls begin with that callers name by idempotency keys.
const KEY_PREFIX: &str = "key-";
/// How many hexadecimal digits follow.
const KEY_DIGITS: usize = 48;
/// How long an idempotency key may be.
const KEY_MAX: usize = 255;
/// What ids begin with that haft gives: of runs and their steps, of forms, of calls named by idempotency keys.
const RESERVED: [&str; 3] = ["run-", "form-", KEY_PREFIX];

/// How a caller names a call that it may have to send again: at most one of both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallName {
    /// The id that the call is to have. It is one call's on the whole store.
    #[serde(default)]
    pub call_id: Option<String>,
    /// A key, for one door and session.
    #[serde(default)]
    pub idempotency_key: Option<String>,
}

impl CallName {
    /// The id of the call that is named; none if the caller names none.
    pub fn id(&self, origin: Origin, session: &SessionId) -> Result<Option<CallId>, CallError> {
        match (&self.call_id, &self.idempotency_key) {
            (None, None) => Ok(None),
            (Some(id), None) => CallId::chosen(id).map(Some),
            (None, Some(key)) => CallId::for_key(key, origin, session).map(Some),
            (Some(_), Some(_)) => Err(CallError::invalid("the call has both a call id and an idempotency key")
                .hint("send one of them: either names the call")),
        }
    }
}

/// Whether a text is an id as [`CallId::new`] makes it.
fn is_generated(text: &str) -> bool {
    let is_digits = |part: &str| part.bytes().all(|byte| ALPHABET.contains(&byte));
    matches!(text.split_once('-'), Some((time, chance)) if time.len() == 9 && chance.len() == 8 && is_digits(time) && is_digits(chance))
}

/// A value whose members are in one order, however they were sent.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(in_order).collect(),
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            let sorted = names.into_iter().map(|name| (name.clone(), in_order(&members[name.as_str()])));
            Value::Object(sorted.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// Crockford's digits: no letter reads as another.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Appends the low `digits` base-32 digits of `value`.
fn push_base32(text: &mut String, value: u64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = usize::try_from(value >> (5 * place) & 31).unwrap_or(0);
        text.push(char::from(ALPHABET[digit]));
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names a conversation: what was read, and what was allowed "for this session", belongs to one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionId(String);

impl TryFrom<String> for SessionId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).ok_or_else(|| format!("`{}` is not a session", crate::preview::inert(&text)))
    }
}

impl SessionId {
    /// Accepts 1 to 128 printable characters.
    pub fn new(text: &str) -> Option<Self> {
        let ok = (1..=128).contains(&text.len()) && text.chars().all(|c| !c.is_control());
        ok.then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The default session of a gateway that starts: one per start, so that what is allowed for a session ends with it.
    pub fn gateway_default(start: &CallId) -> Option<Self> {
        Self::new(&format!("{GATEWAY_DEFAULT}{start}"))
    }

    /// The name within which idempotency keys and repeated calls are the same. It is the whole name, except for the gateway's
    /// default session: a client that names no session is known again after the gateway was restarted. Sessions of MCP are each
    /// their own, so that no session gets the outcome of a call that a person approved for another one.
    fn repeat_scope(&self, origin: Origin) -> &str {
        let start = self.0.len().saturating_sub(GENERATED);
        match (origin, self.0.split_at_checked(start)) {
            (Origin::Gateway | Origin::Page, Some((before, end)))
                if before.strip_prefix(AGENT_SESSIONS).unwrap_or(before) == GATEWAY_DEFAULT && is_generated(end) =>
            {
                before
            }
            _ => &self.0,
        }
    }
}

/// What the names of sessions begin with that callers with the agents' token of the gateway have: they have no part in what was
/// allowed to others.
pub const AGENT_SESSIONS: &str = "agent:";
/// What the name of the gateway's default session begins with.
const GATEWAY_DEFAULT: &str = "serve-";
/// How long a generated id is.
const GENERATED: usize = 18;

impl Default for SessionId {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The door a call came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `haft call`, `haft batch`.
    Cli,
    /// A program that embeds the library.
    Library,
    /// A person approved a stored call.
    Approval,
    /// An MCP client.
    Mcp,
    /// The gateway: HTTP or a WebSocket.
    Gateway,
    /// The page that the gateway serves.
    Page,
    /// A step of a pipeline, or a task: nobody is at the door.
    Work,
    /// A coding agent's own tool: the agent runs it, and its hook asks haft before.
    Hook,
}

/// On whose behalf a call is made; policy may differ by both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model provider behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Whether the agent gave itself its name, rather than the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed: bool,
}

impl Caller {
    /// Whether an agent asks that a person talks to: it has better things to do than to wait. A sub-agent is
    /// named below its parent, as `parent/child`; whoever started it waits for it anyway.
    pub fn is_main_agent(&self) -> bool {
        self.agent.as_ref().is_some_and(|name| !name.contains('/'))
    }

    /// The agent's name and those of its parents, the outermost first: what holds for a parent holds for its children.
    pub fn lineage(&self) -> impl Iterator<Item = &str> {
        let name = self.agent.as_deref().unwrap_or_default();
        let ends = name.match_indices('/').map(|(at, _)| at).chain((!name.is_empty()).then_some(name.len()));
        ends.map(|end| &name[..end])
    }

    /// How many parents it has.
    pub fn depth(&self) -> usize {
        self.agent.as_ref().map_or(0, |name| name.matches('/').count())
    }
}

/// One request to run a tool. It can be stored and taken up again by another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its name for ever. Sent again under the same id, it is not made again (see [`CallId::chosen`]).
    pub id: CallId,
    /// The tool's name as the caller said it.
    pub spoken: String,
    /// The arguments as the caller said them.
    pub args: Value,
    /// The vocabulary the caller speaks.
    pub dialect: Dialect,
    /// The conversation it belongs to.
    pub session: SessionId,
    /// Who asks.
    pub caller: Caller,
    /// The door.
    pub origin: Origin,
    /// The calls that led to this one, the outermost first, where a tool makes calls of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<CallId>,
    /// The turn of its session in which a model asked for it: how often a model had been asked by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// How much it may do by itself, where that is less than the user's configuration lets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autonomy: Option<Autonomy>,
    /// Whether the call has no order among the calls of its session, so that it waits for none of them. MCP clients that
    /// open no session send such calls: what was read and allowed is common to them, their requests are not a sequence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub independent: bool,
}

impl Call {
    /// A canonical call from a program, in the default session.
    pub fn new(id: CallId, spoken: impl Into<String>, args: Value) -> Self {
        Self {
            id,
            spoken: spoken.into(),
            args,
            dialect: Dialect::Haft,
            session: SessionId::default(),
            caller: Caller::default(),
            origin: Origin::Library,
            parents: Vec::new(),
            turn: None,
            autonomy: None,
            independent: false,
        }
    }

    /// The digest of what is asked for: tool, arguments, dialect, door, session, agent and project. A call that is sent again
    /// under the same id has the same one.
    pub fn content_digest(&self, project: &str) -> Digest {
        let content = json!([
            self.spoken,
            in_order(&self.args),
            self.dialect,
            self.origin,
            self.session.repeat_scope(self.origin),
            self.caller.agent,
            project,
        ]);
        Digest::of(content.to_string().as_bytes())
    }

    /// A canonical call that this one makes, for the same caller in the same session.
    #[must_use]
    pub fn makes(&self, id: CallId, tool: impl Into<String>, args: Value) -> Self {
        Self {
            id,
            spoken: tool.into(),
            args,
            dialect: Dialect::Haft,
            parents: self.parents.iter().chain([&self.id]).cloned().collect(),
            session: self.session.clone(),
            caller: self.caller.clone(),
            origin: self.origin,
            turn: self.turn,
            autonomy: self.autonomy,
            independent: self.independent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_differ_by_chance() {
        let (early, late) = (CallId::new(1_000, u64::MAX), CallId::new(1_001, 0));
        assert!(early < late);
        assert_ne!(CallId::new(1_000, 1), CallId::new(1_000, 2));
        assert_eq!(CallId::parse(early.as_str()), Some(early));
    }

    #[test]
    fn chosen_id_is_refused_in_the_form_of_generated_ids() {
        assert!(CallId::new(1_732_000_000_000, 7).is_generated());
        for bad in [CallId::new(1, 2).as_str(), "run-1-n-1", "form-1", "key-1", "", "a b", "4711", "-a"] {
            assert_eq!(CallId::chosen(bad).unwrap_err().kind, crate::ErrorKind::InvalidInput, "{bad}");
        }
        let uuid = "8e03978e-40d5-43dd-bc93-6894a57f9324";
        let id = CallId::chosen(uuid).unwrap();
        assert_eq!((id.as_str(), id.is_generated()), (uuid, false));
    }

    #[test]
    fn idempotency_key_names_one_call_of_its_door_and_session() {
        let session = |name: &str| SessionId::new(name).unwrap();
        let id = |key: &str, origin, name: &str| CallId::for_key(key, origin, &session(name)).unwrap();
        let first = id("a", Origin::Gateway, "s");
        assert_eq!(first, id("a", Origin::Gateway, "s"));
        for other in [id("b", Origin::Gateway, "s"), id("a", Origin::Mcp, "s"), id("a", Origin::Gateway, "t")] {
            assert_ne!(first, other);
        }
        assert!(CallId::parse(first.as_str()).is_some() && !first.is_generated());
        let ids = |origin, prefix: &str| {
            [1, 2].map(|chance| id("a", origin, &format!("{prefix}{}", CallId::new(1_732_000_000_000, chance))))
        };
        for prefix in ["serve-", "agent:serve-"] {
            let [before, after] = ids(Origin::Gateway, prefix);
            assert_eq!(before, after, "{prefix} after a restart");
        }
        for (origin, prefix) in [
            (Origin::Mcp, "mcp-"),
            (Origin::Mcp, "agent:mcp-"),
            (Origin::Mcp, "serve-"),
            (Origin::Library, "serve-"),
            (Origin::Gateway, "mcp-"),
            (Origin::Gateway, "mine-serve-"),
        ] {
            let [one, other] = ids(origin, prefix);
            assert_ne!(one, other, "{origin:?} {prefix}");
        }
        assert!(CallId::for_key("", Origin::Gateway, &session("s")).is_err());
        assert!(CallId::for_key("\n", Origin::Gateway, &session("s")).is_err());
        let both = CallName { call_id: Some("a".to_owned()), idempotency_key: Some("b".to_owned()) };
        assert!(both.id(Origin::Gateway, &session("s")).is_err());
        assert_eq!(CallName::default().id(Origin::Gateway, &session("s")), Ok(None));
    }

    #[test]
    fn content_digest_is_of_what_is_asked_for() {
        let call = |args: &str| Call::new(CallId::new(1, 2), "file.write", serde_json::from_str(args).unwrap());
        let digest = |call: &Call| call.content_digest("/project");
        let first = call(r#"{"path": "a", "content": {"x": 1, "y": [2]}}"#);
        assert_eq!(digest(&first), digest(&call(r#"{"content": {"y": [2], "x": 1}, "path": "a"}"#)));
        assert_ne!(digest(&first), digest(&call(r#"{"content": {"y": [3], "x": 1}, "path": "a"}"#)));
        assert_ne!(digest(&first), first.content_digest("/elsewhere"));
        assert_ne!(digest(&first), digest(&Call { spoken: "file.edit".to_owned(), ..first.clone() }));
        let session = SessionId::new("other").unwrap();
        assert_ne!(digest(&first), digest(&Call { session, ..first.clone() }));
    }

    #[test]
    fn an_id_from_outside_is_checked() {
        for bad in ["", "a/b", "../x", "a b"] {
            assert_eq!(CallId::parse(bad), None);
            assert!(serde_json::from_value::<CallId>(bad.into()).is_err());
        }
    }
}
