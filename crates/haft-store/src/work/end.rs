//! What follows from a step's end: what may begin, what is skipped, whether the run is over. All of it happens with the end.

use super::claim::{Claimed, claimed};
use super::done::Done;
use crate::cells;
use crate::db::{Db, DbResult};
use crate::journal::append;
use crate::{Entry, Mode, Store, StoreError, Topic};
use haft_core::record::Kind;
use serde_json::Value;

/// How long before a step that failed is tried again: the first time, and at the most.
const PAUSE_MS: (i64, i64) = (1000, 60_000);

/// How an attempt at a step ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// Well, with what it gave.
    Done(Value),
    /// Badly, with why.
    Failed(Value),
    /// It was not wanted: its condition does not hold.
    Unwanted(Value),
    /// It waits for a person.
    Asking,
    /// It is a run of its own, and goes on there.
    Nested,
    /// It is to be taken up again from then on. `counts` says whether that was one of its attempts.
    Again {
        /// From when; at once if that is past.
        from_ms: i64,
        /// Whether it is one attempt less.
        counts: bool,
    },
}

/// What an end means for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// They go on.
    On,
    /// It is tried again.
    Again,
    /// They go on, and somebody is told.
    Tell,
    /// Nothing else begins.
    Stop,
    /// The step was somebody else's by then, and nothing was noted.
    Lost,
}

/// What a person says about a step of which nobody knows what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// It happened.
    Done,
    /// It did not, and is not to.
    Failed,
    /// It did not, and is to.
    Again,
}

impl Store {
    /// Notes how an attempt ended, and everything that follows from it.
    pub async fn end_step(&self, step: Claimed, end: End) -> Result<Then, StoreError> {
        self.insist(Mode::Write, move |db| match &end {
            End::Done(gave) if step.plain && db.is_hurried() => {
                db.keep(|pending| pending.finish(Done::new(&step, gave)));
                Ok(Then::On)
            }
            _ => note(db, &step, &end),
        })
        .await
    }

    /// Ends a run that somebody does not want any more, with all that is in it. Says whether it was under way.
    pub async fn cancel_run(&self, run: &str, by: &str) -> Result<bool, StoreError> {
        let (run, by) = (run.to_owned(), by.to_owned());
        self.run(Mode::Durable, move |db| {
            let running = "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND state = 'running')";
            if !db.one(running, cells![run], |row| row.get::<bool>(0))? {
                return Ok(false);
            }
            let whole = outermost(db, &run)?;
            stop(db, &whole, "cancelled", &format!("cancelled by {by}"))?;
            Ok(true)
        })
        .await
    }

    /// Ends runs that have taken longer than they may. Returns them.
    pub async fn end_late_runs(&self) -> Result<Vec<String>, StoreError> {
        self.run(Mode::Write, |db| {
            let now = db.now_ms()?;
            let late: Vec<String> =
                db.all("SELECT id FROM runs WHERE state = 'running' AND until_ms < ?1", cells![now], |row| row.get(0))?;
            for run in &late {
                stop(db, run, "failed", "it took longer than its budget allows")?;
            }
            Ok(late)
        })
        .await
    }

    /// Decides about a step of which nobody knows what came of it. Says whether there was such a step.
    pub async fn settle_step(&self, run: &str, step: &str, settle: Settle, by: &str) -> Result<bool, StoreError> {
        let (run, step, by) = (run.to_owned(), step.to_owned(), by.to_owned());
        self.run(Mode::Durable, move |db| {
            let sql =
                "SELECT run, nr, id, attempt, call_id FROM steps WHERE run = ?1 AND id = ?2 AND state = 'uncertain'";
            let found = db.first(sql, cells![run, step], claimed)?;
            let Some(found) = found else { return Ok(false) };
            let said = |success: bool| {
                let words = format!("{by} said that it {}", if success { "happened" } else { "did not happen" });
                let mut said = serde_json::json!({"success": success, "output": "", "settled": words});
                if !success {
                    // Whoever says that it is not to happen has said no.
                    said["error"] = serde_json::json!({"kind": "rejected", "message": words});
                }
                said
            };
            let (end, word) = match settle {
                Settle::Done => (End::Done(said(true)), "done"),
                Settle::Failed => (End::Failed(said(false)), "failed"),
                Settle::Again => (End::Again { from_ms: 0, counts: false }, "again"),
            };
            let entry = Entry::new(Kind::Work).with("run", run).with("step", step).with("settled", word);
            append(db, &entry.with("by", by))?;
            db.notify(Topic::Work);
            note(db, &found, &end).map(|_| true)
        })
        .await
    }

