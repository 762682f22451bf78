//! What a client hears that calls a method which is not there, not any more, or with wrong parameters.

use super::approver::Era;
use rmcp::model::{ErrorCode, ErrorData};

/// The methods that the protocol knows: if one of them is not understood, its parameters were wrong.
const METHODS: [&str; 18] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// Those that the newest version has no more.
const REMOVED: [&str; 5] = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// What the newest protocol has no more.
pub(super) fn removed(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no {method} in this version of the protocol"), None)
}

/// What is said to a request that was not understood.
pub(super) fn refusal(method: &str, era: Era) -> ErrorData {
    if era == Era::Rounds && REMOVED.contains(&method) {
        return removed(method);
    }
    let shown = haft_core::preview::cut(&haft_core::preview::inert(method), 80);
    if METHODS.contains(&method) {
        return ErrorData::invalid_params(format!("invalid parameters for {shown}"), None);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {shown}"), None)
}
