//! One event of an agent's hooks, read as the agent writes it. Fields that are not named here mean nothing to haft.

use haft_core::observed::{HookClient, McpTarget};
use haft_core::preview::{cut, inert};
use haft_core::{CallError, SessionId};
use haft_runtime::{NativeToolOutcome, NativeToolReport};
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// What happens at the agent.
#[derive(Debug)]
pub(super) enum HookEvent {
    /// It is about to make a call.
    Before(CallEvent),
    /// A call has ended.
    After {
        /// The project, if the agent names it.
        project: Option<PathBuf>,
        /// What came of it.
        report: NativeToolReport,
    },
    /// A batch, turn or session has ended: the agent will not report calls that it has not reported yet.
    End {
        /// The project, if the agent names it.
        project: Option<PathBuf>,
        /// Its conversation.
        session: SessionId,
        /// Which calls; none is all of the conversation.
        ids: Option<Vec<String>>,
    },
    /// Something that is not about calls.
    Other,
}

/// A call that an agent is about to make.
#[derive(Debug)]
pub(super) struct CallEvent {
    /// The project, if the agent names it.
    pub(super) project: Option<PathBuf>,
    /// Where this call works.
    pub(super) cwd: String,
    pub(super) session: SessionId,
    pub(super) use_id: Option<String>,
    pub(super) tool: String,
    pub(super) target: Option<McpTarget>,
    pub(super) input: Value,
    /// Claude Code's word for what it asks its user about.
    permission_mode: Option<String>,
}

/// An event in the words of Claude Code, Codex and Gemini CLI, and in those of Cursor and goose where they differ.
#[derive(Debug, Deserialize)]
struct HookPayload {
    hook_event_name: Option<String>,
    /// goose's word for the same.
    event: Option<String>,
    #[serde(alias = "conversation_id")]
    session_id: Option<String>,
    cwd: Option<String>,
    /// goose's word for the same.
    working_dir: Option<String>,
    tool_name: Option<String>,
    tool_input: Option<Value>,
    tool_use_id: Option<String>,
    /// goose's word for the same.
    tool_call_id: Option<String>,
    #[serde(alias = "tool_output")]
    tool_response: Option<Value>,
    #[serde(alias = "error_message")]
    error: Option<Value>,
    permission_mode: Option<String>,
    tool_calls: Option<Vec<BatchedCall>>,
    /// Gemini CLI's word for the server that a tool belongs to.
    mcp_context: Option<McpContext>,
    workspace_roots: Option<Vec<String>>,
    command: Option<Value>,
    file_path: Option<Value>,
}

impl HookPayload {
    /// The event with what goose says in words of its own under the names that the others use.
    fn in_common_words(self, client: HookClient) -> Self {
        if client != HookClient::Goose {
            return self;
        }
        let (hook_event_name, cwd, tool_use_id) =
            (self.event.clone(), self.working_dir.clone(), self.tool_call_id.clone());
        // A delegate's directory is the model's choice, so it does not name the project.
        Self { hook_event_name, cwd, tool_use_id, ..self }
    }
}

/// Which server a tool belongs to, and what that calls it.
#[derive(Debug, Deserialize)]
struct McpContext {
    server_name: Option<String>,
    tool_name: Option<String>,
}

impl McpContext {
    fn target(self) -> Option<McpTarget> {
        Some(McpTarget { server: self.server_name?, tool: self.tool_name? })
    }
}

/// A call among those of a batch that has ended.
#[derive(Debug, Deserialize)]
struct BatchedCall {
    tool_use_id: Option<String>,
}

/// What an event's name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HookPhase {
    Before,
    After,
    Failed,
    Batch,
    End,
}

/// The events that haft acts upon, by client.
const EVENTS: &[(HookClient, &str, HookPhase)] = &[
    (HookClient::ClaudeCode, "PreToolUse", HookPhase::Before),
    (HookClient::ClaudeCode, "PostToolUse", HookPhase::After),
    (HookClient::ClaudeCode, "PostToolUseFailure", HookPhase::Failed),
    (HookClient::ClaudeCode, "PostToolBatch", HookPhase::Batch),
    // If the user rejects a call, Claude Code ends the turn without an event; the next prompt is the first sign of it.
    (HookClient::ClaudeCode, "UserPromptSubmit", HookPhase::End),
    (HookClient::ClaudeCode, "SessionEnd", HookPhase::End),
    (HookClient::Codex, "PreToolUse", HookPhase::Before),
    (HookClient::Codex, "PostToolUse", HookPhase::After),
    (HookClient::Codex, "Stop", HookPhase::End),
    (HookClient::Codex, "SessionEnd", HookPhase::End),
    (HookClient::GeminiCli, "BeforeTool", HookPhase::Before),
    (HookClient::GeminiCli, "AfterTool", HookPhase::After),
    (HookClient::GeminiCli, "AfterAgent", HookPhase::End),
    (HookClient::GeminiCli, "SessionEnd", HookPhase::End),
    (HookClient::Cursor, "preToolUse", HookPhase::Before),
    (HookClient::Cursor, "postToolUse", HookPhase::After),
    (HookClient::Cursor, "postToolUseFailure", HookPhase::Failed),
    (HookClient::Cursor, "stop", HookPhase::End),
    (HookClient::Cursor, "sessionEnd", HookPhase::End),
    (HookClient::Goose, "PreToolUse", HookPhase::Before),
    (HookClient::Goose, "PostToolUse", HookPhase::After),
    (HookClient::Goose, "PostToolUseFailure", HookPhase::Failed),
    (HookClient::Goose, "Stop", HookPhase::End),
    (HookClient::Goose, "SessionEnd", HookPhase::End),
];

