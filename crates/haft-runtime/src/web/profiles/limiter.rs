//! How often an API is asked: one bucket a unit of time, and every bucket must have a token.

use super::profile::RateLimit;
use haft_core::CallError;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The buckets of all profiles, shared by all sessions of this process.
#[derive(Debug, Default)]
pub(super) struct Limiter {
    buckets: Mutex<HashMap<String, (RateLimit, Vec<Bucket>)>>,
}

/// A bucket that holds `room` tokens and gets one back every `step`. All that has to be remembered is when it will
/// be full again.
#[derive(Debug)]
struct Bucket {
    unit: &'static str,
    room: u32,
    step: Duration,
    full_at: Option<Instant>,
}

impl Bucket {
    fn new(unit: &'static str, room: u32, window: Duration) -> Self {
        Self { unit, room, step: window / room.max(1), full_at: None }
    }

    /// How long until there is a token.
    fn wait(&self, now: Instant) -> Duration {
        let behind = self.full_at.map_or(Duration::ZERO, |full| full.saturating_duration_since(now));
        behind.saturating_sub(self.step * self.room.saturating_sub(1))
    }

    fn take(&mut self, now: Instant) {
        let from = self.full_at.filter(|full| *full > now).unwrap_or(now);
        self.full_at = Some(from + self.step);
    }
}

impl Limiter {
    /// Takes a token out of every bucket of a profile, or none and says which one is empty and when it frees.
    pub(super) fn take(&self, id: &str, limit: &RateLimit) -> Result<(), CallError> {
        let now = Instant::now();
        let mut all = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(id.to_owned()).or_insert_with(|| (limit.clone(), buckets(limit)));
        if known.0 != *limit {
            *known = (limit.clone(), buckets(limit));
        }
        let longest = known.1.iter().max_by_key(|bucket| bucket.wait(now));
        if let Some(bucket) = longest.filter(|bucket| !bucket.wait(now).is_zero()) {
            let free = shown(bucket.wait(now));
            let message = format!("the {} requests a {} of the API `{id}` are used up", bucket.room, bucket.unit);
            return Err(CallError::failed(format!("{message}; the next is free in {free}"))
                .hint(format!("wait {free} before asking again")));
        }
        known.1.iter_mut().for_each(|bucket| bucket.take(now));
        Ok(())
    }

    /// Forgets a profile that is gone.
    pub(super) fn keep(&self, known: impl Fn(&str) -> bool) {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| known(id));
    }
}

fn buckets(limit: &RateLimit) -> Vec<Bucket> {
    let units = [
        ("second", limit.per_second, Duration::from_secs(1)),
        ("minute", limit.per_minute, Duration::from_mins(1)),
        ("hour", limit.per_hour, Duration::from_hours(1)),
        ("day", limit.per_day, Duration::from_hours(24)),
    ];
    units.into_iter().filter_map(|(unit, room, window)| Some(Bucket::new(unit, room?, window))).collect()
}

/// A time for people, never shorter than it is.
fn shown(time: Duration) -> String {
    let ms = time.as_nanos().div_ceil(1_000_000);
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{} s", ms.div_ceil(1000)),
        120_000..7_200_000 => format!("{} min", ms.div_ceil(60_000)),
        _ => format!("{} h", ms.div_ceil(3_600_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(second: Option<u32>, minute: Option<u32>, day: Option<u32>) -> RateLimit {
        RateLimit { per_second: second, per_minute: minute, per_hour: None, per_day: day }
    }

    #[tokio::test(start_paused = true)]
    async fn every_bucket_must_have_a_token() {
        let limiter = Limiter::default();
        let limit = limit(Some(2), Some(3), None);
        let take = || limiter.take("acme", &limit);
        take().unwrap();
        take().unwrap();
        let error = take().unwrap_err();
        assert_eq!(error.message, "the 2 requests a second of the API `acme` are used up; the next is free in 500 ms");
        tokio::time::advance(Duration::from_millis(499)).await;
        assert!(take().unwrap_err().message.ends_with("free in 1 ms"));
        tokio::time::advance(Duration::from_millis(1)).await;
        take().unwrap();
        // The minute's bucket got its first token back only in part.
        tokio::time::advance(Duration::from_secs(1)).await;
        let error = take().unwrap_err();
        assert!(error.message.starts_with("the 3 requests a minute"), "{}", error.message);
        assert!(error.message.ends_with("free in 19 s"), "{}", error.message);
        tokio::time::advance(Duration::from_secs(19)).await;
        take().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_costs_nothing_and_profiles_do_not_share() {
        let limiter = Limiter::default();
        let limit = limit(Some(1), None, Some(2));
        limiter.take("a", &limit).unwrap();
        for _ in 0..10 {
            assert!(limiter.take("a", &limit).is_err());
        }
        limiter.take("b", &limit).unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        limiter.take("a", &limit).unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let error = limiter.take("a", &limit).unwrap_err();
        assert!(error.message.contains("2 requests a day"), "{}", error.message);
        assert_eq!(error.hint.as_deref(), Some("wait 12 h before asking again"));
        tokio::time::advance(Duration::from_hours(12)).await;
        limiter.take("a", &limit).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn other_limits_are_other_buckets_and_none_are_no_limit() {
        let limiter = Limiter::default();
        limiter.take("a", &limit(Some(1), None, None)).unwrap();
        assert!(limiter.take("a", &limit(Some(1), None, None)).is_err());
        limiter.take("a", &limit(Some(5), None, None)).unwrap();
        for _ in 0..1000 {
            limiter.take("a", &RateLimit::default()).unwrap();
        }
    }
}
