//! Times as people say them: `7d`, `2026-11-01`, `2026-11-01T09:00:00Z`.

use haft_core::CallError;
use haft_core::preview::inert;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

pub(super) fn schema(what: &str) -> Value {
    let description =
        format!("{what}: `7d`, `12h` or `30m` ago, a day (`2026-11-01`, UTC) or a time (`2026-11-01T09:00:00Z`)");
    json!({"type": "string", "minLength": 2, "maxLength": 40, "description": description})
}

/// A time in milliseconds of the Unix epoch. A day is its beginning, or if it is `late` its end.
pub(crate) fn read(text: &str, now_ms: i64, late: bool) -> Result<i64, CallError> {
    ago(text, now_ms).or_else(|| day(text, late)).or_else(|| moment(text)).ok_or_else(|| {
        CallError::invalid(format!("`{}` is no time", inert(text)))
            .hint("say `7d`, `12h` or `30m`, a day such as `2026-11-01`, or a time such as `2026-11-01T09:00:00Z`")
    })
}

fn ago(text: &str, now_ms: i64) -> Option<i64> {
    let minutes = match text.chars().next_back()? {
        'm' => 1,
        'h' => 60,
        'd' => 60 * 24,
        'w' => 60 * 24 * 7,
        _ => return None,
    };
    let count: i64 = text[..text.len() - 1].parse().ok().filter(|count| (0..1_000_000).contains(count))?;
    Some(now_ms - count * minutes * 60_000)
}

fn day(text: &str, late: bool) -> Option<i64> {
    let date: Date = text.parse().ok().filter(|_| text.len() == 10)?;
    let date = if late { date.checked_add(1.day()).ok()? } else { date };
    let at = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond();
    Some(if late { at - 1 } else { at })
}

fn moment(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_many_ways() {
        let now = 1_794_804_600_000;
        for (text, late, at) in [
            ("1d", false, now - 86_400_000),
            ("90m", false, now - 5_400_000),
            ("2026-11-16", false, 1_794_787_200_000),
            ("2026-11-16", true, 1_794_873_599_999),
            ("2026-11-16T04:50:00Z", false, now),
            ("2026-11-16T06:50:00+02:00", false, now),
        ] {
            assert_eq!(read(text, now, late).unwrap(), at, "{text}");
        }
        for bad in ["", "d", "-1d", "99999999d", "yesterday", "2026-13-01", "é"] {
            assert!(read(bad, now, false).is_err(), "{bad}");
        }
    }
}
