//! What came of a task, time by time: the latest runs.

use crate::db::{Db, DbResult};
use crate::{Mode, Store, StoreError, cells};
use serde::Serialize;

/// So many runs of a task are remembered.
const KEPT: i64 = 100;

/// A run of a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskRun {
    /// The time for which it was.
    pub at_ms: i64,
    /// When it was begun.
    pub begun_ms: i64,
    /// Which run it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Whether it went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

pub(super) fn note_begun(db: &Db<'_>, task: &str, at_ms: i64, now_ms: i64) -> DbResult<()> {
    db.execute(
        "INSERT INTO task_runs (task, at_ms, begun_ms) VALUES (?1, ?2, ?3) ON CONFLICT (task, at_ms) DO NOTHING",
        cells![task, at_ms, now_ms],
    )?;
    let old = "DELETE FROM task_runs WHERE task = ?1 AND at_ms <= (SELECT at_ms FROM task_runs WHERE task = ?1
               ORDER BY at_ms DESC LIMIT 1 OFFSET ?2)";
    db.execute(old, cells![task, KEPT]).map(drop)
}

pub(super) fn note_run(db: &Db<'_>, task: &str, at_ms: i64, run: &str) -> DbResult<()> {
    db.execute("UPDATE task_runs SET run = ?3 WHERE task = ?1 AND at_ms = ?2", cells![task, at_ms, run]).map(drop)
}

pub(super) fn note_ended(
    db: &Db<'_>,
    (task, at_ms): (&str, i64),
    run: &str,
    ok: bool,
    result: Option<&str>,
    now_ms: i64,
) -> DbResult<()> {
    let sql = "UPDATE task_runs SET run = ?3, ok = ?4, result = ?5, ended_ms = ?6 WHERE task = ?1 AND at_ms = ?2";
    db.execute(sql, cells![task, at_ms, run, ok, result, now_ms]).map(drop)
}

/// Notes that a run was given up with its task.
pub(super) fn note_left(db: &Db<'_>, (task, at_ms): (&str, i64), why: &str, now_ms: i64) -> DbResult<()> {
    let sql = "UPDATE task_runs SET ok = 0, result = ?3, ended_ms = ?4 WHERE task = ?1 AND at_ms = ?2";
    db.execute(sql, cells![task, at_ms, why, now_ms]).map(drop)
}

impl Store {
    /// The latest runs of a task, the latest first.
    pub async fn task_runs(&self, id: &str, limit: u32) -> Result<Vec<TaskRun>, StoreError> {
        let id = id.to_owned();
        self.run(Mode::Read, move |db| {
            let sql = "SELECT at_ms, begun_ms, run, ended_ms, ok, result FROM task_runs WHERE task = ?1
                       ORDER BY at_ms DESC LIMIT ?2";
            db.all(sql, cells![id, limit], |row| {
                Ok(TaskRun {
                    at_ms: row.get(0)?,
                    begun_ms: row.get(1)?,
                    run: row.get(2)?,
                    ended_ms: row.get(3)?,
                    ok: row.get::<Option<i64>>(4)?.map(|ok| ok != 0),
                    result: row.get(5)?,
                })
            })
        })
        .await
    }
}
