//! How many requests may be made: in a session, in an hour, in a day.
//!
//! The store counts, for all processes together. Far from a limit, a few are let through on what the store said a moment
//! ago, and counted while they are under way: asking each time would cost more than the rest of the guard.

use haft_core::{CallError, SessionId};
use haft_store::{Portion, Store};
use std::sync::{Mutex, PoisonError};

/// How many requests may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// In one session, in a day.
    pub session: u32,
    /// In an hour, by all sessions.
    pub hour: u32,
    /// In a day, by all sessions.
    pub day: u32,
}

impl Default for Quota {
    fn default() -> Self {
        Self { session: 100, hour: 200, day: 2000 }
    }
}

/// How many are let through before the store is asked again.
const AHEAD: u32 = 8;
/// How far from every limit that has to be: even four processes at once cannot pass one in this way.
const FAR: u32 = 4 * AHEAD;
/// How long what the store said counts.
const FRESH_MS: i64 = 1000;
/// How many sessions this is known of.
const SESSIONS_MAX: usize = 32;

/// What has been spent of it.
#[derive(Debug)]
pub(super) struct Spent {
    quota: Quota,
    ahead: Mutex<Ahead>,
}

/// What may be let through on what the store said last.
#[derive(Debug, Default)]
struct Ahead {
    left: u32,
    until_ms: i64,
    /// The sessions that are far from their own limit.
    sessions: Vec<SessionId>,
}

impl Spent {
    pub(super) fn new(quota: Quota) -> Self {
        Self { quota, ahead: Mutex::default() }
    }

    /// Takes one request out of what is left. What cannot be counted is not sent.
    pub(super) async fn take(&self, store: &Store, session: &SessionId, now_ms: i64) -> Result<(), CallError> {
        if self.ahead().take(session, now_ms) {
            store.note_web(session, now_ms);
            return Ok(());
        }
        let Quota { session: own, hour, day } = self.quota;
        let limits = Portion { session: own, hour, day };
        let asked = store.ask_web(session, now_ms, limits).await.map_err(crate::store_error)?;
        let before = asked.before;
        if !asked.counted {
            return Err(spent(before, limits));
        }
        let far = own.saturating_sub(before.session).min(hour.saturating_sub(before.hour));
        if far.min(day.saturating_sub(before.day)) > FAR {
            self.ahead().renew(session, now_ms);
        }
        Ok(())
    }

    fn ahead(&self) -> std::sync::MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ahead {
    fn is_fresh(&self, now_ms: i64) -> bool {
        // A clock that was set back does not make it last.
        self.left > 0 && (self.until_ms - FRESH_MS..self.until_ms).contains(&now_ms)
    }

    fn take(&mut self, session: &SessionId, now_ms: i64) -> bool {
        let taken = self.is_fresh(now_ms) && self.sessions.contains(session);
        self.left -= u32::from(taken);
        taken
    }

    /// The store was asked just now, and every limit is far.
    fn renew(&mut self, session: &SessionId, now_ms: i64) {
        // What others may still take was not in what the store said.
        if !self.is_fresh(now_ms) {
            *self = Self { left: AHEAD, until_ms: now_ms.saturating_add(FRESH_MS), sessions: Vec::new() };
        }
        if self.sessions.len() < SESSIONS_MAX {
            self.sessions.push(session.clone());
        }
    }
}

fn spent(before: Portion, limits: Portion) -> CallError {
    let (what, limit) = if before.session >= limits.session {
        ("this session may make in a day", limits.session)
    } else if before.hour >= limits.hour {
        ("there may be in an hour", limits.hour)
    } else {
        ("there may be in a day", limits.day)
    };
    CallError::failed(format!("the {limit} web requests that {what} are used up"))
        .hint("wait, or allow more by `web.limits` in the configuration")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn each_limit_holds_by_itself_and_frees_with_time() {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open(&dir.path().join("haft.db")).unwrap();
            let spent = Spent::new(Quota { session: 3, hour: 4, day: 5 });
            let (one, other) = (SessionId::new("one").unwrap(), SessionId::new("other").unwrap());
            let refused = async |session, at| spent.take(&store, session, at).await.unwrap_err().message;
            for _ in 0..3 {
                spent.take(&store, &one, 0).await.unwrap();
            }
            assert_eq!(refused(&one, 0).await, "the 3 web requests that this session may make in a day are used up");
            spent.take(&store, &other, 0).await.unwrap();
            assert_eq!(refused(&other, 1).await, "the 4 web requests that there may be in an hour are used up");
            spent.take(&store, &other, HOUR_MS).await.unwrap();
            assert_eq!(refused(&other, HOUR_MS + 1).await, "the 5 web requests that there may be in a day are used up");
            spent.take(&store, &other, 24 * HOUR_MS).await.unwrap();
        });
    }

    #[test]
    fn processes_share_what_there_is() {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("haft.db");
            let quota = Quota { session: 90, hour: 100, day: 1000 };
            let open = || (Store::open(&path).unwrap(), Spent::new(quota));
            let processes = [open(), open(), open()];
            let sessions = ["a", "b", "c"].map(|name| SessionId::new(name).unwrap());
            let mut counted = 0;
            for _ in 0..100 {
                for ((store, spent), session) in processes.iter().zip(&sessions) {
                    counted += u32::from(spent.take(store, session, 0).await.is_ok());
                }
            }
            assert_eq!(counted, 100, "however far ahead each of them was");
        });
    }
}
