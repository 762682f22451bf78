//! What is under way on one connection, so that a client that asks faster than it is answered waits, and nothing grows.

use rmcp::model::RequestId;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How many requests may be under way. More wait unread.
pub(super) const UNDER_WAY_MAX: usize = 256;

/// Whether the next message may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// Yes.
    Free,
    /// Only answers and notifications: something waits for the client, who must be heard, but its requests are
    /// refused.
    AnswersOnly,
}

/// What is under way.
#[derive(Default)]
pub(super) struct Flow {
    state: Mutex<State>,
    changed: Notify,
    /// Whether the protocol has begun; before that, only requests count.
    begun: AtomicBool,
    /// Whether the version that was agreed on has batches.
    pub(super) batches: AtomicBool,
    /// Cancelled when the client has gone.
    pub(super) gone: CancellationToken,
}

#[derive(Default)]
struct State {
    requests: HashSet<RequestId>,
    /// What the client was asked and has not answered.
    asked: HashSet<RequestId>,
}

impl Flow {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::Release);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    /// Notes a request. False if its id is in use.
    pub(super) fn enter(&self, id: &RequestId) -> bool {
        self.state().requests.insert(id.clone())
    }

    /// Notes that a request needs no answer any more.
    pub(super) fn leave(&self, id: &RequestId) {
        if self.state().requests.remove(id) {
            self.changed.notify_one();
        }
    }

    /// Notes that the client is asked something.
    pub(super) fn ask(&self, id: &RequestId) {
        self.state().asked.insert(id.clone());
        self.changed.notify_one();
    }

    /// Notes that it has answered, or need not any more.
    pub(super) fn answered(&self, id: &RequestId) {
        self.state().asked.remove(id);
    }

    /// Waits until the next message may be read.
    pub(super) async fn room(&self) -> Room {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state();
                if state.requests.len() < UNDER_WAY_MAX {
                    return Room::Free;
                }
                if !state.asked.is_empty() {
                    return Room::AnswersOnly;
                }
            }
            changed.await;
        }
    }

    /// Waits until nothing is under way.
    pub(super) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            if self.state().requests.is_empty() {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn a_full_connection_is_read_only_for_answers_that_are_waited_for() {
        let flow = Flow::default();
        for id in 0..UNDER_WAY_MAX {
            assert!(flow.enter(&RequestId::Number(i64::try_from(id).unwrap())));
        }
        assert_eq!(flow.room().now_or_never(), None);
        flow.ask(&RequestId::Number(0));
        assert_eq!(flow.room().now_or_never(), Some(Room::AnswersOnly));
        flow.answered(&RequestId::Number(0));
        assert_eq!(flow.room().now_or_never(), None);
        flow.leave(&RequestId::Number(7));
        assert_eq!(flow.room().now_or_never(), Some(Room::Free));
    }

    #[test]
    fn an_id_in_use_is_not_taken_twice() {
        let flow = Flow::default();
        assert!(flow.enter(&RequestId::Number(1)));
        assert!(!flow.enter(&RequestId::Number(1)));
        flow.leave(&RequestId::Number(1));
        assert!(flow.enter(&RequestId::Number(1)));
    }
}
