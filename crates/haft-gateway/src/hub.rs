//! One stream of numbered events for everybody who listens.
//!
//! Each event is written down once and shared. A listener that falls behind loses the oldest and is told how many;
//! one that comes back with the number of its last event gets what it missed, as far as that is still kept.

use crate::gateway::Shared;
use bytes::Bytes;
use haft_core::{CallId, Outcome, SessionId};
use haft_runtime::media::{Attachment, url_safe};
use haft_runtime::{Event, now_ms};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// How many events are kept for those who come back, and how large all of them may be.
const KEPT: usize = 1024;
const KEPT_BYTES: usize = 8 << 20;
/// How far behind a listener may fall.
const BEHIND: usize = 512;
/// An outcome larger than this is cut in events; all of it can be fetched.
const OUTCOME_MAX: usize = 16 << 10;
/// How many whole outcomes are kept, and how large all of them may be.
const OUTCOMES: usize = 256;
const OUTCOMES_BYTES: usize = 32 << 20;
/// How many calls of this process are remembered as its own.
const OWN: usize = 1 << 16;
/// How many decisions of this process are remembered: longer than the log takes to tell of them.
const DECIDED: usize = 256;

/// An event as it is sent.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Its number.
    pub(crate) id: u64,
    /// Whose it is; nobody's in particular is everybody's.
    pub(crate) session: Option<SessionId>,
    /// As a server-sent event.
    pub(crate) sse: Bytes,
}

/// The stream.
pub(crate) struct Hub {
    sender: broadcast::Sender<Arc<Frame>>,
    kept: Mutex<Kept>,
    recent: Mutex<Recent>,
}

struct Kept {
    first: u64,
    next: u64,
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
}

/// What is remembered of this process's calls.
#[derive(Default)]
struct Recent {
    outcomes: HashMap<CallId, Arc<Outcome>>,
    order: VecDeque<(CallId, usize)>,
    bytes: usize,
    own: HashSet<CallId>,
    own_order: VecDeque<CallId>,
    decided: VecDeque<CallId>,
}

/// Somebody who listens.
pub(crate) struct Listener {
    /// What comes first, because it was missed.
    pub(crate) replayed: VecDeque<Arc<Frame>>,
    /// How many more were missed and are gone; `Some(0)` if nobody knows, because another process sent them.
    pub(crate) missed: Option<u64>,
    /// What comes from now on.
    pub(crate) coming: broadcast::Receiver<Arc<Frame>>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        // Numbers go on where an earlier process cannot have been, so that none means two events.
        let first = u64::try_from(now_ms()).unwrap_or_default() * 1000;
        let kept = Kept { first, next: first, frames: VecDeque::new(), bytes: 0 };
        Self { sender: broadcast::Sender::new(BEHIND), kept: Mutex::new(kept), recent: Mutex::default() }
    }

    /// Tells everybody.
    pub(crate) fn publish(&self, name: &str, session: Option<SessionId>, data: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let id = kept.next;
        kept.next += 1;
        let frame = Arc::new(Frame { id, session, sse: sse(Some(id), name, data) });
        kept.bytes += frame.sse.len();
        kept.frames.push_back(Arc::clone(&frame));
        while kept.frames.len() > KEPT || kept.bytes > KEPT_BYTES {
            let Some(old) = kept.frames.pop_front() else { break };
            kept.bytes -= old.sse.len();
        }
        // Under the lock, so that nobody who begins to listen gets an event twice or not at all.
        let _ = self.sender.send(frame);
    }

    /// Listens, from after an event on if its number is known.
    pub(crate) fn listen(&self, last: Option<u64>) -> Listener {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let coming = self.sender.subscribe();
        let Some(last) = last else { return Listener { replayed: VecDeque::new(), missed: None, coming } };
        if last < kept.first.saturating_sub(1) || last >= kept.next {
            return Listener { replayed: kept.frames.clone(), missed: Some(0), coming };
        }
        let oldest = kept.frames.front().map_or(kept.next, |frame| frame.id);
        let gone = oldest.saturating_sub(last + 1);
        let replayed = kept.frames.iter().filter(|frame| frame.id > last).cloned().collect();
        Listener { replayed, missed: Some(gone).filter(|gone| *gone > 0), coming }
    }

    /// The whole outcome of a call, while it is kept.
    pub(crate) fn outcome(&self, call: &CallId) -> Option<Arc<Outcome>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).outcomes.get(call).cloned()
    }

    /// Remembers a call as this process's own: its events come from here, not from the log.
    pub(crate) fn own(&self, call: &CallId) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if !recent.own.insert(call.clone()) {
            return;
        }
        recent.own_order.push_back(call.clone());
        if recent.own_order.len() > OWN
            && let Some(old) = recent.own_order.pop_front()
        {
            recent.own.remove(&old);
        }
    }

    /// Whether a call is this process's own.
    pub(crate) fn is_own(&self, call: &CallId) -> bool {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).own.contains(call)
    }

    /// Remembers that a question was decided in this process.
    fn decided(&self, call: &CallId) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.decided.push_back(call.clone());
        if recent.decided.len() > DECIDED {
            recent.decided.pop_front();
        }
    }

    /// A question was decided, as the log says. If another process did that, what follows happens there, too.
    pub(crate) fn hand_over(&self, call: &CallId) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if !recent.decided.contains(call) {
            recent.own.remove(call);
        }
    }

    fn keep(&self, outcome: Outcome, size: usize) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let id = outcome.call_id.clone();
        if size > OUTCOMES_BYTES / 4 {
            return;
        }
        recent.bytes += size;
        recent.order.push_back((id.clone(), size));
        recent.outcomes.insert(id, Arc::new(outcome));
        while recent.order.len() > OUTCOMES || recent.bytes > OUTCOMES_BYTES {
            let Some((old, size)) = recent.order.pop_front() else { break };
            recent.bytes -= size;
            // A call that was first refused and then approved has two; the later one stays.
            if !recent.order.iter().any(|(id, _)| *id == old) {
                recent.outcomes.remove(&old);
            }
        }
    }
}

