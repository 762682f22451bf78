//! How much was asked of the web. Counted by the minute, so that the table stays small however much is allowed.

use crate::{Mode, Store, StoreError};
use haft_core::SessionId;
use rusqlite::{Connection, params};

const MINUTE_MS: i64 = 60_000;
const HOUR: i64 = 60;
const DAY: i64 = 24 * HOUR;

/// How many requests there were, or may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// Of one session, in a day.
    pub session: u32,
    /// Of all sessions, in an hour.
    pub hour: u32,
    /// Of all sessions, in a day.
    pub day: u32,
}

/// What came of asking for one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Whether it was counted. It was not if a limit was reached.
    pub counted: bool,
    /// What there was before it.
    pub before: Portion,
}

impl Store {
    /// Counts a request unless that would be more than `limits`. In one transaction: however many processes ask at once,
    /// no more than that are counted.
    pub async fn ask_web(&self, session: &SessionId, now_ms: i64, limits: Portion) -> Result<Asked, StoreError> {
        let session = session.clone();
        self.run(Mode::Write, move |connection| {
            let minute = now_ms / MINUTE_MS;
            connection.prepare_cached("DELETE FROM requests WHERE minute <= ?1")?.execute([minute - DAY])?;
            let before = spent(connection, &session, minute)?;
            let counted = before.session < limits.session && before.hour < limits.hour && before.day < limits.day;
            if counted {
                count(connection, &session, minute)?;
            }
            Ok(Asked { counted, before })
        })
        .await
    }

    /// Counts a request that was allowed already, without waiting.
    pub fn note_web(&self, session: &SessionId, now_ms: i64) {
        let session = session.clone();
        self.later(move |connection| count(connection, &session, now_ms / MINUTE_MS));
    }
}

/// What is in the future, because a clock was set back, counts as well.
fn spent(connection: &Connection, session: &SessionId, minute: i64) -> rusqlite::Result<Portion> {
    connection
        .prepare_cached(
            "SELECT coalesce(sum(count) FILTER (WHERE session = ?1), 0),
                    coalesce(sum(count) FILTER (WHERE minute > ?2), 0),
                    coalesce(sum(count), 0) FROM requests",
        )?
        .query_row(params![session.as_str(), minute - HOUR], |row| {
            Ok(Portion { session: row.get(0)?, hour: row.get(1)?, day: row.get(2)? })
        })
}

fn count(connection: &Connection, session: &SessionId, minute: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO requests (session, minute, count) VALUES (?1, ?2, 1)
             ON CONFLICT (session, minute) DO UPDATE SET count = count + 1",
        )?
        .execute(params![session.as_str(), minute])
        .map(drop)
}
