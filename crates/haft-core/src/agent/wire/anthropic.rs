//! Anthropic Messages.
//!
//! What is the same for every turn, and for parent and children, is marked for the provider to remember: the tools, each part
//! of the system prompt that stays, and the end of what was said so far. It takes four marks at the most.

use super::scribe::Frame;
use super::{Broken, Effort, Reader, Request, count, ended, object};
use crate::agent::sse::Event;
use crate::agent::talk::{Block, Delta, Image, Message, Role, Stop, Usage};
use crate::provider::Provider;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What the provider calls its own blocks by.
pub(crate) const PROVIDER: &str = "anthropic";

/// A body but for its tools and what was said.
pub(crate) fn frame(request: &Request<'_>) -> Frame {
    let mut system: Vec<Value> = request.system.iter().map(|text| json!({"type": "text", "text": text})).collect();
    // The first part is everybody's, the last one this conversation's own.
    mark(system.first_mut());
    if system.len() > 1 {
        mark(system.last_mut());
    }
    let mut rest = json!({"model": request.model, "max_tokens": request.max_output, "stream": true});
    if !system.is_empty() {
        rest["system"] = system.into();
    }
    match request.effort {
        Some(effort) if adapts(request.model) => {
            rest["output_config"] = json!({"effort": word(effort)});
            if effort != Effort::Off {
                rest["thinking"] = json!({"type": "adaptive"});
            }
        }
        None | Some(Effort::Off) => {}
        Some(effort) => {
            rest["thinking"] = json!({"type": "enabled", "budget_tokens": budget(effort, request.max_output)});
        }
    }
    Frame { rest, said: "messages", first: None }
}

/// What it may call.
pub(crate) fn tools(request: &Request<'_>) -> Vec<Value> {
    let mut tools: Vec<Value> = Provider::Anthropic.declare_all(request.tools.iter().cloned()).tools;
    if request.native_search {
        tools.push(json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}));
    }
    mark(tools.last_mut());
    tools
}

/// A message; what was said so far ends with the last one.
pub(crate) fn said(message: &Message, is_last: bool, out: &mut Vec<Value>) {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let mut blocks: Vec<Value> = message.blocks.iter().filter_map(block).collect();
    if is_last {
        mark(blocks.last_mut());
    }
    out.push(json!({"role": role, "content": blocks}));
}

/// Whether a model decides by itself how much it thinks. Since Claude 4.6 they do, and later ones refuse to be told a number.
fn adapts(model: &str) -> bool {
    let Some(name) = model.strip_prefix("claude-") else { return false };
    // A date is no version.
    let mut numbers = name.split('-').filter(|part| part.len() <= 2).filter_map(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    version >= (4, 6)
}

/// The word for how hard such a model thinks. Some cannot be kept from it.
fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::Off | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max => "max",
    }
}

/// How many tokens may be thoughts. They count as written, so there is less than that.
fn budget(effort: Effort, max_output: u32) -> u32 {
    let share = match effort {
        Effort::Off => 0,
        Effort::Low => 10,
        Effort::Medium => 25,
        Effort::High => 50,
        Effort::Max => 80,
    };
    (max_output / 100 * share).max(1024).min(max_output.saturating_sub(1))
}

fn mark(value: Option<&mut Value>) {
    if let Some(value) = value.filter(|value| value["type"] != "thinking" && value["type"] != "redacted_thinking") {
        value["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        // Only what the provider has marked is its own; the rest would be refused.
        Block::Thinking { text, mark } => match mark.as_ref()? {
            Value::String(signature) => json!({"type": "thinking", "thinking": text, "signature": signature}),
            redacted => redacted.clone(),
        },
        Block::Use { id, name, input, .. } => {
            let input = if input.is_object() { input.clone() } else { json!({}) };
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Block::Result { id, text, images, failed, .. } => {
            let mut content = vec![json!({"type": "text", "text": text})];
            content.extend(images.iter().map(image));
            let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
            if *failed {
                result["is_error"] = true.into();
            }
            result
        }
        Block::Image(picture) => image(picture),
        Block::Foreign { provider, value } if provider == PROVIDER => value.clone(),
        Block::Foreign { .. } => return None,
    })
}

fn image(image: &Image) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}})
}

/// Reads its stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    usage: Usage,
    stop: Option<Stop>,
    /// Blocks that are passed on as they are: put together until they are whole.
    foreign: std::collections::BTreeMap<usize, (Value, String)>,
    /// Blocks of arguments that came whole at their beginning.
    begun: BTreeSet<usize>,
}

