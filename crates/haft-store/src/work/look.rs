//! What is known of runs and their steps.

use super::claim::{Claimed, claimed};
use crate::cells;
use crate::db::{DbResult, Row};
use crate::{Mode, Store, StoreError};
use serde::Serialize;
use serde_json::Value;

/// A run as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSeen {
    /// Its id.
    pub id: String,
    /// The project it is about.
    pub root: String,
    /// What people call it.
    pub name: String,
    /// `running`, `done`, `failed` or `cancelled`.
    pub state: String,
    /// The plan, as it was when it began.
    pub plan: Value,
    /// What it was given.
    pub inputs: Value,
    /// On whose behalf, and how.
    pub terms: Value,
    /// The task that it is for.
    pub task: Option<String>,
    /// The run that it is in.
    pub above: Option<String>,
    /// How deep it is in others.
    pub deep: u32,
    /// How many steps it has.
    pub count: i64,
    /// How many of them are not over.
    pub unsettled: i64,
    /// When it began.
    pub begun_ms: i64,
    /// When it ended.
    pub ended_ms: Option<i64>,
    /// Why it was stopped.
    pub why: Option<String>,
}

/// A step as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepSeen {
    /// Its number in the plan.
    pub nr: u32,
    /// Its name.
    pub id: String,
    /// `waiting`, `ready`, `held`, `running`, `asking`, `nested`, `uncertain`, `done`, `failed` or `skipped`.
    pub state: String,
    /// How often it was begun.
    pub attempt: u32,
    /// Where it may run.
    pub label: Option<String>,
    /// Who works on it.
    pub worker: Option<String>,
    /// From when it may begin.
    pub from_ms: i64,
    /// The call of its last attempt.
    pub call_id: Option<String>,
    /// When that began.
    pub begun_ms: Option<i64>,
    /// When it was over.
    pub ended_ms: Option<i64>,
    /// What it gave.
    pub outcome: Option<Value>,
}

const RUN: &str =
    "SELECT id, root, name, state, plan, inputs, terms, task, above, deep, count, unsettled, begun_ms, ended_ms,
     why FROM runs";
const STEP: &str =
    "SELECT nr, id, state, attempt, label, worker, from_ms, call_id, begun_ms, ended_ms, outcome FROM steps";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn run(row: &Row<'_>) -> DbResult<RunSeen> {
    Ok(RunSeen {
        id: row.get(0)?,
        root: row.get(1)?,
        name: row.get(2)?,
        state: row.get(3)?,
        plan: json(&row.get::<String>(4)?),
        inputs: json(&row.get::<String>(5)?),
        terms: json(&row.get::<String>(6)?),
        task: row.get(7)?,
        above: row.get(8)?,
        deep: row.get(9)?,
        count: row.get(10)?,
        unsettled: row.get(11)?,
        begun_ms: row.get(12)?,
        ended_ms: row.get(13)?,
        why: row.get(14)?,
    })
}

fn step(row: &Row<'_>) -> DbResult<StepSeen> {
    Ok(StepSeen {
        nr: row.get(0)?,
        id: row.get(1)?,
        state: row.get(2)?,
        attempt: row.get(3)?,
        label: row.get(4)?,
        worker: row.get(5)?,
        from_ms: row.get(6)?,
        call_id: row.get(7)?,
        begun_ms: row.get(8)?,
        ended_ms: row.get(9)?,
        outcome: row.get::<Option<String>>(10)?.map(|text| json(&text)),
    })
}

impl Store {
    /// A run.
    pub async fn run_seen(&self, id: &str) -> Result<Option<RunSeen>, StoreError> {
        let id = id.to_owned();
        self.run(Mode::Read, move |db| db.first(&format!("{RUN} WHERE id = ?1"), cells![id], run)).await
    }