/// A server-sent event. JSON has no line breaks of its own, so the data is one line.
pub(crate) fn sse(id: Option<u64>, name: &str, data: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Bytes::from(format!("{id}event: {name}\ndata: {data}\n\n"))
}

/// Carries what happens in this process to those who listen, until the gateway closes.
pub(crate) async fn pump(gateway: Shared, mut events: broadcast::Receiver<Event>) {
    let mut tools = gateway.haft.registry().changes();
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Ok(event) => pass_on(&gateway, event),
                Err(RecvError::Lagged(count)) => {
                    gateway.meters.missed.inc_by(count);
                    gateway.hub.publish("missed", None, &json!({ "count": count }).to_string());
                }
                Err(RecvError::Closed) => return,
            },
            Ok(()) = tools.changed() => gateway.hub.publish("tools_changed", None, "{}"),
            () = gateway.work.closing.cancelled() => return,
        }
    }
}

/// The name and the data of an event, as every wire says them.
pub(crate) fn worded(event: &Event) -> (&'static str, Value) {
    match event {
        Event::CallStart { call_id, session, tool, preview } => {
            let now = now_ms();
            let data =
                json!({ "call_id": call_id, "session": session, "tool": tool, "preview": preview, "started_ms": now });
            ("tool_start", data)
        }
        Event::Approval { call_id, session, preview, verdict } => {
            let now = now_ms();
            let data = json!({ "call_id": call_id, "session": session, "preview": preview, "verdict": verdict, "asked_ms": now });
            ("approval", data)
        }
        Event::Decided { call_id, state, by } => ("decided", json!({ "call_id": call_id, "state": state, "by": by })),
        Event::RunsElsewhere { call_id } => ("runs_elsewhere", json!({ "call_id": call_id })),
        Event::Progress { call_id, message, done, .. } => {
            let mut data = json!({ "call_id": call_id, "message": message });
            if let Some(share) = done {
                data["progress"] = share.progress.into();
                data["total"] = share.total.map_or(Value::Null, Value::from);
            }
            ("tool_progress", data)
        }
        Event::Log { call_id, level, logger, data, .. } => {
            ("tool_log", json!({ "call_id": call_id, "level": level, "logger": logger, "data": data }))
        }
        Event::Attachment { call_id, session, attachment } => {
            let Attachment { name, mime_type, bytes, .. } = attachment;
            let data = json!({
                "call_id": call_id, "session": session, "name": name, "mime_type": mime_type, "bytes": bytes,
                "url": format!("/v1/calls/{call_id}/attachments/{}", url_safe(name)),
            });
            ("attachment", data)
        }
        Event::Step { session, run, step, state } => {
            ("step", json!({ "session": session, "run": run, "step": step, "state": state }))
        }
        Event::Agent { session, told } => ("agent", json!({ "session": session, "told": told })),
        Event::CallEnd { session, outcome } => ("tool_end", json!({ "outcome": outcome, "session": session })),
    }
}