/// Reads an event. The hook must block on an error: the event may be a call that waits for an answer.
pub(super) fn read(client: HookClient, text: &str) -> Result<HookEvent, CallError> {
    let title = client.title();
    if text.trim().is_empty() {
        return Err(CallError::invalid(format!("{title}'s hook event is empty")));
    }
    let wire: HookPayload = serde_json::from_str(text)
        .map_err(|error| CallError::invalid(format!("{title}'s hook event is not understood: {error}")))?;
    let wire = wire.in_common_words(client);
    let Some(event_name) = wire.hook_event_name.as_deref() else {
        return Err(CallError::invalid(format!("{title}'s hook event is not understood: it has no name")));
    };
    let phase = EVENTS.iter().find(|(of, name, _)| *of == client && *name == event_name);
    let Some((.., phase)) = phase else {
        if may_be_call(client, event_name, &wire) {
            // A later version of the client may use this event for a call that waits for an answer.
            let name = cut(&inert(event_name), 60);
            return Err(CallError::invalid(format!(
                "unsupported {title} hook event `{name}`, which may be about a tool call"
            ))
            .hint("run haft's hook only at the events that docs/client-hooks.md names"));
        }
        return Ok(HookEvent::Other);
    };
    let session = wire.session_id.as_deref().unwrap_or("unnamed");
    let session = SessionId::new(&format!("{}-{}", client.word(), cut(&inert(session), 100)))
        .ok_or_else(|| CallError::invalid(format!("the `session_id` of {title}'s hook event is not valid")))?;
    let root = wire.workspace_roots.as_ref().and_then(|roots| roots.first().cloned());
    let project = project_dir(client, root.as_deref());
    let here = || std::env::current_dir().ok().map(|dir| dir.to_string_lossy().into_owned());
    let cwd = wire.cwd.clone().filter(|cwd| !cwd.is_empty()).or(root).or_else(here);
    let cwd = cwd.ok_or_else(|| CallError::invalid(format!("{title}'s hook event has no `cwd`")))?;
    if *phase == HookPhase::End {
        return Ok(HookEvent::End { project, session, ids: None });
    }
    if *phase == HookPhase::Batch {
        let ids = wire.tool_calls.into_iter().flatten().filter_map(|call| call.tool_use_id).collect();
        return Ok(HookEvent::End { project, session, ids: Some(ids) });
    }
    let tool = wire.tool_name.filter(|name| !name.is_empty());
    let tool = tool.ok_or_else(|| CallError::invalid(format!("{title}'s hook event has no `tool_name`")))?;
    let input = wire.tool_input.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let target = wire.mcp_context.and_then(McpContext::target);
    let use_id = wire.tool_use_id.filter(|id| !id.is_empty());
    if *phase == HookPhase::Before {
        let permission_mode = wire.permission_mode;
        return Ok(HookEvent::Before(CallEvent {
            project,
            cwd,
            session,
            use_id,
            tool,
            target,
            input,
            permission_mode,
        }));
    }
    let response = wire.tool_response.unwrap_or(Value::Null);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let failure = match phase {
        HookPhase::Failed => Some(wire.error.as_ref().map_or_else(|| "it failed".to_owned(), text)),
        _ => response.get("error").map(|error| error.get("message").map_or_else(|| text(error), text)),
    };
    let result = failure.map_or(NativeToolOutcome::Success(response), NativeToolOutcome::Failure);
    Ok(HookEvent::After { project, report: NativeToolReport { client, session, use_id, tool, target, input, result } })
}

/// Whether an event that haft does not act upon may be a call that waits for an answer, in the words of another version.
fn may_be_call(client: HookClient, name: &str, wire: &HookPayload) -> bool {
    if client == HookClient::ClaudeCode && matches!(name, "PermissionRequest" | "PermissionDenied" | "Notification") {
        // They follow a decision of haft's.
        return false;
    }
    let lower = name.to_ascii_lowercase();
    let before = lower.starts_with("before") || lower.starts_with("pre");
    before || [&wire.tool_input, &wire.command, &wire.file_path].iter().any(|field| field.is_some())
}

/// Where the project is looked for, if not in the directory in which the agent started the hook. Never the call's
/// `cwd`: the model chooses it and could select another project.
fn project_dir(client: HookClient, root: Option<&str>) -> Option<PathBuf> {
    let named = match client {
        HookClient::ClaudeCode => std::env::var_os("CLAUDE_PROJECT_DIR"),
        HookClient::GeminiCli => std::env::var_os("GEMINI_PROJECT_DIR"),
        HookClient::Cursor => std::env::var_os("CURSOR_PROJECT_DIR"),
        HookClient::Codex | HookClient::Goose => None,
    };
    named.filter(|dir| !dir.is_empty()).map(PathBuf::from).or_else(|| root.map(PathBuf::from))
}