    /// The runs whose ids begin so: more than one is ambiguous.
    pub async fn runs_beginning(&self, root: &str, prefix: &str) -> Result<Vec<RunSeen>, StoreError> {
        let (root, prefix) = (root.to_owned(), prefix.to_owned());
        self.run(Mode::Read, move |db| {
            let end = format!("{prefix}\u{10ffff}");
            let sql = format!("{RUN} WHERE root = ?1 AND id >= ?2 AND id <= ?3 ORDER BY id LIMIT 10");
            db.all(&sql, cells![root, prefix, end], run)
        })
        .await
    }

    /// The latest runs of a project, those first that began last. Without those that are in others.
    pub async fn runs(&self, root: &str, limit: u32) -> Result<Vec<RunSeen>, StoreError> {
        let root = root.to_owned();
        self.run(Mode::Read, move |db| {
            let sql = format!("{RUN} WHERE root = ?1 AND above IS NULL ORDER BY begun_ms DESC LIMIT ?2");
            db.all(&sql, cells![root, limit], run)
        })
        .await
    }

    /// The steps of a run, in order.
    pub async fn steps(&self, id: &str) -> Result<Vec<StepSeen>, StoreError> {
        let id = id.to_owned();
        self.run(Mode::Read, move |db| db.all(&format!("{STEP} WHERE run = ?1 ORDER BY nr"), cells![id], step)).await
    }

    /// Those steps of a run that another step waits for.
    pub async fn steps_before(&self, id: &str, nr: u32) -> Result<Vec<StepSeen>, StoreError> {
        let id = id.to_owned();
        self.run(Mode::Read, move |db| {
            let sql = format!(
                "{STEP} WHERE run = ?1 AND nr IN (SELECT nr FROM edges WHERE run = ?1 AND feeds = ?2) ORDER BY nr"
            );
            db.all(&sql, cells![id, nr], step)
        })
        .await
    }

    /// Steps that waited for a person who has decided: what came of each, or none if it was a no.
    pub async fn answered(&self, root: &str) -> Result<Vec<(Claimed, Option<Value>)>, StoreError> {
        let root = root.to_owned();
        self.run(Mode::Read, move |db| {
            db.all(
                "SELECT steps.run, steps.nr, steps.id, steps.attempt, steps.call_id, approvals.outcome FROM steps
                 JOIN approvals ON approvals.id = steps.call_id
                 WHERE steps.state = 'asking' AND steps.root = ?1 AND approvals.state IN ('done', 'rejected') LIMIT 256",
                cells![root],
                |row| {
                    Ok((claimed(row)?, row.get::<Option<String>>(5)?.map(|text| json(&text))))
                },
            )
        })
        .await
    }

    /// The runs of which this worker does something although they were stopped.
    pub async fn stopped_under(&self, worker: &str) -> Result<Vec<String>, StoreError> {
        let worker = worker.to_owned();
        self.run(Mode::Read, move |db| {
            db.all(
                "SELECT DISTINCT steps.run FROM steps JOIN runs ON runs.id = steps.run
                 WHERE steps.worker = ?1 AND steps.state = 'running' AND runs.state <> 'running'",
                cells![worker],
                |row| row.get(0),
            )
        })
        .await
    }

    /// When the next step may begin that waits for a time.
    pub async fn next_step_ms(&self, root: &str) -> Result<Option<i64>, StoreError> {
        let root = root.to_owned();
        self.run(Mode::Read, move |db| {
            db.one("SELECT min(from_ms) FROM steps WHERE state = 'ready' AND root = ?1", cells![root], |row| row.get(0))
        })
        .await
    }

    /// Whether something of a run, or of what is in it, is under way or about to begin until then.
    pub async fn moves(&self, run: &str, until_ms: i64) -> Result<bool, StoreError> {
        let run = run.to_owned();
        self.run(Mode::Read, move |db| {
            db.one(
                "SELECT EXISTS (SELECT 1 FROM steps WHERE run IN (SELECT id FROM runs WHERE outermost = ?1)
                 AND (state = 'running' OR (state = 'ready' AND from_ms <= ?2)))",
                cells![run, until_ms],
                |row| row.get(0),
            )
        })
        .await
    }
}
