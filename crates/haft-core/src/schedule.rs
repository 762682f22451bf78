//! When something is to happen: the language of schedules, and which times come next. Pure: the clock and the time zones
//! are given.
//!
//! A day on which clocks are put forward has hours that do not exist, one on which they are put back has some twice:
//!
//! - a fixed time (`30 2 * * *`, `daily at 2:30`) that does not exist happens at the first moment after the gap; one that
//!   exists twice happens the first time and not again;
//! - a time with a wildcard or a step (`*/15 * * * *`, `0 * * * *`) follows the clock on the wall: what does not exist is
//!   left out, what exists twice happens twice;
//! - a period (`5m`, `every 2 hours`) knows no clocks on walls: it is counted from when it was made.

mod calendar;
mod due;
mod miss;
mod watch;
mod words;

#[cfg(test)]
mod laws;

pub use calendar::Calendar;
pub use due::{Window, due};
pub use miss::{ALL_MAX, Due, GRACE_MS, Missed};
pub use watch::{Seen, TEXT_MAX, digest as watch_digest, kept as watch_kept, watch_seen};

use crate::error::CallError;
use crate::preview::inert;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A longer text is no schedule.
const TEXT_LONG: usize = 200;
/// No period is shorter.
const SHORTEST_MS: i64 = 1_000;
/// None is longer: a year and a day.
const LONGEST_MS: i64 = 366 * 86_400_000;

/// What can be said, for whoever said something else.
pub const FORMS: &str = "write a cron expression of five fields (`0 9 * * 1-5`), a period (`30s`, `5m`, `1h`, `1d`, \
     `every 5 minutes`), days with a time (`daily at 7:00`, `weekdays at 9:00`, `every monday at 8:30`), or once (`in 2 \
     hours`, `at 2030-01-31T09:00`); a time zone may follow (`Europe/Vienna`), otherwise it is UTC";

/// Times at which something happens.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// By the calendar, in a zone.
    Calendar(Box<Calendar>),
    /// Again and again, counted from a moment.
    Every {
        /// From when.
        anchor_ms: i64,
        /// How often.
        period_ms: i64,
    },
    /// Once, at this moment.
    Once(i64),
}

/// Where time zones are found.
pub type Zones<'z> = &'z dyn Fn(&str) -> Option<TimeZone>;

impl Schedule {
    /// Reads a schedule that somebody made at `now_ms`, now or long ago. The zone may also be the text's last word.
    pub fn read(text: &str, zone: Option<&str>, now_ms: i64, zones: Zones<'_>) -> Result<Self, CallError> {
        let text = text.trim();
        if text.is_empty() || text.len() > TEXT_LONG {
            return Err(CallError::invalid("a schedule is a short text, and this one is empty or too long").hint(FORMS));
        }
        let (words, named) = split_zone(text);
        let named = match (zone.map(str::trim).filter(|zone| !zone.is_empty()), named) {
            (Some(given), Some(said)) if !given.eq_ignore_ascii_case(said) => {
                let why = format!("the schedule says `{}` and the zone is `{}`", inert(said), inert(given));
                return Err(CallError::invalid(why).hint("say the time zone once"));
            }
            (given, said) => given.or(said),
        };
        let zone = named.map_or(Ok(TimeZone::UTC), |name| find(name, zones))?;
        let schedule = match words::read(&words.to_lowercase()) {
            Some(words::Said::Every(period_ms)) => {
                Self::Every { anchor_ms: now_ms, period_ms: bounded(period_ms, text)? }
            }
            Some(words::Said::Cron(cron)) => {
                Self::Calendar(Box::new(Calendar::new(cron_of(&cron, text)?, &cron, zone)))
            }
            Some(words::Said::Once(when)) => Self::Once(due(&when, now_ms, &zone)?),
            Some(words::Said::After(wait_ms)) => Self::Once(now_ms.saturating_add(bounded(wait_ms, text)?)),
            None => Self::Calendar(Box::new(Calendar::new(cron_of(words, text)?, words, zone))),
        };
        if schedule.next(now_ms).is_none() {
            let why = format!("`{}` never happens: no such time is still to come", inert(text));
            return Err(CallError::invalid(why).hint("31 February, say, is in no calendar; give a time that comes"));
        }
        Ok(schedule)
    }

    /// The first time after `after_ms`.
    pub fn next(&self, after_ms: i64) -> Option<i64> {
        match self {
            Self::Calendar(calendar) => {
                let next = calendar.next(Timestamp::from_millisecond(after_ms).ok()?)?.as_millisecond();
                // Whatever else: time goes forward.
                (next > after_ms).then_some(next)
            }
            Self::Every { anchor_ms, period_ms } => {
                let steps = after_ms.checked_sub(*anchor_ms)?.div_euclid(*period_ms).max(0).checked_add(1)?;
                anchor_ms.checked_add(steps.checked_mul(*period_ms)?)
            }
            Self::Once(at_ms) => (*at_ms > after_ms).then_some(*at_ms),
        }
    }