fn pass_on(gateway: &Shared, event: Event) {
    let hub = &gateway.hub;
    match &event {
        Event::CallStart { call_id, session, .. }
        | Event::Progress { call_id, session, .. }
        | Event::Log { call_id, session, .. }
        | Event::Attachment { call_id, session, .. } => {
            hub.own(call_id);
            let (name, data) = worded(&event);
            hub.publish(name, Some(session.clone()), &data.to_string());
        }
        Event::Approval { call_id, session, preview, .. } => {
            hub.own(call_id);
            (gateway.options.waiting)(call_id.as_str(), preview);
            let (name, data) = worded(&event);
            hub.publish(name, Some(session.clone()), &data.to_string());
        }
        Event::Decided { call_id, state, .. } => {
            if *state != "amended" {
                hub.decided(call_id);
            }
            let (name, data) = worded(&event);
            hub.publish(name, None, &data.to_string());
        }
        Event::Step { session, .. } | Event::Agent { session, .. } => {
            let (name, data) = worded(&event);
            hub.publish(name, Some(session.clone()), &data.to_string());
        }
        // The log tells of the decision, the start and the end, which are the other process's.
        Event::RunsElsewhere { .. } => {}
        Event::CallEnd { .. } => ended(gateway, event),
    }
}

fn ended(gateway: &Shared, event: Event) {
    let Event::CallEnd { session, outcome } = event else { return };
    let hub = &gateway.hub;
    hub.own(&outcome.call_id);
    gateway.meters.ended(&outcome, gateway.haft.registry().has(&outcome.tool));
    let whole = written(&outcome, &session);
    let size = whole.len();
    let text = if size > OUTCOME_MAX { written(&cut(&outcome), &session) } else { whole };
    hub.publish("tool_end", Some(session), &text);
    hub.keep(*outcome, size);
}

fn written(outcome: &Outcome, session: &SessionId) -> String {
    let outcome = serde_json::to_string(outcome).unwrap_or_else(|_| "null".to_owned());
    format!("{{\"outcome\":{outcome},\"session\":{}}}", Value::from(session.as_str()))
}

/// An outcome for a timeline: as much of it as tells what it was.
pub(crate) fn cut(outcome: &Outcome) -> Outcome {
    let mut short = outcome.clone();
    let end = short.output.floor_char_boundary(OUTCOME_MAX / 4);
    short.output.truncate(end);
    (short.truncated, short.data) = (true, None);
    short.content = haft_core::ResultContent::default();
    short.warnings.truncate(8);
    if let Some(error) = &mut short.error {
        let end = error.message.floor_char_boundary(OUTCOME_MAX / 4);
        error.message.truncate(end);
        error.details = None;
    }
    if let Some(undo) = &mut short.undo {
        undo.files.truncate(32);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(listener: &Listener) -> Vec<u64> {
        listener.replayed.iter().map(|frame| frame.id).collect()
    }

    #[test]
    fn whoever_comes_back_gets_what_it_missed() {
        let hub = Hub::new();
        let first = hub.kept.lock().unwrap().first;
        (0..5).for_each(|number| hub.publish("x", None, &number.to_string()));
        let back = hub.listen(Some(first + 2));
        assert_eq!((ids(&back), back.missed), (vec![first + 3, first + 4], None));
        let fresh = hub.listen(None);
        assert!(fresh.replayed.is_empty() && fresh.missed.is_none());
        let current = hub.listen(Some(first + 4));
        assert!(current.replayed.is_empty() && current.missed.is_none());
    }

    #[test]
    fn whoever_comes_back_too_late_is_told_how_much_is_gone() {
        let hub = Hub::new();
        let first = hub.kept.lock().unwrap().first;
        (0..KEPT + 10).for_each(|_| hub.publish("x", None, "{}"));
        let late = hub.listen(Some(first + 4));
        assert_eq!((late.replayed.len(), late.missed), (KEPT, Some(5)));
        for stranger in [0, first + 1_000_000] {
            assert_eq!(hub.listen(Some(stranger)).missed, Some(0), "another process numbered that");
        }
    }

    #[test]
    fn a_call_is_another_processes_once_that_one_has_decided_it() {
        let (hub, here, there) = (Hub::new(), haft_runtime::new_call_id(), haft_runtime::new_call_id());
        for call in [&here, &there] {
            hub.own(call);
        }
        hub.decided(&here);
        for call in [&here, &there] {
            hub.hand_over(call);
        }
        assert!(hub.is_own(&here) && !hub.is_own(&there));
    }

    #[test]
    fn what_is_kept_has_a_size() {
        let hub = Hub::new();
        let large = "x".repeat(1 << 20);
        (0..100).for_each(|_| hub.publish("x", None, &large));
        assert!(hub.kept.lock().unwrap().bytes <= KEPT_BYTES);
    }

    #[test]
    fn an_event_is_a_block_of_lines() {
        assert_eq!(sse(Some(7), "tool_start", "{}"), "id: 7\nevent: tool_start\ndata: {}\n\n");
    }
}
