//! What the user's own programs say about calls: the JSON that hooks are given and answer. A hook can make a verdict
//! stricter, and put other arguments or another output in place; it cannot loosen anything.

use crate::approval::Decision;
use crate::call::{Call, Origin};
use crate::outcome::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one hook said about a call before it was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookSaid {
    /// Which hook.
    pub hook: String,
    /// Ask or deny; an allow is no opinion, and stands nowhere.
    pub decision: Decision,
    /// Why.
    pub reason: String,
}

/// What a hook is given.
#[derive(Debug, Serialize)]
pub struct Given<'g> {
    /// `before_call` or `after_call`.
    pub event: &'static str,
    /// Which call.
    pub call_id: &'g str,
    /// Its conversation.
    pub session: &'g str,
    /// The canonical tool.
    pub tool: &'g str,
    /// The canonical arguments.
    pub args: &'g Value,
    /// Who asks.
    pub caller: &'g crate::Caller,
    /// The door.
    pub origin: Origin,
    /// The calls that led to it, the outermost first.
    pub parents: Vec<&'g str>,
    /// The project.
    pub cwd: &'g str,
    /// What came of it, after the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'g Outcome>,
}

impl<'g> Given<'g> {
    /// About a call, before it is decided.
    pub fn before(call: &'g Call, tool: &'g str, args: &'g Value, cwd: &'g str) -> Self {
        let parents = call.parents.iter().map(crate::CallId::as_str).collect();
        let (call_id, session) = (call.id.as_str(), call.session.as_str());
        let (caller, origin) = (&call.caller, call.origin);
        Self { event: "before_call", call_id, session, tool, args, caller, origin, parents, cwd, outcome: None }
    }

    /// The same after it has run.
    #[must_use]
    pub fn after(self, outcome: &'g Outcome) -> Self {
        Self { event: "after_call", outcome: Some(outcome), ..self }
    }
}

/// What a hook may say before a call.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Before {
    decision: Option<Wish>,
    reason: Option<String>,
    /// Other arguments, in canonical words.
    pub args: Option<Value>,
}

impl Before {
    /// Why it says what it says.
    pub fn why(&self) -> Option<&str> {
        self.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Wish {
    Allow,
    Ask,
    Deny,
}

/// What a hook may say after a call.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct After {
    /// Another output.
    pub output: Option<String>,
    /// Data to go with it; without any, the tool's own goes where its output went.
    pub data: Option<Value>,
    /// Something to say besides.
    pub warning: Option<String>,
    /// Why it counts as failed.
    pub fail: Option<String>,
}

impl Before {
    /// What counts of it: an ask or a deny.
    pub fn strict(&self) -> Option<(Decision, String)> {
        let decision = match self.decision? {
            Wish::Allow => return None,
            Wish::Ask => Decision::Ask,
            Wish::Deny => Decision::Deny,
        };
        let silent = || "it gives no reason".to_owned();
        Some((decision, self.reason.clone().filter(|text| !text.trim().is_empty()).unwrap_or_else(silent)))
    }
}

/// Reads an answer. Silence is no opinion; what is no answer is an error.
pub fn read<T: Default + for<'de> Deserialize<'de>>(answer: &[u8]) -> Result<T, String> {
    if answer.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    // A list would be taken for an object with all its fields in order.
    let object: serde_json::Map<String, Value> =
        serde_json::from_slice(answer).map_err(|error| format!("its answer makes no sense: {error}"))?;
    T::deserialize(Value::Object(object)).map_err(|error| format!("its answer makes no sense: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(text: &str) -> Result<Before, String> {
        read(text.as_bytes())
    }

    #[test]
    fn only_what_tightens_counts() {
        let strict = |text: &str| before(text).unwrap().strict();
        for quiet in ["", "\n", "{}", r#"{"decision": "allow", "reason": "fine"}"#, r#"{"reason": "hm"}"#] {
            assert_eq!(strict(quiet), None, "{quiet}");
        }
        assert_eq!(strict(r#"{"decision": "ask"}"#), Some((Decision::Ask, "it gives no reason".to_owned())));
        assert_eq!(strict(r#"{"decision": "deny", "reason": "no"}"#), Some((Decision::Deny, "no".to_owned())));
    }

    #[test]
    fn nonsense_is_an_error_and_no_silence() {
        for text in
            ["ok", "[]", "null", r#"{"decision": "maybe"}"#, r#"{"decide": "deny"}"#, r#"{"args": {}} trailing"#]
        {
            assert!(before(text).is_err(), "{text}");
        }
        assert!(read::<After>(br#"{"output": 5}"#).is_err());
        assert_eq!(read::<After>(br#"{"fail": "x"}"#).unwrap().fail.as_deref(), Some("x"));
    }
}
