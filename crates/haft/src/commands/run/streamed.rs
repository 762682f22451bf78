//! A conversation as JSON lines in the form that other agents call `stream-json`: a line of its own for the beginning, for each
//! message and for the end.

use crate::app::Failure;
use crate::style;
use haft_core::agent::{Block, Message, Role};
use haft_runtime::Haft;
use haft_runtime::agent::{Ended, Told, Watch, Who, worded};
use serde_json::{Value, json};
use std::sync::Arc;

/// Prints what happens.
pub(super) fn watch(haft: &Haft, who: &Who) -> Watch {
    let (cwd, session) = (haft.workspace().root().display().to_string(), who.session.clone());
    Arc::new(move |told| {
        if let Some(line) = line(told, &cwd, session.as_str(), None) {
            style::json(&line);
        }
    })
}

fn line(told: &Told, cwd: &str, session: &str, parent: Option<&str>) -> Option<Value> {
    match told {
        Told::Start { model, tools, deferred, .. } if parent.is_none() => Some(json!({
            "type": "system", "subtype": "init", "session_id": session, "model": model, "cwd": cwd, "tools": tools,
            "deferred_tools": deferred,
        })),
        Told::Message { message } => Some(said(message, session, parent)),
        Told::Retry { why, after_ms, requested } => Some(json!({
            "type": "system", "subtype": "api_retry", "session_id": session, "parent_tool_use_id": parent, "error": why,
            "retry_delay_ms": after_ms, "requested": requested,
        })),
        Told::SubagentEvent { subagent_id, inner } => line(inner, cwd, session, Some(subagent_id)),
        Told::Done { ended } if parent.is_none() => Some(result(ended, session)),
        _ => None,
    }
}

fn said(message: &Message, session: &str, parent: Option<&str>) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let content: Vec<Value> = message.blocks.iter().filter_map(block).collect();
    json!({
        "type": role, "message": {"role": role, "content": content}, "session_id": session, "parent_tool_use_id": parent,
    })
}

fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"type": "text", "text": text})),
        Block::Thinking { text, .. } => Some(json!({"type": "thinking", "thinking": text})),
        Block::Use { id, name, input, .. } => Some(json!({"type": "tool_use", "id": id, "name": name, "input": input})),
        Block::Result { id, text, failed, .. } => {
            Some(json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}))
        }
        Block::Image(_) | Block::Foreign { .. } => None,
    }
}

fn result(ended: &Ended, session: &str) -> Value {
    let subtype = if ended.is_done() { "success".to_owned() } else { format!("error_{}", word(ended)) };
    #[expect(clippy::cast_precision_loss, reason = "money in a form that others read")]
    let cost = ended.cost_micros.map(|micros| micros as f64 / 1_000_000.0);
    json!({
        "type": "result", "subtype": subtype, "is_error": !ended.is_done(), "result": ended.text, "session_id": session,
        "num_turns": ended.turns, "duration_ms": ended.duration_ms, "total_cost_usd": cost, "usage": {
            "input_tokens": ended.usage.input, "output_tokens": ended.usage.output,
            "cache_read_input_tokens": ended.usage.cache_read, "cache_creation_input_tokens": ended.usage.cache_write,
        },
        "why": worded(&ended.end),
    })
}

/// The last line of one that could not begin, or not go on.
pub(super) fn failed(failure: &Failure) -> Value {
    json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "result": failure.message(),
        "num_turns": 0, "duration_ms": 0, "total_cost_usd": null, "why": failure.message(), "hint": failure.hint(),
    })
}

/// How it ended, in a word.
fn word(ended: &Ended) -> String {
    match serde_json::to_value(&ended.end) {
        Ok(Value::String(word)) => word,
        Ok(Value::Object(object)) => object.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}
