//! How much is under way at once. Whoever comes when there is no room waits, for as long as their request may take.
//!
//! Two bounds: requests, so that connections and their buffers are; and bytes of bodies. A small body needs no room; a
//! larger one takes it step by step, as it grows. Whoever finds none left waits for the one place in which a body can
//! grow to its end, so that no two wait for each other. One session has no more than half of all that, and a body that
//! takes room has to fill it in time: neither many nor slow answers keep others waiting.

use haft_core::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// How many requests are under way at once.
const REQUESTS: usize = 64;
/// A body up to this size needs no room.
pub(super) const SMALL: usize = 64 << 10;
/// By so much a larger one grows.
pub(super) const STEP: usize = 256 << 10;
/// So many steps there are: 14 MiB, besides the 10 MiB that the largest body may have, for one that grows to its end.
const STEPS: usize = 56;

/// The room that there is.
#[derive(Debug)]
pub(super) struct Room {
    all: Share,
    /// What each session has of it.
    sessions: Mutex<HashMap<SessionId, Arc<Share>>>,
    /// In what time a step has to be filled.
    pace: Duration,
}

/// A part of the room, or all of it.
#[derive(Debug)]
pub(super) struct Share {
    requests: Semaphore,
    steps: Semaphore,
    last: Semaphore,
}

impl Share {
    fn new(requests: usize, steps: usize) -> Self {
        Self { requests: Semaphore::new(requests), steps: Semaphore::new(steps), last: Semaphore::new(1) }
    }
}

/// What is held of a session's share, and of all.
type Held<'r> = (Option<SemaphorePermit<'r>>, Option<SemaphorePermit<'r>>);

impl Room {
    /// Room in which a body has so long to fill a step.
    pub(super) fn new(pace: Duration) -> Self {
        Self { all: Share::new(REQUESTS, STEPS), sessions: Mutex::default(), pace }
    }

    /// What a session has of it.
    pub(super) fn share(&self, session: &SessionId) -> Arc<Share> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, share| Arc::strong_count(share) > 1);
        let share = sessions.entry(session.clone());
        Arc::clone(share.or_insert_with(|| Arc::new(Share::new(REQUESTS / 2, STEPS / 2))))
    }

    /// Waits for a request's turn: first among those of its session, then among all.
    pub(super) async fn request<'r>(&'r self, share: &'r Share) -> Held<'r> {
        // None only if the room were closed, which nobody does.
        (share.requests.acquire().await.ok(), self.all.requests.acquire().await.ok())
    }

    /// Room for a body.
    pub(super) fn body<'r>(&'r self, share: &'r Share) -> Body<'r> {
        Body { room: self, share, held: Vec::new(), limit: SMALL, due: None }
    }
}

/// The room of one body, as long as this lives.
#[derive(Debug)]
pub(super) struct Body<'r> {
    room: &'r Room,
    share: &'r Share,
    held: Vec<Held<'r>>,
    limit: usize,
    /// At what size it has filled a step, and when it began to.
    due: Option<(usize, Instant)>,
}

impl Body<'_> {
    /// To what size it may grow.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Waits until it may grow further.
    pub(super) async fn grow(&mut self) {
        let (own, all) = (self.share.steps.try_acquire(), self.room.all.steps.try_acquire());
        if let (Ok(own), Ok(all)) = (own, all) {
            self.held.push((Some(own), Some(all)));
            self.limit += STEP;
        } else {
            let own = self.share.last.acquire().await.ok();
            self.held.push((own, self.room.all.last.acquire().await.ok()));
            self.limit = usize::MAX;
        }
        let size = self.due.map_or(SMALL + STEP, |(size, _)| size);
        self.due = Some((size, Instant::now()));
    }

    /// Notes how large it has become.
    pub(super) fn reached(&mut self, bytes: usize) {
        if let Some((size, _)) = self.due.filter(|(size, _)| bytes >= *size) {
            self.due = Some((size.max(bytes) + STEP, Instant::now()));
        }
    }

    /// What comes next, if it comes in time. None if not: whoever takes room from others has to use it.
    pub(super) async fn in_time<T>(&self, next: impl Future<Output = T>) -> Option<T> {
        match self.due {
            Some((_, begun)) => timeout_at(begun + self.room.pace, next).await.ok(),
            None => Some(next.await),
        }
    }

    /// In what time a step has to be filled.
    pub(super) fn pace(&self) -> Duration {
        self.room.pace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    const PACE: Duration = Duration::from_secs(15);

    fn session(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_session_cannot_take_all_and_no_two_wait_for_each_other() {
        let room = Room::new(PACE);
        let (busy, other) = (room.share(&session("busy")), room.share(&session("other")));
        let mut first = room.body(&busy);
        for _ in 0..STEPS / 2 {
            first.grow().await;
        }
        assert_eq!(first.limit(), SMALL + STEPS / 2 * STEP);
        // Another session still has its half.
        let mut second = room.body(&other);
        for _ in 0..STEPS / 2 {
            second.grow().await;
        }
        // One may grow to its end, and then the next.
        first.grow().await;
        assert_eq!(first.limit(), usize::MAX);
        let waits = async {
            second.grow().await;
            second.limit()
        };
        let (limit, ()) = tokio::join!(waits, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(first);
        });
        assert_eq!(limit, usize::MAX);
        drop(second);
        assert_eq!((room.all.steps.available_permits(), room.all.last.available_permits()), (STEPS, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn half_of_the_turns_are_for_others() {
        let room = Room::new(PACE);
        let (busy, other) = (room.share(&session("busy")), room.share(&session("other")));
        let mut turns = Vec::new();
        for _ in 0..REQUESTS / 2 {
            turns.push(room.request(&busy).await);
        }
        assert!(tokio::time::timeout(Duration::from_mins(1), room.request(&busy)).await.is_err());
        let turn = tokio::time::timeout(Duration::from_secs(1), room.request(&other)).await.unwrap();
        drop((turn, turns));
        drop((busy, other));
        room.share(&session("third"));
        assert_eq!(room.sessions.lock().unwrap().len(), 1, "what nobody uses is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_room_fills_it_in_time() {
        let room = Room::new(PACE);
        let share = room.share(&session("a"));
        let mut body = room.body(&share);
        let late = async |body: &Body<'_>| body.in_time(pending::<()>()).await.is_none();
        assert!(
            tokio::time::timeout(Duration::from_mins(10), body.in_time(pending::<()>())).await.is_err(),
            "a small one takes nothing from anybody"
        );
        body.grow().await;
        let begun = Instant::now();
        assert!(late(&body).await && begun.elapsed() == PACE);
        body.grow().await;
        tokio::time::advance(Duration::from_secs(14)).await;
        body.reached(SMALL + STEP);
        let begun = Instant::now();
        assert!(late(&body).await && begun.elapsed() == PACE, "a step that is full begins the next");
        body.reached(SMALL + STEP + 1);
        assert!(late(&body).await && begun.elapsed() == PACE, "a byte does not");
    }
}
