//! What becomes of times that went by: the machine slept, nobody was running, or the one before took too long.

use super::Schedule;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A time is met if somebody comes within a minute of it; after that it was missed.
pub const GRACE_MS: i64 = 60_000;
/// Under [`Missed::All`], so many are made up for: the latest.
pub const ALL_MAX: usize = 100;
/// Beyond this nobody wants to know how many were missed.
const COUNT_MAX: u64 = 1_000;

/// What is done about times that were missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Nothing: the next one counts.
    Skip,
    /// One run makes up for all of them.
    #[default]
    Once,
    /// Each is made up for, one after the other, up to [`ALL_MAX`].
    All,
}

impl Missed {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Skip, Self::Once, Self::All];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
            Self::All => "all",
        }
    }

    /// From the word for it.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == word)
    }
}

/// What is to be done now about a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The time for which something is started now.
    pub run: Option<i64>,
    /// The time that comes next. It may be in the past: then it is due as soon as what is started now has ended.
    pub next: Option<i64>,
    /// How many times go by without a run of their own; more than a thousand by the calendar are said to be a thousand.
    pub missed: u64,
}

impl Schedule {
    /// What is to be done at `now_ms` about a schedule whose next time is `first_ms`. No time is met twice: `next` is
    /// later than everything that this speaks of.
    pub fn due(&self, first_ms: i64, now_ms: i64, policy: Missed) -> Due {
        if first_ms > now_ms {
            return Due { run: None, next: Some(first_ms), missed: 0 };
        }
        match policy {
            Missed::All => self.each(first_ms, now_ms),
            Missed::Once => {
                let (latest, passed) = self.latest(first_ms, now_ms);
                Due { run: Some(latest), next: self.next(latest), missed: passed }
            }
            Missed::Skip => {
                let (latest, passed) = self.latest(first_ms, now_ms);
                let met = now_ms.saturating_sub(latest) <= GRACE_MS;
                let missed = if met { passed } else { passed.saturating_add(1) };
                Due { run: met.then_some(latest), next: self.next(latest), missed }
            }
        }
    }

    /// The earliest of the latest [`ALL_MAX`].
    fn each(&self, first_ms: i64, now_ms: i64) -> Due {
        let mut run = self.latest(first_ms, now_ms).0;
        for _ in 1..ALL_MAX {
            match self.before(run).filter(|before| *before >= first_ms) {
                Some(before) => run = before,
                None => break,
            }
        }
        Due { run: Some(run), next: self.next(run), missed: self.between(first_ms, run) }
    }

    /// The latest time up to now, and how many came before it.
    fn latest(&self, first_ms: i64, now_ms: i64) -> (i64, u64) {
        let latest = now_ms.checked_add(1).and_then(|later| self.before(later)).unwrap_or(first_ms).max(first_ms);
        (latest, self.between(first_ms, latest))
    }

    /// The last time before a moment, found without counting up to it: a year of minutes is long.
    fn before(&self, moment_ms: i64) -> Option<i64> {
        match self {
            Self::Calendar(calendar) => {
                let found = calendar.before(Timestamp::from_millisecond(moment_ms).ok()?)?.as_millisecond();
                (found < moment_ms).then_some(found)
            }
            Self::Every { anchor_ms, period_ms } => {
                let steps = moment_ms.checked_sub(1)?.checked_sub(*anchor_ms)?.div_euclid(*period_ms);
                (steps > 0).then(|| anchor_ms + steps * period_ms)
            }
            Self::Once(at_ms) => (*at_ms < moment_ms).then_some(*at_ms),
        }
    }

