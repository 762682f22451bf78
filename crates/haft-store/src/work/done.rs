//! Steps that are done, many at a time.
//!
//! Most steps end well, and nothing has to be looked up then: what they gave is kept, what waited for them has one thing less
//! to wait for, and their runs have fewer steps left. Whatever is not so simple is noted one by one, in [`super::end`].

use super::claim::Claimed;
use super::end::finish;
use super::number;
use crate::cells;
use crate::db::{Cell, Db, DbError, DbResult, Param};
use crate::pending::in_rows;
use serde_json::Value;
use std::collections::BTreeMap;

/// An attempt that ended well.
pub(crate) struct Done {
    pub(super) run: String,
    pub(super) nr: u32,
    pub(super) call: String,
    pub(super) gave: String,
}

impl Done {
    pub(super) fn new(step: &Claimed, gave: &Value) -> Self {
        Self { run: step.run.clone(), nr: step.nr, call: step.call_id.clone(), gave: gave.to_string() }
    }
}

/// Notes them, and what follows. Fails if one of them was not its worker's any more: then it is to be looked at by itself.
pub(crate) fn finish_all(db: &Db<'_>, done: &[Done]) -> DbResult<()> {
    if done.is_empty() {
        return Ok(());
    }
    let now = db.now_ms()?;
    let ended: Vec<Vec<Cell<'_>>> = done
        .iter()
        .map(|Done { run, nr, call, gave }| vec![run.cell(), nr.cell(), call.cell(), gave.cell(), Cell::Int(now)])
        .collect();
    let noted = in_rows(db, &ended, &["TEXT", "BIGINT", "TEXT", "TEXT", "BIGINT"], |values| {
        format!(
            "WITH v (run, nr, call_id, gave, now_ms) AS (VALUES {values})
             UPDATE steps SET state = 'done', worker = NULL, lease_ms = NULL, outcome = v.gave, ended_ms = v.now_ms FROM v
             WHERE steps.run = v.run AND steps.nr = v.nr AND steps.call_id = v.call_id AND steps.state = 'running'
             AND steps.narrow = 0"
        )
    })?;
    if noted != done.len() {
        return Err(DbError::Odd("a step was given to another worker".to_owned()));
    }
    let over: Vec<Vec<Cell<'_>>> =
        done.iter().map(|Done { run, nr, .. }| vec![run.cell(), nr.cell(), Cell::Int(now)]).collect();
    in_rows(db, &over, &["TEXT", "BIGINT", "BIGINT"], |values| {
        format!(
            "WITH v (run, nr, now_ms) AS (VALUES {values}),
             fed (run, nr, fewer, now_ms) AS (SELECT edges.run, edges.feeds, count(*), min(v.now_ms) FROM v
                 JOIN edges ON edges.run = v.run AND edges.nr = v.nr GROUP BY edges.run, edges.feeds)
             UPDATE steps SET missing = missing - fed.fewer, from_ms = fed.now_ms + wait_ms,
             state = CASE WHEN missing = fed.fewer THEN 'ready' ELSE state END FROM fed
             WHERE steps.run = fed.run AND steps.nr = fed.nr AND steps.state = 'waiting'"
        )
    })?;
    let mut fewer: BTreeMap<&str, usize> = BTreeMap::new();
    for step in done {
        *fewer.entry(&step.run).or_default() += 1;
    }
    for (run, fewer) in fewer {
        let sql = "UPDATE runs SET unsettled = unsettled - ?2 WHERE id = ?1 RETURNING unsettled";
        let left: i64 = db.one(sql, cells![run, number(fewer)], |row| row.get(0))?;
        if left <= 0 {
            finish(db, run, now)?;
        }
    }
    Ok(())
}
