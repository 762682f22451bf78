//! When something should be done: `tomorrow`, `in 3 days`, `2030-01-31`; and which days somebody means by `week`.

use super::words;
use crate::error::CallError;
use crate::preview::inert;
use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// What can be said.
const FORMS: &str = "write today, tomorrow, a weekday (`friday`), `in 3 days`, `in 2 hours`, a date (2030-01-31) or a time \
     (2030-01-31T09:00, with Z or +01:00 for another zone); a time of day may follow a day: `tomorrow at 9:00`";

/// The moment that words mean, for somebody in this zone. A day without a time of day means its end: until then the thing
/// is not late.
pub fn due(text: &str, now_ms: i64, zone: &TimeZone) -> Result<i64, CallError> {
    let unread = || CallError::invalid(format!("`{}` is no date", inert(text))).hint(FORMS);
    let now = Timestamp::from_millisecond(now_ms).map_err(|_| unread())?.to_zoned(zone.clone());
    if text.len() > 80 {
        return Err(unread());
    }
    let moment = moment(&text.trim().to_lowercase(), &now).ok_or_else(unread)?;
    Ok(moment.timestamp().as_millisecond())
}

fn moment(text: &str, now: &Zoned) -> Option<Zoned> {
    if let Some(later) = text.strip_prefix("in ") {
        return in_a_while(later.trim(), now);
    }
    if let Some(exact) = exact(text, now) {
        return Some(exact);
    }
    let (day, time) =
        match text.split_once(" at ").or_else(|| text.split_once(' ').filter(|(_, rest)| rest.contains(':'))) {
            Some((day, time)) => (day.trim(), Some(words::clock(time.trim())?)),
            None => (text, None),
        };
    let date = day_of(day, now)?;
    match time {
        Some((hour, minute)) => {
            date.at(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).to_zoned(now.time_zone().clone()).ok()
        }
        None => end_of(date, now),
    }
}

/// `3 days`, `2 hours`, `1 month`. Hours and less are counted from now, days and more by the calendar.
fn in_a_while(text: &str, now: &Zoned) -> Option<Zoned> {
    let (number, unit) = text.split_once(char::is_whitespace).unwrap_or(("", text));
    let count = match number {
        "a" | "an" => Some(1),
        number => number.parse::<i64>().ok().filter(|count| (0..=100_000).contains(count)),
    };
    if let (Some(count), Some(span)) = (count, calendar(unit.trim())) {
        return end_of(now.date().checked_add(span(count)).ok()?, now);
    }
    let period = match count {
        Some(1) if number != "1" => words::period(unit.trim())?,
        _ => words::period(text)?,
    };
    if period % 86_400_000 == 0 {
        return end_of(now.date().checked_add(Span::new().try_days(period / 86_400_000).ok()?).ok()?, now);
    }
    now.checked_add(Span::new().try_milliseconds(period).ok()?).ok()
}

fn calendar(unit: &str) -> Option<fn(i64) -> Span> {
    match unit {
        "day" | "days" => Some(|count| Span::new().try_days(count).unwrap_or_default()),
        "week" | "weeks" => Some(|count| Span::new().try_weeks(count).unwrap_or_default()),
        "month" | "months" => Some(|count| Span::new().try_months(count.min(1_200)).unwrap_or_default()),
        "year" | "years" => Some(|count| Span::new().try_years(count.min(1_000)).unwrap_or_default()),
        _ => None,
    }
}

/// `2030-01-31T09:00Z`, or without a zone: then it is here.
fn exact(text: &str, now: &Zoned) -> Option<Zoned> {
    if !text.contains(['t', ' ']) || !text.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let upper = text.to_ascii_uppercase();
    if let Ok(instant) = upper.parse::<Timestamp>() {
        return Some(instant.to_zoned(now.time_zone().clone()));
    }
    upper.parse::<DateTime>().ok()?.to_zoned(now.time_zone().clone()).ok()
}

fn day_of(word: &str, now: &Zoned) -> Option<Date> {
    let word = word.strip_prefix("next ").or_else(|| word.strip_prefix("on ")).unwrap_or(word).trim();
    match word {
        "today" => return Some(now.date()),
        "tomorrow" => return now.date().tomorrow().ok(),
        "week" => return now.date().checked_add(Span::new().days(7)).ok(),
        _ => {}
    }
    if let Some((at, _)) = words::weekday(word) {
        return now.date().nth_weekday(1, Weekday::from_sunday_zero_offset(at).ok()?).ok();
    }
    (word.len() == 10).then(|| word.parse::<Date>().ok()).flatten()
}

fn end_of(date: Date, now: &Zoned) -> Option<Zoned> {
    let next = date.tomorrow().ok()?.to_zoned(now.time_zone().clone()).ok()?;
    next.checked_sub(Span::new().milliseconds(1)).ok()
}

