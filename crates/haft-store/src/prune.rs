//! What is over for long is forgotten: runs with their steps, what came of tasks, workers that are gone, what documents said
//! before. Never the log, never anything that is open or of which nobody knows what came of it.
//!
//! It goes in portions, each a transaction of its own, so that nobody waits long for it. A run goes whole. One that is larger
//! than a portion is taken out first, so that nobody takes it up again, and its steps after it; whoever is interrupted there
//! leaves steps that belong to nothing, which the next one finds.

use crate::cells;
use crate::db::{Db, DbResult};
use crate::journal::append;
use crate::{Entry, Mode, Store, StoreError};
use haft_core::record::Kind;
use serde::Serialize;

/// How many rows go in one transaction.
const PORTION: i64 = 1_000;
/// How many runs are looked at for it.
const RUNS: i64 = 200;

/// Runs that are over for so long, of which nothing is open or uncertain, and whose end their task has heard.
const OVER: &str = "SELECT id FROM runs AS whole WHERE above IS NULL AND state <> 'running' AND ended_ms < ?1
     AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.run = whole.id OR (tasks.id = whole.task AND tasks.at_ms IS NOT NULL))
     AND NOT EXISTS (SELECT 1 FROM runs AS part WHERE part.outermost = whole.id AND (part.state = 'running'
         OR EXISTS (SELECT 1 FROM steps WHERE steps.run = part.id AND steps.state NOT IN ('done', 'failed', 'skipped'))))";
/// Runs of which a larger one's end was interrupted, and steps without a run.
const LEFT: &str = "SELECT id FROM runs WHERE above IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM runs AS whole WHERE whole.id = runs.outermost)
     UNION SELECT run FROM steps WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = steps.run)";

/// What else goes by its age alone: its table, its key, and when it was over.
const AGED: [(&str, &str, &str); 3] =
    [("task_runs", "task, at_ms", "ended_ms"), ("workers", "id", "seen_ms"), ("memory_versions", "call_id", "at_ms")];

/// How much was forgotten, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Runs, with those that are in others.
    pub runs: i64,
    /// Their steps.
    pub steps: i64,
    /// What came of tasks, time by time.
    pub task_runs: i64,
    /// Workers that were not seen any more.
    pub workers: i64,
    /// What documents said before.
    pub memory_versions: i64,
}

impl Pruned {
    /// Whether there was nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    fn aged(&mut self) -> [&mut i64; 3] {
        [&mut self.task_runs, &mut self.workers, &mut self.memory_versions]
    }
}

impl Store {
    /// How much would be forgotten of what was over before then.
    pub async fn prunable(&self, before_ms: i64) -> Result<Pruned, StoreError> {
        self.run(Mode::Read, move |db| {
            let count = |sql: &str| db.one(sql, cells![before_ms], |row| row.get::<i64>(0));
            let parts = format!("SELECT id FROM runs WHERE outermost IN ({OVER})");
            let mut found = Pruned {
                runs: count(&format!("SELECT count(*) FROM ({parts}) AS parts"))?,
                steps: count(&format!("SELECT count(*) FROM steps WHERE run IN ({parts})"))?,
                ..Pruned::default()
            };
            for ((table, _, over), all) in AGED.into_iter().zip(found.aged()) {
                *all = count(&format!("SELECT count(*) FROM {table} WHERE {over} < ?1"))?;
            }
            Ok(found)
        })
        .await
    }

