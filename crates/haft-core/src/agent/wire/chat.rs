//! `OpenAI` Chat Completions, and the many servers that speak it, each with a little accent: calls without ids or numbers,
//! arguments at once, thoughts under other names, no count at the end.

use super::scribe::Frame;
use super::{Broken, Effort, Reader, Request, count, ended, object};
use crate::agent::sse::Event;
use crate::agent::talk::{Block, Delta, Image, Message, Role, Stop, Usage};
use crate::provider::Provider;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Thoughts are said before words, and words before calls.
const THOUGHTS: usize = 0;
const WORDS: usize = 1;
const CALLS: usize = 2;

/// A body but for its tools and what was said.
pub(crate) fn frame(request: &Request<'_>) -> Frame {
    let mut rest = json!({
        "model": request.model, "max_tokens": request.max_output, "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(effort) = request.effort.and_then(effort) {
        rest["reasoning_effort"] = effort.into();
    }
    let system = || json!({"role": "system", "content": request.system.join("\n\n")});
    Frame { rest, said: "messages", first: (!request.system.is_empty()).then(system) }
}

/// What it may call.
pub(crate) fn tools(request: &Request<'_>) -> Vec<Value> {
    Provider::OpenAiChat.declare_all(request.tools.iter().cloned()).tools
}

/// The word for how hard to think. Not to think cannot be asked of every server.
pub(super) fn effort(effort: Effort) -> Option<&'static str> {
    match effort {
        Effort::Off => None,
        Effort::Low => Some("low"),
        Effort::Medium => Some("medium"),
        Effort::High | Effort::Max => Some("high"),
    }
}

/// A message.
pub(crate) fn said(message: &Message, out: &mut Vec<Value>) {
    match message.role {
        Role::Assistant => {
            let calls: Vec<Value> = message
                .uses()
                .map(|(id, name, input)| {
                    let arguments = if input.is_object() { input.to_string() } else { "{}".to_owned() };
                    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
                })
                .collect();
            let text = message.text();
            let mut said =
                json!({"role": "assistant", "content": if text.is_empty() { Value::Null } else { text.into() }});
            if !calls.is_empty() {
                said["tool_calls"] = calls.into();
            }
            out.push(said);
        }
        Role::User => {
            let mut parts = Vec::new();
            for block in &message.blocks {
                match block {
                    Block::Result { id, text, images, .. } => {
                        out.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
                        // A tool's answer is text here; what it shows is shown by the one who asked.
                        parts.extend(images.iter().map(image));
                    }
                    Block::Text { text } => parts.push(json!({"type": "text", "text": text})),
                    Block::Image(picture) => parts.push(image(picture)),
                    Block::Thinking { .. } | Block::Use { .. } | Block::Foreign { .. } => {}
                }
            }
            let words: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
            match words {
                // Plain words as plain text: not every server knows parts.
                Some(words) if !words.is_empty() => out.push(json!({"role": "user", "content": words.join("\n\n")})),
                None => out.push(json!({"role": "user", "content": parts})),
                Some(_) => {}
            }
        }
    }
}

fn image(image: &Image) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:{};base64,{}", image.media_type, image.data)}})
}

/// Reads its stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What calls without an id are named after.
    seed: String,
    usage: Usage,
    stop: Option<Stop>,
    calls: BTreeMap<u64, Called>,
    over: bool,
}

#[derive(Debug, Default)]
struct Called {
    id: String,
    name: String,
    told: bool,
    whole: bool,
}

impl Stream {
    pub(crate) fn new(seed: &str) -> Self {
        Self { seed: seed.to_owned(), usage: Usage::default(), stop: None, calls: BTreeMap::new(), over: false }
    }

    fn call(&mut self, call: &Value, out: &mut Vec<Delta>) {
        let function = &call["function"];
        let (id, name) = (call["id"].as_str().unwrap_or_default(), function["name"].as_str().unwrap_or_default());
        // Without a number, a name begins a call, and everything else belongs to the last one.
        let next = u64::try_from(self.calls.len()).unwrap_or(u64::MAX);
        let last = next.saturating_sub(1);
        let number = call["index"].as_u64().unwrap_or(if name.is_empty() { last } else { next });
        if !self.calls.contains_key(&number) {
            self.whole(out);
        }
        let named = format!("{}-{number}", self.seed);
        let called = self.calls.entry(number).or_default();
        if called.id.is_empty() && !id.is_empty() {
            id.clone_into(&mut called.id);
        }
        called.name.push_str(if called.told { "" } else { name });
        let at = at(number);
        if !called.told && !called.name.is_empty() {
            called.told = true;
            if called.id.is_empty() {
                called.id = named;
            }
            out.push(Delta::Use(at, called.id.clone(), called.name.clone()));
        }
        match &function["arguments"] {
            Value::String(text) => out.push(Delta::Input(at, text.clone())),
            Value::Object(whole) => out.push(Delta::Input(at, Value::Object(whole.clone()).to_string())),
            _ => {}
        }
    }

    /// All calls that were begun are whole.
    fn whole(&mut self, out: &mut Vec<Delta>) {
        for (number, called) in &mut self.calls {
            if called.told && !std::mem::replace(&mut called.whole, true) {
                out.push(Delta::Whole(at(*number)));
            }
        }
    }
}

fn at(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX - CALLS) + CALLS
}

impl Reader for Stream {
    fn is_over(&self) -> bool {
        self.over
    }

    fn read(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Broken> {
        if event.data.trim() == "[DONE]" {
            self.over = true;
            return Ok(());
        }
        let said = object(event)?;
        if let Some(error) = said.get("error").filter(|error| !error.is_null()) {
            let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
            let kind = error["code"].as_str().or(error["type"].as_str()).unwrap_or_default().to_owned();
            return Err(Broken::Said { kind, message: text("message") });
        }
        if let Some(usage) = said.get("usage").filter(|usage| usage.is_object()) {
            let cached = count(&usage["prompt_tokens_details"], "cached_tokens");
            self.usage = Usage {
                input: count(usage, "prompt_tokens").saturating_sub(cached),
                cache_read: cached,
                cache_write: 0,
                output: count(usage, "completion_tokens"),
                thinking: count(&usage["completion_tokens_details"], "reasoning_tokens"),
            };
        }
        let Some(choice) = said["choices"].get(0) else { return Ok(()) };
        let delta = &choice["delta"];
        for (name, words) in [("reasoning_content", false), ("reasoning", false), ("content", true)] {
            if let Some(text) = delta[name].as_str().filter(|text| !text.is_empty()) {
                out.push(if words {
                    Delta::Text(WORDS, text.to_owned())
                } else {
                    Delta::Thinking(THOUGHTS, text.to_owned())
                });
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call, out);
        }
        if let Some(word) = choice["finish_reason"].as_str() {
            self.whole(out);
            self.stop = Some(match word {
                "tool_calls" | "function_call" => Stop::Calls,
                "length" => Stop::Length,
                "content_filter" => Stop::Refused,
                _ if !self.calls.is_empty() => Stop::Calls,
                _ => Stop::End,
            });
        }
        Ok(())
    }

    /// What it cost is told last, if at all.
    fn end(&mut self, out: &mut Vec<Delta>) {
        let stop = self.stop.or(self.over.then_some(Stop::End));
        if let Some(stop) = stop {
            self.whole(out);
            ended(self.usage, stop, out);
        }
    }
}