    /// How many times there are from one to another that is not counted: up to [`COUNT_MAX`] are told apart.
    fn between(&self, from_ms: i64, to_ms: i64) -> u64 {
        if let Self::Every { period_ms, .. } = self {
            return u64::try_from(to_ms.saturating_sub(from_ms) / period_ms).unwrap_or(0);
        }
        let (mut at, mut count) = (from_ms, 0);
        while at < to_ms && count < COUNT_MAX {
            count += 1;
            let Some(next) = self.next(at) else { break };
            at = next;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, zones};
    use super::*;

    fn daily() -> Schedule {
        Schedule::read("daily at 7:00", None, at("2026-11-16T05:00:00Z"), &zones).unwrap()
    }

    fn due(policy: Missed, now: &str) -> (Option<String>, String, u64) {
        let due = daily().due(at("2026-11-16T07:00:00Z"), at(now), policy);
        let shown = |ms: i64| super::super::tests::shown(ms)[5..16].to_owned();
        (due.run.map(shown), due.next.map(shown).unwrap_or_default(), due.missed)
    }

    #[test]
    fn what_is_met_in_time_runs_whatever_the_policy() {
        for policy in Missed::ALL {
            let expected = (Some("11-16T07:00".to_owned()), "11-17T07:00".to_owned(), 0);
            assert_eq!(due(policy, "2026-11-16T07:00:20Z"), expected, "{policy:?}");
            assert_eq!(due(policy, "2026-11-16T06:59:59Z"), (None, "11-16T07:00".to_owned(), 0), "{policy:?}");
        }
    }

    #[test]
    fn a_long_sleep_is_made_up_for_by_policy() {
        let woken = "2026-11-20T12:00:00Z";
        assert_eq!(due(Missed::Skip, woken), (None, "11-21T07:00".to_owned(), 5));
        assert_eq!(due(Missed::Once, woken), (Some("11-20T07:00".to_owned()), "11-21T07:00".to_owned(), 4));
        // One after the other: the rest is due when this one has ended.
        assert_eq!(due(Missed::All, woken), (Some("11-16T07:00".to_owned()), "11-17T07:00".to_owned(), 0));
        // Waking up in time for the latest: the others were missed.
        assert_eq!(due(Missed::Skip, "2026-11-20T07:00:30Z").0, Some("11-20T07:00".to_owned()));
    }

    #[test]
    fn a_year_of_seconds_is_bounded_and_counted_at_once() {
        let second = Schedule::Every { anchor_ms: 0, period_ms: 1_000 };
        let now = 366 * 86_400_000;
        let all = second.due(1_000, now, Missed::All);
        assert_eq!((all.run, all.next), (Some(now - 99_000), Some(now - 98_000)));
        assert_eq!(all.missed, 31_622_400 - 100);
        let once = second.due(1_000, now, Missed::Once);
        assert_eq!((once.run, once.next, once.missed), (Some(now), Some(now + 1_000), 31_622_400 - 1));
    }

    #[test]
    fn a_year_of_minutes_is_found_from_its_end() {
        let minutes = Schedule::read("* * * * *", None, 0, &zones).unwrap();
        let now = at("2027-11-16T05:00:30Z");
        let all = minutes.due(at("2026-11-16T05:00:00Z"), now, Missed::All);
        assert_eq!(all.run, Some(at("2027-11-16T03:21:00Z")));
        assert_eq!(all.missed, COUNT_MAX);
        let once = minutes.due(at("2026-11-16T05:00:00Z"), now, Missed::Once);
        assert_eq!((once.run, once.next), (Some(now - 30_000), Some(now + 30_000)));
    }

    #[test]
    fn a_clock_that_goes_back_meets_nothing_again() {
        let schedule = daily();
        let met = schedule.due(at("2026-11-16T07:00:00Z"), at("2026-11-16T07:00:01Z"), Missed::All);
        let back = schedule.due(met.next.unwrap(), at("2026-11-16T06:00:00Z"), Missed::All);
        assert_eq!((back.run, back.next), (None, met.next));
        let again = schedule.due(back.next.unwrap(), at("2026-11-16T07:00:01Z"), Missed::All);
        assert_eq!(again.run, None);
    }
}
