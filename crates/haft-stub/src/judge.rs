//! Whether a provider would take a request, as far as tools, calls and results go. Its words for it are the provider's.

mod tools;

use crate::Wire;
use serde_json::Value;

/// What is wrong with a request, if something is.
pub fn fault(wire: Wire, body: &Value) -> Option<String> {
    if let Some(fault) = tools::fault(wire, body) {
        return Some(fault);
    }
    match wire {
        Wire::Anthropic => anthropic(list(&body["messages"])),
        Wire::Chat => chat(list(&body["messages"])),
        Wire::Responses => responses(list(&body["input"])),
        Wire::Gemini => gemini(list(&body["contents"])),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn texts<'v>(list: &'v [Value], kind: &str, name: &str) -> Vec<&'v str> {
    list.iter().filter(|each| each["type"] == kind).filter_map(|each| each[name].as_str()).collect()
}

fn anthropic(messages: &[Value]) -> Option<String> {
    if messages.is_empty() {
        return Some("messages: at least one message is required".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks = list(&message["content"]);
        if blocks.is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
            return Some(format!("messages.{at}: all messages must have non-empty content"));
        }
        let results = texts(blocks, "tool_result", "tool_use_id");
        if let Some(orphan) = results.iter().find(|id| !open.contains(id)) {
            return Some(format!(
                "messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {orphan}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ));
        }
        if let Some(dangling) = open.iter().find(|id| !results.contains(id)) {
            return Some(format!(
                "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {dangling}. Each \
                 `tool_use` block must have a corresponding `tool_result` block in the next message.",
                at - 1
            ));
        }
        open = texts(blocks, "tool_use", "id");
        let mut sorted = open.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|two| two[0] == two[1]) {
            return Some(format!("messages.{at}: `tool_use` ids must be unique"));
        }
    }
    open.first().map(|id| {
        format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}.",
            messages.len() - 1
        )
    })
}

fn chat(messages: &[Value]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let before = open.len();
            open.retain(|known| *known != id);
            if open.len() == before {
                return Some(format!(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                     'tool_calls': messages.[{at}]"
                ));
            }
            continue;
        }
        if let Some(id) = open.first() {
            return Some(unanswered(id));
        }
        open = list(&message["tool_calls"]).iter().filter_map(|call| call["id"].as_str()).collect();
    }
    open.first().map(|id| unanswered(id))
}

fn unanswered(id: &str) -> String {
    format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The \
         following tool_call_ids did not have response messages: {id}"
    )
}

fn responses(items: &[Value]) -> Option<String> {
    let (calls, outputs) = (texts(items, "function_call", "call_id"), texts(items, "function_call_output", "call_id"));
    if let Some(id) = calls.iter().find(|id| !outputs.contains(id)) {
        return Some(format!("No tool output found for function call {id}."));
    }
    let orphan = outputs.iter().find(|id| !calls.contains(id))?;
    Some(format!("No tool call found for function call output with call_id {orphan}."))
}

fn gemini(contents: &[Value]) -> Option<String> {
    let counted =
        |content: &Value, kind: &str| list(&content["parts"]).iter().filter(|part| part.get(kind).is_some()).count();
    let wrong = "Please ensure that the number of function response parts is equal to the number of function call parts \
                 of the function call turn.";
    let mut open = 0;
    for content in contents {
        if list(&content["parts"]).is_empty() {
            return Some("Unable to submit request because it must include at least one parts field.".to_owned());
        }
        if counted(content, "functionResponse") != open {
            return Some(wrong.to_owned());
        }
        open = counted(content, "functionCall");
    }
    (open > 0).then(|| wrong.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_without_a_result_is_refused_in_every_form() {
        let call = [
            (
                Wire::Anthropic,
                json!({"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}]}),
            ),
            (Wire::Chat, json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]})),
            (Wire::Responses, json!({"input": [{"type": "function_call", "call_id": "a"}]})),
            (Wire::Gemini, json!({"contents": [{"role": "model", "parts": [{"functionCall": {"name": "a"}}]}]})),
        ];
        for (wire, body) in call {
            assert!(fault(wire, &body).is_some(), "{wire:?}");
        }
        let good = json!({"messages": [{"role": "user", "content": "go"}]});
        assert_eq!((fault(Wire::Anthropic, &good), fault(Wire::Chat, &good)), (None, None));
    }
}
