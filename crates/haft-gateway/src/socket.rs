//! JSON-RPC over a WebSocket: many requests at once, and what happens to the calls among them.
//!
//! One task a socket reads, watches and writes, so nothing queues up: while the client does not read, nothing more is
//! taken from it, events that it is too slow for are counted and told, and after a while it is given up.

use crate::agent::{self, Send};
use crate::gateway::{Gateway, Shared};
use crate::guard::{Holder, Visitor};
use crate::hub;
use crate::meters::Counted;
use crate::problem::Problem;
use crate::rpc::{self, BUSY, Fault, Form, Invoke, Wanted};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use haft_core::{Call, CallId, Outcome, SessionId};
use haft_runtime::Event;
use haft_runtime::agent::Told;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How large a message may be.
const MESSAGE_MAX: usize = 1 << 20;
/// How many requests of one socket are worked on at once.
const AT_ONCE: usize = 64;
/// How often the client is asked whether it is there, and after how long without a word it is not.
const PING: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(75);
/// Outcomes larger than this are cut in events; the answer has all of it.
const EVENT_MAX: usize = 16 << 10;

/// `GET /ws`.
pub(crate) async fn upgrade(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    upgrade: WebSocketUpgrade,
) -> Response {
    // A socket is no longer counted as a connection, so there is a limit of its own.
    if gateway.meters.sockets.get() >= i64::try_from(gateway.options.connections).unwrap_or(i64::MAX) {
        return Problem::busy("there are too many sockets", 5).into_response();
    }
    let tasks = gateway.work.tasks.clone();
    upgrade
        .max_message_size(MESSAGE_MAX)
        .max_frame_size(MESSAGE_MAX)
        .on_upgrade(move |socket| tasks.track_future(talk(gateway, visitor, socket)))
}

/// A request that has been worked on.
struct Done {
    form: Form,
    id: Option<Value>,
    result: Answered,
}

enum Answered {
    Plainly(Result<Value, Fault>),
    Call(Box<Outcome>),
    Talk(SessionId, Result<Value, Fault>),
}

/// A call that is under way for this socket.
struct Open {
    form: Form,
    id: Value,
    /// Lets the session's next call begin.
    gate: Option<oneshot::Sender<()>>,
}

struct Conversation {
    gateway: Shared,
    visitor: Visitor,
    work: JoinSet<Done>,
    open: HashMap<CallId, Vec<Open>>,
    /// The session's latest call with effects has begun once this says so: calls of a session run in their order.
    latest: HashMap<SessionId, oneshot::Receiver<()>>,
    /// Who waits for the end of what is said in a session, the one whose turn it is first.
    said: HashMap<SessionId, VecDeque<(Form, Value)>>,
    /// How the client spoke last.
    form: Form,
}

async fn talk(gateway: Shared, visitor: Visitor, mut socket: WebSocket) {
    let _counted = Counted::new(&gateway.meters.sockets);
    let closing = gateway.work.closing.clone();
    let mut events = gateway.haft.events().listen();
    let mut with = Conversation {
        gateway,
        visitor,
        work: JoinSet::new(),
        open: HashMap::new(),
        latest: HashMap::new(),
        said: HashMap::new(),
        form: Form::Flynn,
    };
    let (mut heard, mut ping) = (Instant::now(), tokio::time::interval(PING));
    ping.reset();
    loop {
        let said = tokio::select! {
            // Events first: what happened to a call is told before its answer.
            biased;
            event = events.recv() => with.event(event),
            Some(done) = with.work.join_next() => done.map(|done| with.done(done)).unwrap_or_default(),
            message = socket.recv() => {
                heard = Instant::now();
                match message {
                    Some(Ok(Message::Text(text))) => with.hear(text.as_bytes()),
                    Some(Ok(Message::Binary(bytes))) => with.hear(&bytes),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => Vec::new(),
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                }
            }
            _ = ping.tick() => {
                if heard.elapsed() > SILENCE || socket.send(Message::Ping(Bytes::new())).await.is_err() {
                    break;
                }
                Vec::new()
            }
            () = closing.cancelled() => {
                let frame = CloseFrame { code: close_code::AWAY, reason: "the gateway closes".into() };
                let _ = socket.send(Message::Close(Some(frame))).await;
                break;
            }
        };
        for value in said {
            if socket.send(Message::Text(value.to_string().into())).await.is_err() {
                return;
            }
        }
    }
}

