//! Times for people.

use jiff::{Timestamp, tz::TimeZone};

/// A time in the local zone: `2026-11-15 09:30:01`.
pub(crate) fn shown(unix_ms: i64) -> String {
    let Ok(time) = Timestamp::from_millisecond(unix_ms) else { return unix_ms.to_string() };
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
