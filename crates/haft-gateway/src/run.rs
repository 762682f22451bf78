//! A call that came through this door, from here to its outcome.

use crate::gateway::{Gateway, Shared};
use crate::options::WhenGone;
use crate::waiting::{Place, Waiting};
use haft_core::approval::{Decider, DeciderIdentity, Decision, Verdict};
use haft_core::{Call, CallError, CallId, Outcome, SessionId};
use haft_runtime::{Approver, BoxFuture, Halt, Question, Said};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long a caller may let a call wait for a person.
pub(crate) const PATIENCE_MAX: Duration = Duration::from_hours(1);

/// Nobody is asked at this door itself: whoever looks into the inbox decides.
pub(crate) struct Inbox<'w> {
    patience: Duration,
    waiting: &'w Waiting,
    session: SessionId,
    /// Taken when there is something to wait for; without one, the question is stored and not waited for.
    place: OnceLock<Option<Place>>,
}

impl<'w> Inbox<'w> {
    pub(crate) fn new(patience: Duration, waiting: &'w Waiting, session: SessionId) -> Self {
        Self { patience, waiting, session, place: OnceLock::new() }
    }
}

impl Approver for Inbox<'_> {
    fn decider(&self) -> Decider {
        DeciderIdentity::Unattended { door: "gateway" }.into()
    }
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Nobody))
    }
    fn patience(&self) -> Duration {
        if self.patience.is_zero() {
            return self.patience;
        }
        let place = self.place.get_or_init(|| self.waiting.enter(&self.session));
        if place.is_some() { self.patience } else { Duration::ZERO }
    }
}

/// What is said to a call for which there is no room.
pub(crate) const TOO_MANY_WAIT: &str = "busy: too many calls wait for a person; wait for an answer, or send wait_ms 0";

/// How a call is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) patience: Duration,
    pub(crate) dry_run: bool,
}

/// Cancels what nobody waits for any more.
struct Leash(Option<Halt>);

impl Drop for Leash {
    fn drop(&mut self) {
        if let Some(halt) = self.0.take() {
            halt.cancel();
        }
    }
}

/// A call that is under way, as long as this lives. One that is sent again meanwhile is the first one's.
struct Active<'a> {
    all: &'a Mutex<HashMap<CallId, SessionId>>,
    id: Option<CallId>,
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        }
    }
}

impl Gateway {
    /// Makes a call. It runs in a task of its own: if the caller goes away meanwhile (this future is dropped), it is
    /// cancelled and ends as such, or is carried to its end. Either way the record is whole.
    pub(crate) async fn call(self: &Shared, call: Call, manner: Manner) -> Outcome {
        let halt = self.work.halt.narrowed();
        let gone = (self.options.when_gone == WhenGone::Cancel).then(|| halt.clone());
        let (id, tool) = (call.id.clone(), call.spoken.clone());
        let gateway = Shared::clone(self);
        let task = self.work.tasks.spawn(async move { gateway.carry(call, manner, &halt).await });
        let mut leash = Leash(gone);
        let outcome = task.await.unwrap_or_else(|crash| crashed(id, &tool, &crash));
        leash.0 = None;
        outcome
    }

    async fn carry(&self, call: Call, manner: Manner, halt: &Halt) -> Outcome {
        self.hub.own(&call.id);
        let _active = self.active(&call);
        if manner.dry_run {
            return self.haft.dry_run(call, halt).await;
        }
        let (patience, session) = (manner.patience.min(PATIENCE_MAX), call.session.clone());
        let inbox = Inbox::new(patience, &self.work.waiting, session);
        self.haft.call(call, &inbox, halt).await
    }

    fn active(&self, call: &Call) -> Active<'_> {
        let all = &self.work.active;
        let mut active = all.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !active.contains_key(&call.id);
        if is_first {
            active.insert(call.id.clone(), call.session.clone());
        }
        drop(active);
        Active { all, id: is_first.then(|| call.id.clone()) }
    }

    /// Whether a call that is ready to wait may begin: not while there are too many that do.
    pub(crate) fn has_room(&self, call: &Call, manner: Manner) -> bool {
        manner.dry_run || manner.patience.is_zero() || self.work.waiting.has_room(&call.session)
    }

    /// Whose a call is that came through this door and is under way.
    pub(crate) fn whose(&self, call: &CallId) -> Option<SessionId> {
        self.work.active.lock().unwrap_or_else(PoisonError::into_inner).get(call).cloned()
    }

    /// Cancels the calls of a session that came through this door. Returns which.
    pub(crate) fn cancel_session(&self, session: &SessionId) -> Vec<CallId> {
        let active = self.work.active.lock().unwrap_or_else(PoisonError::into_inner);
        let calls: Vec<CallId> =
            active.iter().filter(|(_, whose)| *whose == session).map(|(call, _)| call.clone()).collect();
        drop(active);
        calls.into_iter().filter(|call| self.haft.cancel(call)).collect()
    }

    /// Does something to its end, whether or not whoever wanted it stays.
    pub(crate) async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<T, CallError> {
        let done = self.work.tasks.spawn(work).await;
        done.unwrap_or_else(|crash| Err(CallError::internal(format!("it crashed: {crash}"))))
    }
}

fn crashed(id: CallId, tool: &str, crash: &tokio::task::JoinError) -> Outcome {
    let error = CallError::internal(format!("the call crashed: {crash}")).hint("`haft log` shows how far it came");
    let verdict = Verdict::new(Decision::Deny, "gateway", "the call did not come to its end");
    Outcome::failure(id, haft_core::preview::inert(tool), error, verdict)
}
