//! How much was asked of the web. Counted by the minute, so that the table stays small however much is allowed.

use crate::cells;
use crate::db::{Db, DbResult};
use crate::{Mode, Store, StoreError};
use haft_core::SessionId;

const MINUTE_MS: i64 = 60_000;
const HOUR: i64 = 60;
const DAY: i64 = 24 * HOUR;
/// How many times what is wanted is plenty.
const PLENTY: u32 = 4;

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

/// Some requests more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// So many, if that is far from every limit; else one.
    pub wanted: u32,
    /// So many were counted at that time and never made.
    pub back: (u32, i64),
}

/// What came of asking for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// How many were counted. None if a limit was reached.
    pub counted: u32,
    /// What there was before.
    pub before: Portion,
}

impl Store {
    /// Counts requests that are about to be made, unless that would be more than `limits`. In one transaction: however many
    /// processes ask at once, no more than that are counted.
    pub async fn ask_web(
        &self,
        session: &SessionId,
        now_ms: i64,
        wish: Wish,
        limits: Portion,
    ) -> Result<Asked, StoreError> {
        let session = session.clone();
        self.insist(Mode::Write, move |db| {
            let minute = now_ms / MINUTE_MS;
            db.execute("DELETE FROM requests WHERE minute <= ?1", cells![minute - DAY])?;
            if wish.back.0 > 0 {
                give_back(db, &session, wish.back)?;
            }
            let before = spent(db, &session, minute)?;
            let counted = limits.beyond(before).min(wish.wanted);
            // What is counted ahead is taken from others: only where there is plenty.
            let counted =
                if limits.beyond(before) > wish.wanted.saturating_mul(PLENTY) { counted } else { counted.min(1) };
            if counted > 0 {
                count(db, &session, minute, counted)?;
            }
            Ok(Asked { counted, before })
        })
        .await
    }
}

impl Portion {
    /// How many may come on top of `before`.
    fn beyond(self, before: Self) -> u32 {
        let (own, hour) = (self.session.saturating_sub(before.session), self.hour.saturating_sub(before.hour));
        own.min(hour).min(self.day.saturating_sub(before.day))
    }
}

fn give_back(db: &Db<'_>, session: &SessionId, (count, at_ms): (u32, i64)) -> DbResult<()> {
    db.execute("UPDATE requests SET count = CASE WHEN count > ?3 THEN count - ?3 ELSE 0 END WHERE session = ?1 AND minute = ?2", cells![session.as_str(), at_ms / MINUTE_MS, count])
        .map(drop)
}

/// What is in the future, because a clock was set back, counts as well.
fn spent(db: &Db<'_>, session: &SessionId, minute: i64) -> DbResult<Portion> {
    db.one(
        "SELECT CAST(coalesce(sum(count) FILTER (WHERE session = ?1), 0) AS BIGINT),
                    CAST(coalesce(sum(count) FILTER (WHERE minute > ?2), 0) AS BIGINT),
                    CAST(coalesce(sum(count), 0) AS BIGINT) FROM requests",
        cells![session.as_str(), minute - HOUR],
        |row| Ok(Portion { session: row.get(0)?, hour: row.get(1)?, day: row.get(2)? }),
    )
}

fn count(db: &Db<'_>, session: &SessionId, minute: i64, more: u32) -> DbResult<()> {
    db.execute(
        "INSERT INTO requests (session, minute, count) VALUES (?1, ?2, ?3)
             ON CONFLICT (session, minute) DO UPDATE SET count = requests.count + ?3",
        cells![session.as_str(), minute, more],
    )
    .map(drop)
}
