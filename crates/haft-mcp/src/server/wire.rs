//! The protocol over stdin and stdout: a line a message. Whatever comes in has a defined answer, and none ends the
//! server.

use super::batch::{BATCH_MAX, Batch, Batches};
use super::flow::{Flow, Room, UNDER_WAY_MAX};
use super::pipes::{Sink, Source};
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, ProtocolVersion, RequestId,
    ServerNotification, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

/// Longer messages are refused unread.
const LINE_MAX: usize = 16 << 20;
/// How long what was cancelled may take to end when the client has gone.
const ENDING: Duration = Duration::from_secs(10);
/// How long a client that does not read may hold up the end.
const FLUSHING: Duration = Duration::from_secs(2);

/// What a line says.
enum Heard {
    /// Something for the protocol.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// Nothing that could be acted on; this is the answer.
    Refused(Box<TxJsonRpcMessage<RoleServer>>),
    /// Several messages.
    Batch(Vec<Value>),
    /// Nothing.
    Nothing,
}

/// One client on stdin and stdout.
pub(super) struct Wire {
    source: Source,
    sink: Arc<Sink>,
    flow: Arc<Flow>,
    buffer: Vec<u8>,
    /// Where the next line begins in the buffer, and how far it was searched for its end.
    start: usize,
    searched: usize,
    /// Whether the rest of a line is skipped that was too long.
    skipping: bool,
    ended: bool,
    finish_when_gone: bool,
    /// What came in a batch and was not given out yet.
    unpacked: VecDeque<RxJsonRpcMessage<RoleServer>>,
    batches: Batches,
    /// The task that writes.
    _writer: JoinSet<()>,
}

impl Wire {
    /// The process's own.
    pub(super) fn stdio(flow: Arc<Flow>, finish_when_gone: bool) -> io::Result<Self> {
        let mut writer = JoinSet::new();
        let gone = flow.gone.clone();
        let sink = Sink::stdout(&mut writer, move || gone.cancel());
        Ok(Self {
            source: Source::stdin()?,
            sink,
            flow,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            skipping: false,
            ended: false,
            finish_when_gone,
            unpacked: VecDeque::new(),
            batches: Batches::default(),
            _writer: writer,
        })
    }

    /// The next line's place in the buffer; none at the end. A last line without an end counts as one.
    async fn line(&mut self) -> Option<std::ops::Range<usize>> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.start..self.searched + at;
                self.start = line.end + 1;
                self.searched = self.start;
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                return Some(line);
            }
            self.searched = self.buffer.len();
            self.make_room();
            if self.ended {
                return None;
            }
            if !self.source.read(&mut self.buffer).await {
                self.ended = true;
                let rest = self.start..self.buffer.len();
                self.start = rest.end;
                self.searched = rest.end;
                return (!rest.is_empty() && !self.skipping).then_some(rest);
            }
        }
    }

    /// Forgets what was read, and refuses a line that has grown too long.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        if self.buffer.len() > LINE_MAX || self.skipping {
            if !std::mem::replace(&mut self.skipping, true) {
                let message = format!("a message is larger than {} MiB; pass large content by file", LINE_MAX >> 20);
                self.sink.push(&refusal(None, ErrorCode::INVALID_REQUEST, message));
            }
            self.buffer.clear();
            self.searched = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
    }

    /// What a line says.
    fn heard(&self, line: &[u8], room: Room) -> Heard {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return Heard::Nothing;
        }
        let Ok(message) = serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line) else {
            return self.complain(line);
        };
        match &message {
            JsonRpcMessage::Request(request) => {
                if room == Room::AnswersOnly {
                    let why = format!("{UNDER_WAY_MAX} requests are under way; ask again when some are answered");
                    return refused(Some(request.id.clone()), ErrorCode(-32000), why);
                }
                if !self.flow.enter(&request.id) {
                    let why = "a request with this id is under way";
                    return refused(Some(request.id.clone()), ErrorCode::INVALID_REQUEST, why);
                }
                return Heard::Message(Box::new(message));
            }
            JsonRpcMessage::Response(response) => self.flow.answered(&response.id),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.flow.answered(id);
                }
            }
            JsonRpcMessage::Notification(_) => {
                if has_id(line) {
                    return refused(None, ErrorCode::INVALID_REQUEST, "an id is a string or a whole number");
                }
                if let Some(id) = cancelled(&message) {
                    // Nobody waits for its answer any more, and none is sent.
                    self.flow.leave(id);
                }
            }
        }
        // Before the protocol has begun there is nothing that these could be about.
        if self.flow.has_begun() { Heard::Message(Box::new(message)) } else { Heard::Nothing }
    }

    /// Answers what is no message.
    fn complain(&self, line: &[u8]) -> Heard {
        match serde_json::from_slice::<Value>(line) {
            Err(error) => refused(None, ErrorCode::PARSE_ERROR, format!("this is not JSON: {error}")),
            Ok(Value::Array(members)) => {
                let why = if !self.flow.batches.load(Ordering::Relaxed) {
                    "this version of the protocol has no batches: send one message a line".to_owned()
                } else if (1..=BATCH_MAX).contains(&members.len()) {
                    return Heard::Batch(members);
                } else {
                    format!("a batch holds between one and {BATCH_MAX} messages")
                };
                refused(None, ErrorCode::INVALID_REQUEST, why)
            }
            Ok(value) => {
                let why = "this is no JSON-RPC 2.0 message: it needs jsonrpc \"2.0\", and a method or a result";
                refused(id_in(&value), ErrorCode::INVALID_REQUEST, why)
            }
        }
    }

    /// Takes a batch apart.
    fn unpack(&mut self, members: Vec<Value>, room: Room) {
        let (mut left, mut said) = (HashSet::new(), Vec::new());
        let before = self.unpacked.len();
        for member in members {
            let heard = match &member {
                Value::Array(_) => refused(None, ErrorCode::INVALID_REQUEST, "a batch holds no batches"),
                _ => self.heard(member.to_string().as_bytes(), room),
            };
            match heard {
                Heard::Message(message) => {
                    if let JsonRpcMessage::Request(request) = &*message {
                        left.insert(request.id.clone());
                    }
                    self.unpacked.push_back(*message);
                }
                Heard::Refused(refusal) => said.extend(serde_json::to_value(&refusal).ok()),
                Heard::Batch(_) | Heard::Nothing => {}
            }
        }
        if let Some(whole) = self.batches.open(Batch { left, said }) {
            self.sink.push(&whole);
        }
        let gone: Vec<RequestId> = self.unpacked.range(before..).filter_map(cancelled).cloned().collect();
        for id in &gone {
            self.unanswered(id);
        }
    }

    /// A request has no answer any more; its batch does not wait for one.
    fn unanswered(&mut self, id: &RequestId) {
        if let Some(whole) = self.batches.answer(id, None) {
            self.sink.push(&whole);
        }
    }

    /// Sends a message; an answer to what came in a batch waits for the others.
    fn say(&mut self, item: &TxJsonRpcMessage<RoleServer>) {
        let id = match item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let Some(id) = id.filter(|id| self.batches.holds(id)) else { return self.sink.push(item) };
        if let Some(whole) = self.batches.answer(id, serde_json::to_value(item).ok()) {
            self.sink.push(&whole);
        }
    }

    /// The client has gone: what is under way is ended or carried to its end.
    async fn part(&self) {
        self.flow.gone.cancel();
        if self.finish_when_gone {
            self.flow.idle().await;
        } else {
            // What does not end is ended with the process.
            let _ = tokio::time::timeout(ENDING, self.flow.idle()).await;
        }
    }
}

