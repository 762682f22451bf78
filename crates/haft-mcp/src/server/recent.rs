//! The latest calls, for whoever looks back at them in the same session.

use haft_core::{Call, CallId, SessionId};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// How many calls are remembered.
const RECENT_MAX: usize = 1000;
/// How many ends of calls a slow listener may miss before it is told only that it missed some.
const MISSED_MAX: usize = 64;

/// A call that was made.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) id: CallId,
    /// By which name.
    pub(super) spoken: String,
    session: SessionId,
}

/// The latest calls, newest last.
pub(super) struct Recent {
    calls: Mutex<VecDeque<Made>>,
    ended: broadcast::Sender<(SessionId, CallId)>,
}

impl Default for Recent {
    fn default() -> Self {
        Self { calls: Mutex::default(), ended: broadcast::Sender::new(MISSED_MAX) }
    }
}

impl Recent {
    fn calls(&self) -> MutexGuard<'_, VecDeque<Made>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, call: &Call) {
        let mut calls = self.calls();
        if calls.len() >= RECENT_MAX {
            calls.pop_front();
        }
        let spoken = haft_core::preview::cut(&haft_core::preview::inert(&call.spoken), 200);
        calls.push_back(Made { id: call.id.clone(), spoken, session: call.session.clone() });
    }

    /// The latest of a session, newest first.
    pub(super) fn of(&self, session: &SessionId, limit: usize) -> Vec<Made> {
        self.calls().iter().rev().filter(|made| made.session == *session).take(limit).cloned().collect()
    }

    pub(super) fn holds(&self, session: &SessionId, call: &CallId) -> bool {
        self.calls().iter().any(|made| made.session == *session && made.id == *call)
    }

    /// Tells whoever listens that a call has ended.
    pub(super) fn ended(&self, session: SessionId, call: CallId) {
        // Often nobody listens.
        let _ = self.ended.send((session, call));
    }

    /// Hears of calls as they end.
    pub(super) fn listen(&self) -> broadcast::Receiver<(SessionId, CallId)> {
        self.ended.subscribe()
    }
}
