//! How many requests may be made: in a session, in an hour, in a day.

use haft_core::{CallError, SessionId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// How many requests may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// In one session.
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

/// What has been spent of it.
#[derive(Debug)]
pub(super) struct Spent {
    quota: Quota,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    sessions: HashMap<SessionId, u32>,
    /// When each request of the last day was made.
    times: VecDeque<i64>,
}

impl Spent {
    pub(super) fn new(quota: Quota) -> Self {
        Self { quota, counts: Mutex::default() }
    }

    /// Takes one request out of what is left.
    pub(super) fn take(&self, session: &SessionId, now_ms: i64) -> Result<(), CallError> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        while counts.times.front().is_some_and(|at| *at <= now_ms - DAY_MS) {
            counts.times.pop_front();
        }
        let recent = counts.times.iter().rev().take_while(|at| **at > now_ms - HOUR_MS).count();
        let own = counts.sessions.get(session).copied().unwrap_or(0);
        let spent = |what: &str, limit: u32| {
            CallError::failed(format!("{limit} web requests {what} are used up"))
                .hint("`web.limits` in the configuration says how many there are")
        };
        if own >= self.quota.session {
            return Err(spent("of this session", self.quota.session));
        }
        if recent >= self.quota.hour as usize {
            return Err(spent("of this hour", self.quota.hour));
        }
        if counts.times.len() >= self.quota.day as usize {
            return Err(spent("of this day", self.quota.day));
        }
        counts.times.push_back(now_ms);
        *counts.sessions.entry(session.clone()).or_default() += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_holds_by_itself_and_frees_with_time() {
        let spent = Spent::new(Quota { session: 3, hour: 4, day: 5 });
        let (one, other) = (SessionId::new("one").unwrap(), SessionId::new("other").unwrap());
        for _ in 0..3 {
            spent.take(&one, 0).unwrap();
        }
        assert!(spent.take(&one, 0).unwrap_err().message.contains("of this session"));
        spent.take(&other, 0).unwrap();
        assert!(spent.take(&other, 1).unwrap_err().message.contains("of this hour"));
        spent.take(&other, HOUR_MS).unwrap();
        assert!(spent.take(&other, HOUR_MS + 1).unwrap_err().message.contains("of this day"));
        spent.take(&other, DAY_MS).unwrap();
    }
}