/// Which tasks somebody asks for, by when they are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Today.
    Today,
    /// Today and the six days after it.
    Week,
    /// Before now.
    Overdue,
}

impl Window {
    /// From the word for it.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "today" => Some(Self::Today),
            "week" => Some(Self::Week),
            "overdue" => Some(Self::Overdue),
            _ => None,
        }
    }

    /// From when, and until when (not any more), for somebody in this zone.
    pub fn bounds(self, now_ms: i64, zone: &TimeZone) -> (i64, i64) {
        if self == Self::Overdue {
            return (i64::MIN, now_ms);
        }
        let days = if self == Self::Today { 1 } else { 7 };
        let bounds = || {
            let now = Timestamp::from_millisecond(now_ms).ok()?.to_zoned(zone.clone());
            let start = |date: Date| Some(date.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond());
            Some((start(now.date())?, start(now.date().checked_add(Span::new().days(days)).ok()?)?))
        };
        bounds().unwrap_or((now_ms, now_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, shown, zones};
    use super::*;

    /// A Monday.
    const NOW: &str = "2026-11-16T05:00:00Z";

    #[test]
    fn each_form_is_understood() {
        let vienna = zones("Europe/Vienna").unwrap();
        let said: Vec<String> = [
            "today",
            "Tomorrow",
            "tomorrow at 9:00",
            "friday",
            "next monday",
            "friday at 5pm",
            "in 3 days",
            "in a week",
            "in 2 weeks",
            "in 1 month",
            "in 2 hours",
            "in 90m",
            "2030-01-31",
            "2030-01-31T09:00",
            "2030-01-31 09:00",
            "2030-01-31T09:00:00Z",
            "2030-01-31T09:00+09:00",
            // An hour that does not exist.
            "2027-03-28T02:30",
        ]
        .iter()
        .map(|text| format!("{text:24} {}", due(text, at(NOW), &vienna).map_or_else(|error| error.message, shown)))
        .collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        today                    2026-11-16T22:59:59.999Z
        Tomorrow                 2026-11-17T22:59:59.999Z
        tomorrow at 9:00         2026-11-17T08:00:00Z
        friday                   2026-11-20T22:59:59.999Z
        next monday              2026-11-23T22:59:59.999Z
        friday at 5pm            2026-11-20T16:00:00Z
        in 3 days                2026-11-19T22:59:59.999Z
        in a week                2026-11-23T22:59:59.999Z
        in 2 weeks               2026-11-30T22:59:59.999Z
        in 1 month               2026-12-16T22:59:59.999Z
        in 2 hours               2026-11-16T07:00:00Z
        in 90m                   2026-11-16T06:30:00Z
        2030-01-31               2030-01-31T22:59:59.999Z
        2030-01-31T09:00         2030-01-31T08:00:00Z
        2030-01-31 09:00         2030-01-31T08:00:00Z
        2030-01-31T09:00:00Z     2030-01-31T09:00:00Z
        2030-01-31T09:00+09:00   2030-01-31T00:00:00Z
        2027-03-28T02:30         2027-03-28T01:30:00Z
        ");
    }

    #[test]
    fn what_is_no_date_is_told_what_would_be_one() {
        for odd in
            ["", "soon", "31.1.2030", "2030-02-30", "in many days", "in 3 parsecs", "in 99999999999 days", "13pm"]
        {
            let error = due(odd, at(NOW), &TimeZone::UTC).unwrap_err();
            assert!(error.message.ends_with("is no date"), "{odd}: {}", error.message);
            assert!(error.hint.unwrap().contains("tomorrow"));
        }
        assert!(due("today", i64::MAX, &TimeZone::UTC).is_err());
        assert!(due(&"9".repeat(10_000), at(NOW), &TimeZone::UTC).is_err());
    }

    #[test]
    fn a_day_is_as_long_as_it_is_where_somebody_is() {
        let vienna = zones("Europe/Vienna").unwrap();
        let hours = |window: Window, now: &str| {
            let (from, to) = window.bounds(at(now), &vienna);
            (shown(from), (to - from) / 3_600_000)
        };
        assert_eq!(hours(Window::Today, NOW), ("2026-11-15T23:00:00Z".to_owned(), 24));
        assert_eq!(hours(Window::Week, NOW).1, 7 * 24);
        assert_eq!(hours(Window::Today, "2026-10-25T10:00:00Z").1, 25);
        assert_eq!(hours(Window::Today, "2027-03-28T10:00:00Z").1, 23);
        assert_eq!(Window::Overdue.bounds(5, &vienna), (i64::MIN, 5));
    }
}
