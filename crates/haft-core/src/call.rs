//! One request to run a tool, as it came through a door.

use crate::dialect::Dialect;
use crate::policy::Autonomy;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
}

/// Appends the low `digits` base-32 digits of `value` (Crockford's alphabet: no letter reads as another).
fn push_base32(text: &mut String, value: u64, digits: u32) {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
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
}

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
    /// Its name for ever.
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
    fn an_id_from_outside_is_checked() {
        for bad in ["", "a/b", "../x", "a b"] {
            assert_eq!(CallId::parse(bad), None);
            assert!(serde_json::from_value::<CallId>(bad.into()).is_err());
        }
    }
}