impl Conversation {
    /// Takes a message, and returns what can be answered at once.
    fn hear(&mut self, text: &[u8]) -> Vec<Value> {
        let wanted = match serde_json::from_slice(text) {
            Ok(value) => rpc::read(value),
            Err(error) => Err(rpc::not_json(self.form, &error)),
        };
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(answer) => return vec![answer],
        };
        self.form = wanted.form;
        if self.work.len() >= AT_ONCE {
            let fault = Fault::new(BUSY, format!("busy: {AT_ONCE} requests are being worked on; wait for an answer"));
            return wanted.id.map(|id| wanted.form.answer(&id, Err(fault))).into_iter().collect();
        }
        let Wanted { form, id, method, params } = wanted;
        if method == "tools.invoke" {
            return self.invoke(form, id, params).into_iter().collect();
        }
        if method == "agent.send" && self.visitor.holder != Holder::Agent {
            return self.send(form, id, params).into_iter().collect();
        }
        let (gateway, visitor) = (Shared::clone(&self.gateway), self.visitor);
        self.work.spawn(async move {
            let result = rpc::answer(&gateway, visitor, &method, params).await;
            Done { form, id, result: Answered::Plainly(result) }
        });
        Vec::new()
    }

    /// Says something in a session. What comes of it is told as it happens.
    fn send(&mut self, form: Form, id: Option<Value>, params: Value) -> Option<Value> {
        let read = || {
            let send: Send = rpc::given(params)?;
            let session = Gateway::spoken_in(self.visitor, send.session.as_deref())?;
            Ok((send, session))
        };
        let (send, session) = match read() {
            Ok(read) => read,
            Err(fault) => return id.map(|id| form.answer(&id, Err(fault))),
        };
        if let Some(id) = &id {
            self.said.entry(session.clone()).or_default().push_back((form, id.clone()));
        }
        let (gateway, visitor) = (Shared::clone(&self.gateway), self.visitor);
        self.work.spawn(async move {
            let result = gateway.send(visitor, session.clone(), send).await;
            Done { form, id, result: Answered::Talk(session, result) }
        });
        None
    }

    fn invoke(&mut self, form: Form, id: Option<Value>, params: Value) -> Option<Value> {
        let Invoke { call, manner } = match Invoke::read(&self.gateway, self.visitor, params) {
            Ok(invoke) => invoke,
            Err(fault) => return id.map(|id| form.answer(&id, Err(fault))),
        };
        let (before, gate) = self.queue(&call);
        if let Some(id) = &id {
            self.open.entry(call.id.clone()).or_default().push(Open { form, id: id.clone(), gate });
        }
        let gateway = Shared::clone(&self.gateway);
        self.work.spawn(async move {
            if let Some(before) = before {
                // It has begun, or it never will.
                let _ = before.await;
            }
            let outcome = Gateway::call(&gateway, call, manner).await;
            Done { form, id, result: Answered::Call(Box::new(outcome)) }
        });
        None
    }

    /// A place in the line of its session, for a call that may have effects: what to wait for, and what to tell the
    /// next one by. From where a call has begun, the runtime keeps the order.
    fn queue(&mut self, call: &Call) -> (Option<oneshot::Receiver<()>>, Option<oneshot::Sender<()>>) {
        let reads = self.gateway.haft.registry().resolve(call).is_ok_and(|meant| meant.entry.spec().read_only());
        if reads {
            return (None, None);
        }
        let (gate, begun) = oneshot::channel();
        if self.latest.len() > AT_ONCE {
            self.latest.retain(|_, begun| matches!(begun.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        }
        (self.latest.insert(call.session.clone(), begun), Some(gate))
    }

    /// What happens, if it happens to one of this socket's calls.
    fn event(&mut self, event: Result<Event, RecvError>) -> Vec<Value> {
        let event = match event {
            Ok(event) => event,
            Err(RecvError::Lagged(count)) => {
                self.gateway.meters.missed.inc_by(count);
                // Whatever was to be waited for may be among what was missed.
                self.open.values_mut().flatten().for_each(|open| drop(open.gate.take()));
                return vec![self.form.event(&Value::Null, "missed", &json!({ "count": count }))];
            }
            Err(RecvError::Closed) => return Vec::new(),
        };
        let call = match &event {
            Event::CallStart { call_id, .. }
            | Event::Approval { call_id, .. }
            | Event::Decided { call_id, .. }
            | Event::Progress { call_id, .. }
            | Event::Log { call_id, .. }
            | Event::Attachment { call_id, .. } => call_id,
            Event::CallEnd { outcome, .. } => &outcome.call_id,
            Event::Agent { session, told } => return self.told(session, told),
            // Steps are calls of their own, and are told as such; the log tells of what runs in another process.
            Event::Step { .. } | Event::RunsElsewhere { .. } => return Vec::new(),
        };
        let Some(open) = self.open.get_mut(call) else { return self.asked(&event) };
        for open in open.iter_mut() {
            drop(open.gate.take());
        }
        let (name, data) = match &event {
            // Its own end comes with its outcome.
            Event::CallEnd { .. } => return Vec::new(),
            other => hub::worded(other),
        };
        open.iter().map(|open| open.form.event(&open.id, name, &data)).collect()
    }

    /// That a call of a conversation which this socket waits for waits itself.
    fn asked(&self, event: &Event) -> Vec<Value> {
        let Event::Approval { session, .. } = event else { return Vec::new() };
        let Some((form, id)) = self.said.get(session).and_then(VecDeque::front) else { return Vec::new() };
        let (name, data) = hub::worded(event);
        vec![form.event(id, name, &data)]
    }

    /// What happens in a conversation that this socket waits for.
    fn told(&self, session: &SessionId, told: &Told) -> Vec<Value> {
        let Some((form, id)) = self.said.get(session).and_then(VecDeque::front) else { return Vec::new() };
        let (name, data) = agent::worded(told);
        vec![form.event(id, &name, &data)]
    }

    /// The answer to a request, and for a call the events of its end.
    fn done(&mut self, done: Done) -> Vec<Value> {
        let Done { form, id, result } = done;
        let outcome = match result {
            Answered::Plainly(result) => return id.map(|id| form.answer(&id, result)).into_iter().collect(),
            Answered::Talk(session, result) => {
                if let Some(waiting) = self.said.get_mut(&session) {
                    waiting.retain(|(_, waits)| Some(waits) != id.as_ref());
                    if waiting.is_empty() {
                        self.said.remove(&session);
                    }
                }
                let id = id.into_iter();
                return id
                    .flat_map(|id| {
                        let failed = result.as_ref().err().map(|fault| form.event(&id, "error", &fault.worded()));
                        failed.into_iter().chain([form.answer(&id, result.clone())]).collect::<Vec<_>>()
                    })
                    .collect();
            }
            Answered::Call(outcome) => outcome,
        };
        let Some(id) = id else { return Vec::new() };
        if let Some(open) = self.open.get_mut(&outcome.call_id) {
            open.retain(|open| open.id != id);
            if open.is_empty() {
                self.open.remove(&outcome.call_id);
            }
        }
        let small = outcome.output.len()
            + outcome.data.as_ref().map_or(0, |data| data.to_string().len())
            + outcome.content.length()
            < EVENT_MAX;
        let shown = if small { (*outcome).clone() } else { hub::cut(&outcome) };
        let last = match &outcome.error {
            None => form.event(&id, "done", &json!({ "call_id": outcome.call_id })),
            Some(error) => form.event(&id, "error", &json!({ "call_id": outcome.call_id, "error": error })),
        };
        let end = form.event(&id, "tool_end", &json!({ "outcome": shown }));
        vec![end, last, form.answer(&id, rpc::invoked(*outcome))]
    }
}
