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
    /// The same, and of one that is running what it waits for if nothing of it moves: `uncertain`, `asking` or `waiting`.
    pub stands: String,
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
    /// Its run.
    pub run: String,
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
    /// It may begin, and nobody is there who could do it.
    pub unserved: bool,
}

/// A step of which nobody knows what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Uncertain {
    /// Of which run.
    pub run: String,
    /// What people call that.
    pub name: String,
    /// The project it is about.
    pub root: String,
    /// Which step.
    pub step: String,
    /// The call of its last attempt.
    pub call_id: Option<String>,
    /// Why nobody knows.
    pub why: String,
    /// When it was begun.
    pub begun_ms: Option<i64>,
}

/// Somebody is there who could do a step. `?1` is the time. Whoever is silent for longer is taken for gone.
macro_rules! served {
    () => {
        "EXISTS (SELECT 1 FROM workers WHERE workers.root = steps.root AND workers.state = 'working'
         AND workers.seen_ms + 20000 >= ?1 AND (steps.label IS NULL
         OR replace(',' || workers.labels || ',', ',' || steps.label || ',', '') <> ',' || workers.labels || ','))"
    };
}

// Whether something of a run moves is a matter of its steps, and of those of the runs that are steps of it.
const RUN: &str = concat!(
    "SELECT id, root, name, state, plan, inputs, terms, task, above, deep, count, unsettled, begun_ms, ended_ms, why,
     CASE WHEN state <> 'running' THEN state ELSE (
         WITH RECURSIVE inside (run) AS (
             SELECT runs.id
             UNION ALL
             SELECT steps.run || '-' || steps.nr FROM inside
             JOIN steps ON steps.run = inside.run AND steps.state = 'nested')
         SELECT CASE
             WHEN count(CASE WHEN steps.state = 'running' OR (steps.state = 'ready' AND steps.from_ms <= ?1 AND ",
    served!(),
    ") THEN 1 END) > 0 THEN 'running'
             WHEN count(CASE WHEN steps.state = 'uncertain' THEN 1 END) > 0 THEN 'uncertain'
             WHEN count(CASE WHEN steps.state = 'asking' THEN 1 END) > 0 THEN 'asking'
             WHEN count(CASE WHEN steps.state IN ('ready', 'held') THEN 1 END) > 0 THEN 'waiting'
             ELSE 'running' END
         FROM inside JOIN steps ON steps.run = inside.run) END
     FROM runs"
);
const STEP: &str = concat!(
    "SELECT run, nr, id, state, attempt, label, worker, from_ms, call_id, begun_ms, ended_ms, outcome,
     (state = 'ready' AND from_ms <= ?1 AND NOT ",
    served!(),
    ") FROM steps"
);

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
        stands: row.get(15)?,
    })
}

fn step(row: &Row<'_>) -> DbResult<StepSeen> {
    Ok(StepSeen {
        run: row.get(0)?,
        nr: row.get(1)?,
        id: row.get(2)?,
        state: row.get(3)?,
        attempt: row.get(4)?,
        label: row.get(5)?,
        worker: row.get(6)?,
        from_ms: row.get(7)?,
        call_id: row.get(8)?,
        begun_ms: row.get(9)?,
        ended_ms: row.get(10)?,
        outcome: row.get::<Option<String>>(11)?.map(|text| json(&text)),
        unserved: row.get(12)?,
    })
}

impl Store {
    /// A run.
    pub async fn run_seen(&self, id: &str) -> Result<Option<RunSeen>, StoreError> {
        let id = id.to_owned();
        self.insist(Mode::Read, move |db| db.first(&format!("{RUN} WHERE id = ?2"), cells![db.now_ms()?, id], run))
            .await
    }

    /// The runs whose ids begin so: more than one is ambiguous.
    pub async fn runs_beginning(&self, root: &str, prefix: &str) -> Result<Vec<RunSeen>, StoreError> {
        let (root, prefix) = (root.to_owned(), prefix.to_owned());
        self.insist(Mode::Read, move |db| {
            let end = format!("{prefix}\u{10ffff}");
            let sql = format!("{RUN} WHERE root = ?2 AND id >= ?3 AND id <= ?4 ORDER BY id LIMIT 10");
            db.all(&sql, cells![db.now_ms()?, root, prefix, end], run)
        })
        .await
    }

    /// The latest runs of a project, those first that began last. Without those that are in others.
    pub async fn runs(&self, root: &str, limit: u32) -> Result<Vec<RunSeen>, StoreError> {
        let root = root.to_owned();
        self.insist(Mode::Read, move |db| {
            let sql = format!("{RUN} WHERE root = ?2 AND above IS NULL ORDER BY begun_ms DESC LIMIT ?3");
            db.all(&sql, cells![db.now_ms()?, root, limit], run)
        })
        .await
    }

