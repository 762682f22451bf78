//! The warm interpreters of one haft: a few, each for one tool as it stands, so that the second call does not pay for a
//! start.

use super::interpreter::Interpreter;
use crate::halt::Halt;
use haft_core::record::Digest;
use haft_core::{CallError, ErrorKind};
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many there are at once, in use or not.
const MOST: usize = 4;
/// How long one that ended by itself is not started again: at first, and at most.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MOST: Duration = Duration::from_secs(30);
/// How many tools are remembered to have failed.
const PAUSES_MAX: usize = 256;

/// The interpreters of one haft.
#[derive(Debug)]
pub struct Interpreters {
    seats: Arc<Semaphore>,
    /// How many are in use. Whoever has a seat and has not come yet is not among them.
    used: Arc<AtomicUsize>,
    rest: Mutex<Rest>,
}

/// What nobody uses at the moment.
#[derive(Debug, Default)]
struct Rest {
    /// Those that were used longest ago first.
    idle: VecDeque<(Digest, Interpreter)>,
    pauses: HashMap<Digest, Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    until: Instant,
    /// How long it was.
    length: Duration,
}

/// The right to one interpreter.
#[derive(Debug)]
pub(super) struct Seat {
    /// Set when it is taken.
    used: Option<Used>,
    _permit: OwnedSemaphorePermit,
}

/// One that is in use, as long as this lives.
#[derive(Debug)]
struct Used(Arc<AtomicUsize>);

impl Used {
    fn one_more(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Default for Interpreters {
    fn default() -> Self {
        Self { seats: Arc::new(Semaphore::new(MOST)), used: Arc::default(), rest: Mutex::default() }
    }
}

impl Interpreters {
    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there may be one more. Whoever came first is first, and whoever goes away is skipped.
    pub(super) async fn seat(&self, key: Digest, halt: &Halt) -> Result<Seat, CallError> {
        self.check_pause(key)?;
        let seat = tokio::select! {
            seat = Arc::clone(&self.seats).acquire_owned() => seat,
            error = halt.stopped() => return Err(error),
        };
        let seat = seat.map_err(|_| CallError::internal("there are no interpreters any more"))?;
        // Meanwhile it may have failed for somebody else.
        self.check_pause(key)?;
        Ok(Seat { used: None, _permit: seat })
    }

    /// A warm one for this key, if there is one that may go on. Then, and otherwise, there is room for the one that the
    /// seat is for.
    pub(super) async fn take(&self, key: Digest, seat: &mut Seat) -> Option<Interpreter> {
        loop {
            let found = {
                let mut rest = self.rest();
                // Under the same lock: nobody is to make room for the one that is about to be taken.
                seat.used.get_or_insert_with(|| Used::one_more(&self.used));
                // The one that was used last is the warmest.
                let at = rest.idle.iter().rposition(|(known, _)| *known == key);
                at.and_then(|at| rest.idle.remove(at))
            };
            match found {
                Some((_, interpreter)) if interpreter.wake() => return Some(interpreter),
                Some((_, stale)) => stale.end().await,
                None => break,
            }
        }
        self.make_room().await;
        None
    }

    /// Ends those that were idle longest, until there is room for all that are in use.
    async fn make_room(&self) {
        loop {
            let over = {
                let mut rest = self.rest();
                let gone = rest.idle.iter().position(|(_, interpreter)| interpreter.is_gone());
                match gone {
                    Some(at) => rest.idle.remove(at),
                    None if rest.idle.len() + self.used.load(Ordering::Acquire) > MOST => rest.idle.pop_front(),
                    None => None,
                }
            };
            match over {
                Some((_, interpreter)) => interpreter.end().await,
                None => return,
            }
        }
    }

    /// Gives one back, to be used again.
    pub(super) fn give_back(&self, key: Digest, interpreter: Interpreter, seat: Seat) {
        interpreter.rest();
        let mut rest = self.rest();
        rest.idle.push_back((key, interpreter));
        // Under the same lock: it counts as idle from the moment on at which it is not in use.
        drop(seat);
    }

    /// It ended by itself: the next start has to wait.
    pub(super) fn failed(&self, key: Digest) {
        let mut rest = self.rest();
        let now = Instant::now();
        if rest.pauses.len() >= PAUSES_MAX {
            rest.pauses.retain(|_, pause| now < pause.until + PAUSE_MOST);
        }
        let length = rest.pauses.get(&key).map_or(PAUSE_FIRST, |pause| next_pause(pause.length));
        rest.pauses.insert(key, Pause { until: now + length, length });
    }

    /// It answered.
    pub(super) fn answered(&self, key: Digest) {
        self.rest().pauses.remove(&key);
    }

    fn check_pause(&self, key: Digest) -> Result<(), CallError> {
        let until = self.rest().pauses.get(&key).map(|pause| pause.until);
        let left = until.map(|until| until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
        let Some(left) = left else { return Ok(()) };
        let ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1);
        let message =
            format!("its interpreter ended by itself; it may be tried again in {}.{} s", ms / 1000, ms % 1000 / 100);
        Err(CallError::new(ErrorKind::Failed, message)
            .hint("each failure doubles the wait, up to 30 s; a call that answers ends it")
            .details(json!({ "retry_after_ms": ms })))
    }
}

fn next_pause(last: Duration) -> Duration {
    (last * 2).min(PAUSE_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_a_bound() {
        let mut pause = PAUSE_FIRST;
        let mut seen = vec![pause.as_secs()];
        for _ in 0..6 {
            pause = next_pause(pause);
            seen.push(pause.as_secs());
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[tokio::test]
    async fn what_failed_waits_and_what_answered_does_not() {
        let (all, key) = (Interpreters::default(), Digest::of(b"tool"));
        all.failed(key);
        let error = all.seat(key, &Halt::new()).await.unwrap_err();
        assert!(error.message.starts_with("its interpreter ended by itself; it may be tried again in "), "{error}");
        assert!(error.details.unwrap()["retry_after_ms"].as_u64().unwrap() <= 1000);
        assert!(all.seat(Digest::of(b"another"), &Halt::new()).await.is_ok());
        all.answered(key);
        assert!(all.seat(key, &Halt::new()).await.is_ok());
    }

    #[tokio::test]
    async fn whoever_waits_is_served_in_order_and_may_go_away() {
        let (all, key, halt) = (Interpreters::default(), Digest::of(b"tool"), Halt::new());
        let mut held = Vec::new();
        for _ in 0..MOST {
            held.push(all.seat(key, &halt).await.unwrap());
        }
        let gone = Halt::new();
        let (first, second) = (all.seat(key, &gone), all.seat(key, &halt));
        tokio::pin!(first, second);
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        gone.cancel();
        assert_eq!(first.await.unwrap_err().kind, ErrorKind::Cancelled);
        held.pop();
        assert!(second.await.is_ok());
    }
}
