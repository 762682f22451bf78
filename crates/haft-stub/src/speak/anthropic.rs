//! Anthropic Messages.

use super::{broken, id, named, pieces};
use crate::Wire;
use crate::reply::{Counted, Part, Reply};
use crate::server::Asked;
use serde_json::{Value, json};

pub(super) fn events(asked: &Asked, reply: &Reply) -> Vec<String> {
    let Counted { input, cache_read, cache_write, output, .. } = reply.counted;
    let usage = |output: u64| {
        json!({
            "input_tokens": input, "cache_creation_input_tokens": cache_write, "cache_read_input_tokens": cache_read,
            "cache_creation": {"ephemeral_5m_input_tokens": cache_write, "ephemeral_1h_input_tokens": 0},
            "output_tokens": output, "service_tier": "standard",
        })
    };
    let message = json!({
        "model": asked.model(), "id": id("msg_01", asked, 0), "type": "message", "role": "assistant", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage(1),
    });
    let mut out = vec![named("message_start", &json!({"type": "message_start", "message": message}))];
    for (at, part) in reply.parts.iter().enumerate() {
        let (block, deltas) = block(part, &id("toolu_01", asked, at));
        out.push(named(
            "content_block_start",
            &json!({"type": "content_block_start", "index": at, "content_block": block}),
        ));
        if at == 0 {
            out.push("event: ping\ndata: {\"type\": \"ping\"}\n\n".to_owned());
        }
        let more = |delta: Value| {
            named("content_block_delta", &json!({"type": "content_block_delta", "index": at, "delta": delta}))
        };
        out.extend(deltas.into_iter().map(more));
        out.push(named("content_block_stop", &json!({"type": "content_block_stop", "index": at})));
    }
    if let Some(trouble) = reply.breaks {
        out.push(named("error", &broken(Wire::Anthropic, trouble)));
        return out;
    }
    let calls = reply.parts.iter().any(|part| matches!(part, Part::Call(..)));
    let stop = match reply.stop {
        Some("length") => "max_tokens",
        Some(_) => "refusal",
        None if calls => "tool_use",
        None => "end_turn",
    };
    let counted = json!({
        "input_tokens": input, "cache_creation_input_tokens": cache_write, "cache_read_input_tokens": cache_read,
        "output_tokens": output,
    });
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    out.push(named("message_delta", &json!({"type": "message_delta", "delta": delta, "usage": counted})));
    out.push(named("message_stop", &json!({"type": "message_stop"})));
    out
}

fn block(part: &Part, id: &str) -> (Value, Vec<Value>) {
    match part {
        Part::Text(text) => {
            let each = pieces(text).into_iter().map(|text| json!({"type": "text_delta", "text": text}));
            (json!({"type": "text", "text": ""}), each.collect())
        }
        Part::Thinking(text) => {
            let each = pieces(text).into_iter().map(|text| json!({"type": "thinking_delta", "thinking": text}));
            let mut each: Vec<Value> = each.collect();
            each.push(json!({"type": "signature_delta", "signature": format!("EqQBCgIYAhIM{id}")}));
            (json!({"type": "thinking", "thinking": "", "signature": ""}), each)
        }
        Part::Call(name, arguments) => {
            let mut each = vec![json!({"type": "input_json_delta", "partial_json": ""})];
            each.extend(
                pieces(arguments).into_iter().map(|text| json!({"type": "input_json_delta", "partial_json": text})),
            );
            (json!({"type": "tool_use", "id": id, "name": name, "input": {}}), each)
        }
    }
}