fn refusal(id: Option<RequestId>, code: ErrorCode, message: impl Into<String>) -> TxJsonRpcMessage<RoleServer> {
    JsonRpcMessage::error(ErrorData::new(code, message.into(), None), id)
}

fn refused(id: Option<RequestId>, code: ErrorCode, message: impl Into<String>) -> Heard {
    Heard::Refused(Box::new(refusal(id, code, message)))
}

/// The request that a message cancels.
fn cancelled(message: &RxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    let JsonRpcMessage::Notification(notification) = message else { return None };
    let ClientNotification::CancelledNotification(cancelled) = &notification.notification else { return None };
    let CancelledNotificationParam { request_id, .. } = &cancelled.params;
    request_id.as_ref()
}

/// The usable id of something that is otherwise no message.
fn id_in(value: &Value) -> Option<RequestId> {
    match value.get("id")? {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        _ => None,
    }
}

/// Whether a message that was taken for a notification has an id after all, of which nothing can be made.
fn has_id(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Probe {
        #[serde(default, deserialize_with = "present")]
        id: Option<Value>,
    }
    /// Tells `null` from nothing.
    fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(from).map(Some)
    }
    serde_json::from_slice::<Probe>(line).is_ok_and(|probe| probe.id.is_some())
}

impl Transport<RoleServer> for Wire {
    type Error = Infallible;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.say(&item);
        match &item {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(agreed) = &response.result {
                    let has = agreed.protocol_version == ProtocolVersion::V_2025_03_26;
                    self.flow.batches.store(has, Ordering::Relaxed);
                }
                self.flow.leave(&response.id);
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.flow.leave(id);
                }
            }
            JsonRpcMessage::Request(request) => self.flow.ask(&request.id),
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // The client was asked and need not answer any more.
                    self.flow.answered(id);
                }
            }
        }
        let sink = Arc::clone(&self.sink);
        async move {
            sink.room().await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(message) = self.unpacked.pop_front() {
                return Some(message);
            }
            // Whoever does not read what is said is not listened to.
            self.sink.room().await;
            let room = self.flow.room().await;
            let Some(line) = self.line().await else {
                self.part().await;
                return None;
            };
            match self.heard(&self.buffer[line], room) {
                Heard::Message(message) => {
                    if let Some(id) = cancelled(&message) {
                        self.unanswered(id);
                    }
                    return Some(*message);
                }
                Heard::Refused(refusal) => self.sink.push(&*refusal),
                Heard::Batch(members) => self.unpack(members, room),
                Heard::Nothing => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        // A client that does not read must not hold up the end.
        let _ = tokio::time::timeout(FLUSHING, self.sink.flushed()).await;
        Ok(())
    }
}