    /// Whether it happens more than once.
    pub fn repeats(&self) -> bool {
        !matches!(self, Self::Once(_))
    }
}

/// The last word, if it can only be a zone's name: those have capitals and strokes, and no other word has.
fn split_zone(text: &str) -> (&str, Option<&str>) {
    let Some((head, last)) = text.rsplit_once(char::is_whitespace) else { return (text, None) };
    let letters = last.bytes().all(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'_' | b'-' | b'+' | b'0'..=b'9'));
    let place = last.contains('/') && last.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    let named = letters && (place || matches!(last.to_ascii_uppercase().as_str(), "UTC" | "GMT"));
    if named { (head.trim_end(), Some(last)) } else { (text, None) }
}

fn find(name: &str, zones: Zones<'_>) -> Result<TimeZone, CallError> {
    if matches!(name.to_ascii_uppercase().as_str(), "UTC" | "GMT" | "Z") {
        return Ok(TimeZone::UTC);
    }
    zones(name).ok_or_else(|| {
        CallError::invalid(format!("this machine knows no time zone `{}`", inert(name)))
            .hint("name one as the system does, like Europe/Vienna; a machine without zones needs the package tzdata")
    })
}

fn bounded(period_ms: i64, text: &str) -> Result<i64, CallError> {
    if (SHORTEST_MS..=LONGEST_MS).contains(&period_ms) {
        return Ok(period_ms);
    }
    let why = format!("`{}` is a period of less than a second or of more than a year", inert(text));
    Err(CallError::invalid(why).hint(FORMS))
}