/// Whether the agent can ask its user, and somebody attends it.
pub(super) fn can_ask(client: HookClient, call: &CallEvent) -> bool {
    let attended = || std::env::var("CLAUDE_CODE_SESSION_ATTENDED").is_ok_and(|attended| attended == "1");
    client == HookClient::ClaudeCode && call.permission_mode.as_deref() != Some("dontAsk") && attended()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"{"session_id": "s", "cwd": "/p", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                            "tool_input": {"command": "ls"}, "tool_use_id": "t", "effort": {"level": "high"}, "new_field": 1}"#;

    #[test]
    fn unknown_fields_mean_nothing() {
        let HookEvent::Before(call) = read(HookClient::ClaudeCode, BEFORE).unwrap() else { panic!() };
        assert_eq!((call.tool.as_str(), call.use_id.as_deref()), ("Bash", Some("t")));
        assert_eq!(call.session.as_str(), "claude-s");
    }

    #[test]
    fn event_that_is_not_understood_is_an_error() {
        let unknown_event = BEFORE.replace("PreToolUse", "BeforeAnyTool");
        for text in ["", " \n", "{", "[]", "null", r#"{"tool_name": "Bash"}"#, &unknown_event] {
            assert!(read(HookClient::ClaudeCode, text).is_err(), "{text}");
        }
        let without_tool = r#"{"session_id": "s", "cwd": "/p", "hook_event_name": "PreToolUse"}"#;
        assert!(read(HookClient::Codex, without_tool).is_err());
    }

    #[test]
    fn unknown_event_that_may_be_a_call_is_an_error() {
        for event in [
            r#""hook_event_name": "beforeShellExecution", "command": "ls""#,
            r#""hook_event_name": "beforeReadFile", "file_path": "/p/a""#,
            r#""hook_event_name": "shellStarts", "command": "ls""#,
            r#""hook_event_name": "fileOpens", "file_path": "/p/a""#,
            r#""hook_event_name": "toolStarts", "tool_input": {}"#,
            r#""hook_event_name": "PermissionRequest", "tool_input": {}"#,
            r#""hook_event_name": "BEFOREANYTHING""#,
            r#""hook_event_name": "pretooluse""#,
        ] {
            let text = format!("{{\"session_id\": \"s\", \"cwd\": \"/p\", {event}}}");
            assert!(read(HookClient::Cursor, &text).is_err(), "{text}");
        }
    }

    /// As goose 1.52 sends it.
    #[test]
    fn event_of_goose_is_read_in_its_own_words() {
        let event = r#"{"event":"PreToolUse","session_id":"20261119_1","matcher_context":"shell","tool_call_id":"call_2",
                        "tool_name":"shell","tool_input":{"command":"ls"},"working_dir":"/p"}"#;
        let HookEvent::Before(call) = read(HookClient::Goose, event).unwrap() else { panic!() };
        assert_eq!((call.tool.as_str(), call.use_id.as_deref(), call.cwd.as_str()), ("shell", Some("call_2"), "/p"));
        assert_eq!((call.session.as_str(), call.project), ("goose-20261119_1", None));
        let renamed = event.replace("PreToolUse", "BeforeShellExecution");
        assert!(read(HookClient::Goose, &renamed).is_err(), "haft is not entered under it");
        assert!(read(HookClient::ClaudeCode, event).is_err(), "other clients name the event otherwise");
        let start = r#"{"event":"SessionStart","session_id":"20261119_1","matcher_context":null}"#;
        assert!(matches!(read(HookClient::Goose, start).unwrap(), HookEvent::Other));
    }

    #[test]
    fn event_that_is_not_about_calls_is_let_pass() {
        let text = r#"{"session_id": "s", "cwd": "/p", "hook_event_name": "SessionStart", "source": "startup"}"#;
        assert!(matches!(read(HookClient::ClaudeCode, text).unwrap(), HookEvent::Other));
    }

    #[test]
    fn failures_are_told_apart_in_each_clients_words() {
        let failed = |client, text: &str| match read(client, text).unwrap() {
            HookEvent::After { report, .. } => match report.result {
                NativeToolOutcome::Failure(why) => why,
                NativeToolOutcome::Success(value) => panic!("{value}"),
            },
            other => panic!("{other:?}"),
        };
        let claude = BEFORE
            .replace("PreToolUse", "PostToolUseFailure")
            .replace("\"new_field\": 1", "\"error\": \"Exit code 1\"");
        assert_eq!(failed(HookClient::ClaudeCode, &claude), "Exit code 1");
        let gemini = BEFORE.replace("PreToolUse", "AfterTool").replace(
            "\"new_field\": 1",
            "\"tool_response\": {\"llmContent\": \"x\", \"error\": {\"message\": \"no match\"}}",
        );
        assert_eq!(failed(HookClient::GeminiCli, &gemini), "no match");
    }
}