impl Reader for Stream {
    fn read(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Broken> {
        let said = object(event)?;
        let at = usize::try_from(count(&said, "index")).unwrap_or(usize::MAX);
        match said["type"].as_str().unwrap_or_default() {
            "message_start" => self.count(&said["message"]["usage"]),
            "content_block_start" => self.begin(at, &said["content_block"], out),
            "content_block_delta" => self.more(at, &said["delta"], out),
            "content_block_stop" => {
                if let Some((mut value, input)) = self.foreign.remove(&at) {
                    if let Ok(input) = serde_json::from_str::<Value>(&input) {
                        value["input"] = input;
                    }
                    out.push(Delta::Foreign(at, PROVIDER, value));
                }
                out.push(Delta::Whole(at));
            }
            "message_delta" => {
                self.count(&said["usage"]);
                self.stop = said["delta"]["stop_reason"].as_str().map(why).or(self.stop);
            }
            "message_stop" => ended(self.usage, self.stop.unwrap_or(Stop::End), out),
            "error" => {
                let text = |name: &str| said["error"][name].as_str().unwrap_or_default().to_owned();
                return Err(Broken::Said { kind: text("type"), message: text("message") });
            }
            _ => {}
        }
        Ok(())
    }
}

impl Stream {
    /// Later counts are of the whole message, not of what came since.
    fn count(&mut self, usage: &Value) {
        let later = |name: &str, before: u64| usage[name].as_u64().unwrap_or(before);
        self.usage = Usage {
            input: later("input_tokens", self.usage.input),
            cache_read: later("cache_read_input_tokens", self.usage.cache_read),
            cache_write: later("cache_creation_input_tokens", self.usage.cache_write),
            output: later("output_tokens", self.usage.output),
            thinking: 0,
        };
    }

    fn begin(&mut self, at: usize, block: &Value, out: &mut Vec<Delta>) {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str().unwrap_or_default() {
            "text" => out.push(Delta::Text(at, text("text"))),
            "thinking" => out.push(Delta::Thinking(at, text("thinking"))),
            "redacted_thinking" => out.push(Delta::Mark(at, block.clone())),
            "tool_use" => {
                out.push(Delta::Use(at, text("id"), text("name")));
                // Some servers that speak this format give the arguments at once.
                if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                    self.begun.insert(at);
                    out.push(Delta::Input(at, block["input"].to_string()));
                }
            }
            _ => {
                self.foreign.insert(at, (block.clone(), String::new()));
            }
        }
    }

    fn more(&mut self, at: usize, delta: &Value, out: &mut Vec<Delta>) {
        let text = |name: &str| delta[name].as_str().unwrap_or_default().to_owned();
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => out.push(Delta::Text(at, text("text"))),
            "thinking_delta" => out.push(Delta::Thinking(at, text("thinking"))),
            "signature_delta" => out.push(Delta::Mark(at, delta["signature"].clone())),
            "input_json_delta" => match self.foreign.get_mut(&at) {
                Some((_, input)) => input.push_str(&text("partial_json")),
                None if self.begun.contains(&at) => {}
                None => out.push(Delta::Input(at, text("partial_json"))),
            },
            _ => {}
        }
    }
}

fn why(word: &str) -> Stop {
    match word {
        "tool_use" => Stop::Calls,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        "pause_turn" => Stop::Paused,
        _ => Stop::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::wire::Scribe;

    #[test]
    fn newer_models_are_told_how_hard_to_think_and_older_ones_how_much() {
        for (model, expected) in [
            ("claude-3-7-sonnet-20250219", false),
            ("claude-opus-4-20250514", false),
            ("claude-sonnet-4-5-20250929", false),
            ("claude-haiku-4-5", false),
            ("claude-opus-4-6", true),
            ("claude-sonnet-5", true),
            ("claude-opus-5-5", true),
            ("claude-fable-5-1", true),
            ("m", false),
        ] {
            assert_eq!(adapts(model), expected, "{model}");
        }
        let rest = |effort| {
            frame(&Request {
                model: "claude-opus-5-5",
                system: &[],
                tools: &[],
                history: &[],
                max_output: 8000,
                effort: Some(effort),
                native_search: false,
                scribe: &Scribe::default(),
            })
            .rest
        };
        let high = rest(Effort::High);
        assert_eq!(
            (&high["thinking"], &high["output_config"]),
            (&json!({"type": "adaptive"}), &json!({"effort": "high"}))
        );
        let off = rest(Effort::Off);
        assert_eq!((off.get("thinking"), &off["output_config"]["effort"]), (None, &json!("low")));
    }
}
