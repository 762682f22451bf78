//! `OpenAI` Responses.

use super::{broken, id, named, pieces};
use crate::Wire;
use crate::reply::{Counted, Part, Reply};
use crate::server::Asked;
use serde_json::{Value, json};

/// Events with numbers.
#[derive(Default)]
struct Stream {
    out: Vec<String>,
}

impl Stream {
    fn tell(&mut self, name: &str, mut more: Value) {
        let mut event = json!({"type": name, "sequence_number": self.out.len()});
        if let (Some(event), Some(more)) = (event.as_object_mut(), more.as_object_mut()) {
            event.append(more);
        }
        self.out.push(named(name, &event));
    }

    fn item(&mut self, at: usize, part: &Part, id: &str) -> Value {
        match part {
            Part::Text(text) => self.message(at, text, &format!("msg_{id}")),
            Part::Thinking(text) => self.reasoning(at, text, &format!("rs_{id}")),
            Part::Call(name, arguments) => self.call(at, (name, arguments), id),
        }
    }

    fn added(&mut self, at: usize, item: &Value) {
        self.tell("response.output_item.added", json!({"output_index": at, "item": item}));
    }

    fn done(&mut self, at: usize, item: Value) -> Value {
        self.tell("response.output_item.done", json!({"output_index": at, "item": item}));
        item
    }

    fn message(&mut self, at: usize, text: &str, id: &str) -> Value {
        self.added(
            at,
            &json!({"id": id, "type": "message", "status": "in_progress", "content": [], "role": "assistant"}),
        );
        let part = |text: &str| json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text});
        let place = json!({"item_id": id, "output_index": at, "content_index": 0});
        let with = |name: &str, value: Value| {
            let mut whole = place.clone();
            whole[name] = value;
            whole
        };
        self.tell("response.content_part.added", with("part", part("")));
        for piece in pieces(text) {
            let mut delta = with("delta", piece.into());
            delta["logprobs"] = json!([]);
            delta["obfuscation"] = "x7Qm".into();
            self.tell("response.output_text.delta", delta);
        }
        self.tell("response.output_text.done", with("text", text.into()));
        self.tell("response.content_part.done", with("part", part(text)));
        self.done(
            at,
            json!({"id": id, "type": "message", "status": "completed", "content": [part(text)], "role": "assistant"}),
        )
    }

    fn reasoning(&mut self, at: usize, text: &str, id: &str) -> Value {
        self.added(at, &json!({"id": id, "type": "reasoning", "encrypted_content": "gAAAAABstub", "summary": []}));
        let place = json!({"item_id": id, "output_index": at, "summary_index": 0});
        let with = |name: &str, value: Value| {
            let mut whole = place.clone();
            whole[name] = value;
            whole
        };
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        self.tell("response.reasoning_summary_part.added", with("part", part("")));
        for piece in pieces(text) {
            self.tell("response.reasoning_summary_text.delta", with("delta", piece.into()));
        }
        self.tell("response.reasoning_summary_text.done", with("text", text.into()));
        self.tell("response.reasoning_summary_part.done", with("part", part(text)));
        let sealed = format!("gAAAAABstub{id}");
        self.done(at, json!({"id": id, "type": "reasoning", "encrypted_content": sealed, "summary": [part(text)]}))
    }

    /// A tool that takes a text instead of arguments.
    fn custom_call(&mut self, at: usize, (name, input): (&str, &str), id: &str) -> Value {
        let item = |status: &str, input: &str| {
            json!({
                "id": format!("ctc_{id}"), "type": "custom_tool_call", "status": status, "input": input,
                "call_id": format!("call_{id}"), "name": name,
            })
        };
        self.added(at, &item("in_progress", ""));
        self.done(at, item("completed", input))
    }

    fn call(&mut self, at: usize, (name, arguments): (&str, &str), id: &str) -> Value {
        // A custom tool is called by `custom/NAME`.
        if let Some(name) = name.strip_prefix("custom/") {
            return self.custom_call(at, (name, arguments), id);
        }
        let item = |status: &str, arguments: &str| {
            let mut item = json!({
                "id": format!("fc_{id}"), "type": "function_call", "status": status, "arguments": arguments,
                "call_id": format!("call_{id}"), "name": name,
            });
            // A tool of a namespace is called by two fields.
            if let Some((namespace, name)) = name.split_once("::") {
                item["namespace"] = namespace.into();
                item["name"] = name.into();
            }
            item
        };
        self.added(at, &item("in_progress", ""));
        let place = json!({"item_id": format!("fc_{id}"), "output_index": at});
        for piece in pieces(arguments) {
            let mut delta = place.clone();
            delta["delta"] = piece.into();
            self.tell("response.function_call_arguments.delta", delta);
        }
        let mut whole = place;
        whole["arguments"] = arguments.into();
        self.tell("response.function_call_arguments.done", whole);
        self.done(at, item("completed", arguments))
    }
}

pub(super) fn events(asked: &Asked, reply: &Reply) -> Vec<String> {
    let response = json!({
        "id": id("resp_", asked, 0), "object": "response", "created_at": 1_762_000_000, "status": "in_progress",
        "background": false, "error": null, "incomplete_details": null, "instructions": asked.body["instructions"],
        "max_output_tokens": asked.body["max_output_tokens"], "model": asked.model(), "output": [],
        "parallel_tool_calls": true, "previous_response_id": null, "store": false, "usage": null, "metadata": {},
    });
    let mut stream = Stream::default();
    stream.tell("response.created", json!({ "response": response }));
    stream.tell("response.in_progress", json!({ "response": response }));
    let mut output = Vec::new();
    for (at, part) in reply.parts.iter().enumerate() {
        output.push(stream.item(at, part, &id("", asked, at)));
    }
    let mut last = response;
    if let Some(trouble) = reply.breaks {
        let error = &broken(Wire::Responses, trouble)["error"];
        let code = if error["code"].is_null() { &error["type"] } else { &error["code"] };
        last["status"] = "failed".into();
        last["error"] = json!({"code": code, "message": error["message"]});
        stream.tell("response.failed", json!({ "response": last }));
        return stream.out;
    }
    let reason = reply.stop.map(|stop| if stop == "length" { "max_output_tokens" } else { "content_filter" });
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    last["status"] = status.into();
    last["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({ "reason": reason }));
    last["output"] = output.into();
    last["usage"] = usage(reply.counted);
    stream.tell(&format!("response.{status}"), json!({ "response": last }));
    stream.out
}

/// The answer as one object: what the stream ends with.
pub(super) fn whole(asked: &Asked, reply: &Reply) -> String {
    let last = events(asked, reply).pop().unwrap_or_default();
    let data = last.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    let mut response = event["response"].clone();
    response["tools"] = asked.body["tools"].clone();
    response["tool_choice"] = "auto".into();
    response.to_string()
}

fn usage(Counted { input, cache_read, cache_write, output, thinking }: Counted) -> Value {
    let read = input + cache_read + cache_write;
    json!({
        "input_tokens": read, "input_tokens_details": {"cached_tokens": cache_read}, "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": thinking}, "total_tokens": read + output,
    })
}
