//! What goes on at once in a conversation: an answer, its calls, and the clock.

use super::super::model::Model;
use super::funds::Held;
use crate::approver::Approver;
use crate::halt::Halt;
use crate::now_ms;
use crate::orchestrate::Asked;
use crate::pipeline::Haft;
use crate::tool::BoxFuture;
use haft_core::agent::turns::{End, Failure};
use haft_core::agent::{Block, Delta, Usage};
use haft_core::{Call, CallId, Caller, Outcome};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How many calls one answer may make. More are told so, and not made.
pub(super) const CALLS_MAX: usize = 1000;
/// How wide one line about a call is.
const PREVIEW: usize = 120;

/// An answer that is awaited.
pub(super) struct Asking {
    /// Asks; over once it is `None`.
    pub(super) work: Option<BoxFuture<'static, Result<(), Failure>>>,
    pub(super) came: Result<(), Failure>,
    pub(super) said: mpsc::Receiver<Delta>,
    pub(super) reserved: Held,
    /// What it would read, about, if nobody tells.
    pub(super) estimate: u64,
    pub(super) usage: Option<Usage>,
    pub(super) written: usize,
    pub(super) model: usize,
}

/// The calls of one answer.
pub(super) struct Calls<'d> {
    pub(super) sender: Option<mpsc::Sender<Asked>>,
    /// Makes them; over once it is `None`.
    pub(super) work: Option<BoxFuture<'d, ()>>,
    pub(super) outcomes: mpsc::UnboundedReceiver<Outcome>,
    pub(super) ids: HashMap<CallId, String>,
    pub(super) halt: Halt,
    pub(super) left: usize,
}

impl<'d> Calls<'d> {
    pub(super) fn new<'h: 'd>(layer: &'h Haft, approver: &'d dyn Approver, halt: &Halt) -> Self {
        let (sender, asked) = mpsc::channel(CALLS_MAX);
        let (done, outcomes) = mpsc::unbounded_channel();
        let halt = halt.narrowed();
        let own = halt.clone();
        let work = async move {
            let each = |outcome| {
                // Nobody listens once the conversation has ended.
                let _ = done.send(outcome);
            };
            layer.call_each(asked, approver, &own, each).await;
        };
        Self { sender: Some(sender), work: Some(Box::pin(work)), outcomes, ids: HashMap::new(), halt, left: CALLS_MAX }
    }
}

/// The next piece of an answer; nothing once it is over.
pub(super) async fn said(asking: &mut Option<Asking>) -> Option<Delta> {
    let Some(asking) = asking else { return std::future::pending().await };
    loop {
        let Some(work) = &mut asking.work else { return asking.said.recv().await };
        tokio::select! {
            biased;
            Some(delta) = asking.said.recv() => return Some(delta),
            came = work => (asking.work, asking.came) = (None, came),
        }
    }
}

/// The next outcome; nothing once there are no more to come.
pub(super) async fn called(calls: &mut Option<Calls<'_>>) -> Option<Outcome> {
    let Some(calls) = calls else { return std::future::pending().await };
    let Some(work) = &mut calls.work else { return calls.outcomes.recv().await };
    tokio::select! {
        biased;
        outcome = calls.outcomes.recv() => return outcome,
        () = work => calls.work = None,
    }
    calls.outcomes.recv().await
}

/// What comes of something that may be under way.
pub(super) async fn done<T>(work: &mut Option<BoxFuture<'_, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// What somebody says meanwhile.
pub(super) async fn more(meanwhile: &mut Option<mpsc::UnboundedReceiver<Vec<Block>>>) -> Vec<Block> {
    if let Some(queue) = meanwhile
        && let Some(blocks) = queue.recv().await
    {
        return blocks;
    }
    *meanwhile = None;
    std::future::pending().await
}

pub(super) async fn until(at_ms: Option<i64>) {
    match at_ms {
        Some(at) => {
            let left = u64::try_from(at - now_ms()).unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
        None => std::future::pending().await,
    }
}

/// One line about a call, before anybody has looked at it closely.
pub(super) fn preview(haft: &Haft, call: &Call) -> String {
    match haft.registry.resolve(call) {
        Ok(meant) => {
            let spec = meant.entry.spec();
            let bodies = &spec.reach.bodies;
            haft_core::preview::line(spec.name.as_str(), (spec.name.as_str(), bodies), &meant.args.args, None, PREVIEW)
        }
        Err(_) => haft_core::preview::cut(&haft_core::preview::inert(&call.spoken), PREVIEW),
    }
}

/// How a conversation ended, in a word.
pub(super) fn state(end: &End) -> String {
    match end {
        End::Failed(_) => "failed".to_owned(),
        other => serde_json::to_value(other).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default(),
    }
}

/// Whoever makes calls, with the provider of the model that is asked: policy may differ by both.
pub(super) fn as_asked(caller: &Caller, model: Option<&Arc<dyn Model>>) -> Caller {
    Caller { provider: model.map(|model| model.name().provider.clone()), ..caller.clone() }
}

impl<'h: 'd, 'd> super::Drive<'_, 'h, 'd> {
    /// Ends the calls that are under way, and waits until they have ended. What they gave until then is told.
    pub(super) async fn halt_calls(&mut self) {
        if let Some(mut calls) = self.calls.take() {
            calls.halt.cancel();
            drop(calls.sender.take());
            if let Some(work) = calls.work.take() {
                work.await;
            }
            while let Ok(outcome) = calls.outcomes.try_recv() {
                if let Some(id) = calls.ids.remove(&outcome.call_id) {
                    let called = self.ended_call(id, outcome);
                    self.on(called);
                }
            }
        }
    }
}