    /// The steps of a run, in order.
    pub async fn steps(&self, id: &str) -> Result<Vec<StepSeen>, StoreError> {
        let id = id.to_owned();
        self.insist(Mode::Read, move |db| {
            db.all(&format!("{STEP} WHERE run = ?2 ORDER BY nr"), cells![db.now_ms()?, id], step)
        })
        .await
    }

    /// The first of those steps of a run that may begin and that nobody is there for.
    pub async fn unserved(&self, id: &str) -> Result<Vec<StepSeen>, StoreError> {
        let id = id.to_owned();
        self.insist(Mode::Read, move |db| {
            let own = "run = ?2 AND state = 'ready' AND from_ms <= ?1 AND NOT";
            let sql = format!("{STEP} WHERE {own} {} ORDER BY nr LIMIT 10", served!());
            db.all(&sql, cells![db.now_ms()?, id], step)
        })
        .await
    }

    /// The steps of which nobody knows what became of them, in all projects, those first that are known longest.
    pub async fn uncertain_steps(&self) -> Result<Vec<Uncertain>, StoreError> {
        self.run(Mode::Read, |db| {
            let sql = "SELECT steps.run, runs.name, steps.root, steps.id, steps.call_id, steps.outcome, steps.begun_ms
                 FROM steps JOIN runs ON runs.id = steps.run
                 WHERE steps.state = 'uncertain' ORDER BY steps.begun_ms, steps.run, steps.nr LIMIT 1000";
            db.all(sql, &[], |row| {
                let outcome = row.get::<Option<String>>(5)?.map(|text| json(&text)).unwrap_or_default();
                let why = outcome["uncertain"].as_str().unwrap_or("nobody knows what came of it").to_owned();
                Ok(Uncertain {
                    run: row.get(0)?,
                    name: row.get(1)?,
                    root: row.get(2)?,
                    step: row.get(3)?,
                    call_id: row.get(4)?,
                    why,
                    begun_ms: row.get(6)?,
                })
            })
        })
        .await
    }

    /// Those steps of a run that another step waits for.
    pub async fn steps_before(&self, id: &str, nr: u32) -> Result<Vec<StepSeen>, StoreError> {
        let id = id.to_owned();
        self.insist(Mode::Read, move |db| {
            let sql = format!(
                "{STEP} WHERE run = ?2 AND nr IN (SELECT nr FROM edges WHERE run = ?2 AND feeds = ?3) ORDER BY nr"
            );
            // What others wait for is over, so that the time does not matter.
            db.all(&sql, cells![0_i64, id, nr], step)
        })
        .await
    }

    /// Steps that waited for a person who has decided: what came of each, or none if it was a no.
    pub async fn answered(&self, root: &str) -> Result<Vec<(Claimed, Option<Value>)>, StoreError> {
        let root = root.to_owned();
        self.insist(Mode::Read, move |db| {
            db.all(
                "SELECT steps.run, steps.nr, steps.id, steps.attempt, steps.call_id, approvals.outcome FROM steps
                 JOIN approvals ON approvals.id = steps.call_id
                 WHERE steps.root = ?1 AND ((steps.state = 'asking' AND approvals.state IN ('done', 'rejected'))
                     OR (steps.state = 'uncertain' AND approvals.state = 'done' AND approvals.outcome IS NOT NULL)) LIMIT 256",
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
        self.insist(Mode::Read, move |db| {
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
        self.insist(Mode::Read, move |db| {
            db.one("SELECT min(from_ms) FROM steps WHERE state = 'ready' AND root = ?1", cells![root], |row| row.get(0))
        })
        .await
    }

    /// Whether something of a run, or of what is in it, is under way or about to begin until then. What asks for a worker
    /// that is not there does not begin.
    pub async fn moves(&self, run: &str, until_ms: i64) -> Result<bool, StoreError> {
        let run = run.to_owned();
        self.insist(Mode::Read, move |db| {
            let sql = concat!(
                "SELECT EXISTS (SELECT 1 FROM steps WHERE run IN (SELECT id FROM runs WHERE outermost = ?2)
                 AND (state = 'running' OR (state = 'ready' AND from_ms <= ?3 AND (label IS NULL OR ",
                served!(),
                "))))"
            );
            db.one(sql, cells![db.now_ms()?, run, until_ms], |row| row.get(0))
        })
        .await
    }
}