    /// Takes up a run again that is over, with what is in it: what failed or was skipped, and nothing else. Says how many
    /// steps those are.
    pub async fn run_again(&self, run: &str) -> Result<usize, StoreError> {
        let run = run.to_owned();
        self.insist(Mode::Durable, move |db| {
            // What may have happened is settled by a person before anything goes on.
            let open = "SELECT EXISTS (SELECT 1 FROM steps WHERE run IN (SELECT id FROM runs WHERE outermost = ?1)
                 AND state IN ('uncertain', 'running', 'asking'))";
            if db.one(open, cells![run], |row| row.get::<bool>(0))? {
                return Ok(0);
            }
            take_up(db, &run)
        })
        .await
    }
}

/// Takes up a run that is over, and those in it that did not come to a good end.
fn take_up(db: &Db<'_>, run: &str) -> DbResult<usize> {
    let over = "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND state <> 'running')";
    if !db.one(over, cells![run], |row| row.get::<bool>(0))? {
        return Ok(0);
    }
    let now = db.now_ms()?;
    let again = db.execute(
        "UPDATE steps SET state = 'waiting', outcome = NULL, ended_ms = NULL, retries = retries + attempt, from_ms = ?2
         WHERE run = ?1 AND state IN ('failed', 'skipped')",
        cells![run, now],
    )?;
    if again == 0 {
        return Ok(0);
    }
    db.notify(Topic::Work);
    db.execute(
        "UPDATE steps SET missing = (SELECT count(*) FROM edges JOIN steps AS before
             ON before.run = edges.run AND before.nr = edges.nr
             WHERE edges.run = steps.run AND edges.feeds = steps.nr AND before.state <> 'done')
         WHERE run = ?1 AND state = 'waiting'",
        cells![run],
    )?;
    db.execute("UPDATE steps SET state = 'ready' WHERE run = ?1 AND state = 'waiting' AND missing = 0", cells![run])?;
    let plan = db.first("SELECT plan FROM runs WHERE id = ?1 AND above IS NULL", cells![run], |row| row.get(0))?;
    db.execute(
        "UPDATE runs SET state = 'running', ended_ms = NULL, why = NULL, until_ms = ?3, unsettled = ?2 WHERE id = ?1",
        cells![run, super::number(again), until(plan, now)],
    )?;
    let inner: Vec<(String, i64)> = db.all(
        "SELECT runs.id, runs.above_nr FROM runs JOIN steps ON steps.run = runs.above AND steps.nr = runs.above_nr
         WHERE runs.above = ?1 AND steps.state = 'ready'",
        cells![run],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (inner, nr) in inner {
        if take_up(db, &inner)? > 0 {
            let sql = "UPDATE steps SET state = 'nested' WHERE run = ?1 AND nr = ?2";
            db.execute(sql, cells![run, nr])?;
        }
    }
    Ok(again)
}

/// Until when a run may go on that is taken up now: as long as its plan says.
fn until(plan: Option<String>, now: i64) -> Option<i64> {
    let plan: Value = serde_json::from_str(&plan?).ok()?;
    let minutes = plan["budget"]["minutes"].as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "minutes are checked to be few, and a float saturates")]
    let span = (minutes * 60_000.0) as i64;
    Some(now.saturating_add(span))
}