fn cron_of(cron: &str, said: &str) -> Result<Cron, CallError> {
    let unread = |why: String| CallError::invalid(format!("`{}` is not a schedule{why}", inert(said))).hint(FORMS);
    let fields = cron.split_whitespace().count();
    if fields != 5 {
        let looks = cron.bytes().next().is_some_and(|b| b.is_ascii_digit() || b == b'*');
        let why =
            if looks && fields > 1 { format!(": cron has five fields, and here are {fields}") } else { String::new() };
        return Err(unread(why));
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(cron).map_err(|error| unread(format!(": {}", inert(&error.to_string()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn zones(name: &str) -> Option<TimeZone> {
        TimeZone::get(name).ok()
    }

    /// A moment, as it is written.
    pub(super) fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    pub(super) fn shown(ms: i64) -> String {
        Timestamp::from_millisecond(ms).unwrap().to_string()
    }

    const NOW: &str = "2026-11-16T05:00:00Z";

    fn made(text: &str) -> Schedule {
        Schedule::read(text, None, at(NOW), &zones).unwrap()
    }

    /// The next times.
    fn times(schedule: &Schedule, from: &str, count: usize) -> Vec<String> {
        let mut now = at(from);
        let mut found = Vec::new();
        while let (true, Some(next)) = (found.len() < count, schedule.next(now)) {
            found.push(shown(next));
            now = next;
        }
        found
    }

    #[test]
    fn each_form_is_understood() {
        let first = |text: &str| times(&made(text), NOW, 1).concat();
        let said: Vec<String> = [
            "0 9 * * 1-5",
            "0 9 * * 1-5 Europe/Vienna",
            "30s",
            "5m",
            "1h",
            "1d",
            "2w",
            "every 5 minutes",
            "every hour",
            "every 2 days",
            "Every Minute",
            "hourly",
            "weekdays at 9:00",
            "weekdays at 9:00 America/New_York",
            "every monday at 8:30",
            "mondays and thursdays at 8:30",
            "every tue, sat at 7",
            "weekends at 10:15",
            "daily at 7:00",
            "every day at 7pm",
            "daily",
            "@weekly",
            "in 2 hours",
            "in 3 days",
            "at 2026-12-24T18:00 Europe/Vienna",
        ]
        .iter()
        .map(|text| format!("{text:36} {}", first(text)))
        .collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        0 9 * * 1-5                          2026-11-16T09:00:00Z
        0 9 * * 1-5 Europe/Vienna            2026-11-16T08:00:00Z
        30s                                  2026-11-16T05:00:30Z
        5m                                   2026-11-16T05:05:00Z
        1h                                   2026-11-16T06:00:00Z
        1d                                   2026-11-17T05:00:00Z
        2w                                   2026-11-30T05:00:00Z
        every 5 minutes                      2026-11-16T05:05:00Z
        every hour                           2026-11-16T06:00:00Z
        every 2 days                         2026-11-18T05:00:00Z
        Every Minute                         2026-11-16T05:01:00Z
        hourly                               2026-11-16T06:00:00Z
        weekdays at 9:00                     2026-11-16T09:00:00Z
        weekdays at 9:00 America/New_York    2026-11-16T14:00:00Z
        every monday at 8:30                 2026-11-16T08:30:00Z
        mondays and thursdays at 8:30        2026-11-16T08:30:00Z
        every tue, sat at 7                  2026-11-17T07:00:00Z
        weekends at 10:15                    2026-11-21T10:15:00Z
        daily at 7:00                        2026-11-16T07:00:00Z
        every day at 7pm                     2026-11-16T19:00:00Z
        daily                                2026-11-17T00:00:00Z
        @weekly                              2026-11-22T00:00:00Z
        in 2 hours                           2026-11-16T07:00:00Z
        in 3 days                            2026-11-19T05:00:00Z
        at 2026-12-24T18:00 Europe/Vienna    2026-12-24T17:00:00Z
        ");
    }

    #[test]
    fn what_is_no_schedule_is_told_what_would_be_one() {
        for (text, part) in [
            ("", "empty or too long"),
            ("whenever", "is not a schedule"),
            ("every now and then", "is not a schedule"),
            ("* * * *", "cron has five fields, and here are 4"),
            ("0 0 9 * * 1-5", "cron has five fields, and here are 6"),
            ("61 * * * *", "is not a schedule"),
            ("0 9 * * 1-5 Europe/Nowhere", "knows no time zone"),
            ("every 0 minutes", "less than a second"),
            ("every 99999999999999999999 days", "is not a schedule"),
            ("999d", "more than a year"),
            ("weekdays at 25:00", "is not a schedule"),
            ("daily at 7:60", "is not a schedule"),
            ("\u{202e}x", "is not a schedule"),
        ] {
            let error = Schedule::read(text, None, at(NOW), &zones).unwrap_err();
            assert!(error.message.contains(part), "{text}: {}", error.message);
            assert!(error.hint.is_some() && !error.message.contains('\u{202e}'), "{text}");
        }
        let twice = Schedule::read("daily at 7:00 Europe/Vienna", Some("Asia/Tokyo"), at(NOW), &zones).unwrap_err();
        assert!(twice.message.contains("the zone is `Asia/Tokyo`"), "{}", twice.message);
    }

    #[test]
    fn what_never_happens_is_refused() {
        for never in ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "at 2020-01-01T00:00"] {
            let error = Schedule::read(never, None, at(NOW), &zones).unwrap_err();
            assert!(error.message.contains("never happens"), "{never}: {}", error.message);
        }
        // What is rare is not never.
        assert_eq!(times(&made("0 0 29 2 *"), NOW, 2), ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
    }

    #[test]
    fn a_time_that_does_not_exist_happens_right_after_the_gap() {
        // Vienna, 2027-03-28: 02:00 becomes 03:00 at 01:00 UTC.
        let fixed = Schedule::read("daily at 2:30", Some("Europe/Vienna"), at(NOW), &zones).unwrap();
        assert_eq!(
            times(&fixed, "2027-03-26T12:00:00Z", 3),
            ["2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"]
        );
        // By the wall's clock, what does not exist is left out.
        let steps = Schedule::read("*/30 * * * *", Some("Europe/Vienna"), at(NOW), &zones).unwrap();
        assert_eq!(
            times(&steps, "2027-03-28T00:10:00Z", 4),
            ["2027-03-28T00:30:00Z", "2027-03-28T01:00:00Z", "2027-03-28T01:30:00Z", "2027-03-28T02:00:00Z"]
        );
    }

    #[test]
    fn a_time_that_exists_twice_happens_once() {
        // Vienna, 2026-10-25: 03:00 becomes 02:00 at 01:00 UTC.
        let early = at("2026-10-01T00:00:00Z");
        let fixed = Schedule::read("daily at 2:30", Some("Europe/Vienna"), early, &zones).unwrap();
        assert_eq!(times(&fixed, "2026-10-24T12:00:00Z", 2), ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let steps = Schedule::read("*/30 * * * *", Some("Europe/Vienna"), early, &zones).unwrap();
        assert_eq!(
            times(&steps, "2026-10-25T00:10:00Z", 4),
            ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"]
        );
    }

    #[test]
    fn a_period_is_counted_from_when_it_was_made() {
        let every = made("90s");
        assert_eq!(times(&every, NOW, 2), ["2026-11-16T05:01:30Z", "2026-11-16T05:03:00Z"]);
        assert_eq!(times(&every, "2026-11-16T05:01:31Z", 1), ["2026-11-16T05:03:00Z"]);
        // A clock that was before does not matter.
        assert_eq!(times(&every, "2020-01-01T00:00:00Z", 1), ["2026-11-16T05:01:30Z"]);
        assert_eq!(every.next(i64::MIN), None);
        assert_eq!(every.next(i64::MAX), None);
        assert_eq!(made("daily at 7:00").next(i64::MAX), None);
    }
}
