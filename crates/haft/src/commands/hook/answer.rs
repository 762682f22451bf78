//! What haft says to an agent, in the agent's format.

use haft_core::CallError;
use haft_core::approval::Verdict;
use haft_core::observed::HookClient;
use haft_core::preview::inert;
use haft_core::secret::mask;
use serde_json::json;

/// What haft says before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
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
pub(super) fn written(client: HookClient, answer: &Answer) -> String {
    let said = match client {
        HookClient::ClaudeCode => claude_code(answer),
        HookClient::Codex => codex(answer),
        HookClient::GeminiCli => gemini_cli(answer),
        HookClient::Cursor => cursor(answer),
    };
    said.map(|said| said.to_string()).unwrap_or_default()
}

fn claude_code(answer: &Answer) -> Option<serde_json::Value> {
    let (decision, reason) = match answer {
        Answer::Nothing => return None,
        Answer::Allow(reason) => ("allow", reason),
        Answer::Ask(reason) => ("ask", reason),
        Answer::Deny(reason) => ("deny", reason),
    };
    Some(json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason,
    }}))
}

/// Codex takes an `allow` or an `ask` for a broken hook and runs the call: an empty answer allows the call.
fn codex(answer: &Answer) -> Option<serde_json::Value> {
    match answer {
        Answer::Nothing | Answer::Allow(_) => None,
        Answer::Ask(reason) | Answer::Deny(reason) => Some(json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }})),
    }
}

fn gemini_cli(answer: &Answer) -> Option<serde_json::Value> {
    match answer {
        Answer::Nothing => None,
        Answer::Allow(_) => Some(json!({"decision": "allow"})),
        Answer::Ask(reason) | Answer::Deny(reason) => Some(json!({"decision": "deny", "reason": reason})),
    }
}

fn cursor(answer: &Answer) -> Option<serde_json::Value> {
    match answer {
        Answer::Nothing => Some(json!({})),
        Answer::Allow(_) => Some(json!({"permission": "allow"})),
        Answer::Ask(reason) | Answer::Deny(reason) => {
            Some(json!({"permission": "deny", "user_message": reason, "agent_message": reason}))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_is_a_word_that_each_agent_obeys() {
        let deny = Answer::Deny("no".to_owned());
        for (client, word) in [
            (HookClient::ClaudeCode, r#""permissionDecision":"deny""#),
            (HookClient::Codex, r#""permissionDecision":"deny""#),
            (HookClient::GeminiCli, r#""decision":"deny""#),
            (HookClient::Cursor, r#""permission":"deny""#),
        ] {
            assert!(written(client, &deny).contains(word), "{client:?}");
            // An agent that cannot ask must not go on.
            let asks = written(client, &Answer::Ask("why".to_owned()));
            assert!(asks.contains("deny") != (client == HookClient::ClaudeCode), "{client:?}: {asks}");
        }
    }

    #[test]
    fn codex_hears_nothing_where_a_call_may_run() {
        assert_eq!(written(HookClient::Codex, &Answer::Allow("yes".to_owned())), "");
        assert_eq!(written(HookClient::ClaudeCode, &Answer::Nothing), "");
    }
}
