//! Which of haft's hooks Codex runs.
//!
//! Codex runs a hook of the user's only after the person has reviewed it with `/hooks`. It keeps a hash of what was
//! trusted in the same `config.toml`, under `hooks.state`, by the hook's place in the file. A hook that has changed since
//! has another hash, and is not run either. `tests/agent_clients/overrides.rs` compares what is found here with what the
//! real Codex says.

use super::clients::{self, ClientPlaces, EditPurpose, InstallMode};
use super::edits::{self, ConfigEdit};
use crate::cli::McpClient;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// What Codex hashes of a hook, with its members in the order of their names.
#[derive(Serialize)]
struct HookIdentity<'h> {
    event_name: &'h str,
    hooks: [HandlerIdentity<'h>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<&'h str>,
}

#[derive(Serialize)]
struct HandlerIdentity<'h> {
    r#async: bool,
    command: &'h str,
    timeout: u64,
    r#type: &'h str,
}

impl<'h> HookIdentity<'h> {
    /// The identity of a handler of a group, as haft enters them; none if it is of another form.
    fn of(event_name: &'h str, group: &'h Value, handler: &'h Value) -> Option<Self> {
        let handler = HandlerIdentity {
            r#async: false,
            command: handler["command"].as_str()?,
            timeout: handler["timeout"].as_u64()?,
            r#type: handler["type"].as_str()?,
        };
        Some(Self { event_name, hooks: [handler], matcher: group["matcher"].as_str() })
    }

    fn hash(&self) -> String {
        let canonical = serde_json::to_vec(self).unwrap_or_default();
        let mut text = String::from("sha256:");
        for byte in Sha256::digest(&canonical) {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

/// The events of haft's hooks that Codex does not run, because nobody has trusted them there, or somebody has turned them
/// off. `said` is what the user's `config.toml` says.
pub(super) fn events_not_run(said: &Value, places: &ClientPlaces) -> Result<Vec<String>, String> {
    let plan = clients::plan(McpClient::Codex, InstallMode::Hooks, places).map_err(|error| error.message)?;
    let mut events = Vec::new();
    for file in &plan.files {
        let place = file.path.display().to_string();
        for (purpose, edit) in &file.edits {
            let ConfigEdit::Include { path, values } = edit else { continue };
            let (EditPurpose::Hook, Some(event)) = (*purpose, path.last()) else { continue };
            let groups = edits::get(said, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let is_run = |wanted: &Value| {
                let at = groups.iter().position(|group| group == wanted);
                at.is_some_and(|at| is_group_run(said, &format!("{place}:{}:{at}", event_key(event)), event, wanted))
            };
            if !values.iter().all(is_run) {
                events.push(event.clone());
            }
        }
    }
    Ok(events)
}

/// Whether Codex runs every handler of a group. `key` is how `hooks.state` names the group.
fn is_group_run(said: &Value, key: &str, event: &str, group: &Value) -> bool {
    let event_name = event_key(event);
    let handlers = group["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_run = |(at, handler): (usize, &Value)| {
        let state = &said["hooks"]["state"][format!("{key}:{at}")];
        let identity = HookIdentity::of(&event_name, group, handler);
        let is_trusted = identity.is_some_and(|identity| state["trusted_hash"] == identity.hash().as_str());
        is_trusted && state["enabled"] != false
    };
    !handlers.is_empty() && handlers.iter().enumerate().all(is_run)
}

/// An event as keys and hashes name it: `pre_tool_use` for `PreToolUse`.
fn event_key(event: &str) -> String {
    let mut key = String::new();
    for letter in event.chars() {
        if letter.is_ascii_uppercase() && !key.is_empty() {
            key.push('_');
        }
        key.push(letter.to_ascii_lowercase());
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The hashes are those of Codex 0.169.
    #[test]
    fn hash_is_that_of_codex() {
        let cases = [
            ("PreToolUse", Some("*"), 300, "ebbf66415769a733b55cec9ae3413bc666d296ce0119ba1b0bf40bf1b4b619f6"),
            ("Stop", None, 60, "3ddd0c71cd979f8fbcfe9a30033007855fcc5fbbcf21380dbad2e7858347fb48"),
        ];
        for (event, matcher, timeout, hash) in cases {
            let handler = json!({"type": "command", "command": "/usr/bin/haft hook codex", "timeout": timeout});
            let mut group = json!({ "hooks": [handler] });
            if let Some(matcher) = matcher {
                group["matcher"] = matcher.into();
            }
            let name = event_key(event);
            let identity = HookIdentity::of(&name, &group, &handler).unwrap();
            assert_eq!(identity.hash(), format!("sha256:{hash}"), "{event}");
        }
    }
}
