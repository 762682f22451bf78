//! Writing the body of a request. A conversation is sent whole with every request, and only its end is new: what was written
//! for one request is kept for the next.
//!
//! ```text
//! {"model": …, "system": …,   a frame: small, written anew
//!  "tools": [ … ],            kept until other tools are offered
//!  "messages": [ …, … , m ]}  kept but for the last message, which may get longer and bears the mark of the end
//! ```

use super::{Request, Wire};
use crate::agent::talk::Message;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// The small parts of a body.
pub(crate) struct Frame {
    /// An object.
    pub(crate) rest: Value,
    /// The name that the format gives to what was said.
    pub(crate) said: &'static str,
    /// What comes before all that was said, in formats that take it for a message.
    pub(crate) first: Option<Value>,
}

/// What was written of one conversation. Whoever changes something of it but its end says so.
#[derive(Debug, Default)]
pub struct Scribe {
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    wire: Option<Wire>,
    tools: Option<Vec<u8>>,
    said: Vec<u8>,
    /// How many messages that is.
    messages: usize,
}

impl Scribe {
    /// Other tools are offered from now on.
    pub fn forget_tools(&self) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).tools = None;
    }

    /// What was said has become something else than what it was with more at its end.
    pub fn forget(&self) {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Written::default();
    }

    pub(crate) fn write(&self, wire: Wire, request: &Request<'_>) -> Vec<u8> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = request.history.len().saturating_sub(1);
        if written.wire != Some(wire) || written.messages > kept {
            *written = Written { wire: Some(wire), ..Written::default() };
        }
        let Written { tools, said, messages, .. } = &mut *written;
        let add = |message: &Message, out: &mut Vec<u8>, is_last: bool| {
            let mut items = Vec::new();
            wire.said(message, request.history, is_last, &mut items);
            put(&items, out);
        };
        for message in &request.history[*messages..kept] {
            add(message, said, false);
        }
        *messages = kept;
        let tools = tools.get_or_insert_with(|| {
            let mut out = Vec::new();
            put(&wire.tools(request), &mut out);
            out
        });
        let frame = wire.frame(request);
        let mut body = Vec::with_capacity(said.len() + tools.len() + (64 << 10));
        let _ = serde_json::to_writer(&mut body, &frame.rest);
        // An object is never empty here: it has a limit at least.
        body.pop();
        if !tools.is_empty() {
            list("tools", tools, &mut body);
            body.push(b']');
        }
        let mut first = Vec::new();
        put(frame.first.as_slice(), &mut first);
        let between: &[u8] = if first.is_empty() || said.is_empty() { b"" } else { b"," };
        list(frame.said, &first, &mut body);
        body.extend_from_slice(between);
        body.extend_from_slice(said);
        if let Some(last) = request.history.last() {
            add(last, &mut body, true);
        }
        body.extend_from_slice(b"]}");
        body
    }
}

/// Opens a list that is one more part of an object.
fn list(name: &str, items: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":[");
    out.extend_from_slice(items);
}

/// Adds items to those of a list.
fn put(items: &[Value], out: &mut Vec<u8>) {
    for item in items {
        if !matches!(out.last(), None | Some(b'[')) {
            out.push(b',');
        }
        // Nothing fails when it is written to memory.
        let _ = serde_json::to_writer(&mut *out, item);
    }
}