/// Notes an end. Only what is still this attempt's is touched.
pub(super) fn note(db: &Db<'_>, step: &Claimed, end: &End) -> DbResult<Then> {
    let sql = "SELECT on_failure, retries, narrow, state, repeatable FROM steps
         WHERE run = ?1 AND nr = ?2 AND call_id = ?3 AND state IN ('running', 'asking', 'nested', 'uncertain')";
    let found = db.first(sql, cells![step.run, step.nr, step.call_id], |row| {
        let (on_failure, retries) = (row.get::<String>(0)?, row.get::<i64>(1)?);
        Ok((on_failure, retries, row.get::<bool>(2)?, row.get::<String>(3)?, row.get::<bool>(4)?))
    })?;
    let Some((on_failure, retries, narrow, was, repeatable)) = found else { return Ok(Then::Lost) };
    if narrow && was == "running" {
        make_room(db, step, matches!(end, End::Again { counts: false, .. }))?;
    }
    let sql = "SELECT why IS NOT NULL, state <> 'running' FROM runs WHERE id = ?1";
    let (stopped, over): (bool, bool) = db.one(sql, cells![step.run], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match end {
        // A question about what is not wanted any more is none.
        End::Asking if stopped => {
            Store::withdraw_all(db, std::slice::from_ref(&step.call_id), "its run was stopped")?;
            settle(db, step, "skipped", None).map(|()| Then::On)
        }
        End::Asking => leave(db, step, "asking", None).map(|()| Then::On),
        // What was begun inside was stopped with the whole.
        End::Nested if over => settle(db, step, "skipped", None).map(|()| Then::On),
        End::Nested => leave(db, step, "nested", None).map(|()| Then::On),
        End::Again { .. } if stopped => settle(db, step, "skipped", None).map(|()| Then::On),
        End::Again { from_ms, counts } => again(db, step, *from_ms, *counts).map(|()| Then::Again),
        End::Failed(outcome) if !stopped && i64::from(step.attempt) <= retries && may_retry(outcome, repeatable) => {
            let pause = PAUSE_MS.0.saturating_mul(1 << step.attempt.saturating_sub(1).min(16)).min(PAUSE_MS.1);
            let from_ms = db.now_ms()? + pause;
            again(db, step, from_ms, true).map(|()| Then::Again)
        }
        End::Done(outcome) => settle(db, step, "done", Some(outcome)).map(|()| Then::On),
        End::Unwanted(outcome) => settle(db, step, "skipped", Some(outcome)).map(|()| Then::On),
        End::Failed(outcome) => {
            if on_failure == "stop" {
                let why = format!("the step `{}` failed", step.id);
                db.execute("UPDATE runs SET why = ?2 WHERE id = ?1", cells![step.run, why])?;
                let skipped = db.execute(
                    "UPDATE steps SET state = 'skipped' WHERE run = ?1 AND state IN ('waiting', 'ready', 'held')",
                    cells![step.run],
                )?;
                let skipped = super::number(skipped);
                db.execute("UPDATE runs SET unsettled = unsettled - ?2 WHERE id = ?1", cells![step.run, skipped])?;
            }
            settle(db, step, "failed", Some(outcome))?;
            Ok(match on_failure.as_str() {
                "stop" => Then::Stop,
                "notify" => Then::Tell,
                _ => Then::On,
            })
        }
    }
}

/// Whether trying again makes sense: nobody's no becomes a yes by asking again, and what may have happened is not done twice
/// unless that is as good as once.
fn may_retry(outcome: &Value, repeatable: bool) -> bool {
    const NEVER: [&str; 5] = ["rejected", "denied", "invalid_input", "unknown_tool", "approval_required"];
    const PERHAPS: [&str; 4] = ["timeout", "cancelled", "upstream", "internal"];
    let kind = outcome["error"]["kind"].as_str().unwrap_or_default();
    !NEVER.contains(&kind) && (repeatable || !PERHAPS.contains(&kind))
}

/// The step is nobody's, and stays as it is until something else happens.
pub(super) fn leave(db: &Db<'_>, step: &Claimed, state: &str, why: Option<&str>) -> DbResult<()> {
    let outcome = why.map(|why| serde_json::json!({"success": false, "output": "", "uncertain": why}).to_string());
    db.execute(
        "UPDATE steps SET state = ?3, worker = NULL, lease_ms = NULL, outcome = ?4 WHERE run = ?1 AND nr = ?2",
        cells![step.run, step.nr, state, outcome],
    )
    .map(drop)
}

/// The step is taken up again under the next attempt's name.
fn again(db: &Db<'_>, step: &Claimed, from_ms: i64, counts: bool) -> DbResult<()> {
    let from = from_ms.max(db.now_ms()?);
    db.execute(
        "UPDATE steps SET state = 'ready', worker = NULL, lease_ms = NULL, outcome = NULL, from_ms = ?3, retries = retries + ?4
         WHERE run = ?1 AND nr = ?2",
        cells![step.run, step.nr, from, !counts],
    )
    .map(drop)
}

/// The step is over; whatever waited for it alone may begin, and the run may be over, too.
fn settle(db: &Db<'_>, step: &Claimed, state: &str, outcome: Option<&Value>) -> DbResult<()> {
    let now = db.now_ms()?;
    db.execute(
        "UPDATE steps SET state = ?3, worker = NULL, lease_ms = NULL, outcome = ?4, ended_ms = ?5 WHERE run = ?1 AND nr = ?2",
        cells![step.run, step.nr, state, outcome.map(Value::to_string), now],
    )?;
    db.execute(
        "UPDATE steps SET missing = missing - 1, from_ms = ?3 + wait_ms, state = CASE WHEN missing = 1 THEN 'ready' ELSE state END
         WHERE run = ?1 AND state = 'waiting' AND nr IN (SELECT feeds FROM edges WHERE run = ?1 AND nr = ?2)",
        cells![step.run, step.nr, now],
    )?;
    let sql = "UPDATE runs SET unsettled = unsettled - 1 WHERE id = ?1 RETURNING unsettled";
    let left: i64 = db.one(sql, cells![step.run], |row| row.get(0))?;
    if left <= 0 { finish(db, &step.run, now) } else { Ok(()) }
}

/// The run is over, and the step goes on that it is in another run.
pub(super) fn finish(db: &Db<'_>, run: &str, now: i64) -> DbResult<()> {
    let above = db.first(
        "UPDATE runs SET ended_ms = ?2, state = CASE WHEN EXISTS (
             SELECT 1 FROM steps WHERE run = ?1 AND state = 'failed' AND on_failure = 'stop') THEN 'failed' ELSE 'done' END
         WHERE id = ?1 AND state = 'running' RETURNING above, above_nr, name, state",
        cells![run, now],
        |row| Ok((row.get::<Option<String>>(0)?, row.get::<Option<i64>>(1)?, row.get::<String>(2)?, row.get::<String>(3)?)),
    )?;
    let Some((above, nr, name, state)) = above else { return Ok(()) };
    append(db, &Entry::new(Kind::Work).with("run", run).with("name", name).with("ended", state))?;
    db.notify(Topic::Work);
    if let (Some(above), Some(nr)) = (above, nr) {
        let sql = "UPDATE steps SET state = 'ready', from_ms = ?3, retries = retries + 1
             WHERE run = ?1 AND nr = ?2 AND state = 'nested'";
        db.execute(sql, cells![above, nr, now])?;
    }
    Ok(())
}

