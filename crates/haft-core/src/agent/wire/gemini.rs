//! Google Gemini, and the same on Vertex. Calls come whole and mostly without an id; results are told by the tool's name.

use super::scribe::Frame;
use super::{Broken, Effort, Reader, Request, count, ended, object};
use crate::agent::sse::Event;
use crate::agent::talk::{Block, Delta, Image, Message, Role, Stop, Usage};
use crate::provider::Provider;
use serde_json::{Value, json};

/// A body but for its tools and what was said.
pub(crate) fn frame(request: &Request<'_>) -> Frame {
    let mut rest = json!({"generationConfig": {"maxOutputTokens": request.max_output}});
    if !request.system.is_empty() {
        rest["systemInstruction"] = json!({"parts": [{"text": request.system.join("\n\n")}]});
    }
    if let Some(effort) = request.effort {
        // −1 lets the model choose.
        let budget = match effort {
            Effort::Off => 0,
            Effort::Low => 1024,
            Effort::Medium => -1,
            Effort::High => 16_384,
            Effort::Max => 24_576,
        };
        rest["generationConfig"]["thinkingConfig"] = json!({"includeThoughts": budget != 0, "thinkingBudget": budget});
    }
    Frame { rest, said: "contents", first: None }
}

/// What it may call.
pub(crate) fn tools(request: &Request<'_>) -> Vec<Value> {
    let declared: Vec<Value> = Provider::Gemini.declare_all(request.tools.iter().cloned()).tools;
    if !declared.is_empty() {
        return vec![json!({"functionDeclarations": declared})];
    }
    // The provider's own search does not go together with functions.
    if request.native_search { vec![json!({"googleSearch": {}})] } else { Vec::new() }
}

/// A message of a history.
pub(crate) fn said(message: &Message, history: &[Message], out: &mut Vec<Value>) {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "model",
    };
    let mut parts = Vec::new();
    for block in &message.blocks {
        match block {
            Block::Text { text } => parts.push(json!({ "text": text })),
            Block::Image(picture) => parts.push(image(picture)),
            Block::Use { name, input, mark, .. } => {
                let args = if input.is_object() { input.clone() } else { json!({}) };
                let mut part = json!({"functionCall": {"name": name, "args": args}});
                if let Some(mark) = mark {
                    part["thoughtSignature"] = mark.clone();
                }
                parts.push(part);
            }
            Block::Result { id, text, images, failed, .. } => {
                let told = if *failed { json!({ "error": text }) } else { json!({ "output": text }) };
                parts.push(json!({"functionResponse": {"name": named(id, history), "response": told}}));
                parts.extend(images.iter().map(image));
            }
            Block::Thinking { .. } | Block::Foreign { .. } => {}
        }
    }
    // A message without a part is refused.
    if parts.is_empty() {
        parts.push(json!({"text": "…"}));
    }
    out.push(json!({"role": role, "parts": parts}));
}

/// The tool that a call was of.
fn named<'h>(id: &str, history: &'h [Message]) -> &'h str {
    let uses = history.iter().rev().flat_map(Message::uses);
    uses.filter(|(known, ..)| *known == id).map(|(_, name, _)| name).next().unwrap_or_default()
}

fn image(image: &Image) -> Value {
    json!({"inlineData": {"mimeType": image.media_type, "data": image.data}})
}

/// Reads its stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What calls are named after.
    seed: String,
    usage: Usage,
    stop: Option<Stop>,
    calls: usize,
    at: usize,
    /// What the last part was, to which more of its kind is added.
    last: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Thought,
}

impl Stream {
    pub(crate) fn new(seed: &str) -> Self {
        Self { seed: seed.to_owned(), usage: Usage::default(), stop: None, calls: 0, at: 0, last: None }
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Delta>) {
        if let Some(call) = part.get("functionCall") {
            self.at += 1;
            self.last = None;
            let named = || format!("{}-{}", self.seed, self.calls);
            let id = call["id"].as_str().filter(|id| !id.is_empty()).map_or_else(named, str::to_owned);
            self.calls += 1;
            out.push(Delta::Use(self.at, id, call["name"].as_str().unwrap_or_default().to_owned()));
            if let Some(mark) = part.get("thoughtSignature") {
                out.push(Delta::Mark(self.at, mark.clone()));
            }
            out.push(Delta::Input(self.at, call.get("args").map_or_else(String::new, Value::to_string)));
            out.push(Delta::Whole(self.at));
            return;
        }
        let Some(text) = part["text"].as_str() else { return };
        let kind = if part["thought"].as_bool().unwrap_or_default() { Part::Thought } else { Part::Text };
        if self.last != Some(kind) {
            self.at += 1;
            self.last = Some(kind);
        }
        out.push(match kind {
            Part::Text => Delta::Text(self.at, text.to_owned()),
            Part::Thought => Delta::Thinking(self.at, text.to_owned()),
        });
    }
}

impl Reader for Stream {
    fn read(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Broken> {
        let said = object(event)?;
        if let Some(error) = said.get("error") {
            let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
            return Err(Broken::Said { kind: text("status"), message: text("message") });
        }
        if let Some(usage) = said.get("usageMetadata") {
            let cached = count(usage, "cachedContentTokenCount");
            let thinking = count(usage, "thoughtsTokenCount");
            self.usage = Usage {
                input: count(usage, "promptTokenCount").saturating_sub(cached),
                cache_read: cached,
                cache_write: 0,
                output: count(usage, "candidatesTokenCount") + thinking,
                thinking,
            };
        }
        if said["promptFeedback"]["blockReason"].is_string() {
            self.stop = Some(Stop::Refused);
        }
        let Some(candidate) = said["candidates"].get(0) else { return Ok(()) };
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.part(part, out);
        }
        if let Some(word) = candidate["finishReason"].as_str() {
            self.stop = Some(match word {
                "MAX_TOKENS" => Stop::Length,
                "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => Stop::Refused,
                // It is told in words that its call was malformed, and may make it again.
                _ if self.calls > 0 => Stop::Calls,
                _ => Stop::End,
            });
        }
        Ok(())
    }

    /// Counts come with the last piece, after the reason.
    fn end(&mut self, out: &mut Vec<Delta>) {
        if let Some(stop) = self.stop {
            ended(self.usage, stop, out);
        }
    }
}
