//! Google Gemini. Calls come whole; arguments that are no JSON do not exist here: the model is said to have failed to call.

use super::{broken, id, pieces};
use crate::Wire;
use crate::reply::{Counted, Part, Reply};
use crate::server::Asked;
use serde_json::{Value, json};

pub(super) fn events(asked: &Asked, reply: &Reply) -> Vec<String> {
    let (name, model) = (id("resp", asked, 0), asked.model());
    let Counted { input, cache_read, cache_write, output, thinking } = reply.counted;
    let read = input + cache_read + cache_write;
    let event = |candidate: Value, last: bool| {
        let mut usage = json!({
            "promptTokenCount": read, "totalTokenCount": read,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": read}],
        });
        if last {
            usage["cachedContentTokenCount"] = cache_read.into();
            usage["candidatesTokenCount"] = output.saturating_sub(thinking).into();
            usage["thoughtsTokenCount"] = thinking.into();
            usage["totalTokenCount"] = (read + output).into();
        }
        let said =
            json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": name});
        format!("data: {said}\r\n\r\n")
    };
    let part = |part: Value| event(json!({"content": {"parts": [part], "role": "model"}, "index": 0}), false);
    let (mut out, mut malformed, mut marked) = (Vec::new(), false, false);
    for each in &reply.parts {
        match each {
            Part::Text(text) => out.extend(pieces(text).into_iter().map(|text| part(json!({"text": text})))),
            Part::Thinking(text) => {
                out.extend(pieces(text).into_iter().map(|text| part(json!({"text": text, "thought": true}))));
            }
            Part::Call(tool, arguments) => match serde_json::from_str::<Value>(arguments) {
                Ok(args @ Value::Object(_)) => {
                    let mut call = json!({"functionCall": {"name": tool, "args": args}});
                    // Only the first of several carries the mark.
                    if !std::mem::replace(&mut marked, true) {
                        call["thoughtSignature"] = "CpUBAdHtim8=".into();
                    }
                    out.push(part(call));
                }
                _ => malformed = true,
            },
        }
    }
    if let Some(trouble) = reply.breaks {
        out.push(format!("data: {}\r\n\r\n", broken(Wire::Gemini, trouble)));
        return out;
    }
    let stop = match reply.stop {
        Some("length") => "MAX_TOKENS",
        Some(_) => "SAFETY",
        None if malformed => "MALFORMED_FUNCTION_CALL",
        None => "STOP",
    };
    out.push(event(
        json!({"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": stop, "index": 0}),
        true,
    ));
    out
}
