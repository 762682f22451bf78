//! `OpenAI` Responses. Nothing is kept at the provider: what was said is sent each time, its thoughts among it, sealed.

use super::scribe::Frame;
use super::{Broken, Reader, Request, chat, count, ended, object};
use crate::agent::sse::Event;
use crate::agent::talk::{Block, Delta, Image, Message, Role, Stop, Usage};
use crate::provider::Provider;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What the provider's own blocks are known by.
pub(crate) const PROVIDER: &str = "openai";

/// A body but for its tools and what was said.
pub(crate) fn frame(request: &Request<'_>) -> Frame {
    let mut rest = json!({
        "model": request.model, "max_output_tokens": request.max_output, "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"],
    });
    if !request.system.is_empty() {
        rest["instructions"] = request.system.join("\n\n").into();
    }
    if !request.tools.is_empty() || request.native_search {
        rest["parallel_tool_calls"] = true.into();
    }
    if let Some(effort) = request.effort.and_then(chat::effort) {
        rest["reasoning"] = json!({"effort": effort, "summary": "auto"});
    }
    Frame { rest, said: "input", first: None }
}

/// What it may call.
pub(crate) fn tools(request: &Request<'_>) -> Vec<Value> {
    let mut tools: Vec<Value> = Provider::OpenAi.declare_all(request.tools.iter().cloned()).tools;
    if request.native_search {
        tools.push(json!({"type": "web_search"}));
    }
    tools
}

/// A message.
pub(crate) fn said(message: &Message, out: &mut Vec<Value>) {
    for block in &message.blocks {
        match (block, message.role) {
            (Block::Text { text }, Role::User) => {
                out.push(worded("user", &json!({"type": "input_text", "text": text})));
            }
            (Block::Text { text }, Role::Assistant) => {
                out.push(worded("assistant", &json!({"type": "output_text", "text": text})));
            }
            (Block::Image(picture), _) => out.push(worded("user", &image(picture))),
            // Only sealed thoughts are taken back.
            (Block::Thinking { mark: Some(mark), .. }, _) if mark["type"] == "reasoning" => out.push(mark.clone()),
            (Block::Use { id, name, input, .. }, _) => {
                let arguments = if input.is_object() { input.to_string() } else { "{}".to_owned() };
                out.push(json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments}));
            }
            (Block::Result { id, text, images, .. }, _) => {
                let output = if images.is_empty() {
                    Value::from(text.as_str())
                } else {
                    let mut parts = vec![json!({"type": "input_text", "text": text})];
                    parts.extend(images.iter().map(image));
                    parts.into()
                };
                out.push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
            (Block::Foreign { provider, value }, _) if provider == PROVIDER => out.push(value.clone()),
            (Block::Thinking { .. } | Block::Foreign { .. }, _) => {}
        }
    }
}

fn worded(role: &str, part: &Value) -> Value {
    json!({"type": "message", "role": role, "content": [part]})
}

fn image(image: &Image) -> Value {
    json!({"type": "input_image", "image_url": format!("data:{};base64,{}", image.media_type, image.data)})
}

/// Reads its stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Calls whose arguments came in pieces.
    pieces: BTreeSet<usize>,
    calls: bool,
}

impl Reader for Stream {
    fn read(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Broken> {
        if event.data.trim() == "[DONE]" {
            return Ok(());
        }
        let event = object(event)?;
        let at = usize::try_from(count(&event, "output_index")).unwrap_or(usize::MAX);
        let delta = || event["delta"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" => self.begin(at, &event["item"], out),
            "response.output_text.delta" | "response.refusal.delta" => out.push(Delta::Text(at, delta())),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                out.push(Delta::Thinking(at, delta()));
            }
            "response.function_call_arguments.delta" => {
                self.pieces.insert(at);
                out.push(Delta::Input(at, delta()));
            }
            "response.output_item.done" => self.end_item(at, &event["item"], out),
            "response.completed" | "response.incomplete" => self.over(&event["response"], out),
            "response.failed" => return Err(failed(&event["response"]["error"])),
            "error" => return Err(failed(if event["error"].is_object() { &event["error"] } else { &event })),
            _ => {}
        }
        Ok(())
    }
}

impl Stream {
    fn begin(&mut self, at: usize, item: &Value, out: &mut Vec<Delta>) {
        if item["type"] == "function_call" {
            self.calls = true;
            let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
            out.push(Delta::Use(at, text("call_id"), text("name")));
        }
    }

    fn end_item(&mut self, at: usize, item: &Value, out: &mut Vec<Delta>) {
        match item["type"].as_str().unwrap_or_default() {
            "function_call" if !self.pieces.contains(&at) => {
                out.push(Delta::Input(at, item["arguments"].as_str().unwrap_or_default().to_owned()));
            }
            "function_call" | "message" => {}
            "reasoning" => out.push(Delta::Mark(at, item.clone())),
            _ => out.push(Delta::Foreign(at, PROVIDER, item.clone())),
        }
        out.push(Delta::Whole(at));
    }

    fn over(&self, response: &Value, out: &mut Vec<Delta>) {
        let usage = &response["usage"];
        let cached = count(&usage["input_tokens_details"], "cached_tokens");
        let usage = Usage {
            input: count(usage, "input_tokens").saturating_sub(cached),
            cache_read: cached,
            cache_write: 0,
            output: count(usage, "output_tokens"),
            thinking: count(&usage["output_tokens_details"], "reasoning_tokens"),
        };
        let stop = match response["incomplete_details"]["reason"].as_str() {
            Some("max_output_tokens") => Stop::Length,
            Some("content_filter") => Stop::Refused,
            _ if self.calls => Stop::Calls,
            _ => Stop::End,
        };
        ended(usage, stop, out);
    }
}

fn failed(error: &Value) -> Broken {
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    Broken::Said {
        kind: error["code"].as_str().or(error["type"].as_str()).unwrap_or_default().to_owned(),
        message: text("message"),
    }
}