/// Nothing of a run, or of what is in it, begins any more.
pub(super) fn stop(db: &Db<'_>, run: &str, state: &str, why: &str) -> DbResult<()> {
    let now = db.now_ms()?;
    let asked: Vec<String> = db.all(
        "SELECT call_id FROM steps WHERE run IN (SELECT id FROM runs WHERE outermost = ?1) AND state = 'asking'
         AND call_id IS NOT NULL",
        cells![run],
        |row| row.get(0),
    )?;
    Store::withdraw_all(db, &asked, why)?;
    db.execute(
        // What somebody said yes to may be under way; its end is noted when it is known.
        "UPDATE steps SET state = 'skipped', ended_ms = ?2 WHERE run IN (SELECT id FROM runs WHERE outermost = ?1)
         AND state IN ('waiting', 'ready', 'held', 'asking', 'nested') AND NOT (state = 'asking'
             AND EXISTS (SELECT 1 FROM approvals WHERE approvals.id = steps.call_id AND approvals.state = 'approved'))",
        cells![run, now],
    )?;
    db.execute(
        "UPDATE runs SET why = ?2, unsettled = (SELECT count(*) FROM steps WHERE steps.run = runs.id
             AND steps.state IN ('running', 'uncertain', 'asking'))
         WHERE outermost = ?1 AND state = 'running'",
        cells![run, why],
    )?;
    // What still runs is told to stop by its worker, and its end is noted then; the run's own end is this one.
    db.execute(
        "UPDATE runs SET state = ?2, ended_ms = ?3 WHERE outermost = ?1 AND state = 'running'",
        cells![run, state, now],
    )?;
    append(db, &Entry::new(Kind::Work).with("run", run).with("ended", state).with("why", why)).map(drop)
}

/// The run that nothing is around.
pub(super) fn outermost(db: &Db<'_>, run: &str) -> DbResult<String> {
    db.one("SELECT outermost FROM runs WHERE id = ?1", cells![run], |row| row.get(0))
}

/// A step that was under way is nobody's now, and stays as it is: another one may begin in its place.
pub(super) fn leave_running(db: &Db<'_>, step: &Claimed, state: &str, why: Option<&str>) -> DbResult<()> {
    let narrow = "SELECT narrow <> 0 AND state = 'running' FROM steps WHERE run = ?1 AND nr = ?2";
    if db.one(narrow, cells![step.run, step.nr], |row| row.get::<bool>(0))? {
        make_room(db, step, false)?;
    }
    leave(db, step, state, why)
}

/// One step less is under way: another one that waited for room may begin.
fn make_room(db: &Db<'_>, step: &Claimed, unused: bool) -> DbResult<()> {
    let top = outermost(db, &step.run)?;
    db.execute("UPDATE runs SET busy = busy - 1, room = room + ?2 WHERE id = ?1", cells![top, unused])?;
    db.execute(
        "UPDATE steps SET state = 'ready' WHERE (run, nr) IN (
             SELECT run, nr FROM steps WHERE state = 'held' AND run IN (SELECT id FROM runs WHERE outermost = ?1)
             ORDER BY from_ms, run, nr LIMIT 1)",
        cells![top],
    )
    .map(drop)
}
