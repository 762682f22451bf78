//! How often an API is asked: never more than its limit within any window of a unit of time.

use super::profile::RateLimit;
use haft_core::CallError;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many requests of one window are remembered one by one. More are remembered in groups, which end with their last.
const SINGLE: usize = 1024;

/// What was asked of all profiles, shared by all sessions of this process.
#[derive(Debug, Default)]
pub(super) struct Limiter {
    windows: Mutex<HashMap<String, (RateLimit, Vec<Window>)>>,
}

/// What was asked within the last `span`.
#[derive(Debug)]
struct Window {
    unit: &'static str,
    room: u32,
    span: Duration,
    asked: VecDeque<Group>,
}

/// Requests that are remembered together.
#[derive(Debug)]
struct Group {
    first: Instant,
    last: Instant,
    count: u32,
}

impl Window {
    fn new(unit: &'static str, room: u32, span: Duration) -> Self {
        Self { unit, room, span, asked: VecDeque::new() }
    }

    /// How long until one more may be asked.
    fn wait(&mut self, now: Instant) -> Duration {
        while self.asked.front().is_some_and(|group| now.duration_since(group.last) >= self.span) {
            self.asked.pop_front();
        }
        let count: u32 = self.asked.iter().map(|group| group.count).sum();
        let oldest = self.asked.front().filter(|_| count >= self.room);
        oldest.map_or(Duration::ZERO, |group| (group.last + self.span).saturating_duration_since(now))
    }

    fn take(&mut self, now: Instant) {
        let grain = self.span / u32::try_from(SINGLE).unwrap_or(u32::MAX);
        let full = self.asked.len() >= SINGLE;
        match self.asked.back_mut().filter(|group| full && now.duration_since(group.first) < grain) {
            Some(group) => (group.last, group.count) = (now, group.count + 1),
            None => self.asked.push_back(Group { first: now, last: now, count: 1 }),
        }
    }
}

impl Limiter {
    /// Counts a request to an API, or says which limit is reached and when it frees.
    pub(super) fn take(&self, id: &str, limit: &RateLimit) -> Result<(), CallError> {
        let now = Instant::now();
        let mut all = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(id.to_owned()).or_insert_with(|| (limit.clone(), windows(limit)));
        if known.0 != *limit {
            *known = (limit.clone(), windows(limit));
        }
        let waits = known.1.iter_mut().map(|window| (window.wait(now), window.room, window.unit));
        if let Some((wait, room, unit)) = waits.max_by_key(|(wait, ..)| *wait).filter(|(wait, ..)| !wait.is_zero()) {
            let free = shown(wait);
            let message = format!("the {room} requests a {unit} of the API `{id}` are used up");
            return Err(CallError::failed(format!("{message}; the next is free in {free}"))
                .hint(format!("wait {free} before asking again")));
        }
        known.1.iter_mut().for_each(|window| window.take(now));
        Ok(())
    }

    /// Forgets a profile that is gone.
    pub(super) fn keep(&self, known: impl Fn(&str) -> bool) {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| known(id));
    }
}

fn windows(limit: &RateLimit) -> Vec<Window> {
    let units = [
        ("second", limit.per_second, Duration::from_secs(1)),
        ("minute", limit.per_minute, Duration::from_mins(1)),
        ("hour", limit.per_hour, Duration::from_hours(1)),
        ("day", limit.per_day, Duration::from_hours(24)),
    ];
    units.into_iter().filter_map(|(unit, room, span)| Some(Window::new(unit, room?, span))).collect()
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
    async fn every_limit_must_have_room() {
        let limiter = Limiter::default();
        let limit = limit(Some(2), Some(3), None);
        let take = || limiter.take("acme", &limit);
        take().unwrap();
        take().unwrap();
        let error = take().unwrap_err();
        assert_eq!(error.message, "the 2 requests a second of the API `acme` are used up; the next is free in 1 s");
        tokio::time::advance(Duration::from_millis(999)).await;
        assert!(take().unwrap_err().message.ends_with("free in 1 ms"));
        tokio::time::advance(Duration::from_millis(1)).await;
        take().unwrap();
        let error = take().unwrap_err();
        assert!(error.message.starts_with("the 3 requests a minute"), "{}", error.message);
        assert!(error.message.ends_with("free in 59 s"), "{}", error.message);
        tokio::time::advance(Duration::from_secs(59)).await;
        take().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn no_window_holds_more_than_the_limit() {
        for room in [3, 1500] {
            let limiter = Limiter::default();
            let limit = RateLimit { per_minute: Some(room), ..RateLimit::default() };
            let mut asked: Vec<Instant> = Vec::new();
            // All at once, then as often as it is let: what comes later must not fill the window a second time.
            for _ in 0..4000 {
                while limiter.take("a", &limit).is_ok() {
                    asked.push(Instant::now());
                }
                tokio::time::advance(Duration::from_millis(37)).await;
            }
            let room = room as usize;
            let spans = asked.windows(room + 1).map(|some| some[room] - some[0]);
            assert!(spans.min().unwrap() >= Duration::from_mins(1), "{room}");
            assert!(asked.len() > room * 2, "{room}: it goes on");
        }
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
        assert_eq!(error.hint.as_deref(), Some("wait 24 h before asking again"));
        tokio::time::advance(Duration::from_hours(24)).await;
        limiter.take("a", &limit).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn other_limits_are_other_windows_and_none_are_no_limit() {
        let limiter = Limiter::default();
        limiter.take("a", &limit(Some(1), None, None)).unwrap();
        assert!(limiter.take("a", &limit(Some(1), None, None)).is_err());
        limiter.take("a", &limit(Some(5), None, None)).unwrap();
        for _ in 0..1000 {
            limiter.take("a", &RateLimit::default()).unwrap();
        }
    }
}
