//! What goes over the wire: a request as a provider takes it, and its stream as words.
//!
//! Each format writes and reads: [`Wire::body`] is the body of a request, put together by a [`Scribe`] that remembers what it
//! has written, and a [`Decoder`] makes deltas of the bytes that come back, cut wherever they are cut. Neither knows of
//! connections, keys or retries.

mod anthropic;
mod chat;
mod gemini;
mod responses;
mod scribe;

use super::sse::{Event, Events};
use super::talk::{Delta, Message, Stop, Usage};
pub use crate::provider::Offered;
use crate::provider::Provider;
use scribe::Frame;
pub use scribe::Scribe;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A way of speaking to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Responses.
    Responses,
    /// `OpenAI` Chat Completions, and every server that speaks it.
    Chat,
    /// Google Gemini, and the same on Vertex.
    Gemini,
}

impl Wire {
    /// The body of a request.
    pub fn body(self, request: &Request<'_>) -> Vec<u8> {
        request.scribe.write(self, request)
    }

    fn frame(self, request: &Request<'_>) -> Frame {
        match self {
            Self::Anthropic => anthropic::frame(request),
            Self::Responses => responses::frame(request),
            Self::Chat => chat::frame(request),
            Self::Gemini => gemini::frame(request),
        }
    }

    fn tools(self, request: &Request<'_>) -> Vec<Value> {
        match self {
            Self::Anthropic => anthropic::tools(request),
            Self::Responses => responses::tools(request),
            Self::Chat => chat::tools(request),
            Self::Gemini => gemini::tools(request),
        }
    }

    /// A message of a history, as one item or more.
    fn said(self, message: &Message, history: &[Message], is_last: bool, out: &mut Vec<Value>) {
        match self {
            Self::Anthropic => anthropic::said(message, is_last, out),
            Self::Responses => responses::said(message, out),
            Self::Chat => chat::said(message, out),
            Self::Gemini => gemini::said(message, history, out),
        }
    }

    /// Reads the stream that comes back. Calls to which the provider gives no id are named after `seed`, which no other
    /// answer of the conversation may have.
    pub fn decoder(self, seed: &str) -> Decoder {
        match self {
            Self::Anthropic => Decoder::new(anthropic::Stream::default()),
            Self::Responses => Decoder::new(responses::Stream::default()),
            Self::Chat => Decoder::new(chat::Stream::new(seed)),
            Self::Gemini => Decoder::new(gemini::Stream::new(seed)),
        }
    }

    /// In which form tools are declared to it.
    pub fn declares(self) -> Provider {
        match self {
            Self::Anthropic => Provider::Anthropic,
            Self::Responses => Provider::OpenAi,
            Self::Chat => Provider::OpenAiChat,
            Self::Gemini => Provider::Gemini,
        }
    }

    /// Whose own blocks it understands.
    pub fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => anthropic::PROVIDER,
            Self::Responses => responses::PROVIDER,
            Self::Chat => "chat",
            Self::Gemini => "gemini",
        }
    }
}

/// How hard a model is to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all, where that can be had.
    Off,
    /// A little.
    Low,
    /// As much as most tasks need.
    Medium,
    /// A lot.
    High,
    /// All it can.
    Max,
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// Which model.
    pub model: &'r str,
    /// Who it is, and by what it goes. The parts are in the order in which they change: what never does comes first, so that a
    /// provider recognises as much as can be.
    pub system: &'r [String],
    /// What it may call, in an order that stays.
    pub tools: &'r [Offered<'r>],
    /// What was said.
    pub history: &'r [Message],
    /// How much it may write.
    pub max_output: u32,
    /// How hard it is to think.
    pub effort: Option<Effort>,
    /// Whether the provider's own search of the web is offered.
    pub native_search: bool,
    /// What was written of it before.
    pub scribe: &'r Scribe,
}

/// What came was nothing that the provider's format knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The provider says that it failed.
    #[error("{message}")]
    Said {
        /// Its own word for it.
        kind: String,
        /// In its words.
        message: String,
    },
    /// It makes no sense.
    #[error("the answer is not in the form that was asked for: {0}")]
    Odd(String),
    /// It ended before it was over.
    #[error("the answer was cut off")]
    Cut,
}

/// Reads a stream.
pub struct Decoder {
    events: Events,
    reader: Box<dyn Reader + Send>,
    stopped: bool,
}

/// What one format makes of its events.
pub(crate) trait Reader {
    /// Reads an event. What is not known is passed over: providers add to their formats.
    fn read(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Broken>;

    /// Whether it has been said that nothing more comes.
    fn is_over(&self) -> bool {
        false
    }

    /// The stream is over. Some formats say only now what they had to say.
    fn end(&mut self, out: &mut Vec<Delta>) {
        let _ = out;
    }
}

impl Decoder {
    pub(crate) fn new(reader: impl Reader + Send + 'static) -> Self {
        Self { events: Events::default(), reader: Box::new(reader), stopped: false }
    }

    /// Takes bytes, and gives what was said by them.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, Broken> {
        let events = self.events.feed(bytes).ok_or_else(|| Broken::Odd("a line without an end".to_owned()))?;
        let mut out = Vec::new();
        for event in events {
            self.reader.read(&event, &mut out)?;
        }
        self.stopped |= out.iter().any(|delta| matches!(delta, Delta::Stopped(_)));
        Ok(out)
    }

    /// Whether nothing more comes, though the connection may stay open.
    pub fn is_over(&self) -> bool {
        self.reader.is_over()
    }

    /// The stream is over. It was cut off if nobody said why it ended.
    pub fn finish(mut self) -> Result<Vec<Delta>, Broken> {
        let mut out = Vec::new();
        if let Some(event) = std::mem::take(&mut self.events).finish() {
            self.reader.read(&event, &mut out)?;
        }
        self.reader.end(&mut out);
        self.stopped |= out.iter().any(|delta| matches!(delta, Delta::Stopped(_)));
        if self.stopped { Ok(out) } else { Err(Broken::Cut) }
    }
}

/// A JSON object in an event, or what is wrong with it.
pub(crate) fn object(event: &Event) -> Result<Value, Broken> {
    serde_json::from_str::<Value>(&event.data)
        .ok()
        .filter(Value::is_object)
        .ok_or_else(|| Broken::Odd(format!("`{}` is no JSON object", crate::preview::inert(shortened(&event.data)))))
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(80)]
}

/// More than anybody counts. Sums of what is below stay numbers.
const COUNT_MAX: u64 = 1 << 40;

/// A number that may be missing, or beyond all measure: it is a provider's word.
pub(crate) fn count(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_default().min(COUNT_MAX)
}

/// What is counted and why it ended, once.
pub(crate) fn ended(usage: Usage, stop: Stop, out: &mut Vec<Delta>) {
    out.push(Delta::Usage(usage));
    out.push(Delta::Stopped(stop));
}

#[cfg(test)]
mod tests;
