//! What haft says to an agent, in the agent's format.

use haft_core::CallError;
use haft_core::approval::Verdict;
use haft_core::observed::HookClient;
use haft_core::preview::inert;
use haft_core::secret::mask;
use serde_json::json;

/// What haft says before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookAnswer {
    /// haft has no opinion: the agent goes by its own rules.
    Nothing,
    /// The call may run, and why.
    Allow(String),
    /// The agent asks its user, and why.
    Ask(String),
    /// The call must not run, and what the model is told.
    Deny(String),
}

/// Why something was decided, for people and models.
pub(super) fn reason(verdict: &Verdict) -> String {
    format!("haft: {} (by {})", mask(&inert(&verdict.reason)), inert(&verdict.by))
}

/// What the model is told of a call that must not run.
pub(super) fn denial(error: &CallError) -> String {
    let hint = error.hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
    format!("haft ({}): {}.{hint}", error.kind.as_str(), error.message.trim_end_matches('.'))
}

/// The answer as the agent reads it.
pub(super) fn render(client: HookClient, answer: &HookAnswer) -> String {
    let said = match client {
        HookClient::ClaudeCode => claude_code(answer),
        HookClient::Codex => codex(answer),
        HookClient::GeminiCli => gemini_cli(answer),
        HookClient::Cursor => cursor(answer),
        HookClient::Goose => goose(answer),
    };
    said.map(|said| said.to_string()).unwrap_or_default()
}

fn claude_code(answer: &HookAnswer) -> Option<serde_json::Value> {
    let (decision, reason) = match answer {
        HookAnswer::Nothing => return None,
        HookAnswer::Allow(reason) => ("allow", reason),
        HookAnswer::Ask(reason) => ("ask", reason),
        HookAnswer::Deny(reason) => ("deny", reason),
    };
    Some(json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason,
    }}))
}

/// Codex takes an `allow` or an `ask` for a broken hook and runs the call: an empty answer allows the call.
fn codex(answer: &HookAnswer) -> Option<serde_json::Value> {
    match answer {
        HookAnswer::Nothing | HookAnswer::Allow(_) => None,
        HookAnswer::Ask(reason) | HookAnswer::Deny(reason) => Some(json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }})),
    }
}

fn gemini_cli(answer: &HookAnswer) -> Option<serde_json::Value> {
    match answer {
        HookAnswer::Nothing => None,
        HookAnswer::Allow(_) => Some(json!({"decision": "allow"})),
        HookAnswer::Ask(reason) | HookAnswer::Deny(reason) => Some(json!({"decision": "deny", "reason": reason})),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the other agents may be told nothing")]
fn cursor(answer: &HookAnswer) -> Option<serde_json::Value> {
    match answer {
        HookAnswer::Nothing => Some(json!({})),
        HookAnswer::Allow(_) => Some(json!({"permission": "allow"})),
        HookAnswer::Ask(reason) | HookAnswer::Deny(reason) => {
            Some(json!({"permission": "deny", "user_message": reason, "agent_message": reason}))
        }
    }
}

/// haft installs its hook with `on_failure: "block"`, and goose then takes an answer without a decision for a failure.
#[expect(clippy::unnecessary_wraps, reason = "the other agents may be told nothing")]
fn goose(answer: &HookAnswer) -> Option<serde_json::Value> {
    match answer {
        HookAnswer::Nothing | HookAnswer::Allow(_) => Some(json!({"decision": "allow"})),
        HookAnswer::Ask(reason) | HookAnswer::Deny(reason) => Some(json!({"decision": "block", "reason": reason})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_uses_each_agents_deny_value() {
        let deny = HookAnswer::Deny("no".to_owned());
        for (client, word) in [
            (HookClient::ClaudeCode, r#""permissionDecision":"deny""#),
            (HookClient::Codex, r#""permissionDecision":"deny""#),
            (HookClient::GeminiCli, r#""decision":"deny""#),
            (HookClient::Cursor, r#""permission":"deny""#),
            (HookClient::Goose, r#""decision":"block""#),
        ] {
            assert!(render(client, &deny).contains(word), "{client:?}");
            // An agent that cannot ask must not go on.
            let asks = render(client, &HookAnswer::Ask("why".to_owned()));
            let is_denial = asks.contains("deny") || asks.contains("block");
            assert!(is_denial != (client == HookClient::ClaudeCode), "{client:?}: {asks}");
        }
    }

    #[test]
    fn allowed_call_prints_nothing_for_codex() {
        assert_eq!(render(HookClient::Codex, &HookAnswer::Allow("yes".to_owned())), "");
        assert_eq!(render(HookClient::ClaudeCode, &HookAnswer::Nothing), "");
    }

    #[test]
    fn goose_is_always_told_a_decision() {
        for answer in [HookAnswer::Nothing, HookAnswer::Allow("yes".to_owned())] {
            assert_eq!(render(HookClient::Goose, &answer), r#"{"decision":"allow"}"#);
        }
    }
}
