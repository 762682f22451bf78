//! On whose behalf a run is made, and how much it may do by itself.

use haft_core::outcome::Label;
use haft_core::policy::Autonomy;
use haft_core::{Call, CallId, Caller, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// On whose behalf a run is made. It is stored with the run, so that every step is made on the same terms, wherever it is
/// done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The conversation it belongs to.
    pub session: SessionId,
    /// Who asks.
    #[serde(default)]
    pub caller: Caller,
    /// How much it may do by itself, where that is less than the user's configuration lets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autonomy: Option<Autonomy>,
    /// The calls that led to it, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<CallId>,
    /// Where what it was given came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
}

impl Terms {
    /// The terms of what a call begins.
    pub fn of(call: &Call) -> Self {
        Self {
            session: call.session.clone(),
            caller: call.caller.clone(),
            autonomy: call.autonomy,
            parents: call.parents.iter().chain([&call.id]).cloned().collect(),
            labels: Vec::new(),
        }
    }

    /// As they were stored. What cannot be read is nobody's, and may do nothing unasked.
    pub(crate) fn read(stored: &Value) -> Self {
        serde_json::from_value(stored.clone())
            .unwrap_or_else(|_| Self { autonomy: Some(Autonomy::Conservative), ..Self::default() })
    }
}
