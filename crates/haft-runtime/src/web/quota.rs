//! How many requests may be made: in a session, in an hour, in a day.
//!
//! The store counts, for all processes together. Asking it each time would cost more than the rest of the guard, so a
//! process that makes many requests has a few counted ahead, where there are plenty, and gives back what it does not use.

use haft_core::{CallError, SessionId};
use haft_store::{Portion, Store, Wish};
use std::collections::HashMap;
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

/// How many are counted ahead.
const AHEAD: u32 = 8;
/// How long they are kept for whoever had them counted.
const KEPT_MS: i64 = 10_000;
/// For how many sessions that is done.
const SESSIONS_MAX: usize = 32;

/// What has been spent of it.
#[derive(Debug)]
pub(super) struct Spent {
    quota: Quota,
    ahead: Mutex<HashMap<SessionId, Ahead>>,
}

/// What was counted ahead for one session, and when.
#[derive(Debug, Clone, Copy, Default)]
struct Ahead {
    left: u32,
    at_ms: i64,
    /// Since when somebody asks for more. Who comes meanwhile asks for one: many at once must not have many times more
    /// counted than they need.
    asking_ms: Option<i64>,
}

impl Spent {
    pub(super) fn new(quota: Quota) -> Self {
        Self { quota, ahead: Mutex::default() }
    }

    /// Takes one request out of what is left. What cannot be counted is not sent.
    pub(super) async fn take(&self, store: &Store, session: &SessionId, now_ms: i64) -> Result<(), CallError> {
        let Some(wish) = self.wish(session, now_ms) else { return Ok(()) };
        let Quota { session: own, hour, day } = self.quota;
        let limits = Portion { session: own, hour, day };
        let asked = store.ask_web(session, now_ms, wish, limits).await.map_err(crate::store_error)?;
        if asked.counted == 0 {
            return Err(spent(asked.before, limits));
        }
        let mut ahead = self.ahead();
        if ahead.len() < SESSIONS_MAX || ahead.contains_key(session) {
            let known = ahead.entry(session.clone()).or_default();
            let asking_ms = known.asking_ms.filter(|_| wish.wanted == 1);
            *known = Ahead { left: known.left + asked.counted - 1, at_ms: now_ms, asking_ms };
        }
        Ok(())
    }

    /// Takes one that was counted ahead; else says what to ask for. The first request of a process is asked for by itself,
    /// because it may be the last.
    fn wish(&self, session: &SessionId, now_ms: i64) -> Option<Wish> {
        let mut ahead = self.ahead();
        let Some(known) = ahead.get_mut(session) else { return Some(Wish { wanted: 1, back: (0, 0) }) };
        // A clock that was set back does not make them last.
        let fresh = |at_ms: i64| (0..KEPT_MS).contains(&(now_ms - at_ms));
        if known.left > 0 && fresh(known.at_ms) {
            known.left -= 1;
            return None;
        }
        let back = (std::mem::take(&mut known.left), known.at_ms);
        // Whoever was given up while asking does not keep the others from it for long.
        let wanted = if known.asking_ms.is_some_and(fresh) { 1 } else { AHEAD };
        known.asking_ms = known.asking_ms.filter(|_| wanted == 1).or(Some(now_ms));
        Some(Wish { wanted, back })
    }

    fn ahead(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Ahead>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn what_was_counted_ahead_and_not_used_is_given_back() {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open(&dir.path().join("haft.db")).unwrap();
            let one = SessionId::new("one").unwrap();
            let counted = async || {
                let sql = "SELECT coalesce(sum(count), 0) FROM requests";
                let sum = store.run(haft_store::Mode::Read, |db| db.one(sql, &[], |row| row.get::<u32>(0)));
                sum.await.unwrap()
            };
            let spent = Spent::new(Quota::default());
            spent.take(&store, &one, 0).await.unwrap();
            assert_eq!(counted().await, 1, "a process that asks once has one");
            spent.take(&store, &one, 0).await.unwrap();
            spent.take(&store, &one, 1).await.unwrap();
            assert_eq!(counted().await, 1 + AHEAD);
            spent.take(&store, &one, KEPT_MS).await.unwrap();
            assert_eq!(counted().await, 3 + AHEAD, "three were made, and others are counted ahead of now");
        });
    }

    #[test]
    fn many_at_once_have_no_more_counted_than_they_need() {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open(&dir.path().join("haft.db")).unwrap();
            let one = SessionId::new("one").unwrap();
            let spent = Spent::new(Quota { session: 10_000, hour: 10_000, day: 10_000 });
            spent.take(&store, &one, 0).await.unwrap();
            let all = futures_util::future::join_all((0..200).map(|_| spent.take(&store, &one, 0))).await;
            assert!(all.iter().all(Result::is_ok));
            let sql = "SELECT sum(count) FROM requests";
            let sum = store.run(haft_store::Mode::Read, |db| db.one(sql, &[], |row| row.get::<u32>(0)));
            assert!((201..=201 + AHEAD).contains(&sum.await.unwrap()));
        });
    }
}
