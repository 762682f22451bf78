//! `OpenAI` Chat Completions. Thoughts are told as `DeepSeek` and most servers tell them.

use super::{broken, id, pieces};
use crate::Wire;
use crate::reply::{Counted, Part, Reply};
use crate::server::Asked;
use serde_json::{Value, json};

pub(super) fn events(asked: &Asked, reply: &Reply) -> Vec<String> {
    let (name, model) = (id("chatcmpl-", asked, 0), asked.model());
    let wants_usage = asked.body["stream_options"]["include_usage"] == true;
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": name, "object": "chat.completion.chunk", "created": 1_762_000_000, "model": model,
            "service_tier": "default", "system_fingerprint": "fp_stub", "choices": choices,
        });
        if wants_usage {
            chunk["usage"] = usage.unwrap_or_default();
        }
        format!("data: {chunk}\n\n")
    };
    let delta =
        |delta: Value| chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]), None);
    let mut out = vec![delta(json!({"role": "assistant", "content": "", "refusal": null}))];
    let mut calls = 0;
    for (at, part) in reply.parts.iter().enumerate() {
        match part {
            Part::Text(text) => out.extend(pieces(text).iter().map(|text| delta(json!({"content": text})))),
            Part::Thinking(text) => {
                out.extend(pieces(text).iter().map(|text| delta(json!({"reasoning_content": text}))));
            }
            Part::Call(tool, arguments) => {
                let begin = json!({
                    "index": calls, "id": id("call_", asked, at), "type": "function",
                    "function": {"name": tool, "arguments": ""},
                });
                out.push(delta(json!({"tool_calls": [begin]})));
                let more =
                    |text: &String| delta(json!({"tool_calls": [{"index": calls, "function": {"arguments": text}}]}));
                out.extend(pieces(arguments).iter().map(more));
                calls += 1;
            }
        }
    }
    if let Some(trouble) = reply.breaks {
        out.push(format!("data: {}\n\n", broken(Wire::Chat, trouble)));
        return out;
    }
    let stop = finish_reason(reply);
    out.push(chunk(json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": stop}]), None));
    if wants_usage {
        out.push(chunk(json!([]), Some(usage(reply.counted))));
    }
    out.push("data: [DONE]\n\n".to_owned());
    out
}

fn finish_reason(reply: &Reply) -> &'static str {
    match reply.stop {
        Some("length") => "length",
        Some(_) => "content_filter",
        None if reply.parts.iter().any(|part| matches!(part, Part::Call(..))) => "tool_calls",
        None => "stop",
    }
}

/// The answer as one object.
pub(super) fn whole(asked: &Asked, reply: &Reply) -> String {
    let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for (at, part) in reply.parts.iter().enumerate() {
        match part {
            Part::Text(more) => text.push_str(more),
            Part::Thinking(more) => thoughts.push_str(more),
            Part::Call(tool, arguments) => calls.push(json!({
                "id": id("call_", asked, at), "type": "function", "function": {"name": tool, "arguments": arguments},
            })),
        }
    }
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null, "annotations": []});
    if !thoughts.is_empty() {
        message["reasoning_content"] = thoughts.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply)});
    let answer = json!({
        "id": id("chatcmpl-", asked, 0), "object": "chat.completion", "created": 1_762_000_000, "model": asked.model(),
        "choices": [choice], "usage": usage(reply.counted), "service_tier": "default", "system_fingerprint": "fp_stub",
    });
    answer.to_string()
}

fn usage(Counted { input, cache_read, cache_write, output, thinking }: Counted) -> Value {
    let read = input + cache_read + cache_write;
    json!({
        "prompt_tokens": read, "completion_tokens": output, "total_tokens": read + output,
        "prompt_tokens_details": {"cached_tokens": cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": thinking, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}