    /// Forgets what was over before then, and notes in the log how much that was.
    pub async fn prune(&self, before_ms: i64, by: &str) -> Result<Pruned, StoreError> {
        self.note_erased();
        let mut gone = Pruned::default();
        let left = self.run(Mode::Read, |db| db.all(LEFT, &[], |row| row.get::<String>(0))).await?;
        self.clear(left, &mut gone).await?;
        loop {
            let (some, large) = self.run(Mode::Write, move |db| portion(db, before_ms)).await?;
            gone.runs += some.runs;
            gone.steps += some.steps;
            if some.runs == 0 {
                break;
            }
            self.clear(large, &mut gone).await?;
        }
        for ((table, key, over), all) in AGED.into_iter().zip(gone.aged()) {
            let which = format!("SELECT {key} FROM {table} WHERE {over} < ?1");
            *all += self.delete(table, key, &which, before_ms.into()).await?;
        }
        if !gone.is_nothing() {
            let told = serde_json::to_value(gone).unwrap_or_default();
            let entry = Entry::new(Kind::Work).with("pruned", told).with("before", before_ms).with("by", by);
            self.run(Mode::Durable, move |db| append(db, &entry).map(drop)).await?;
        }
        Ok(gone)
    }

    /// Takes out all that is left of these runs.
    async fn clear(&self, runs: Vec<String>, gone: &mut Pruned) -> Result<(), StoreError> {
        for run in runs {
            for (table, key) in [("edges", "run, nr, feeds"), ("steps", "run, nr"), ("runs", "id")] {
                let of = if table == "runs" { "id" } else { "run" };
                let which = format!("SELECT {key} FROM {table} WHERE {of} = ?1");
                let count = self.delete(table, key, &which, Of::Run(run.clone())).await?;
                match table {
                    "steps" => gone.steps += count,
                    "runs" => gone.runs += count,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Deletes rows of a table, portion by portion, and says how many.
    async fn delete(&self, table: &str, key: &str, which: &str, of: Of) -> Result<i64, StoreError> {
        let sql = format!("DELETE FROM {table} WHERE ({key}) IN ({which} LIMIT ?2)");
        let mut all = 0;
        loop {
            let (sql, of) = (sql.clone(), of.clone());
            let job = move |db: &Db<'_>| match of {
                Of::Run(run) => db.execute(&sql, cells![run, PORTION]),
                Of::Before(ms) => db.execute(&sql, cells![ms, PORTION]),
            };
            let some = i64::try_from(self.run(Mode::Write, job).await?).unwrap_or(i64::MAX);
            all += some;
            if some < PORTION {
                return Ok(all);
            }
        }
    }
}

/// What rows are chosen by.
#[derive(Clone)]
enum Of {
    Run(String),
    Before(i64),
}

impl From<i64> for Of {
    fn from(ms: i64) -> Self {
        Self::Before(ms)
    }
}

/// Takes out as many runs as fit one portion. If the first does not, it alone goes, and all that was in it is given back to
/// be cleared.
fn portion(db: &Db<'_>, before_ms: i64) -> DbResult<(Pruned, Vec<String>)> {
    let mut gone = Pruned::default();
    let mut used = 0;
    for id in db.all(&format!("{OVER} LIMIT ?2"), cells![before_ms, RUNS], |row| row.get::<String>(0))? {
        let parts = "SELECT id FROM runs WHERE outermost = ?1";
        let of = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table} WHERE run IN ({parts})");
            db.one(&sql, cells![id], |row| row.get::<i64>(0))
        };
        let runs = db.one(&format!("SELECT count(*) FROM ({parts}) AS parts"), cells![id], |row| row.get::<i64>(0))?;
        let (steps, edges) = (of("steps")?, of("edges")?);
        let size = runs + steps + edges;
        if used + size <= PORTION {
            for table in ["edges", "steps"] {
                db.execute(&format!("DELETE FROM {table} WHERE run IN ({parts})"), cells![id])?;
            }
            db.execute("DELETE FROM runs WHERE outermost = ?1", cells![id])?;
            used += size;
            (gone.runs, gone.steps) = (gone.runs + runs, gone.steps + steps);
        } else if used > 0 {
            break;
        } else {
            let all = db.all(parts, cells![id], |row| row.get::<String>(0))?;
            db.execute("DELETE FROM runs WHERE id = ?1", cells![id])?;
            return Ok((Pruned { runs: 1, ..gone }, all));
        }
    }
    Ok((gone, Vec::new()))
}
