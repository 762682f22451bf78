//! Claiming steps, and taking over those of workers that are gone.

use super::end::{self, End};
use crate::cells;
use crate::db::{Db, DbResult, Kind, Row};
use crate::host::CallOwner;
use crate::post::chance;
use crate::{Mode, Store, StoreError};
use haft_core::CallId;

/// How many workers may be lost with a step before somebody looks at it.
const LOST_MAX: u32 = 10;

/// How long after a yes its call has begun, unless whoever was to make it is gone.
const GIVEN_UP_MS: i64 = 120_000;

/// Who wants steps, and which.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The worker.
    pub worker: String,
    /// The project whose steps it does.
    pub root: String,
    /// What this worker has, as labels of steps ask for.
    pub labels: Vec<String>,
    /// How many at the most.
    pub most: u32,
    /// For how long they are the worker's unless it says otherwise.
    pub lease_ms: i64,
    /// Only those of this run and of what is in it.
    pub only: Option<String>,
}

/// A step that is a worker's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Of which run.
    pub run: String,
    /// Which of its steps.
    pub nr: u32,
    /// The step's name.
    pub id: String,
    /// Which attempt this is; the first is 1.
    pub attempt: u32,
    /// Under which id its call is made.
    pub call_id: String,
    /// Whether it is just claimed, and its run is not bounded: then nothing has to be looked up at its end.
    pub plain: bool,
}

/// What became of steps whose workers are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakenOver {
    /// They had not begun, or may be done again.
    pub again: u32,
    /// Nobody knows what came of them.
    pub uncertain: u32,
    /// They wait for a person.
    pub asking: u32,
}

/// A row of run, number, name, attempt and call.
pub(super) fn claimed(row: &Row<'_>) -> DbResult<Claimed> {
    let (run, nr, id, attempt, call_id) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
    Ok(Claimed { run, nr, id, attempt, call_id, plain: false })
}

impl Store {
    /// Claims steps that may begin, those first that have waited longest.
    pub async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        self.insist(Mode::Claim, move |db| {
            let now = db.now_ms()?;
            let labels = format!(",{},", claim.labels.join(","));
            let locked = if db.kind() == Kind::Post { "FOR UPDATE SKIP LOCKED" } else { "" };
            let within =
                if claim.only.is_some() { "AND run IN (SELECT id FROM runs WHERE outermost = ?8)" } else { "" };
            // What a label asks for is found by taking it out of what there is.
            let sql = format!(
                "UPDATE steps SET state = 'running', worker = ?1, lease_ms = ?2, attempt = attempt + 1, begun_ms = ?3,
                 call_id = run || '-' || nr || '-' || (attempt + 1) || '-' || ?7
                 WHERE (run, nr) IN (
                     SELECT run, nr FROM steps WHERE state = 'ready' AND root = ?4 AND from_ms <= ?3
                     AND (label IS NULL OR replace(?5, ',' || label || ',', '') <> ?5) {within}
                     ORDER BY from_ms LIMIT ?6 {locked})
                 RETURNING run, nr, id, attempt, call_id, narrow, from_ms"
            );
            // What tells this claim from every other. A server that crashes may forget a claim and give the step to somebody else:
            // under another name, so that the first one finds that it is not its own any more.
            let mark = format!("{:08x}", chance() & 0xffff_ffff);
            let mut cells = vec![
                crate::Param::cell(&claim.worker),
                crate::Cell::Int(now + claim.lease_ms),
                crate::Cell::Int(now),
                crate::Param::cell(&claim.root),
                crate::Param::cell(&labels),
                crate::Cell::Int(claim.most.into()),
                crate::Cell::Text(mark.into()),
            ];
            cells.extend(claim.only.as_ref().map(crate::Param::cell));
            let mut found = db.all(&sql, &cells, |row| Ok((claimed(row)?, row.get::<bool>(5)?, row.get::<i64>(6)?)))?;
            // Those that have waited longest have room first, in the order of their plan.
            found.sort_by(|(one, _, from), (other, _, then)| {
                (from, &one.run, one.nr).cmp(&(then, &other.run, other.nr))
            });
            let mut mine = Vec::with_capacity(found.len());
            for (step, narrow, _) in found {
                if !narrow || has_room(db, &step)? {
                    mine.push(Claimed { plain: !narrow, ..step });
                }
            }
            Ok(mine)
        })
        .await
    }

    /// Keeps a worker's steps its own, and says how many there are.
    pub async fn renew(&self, worker: &str, lease_ms: i64) -> Result<usize, StoreError> {
        let worker = worker.to_owned();
        self.insist(Mode::Claim, move |db| {
            let until = db.now_ms()? + lease_ms;
            db.execute("UPDATE steps SET lease_ms = ?2 WHERE worker = ?1 AND state = 'running'", cells![worker, until])
        })
        .await
    }

    /// Leaves a step of which its worker does not know what became: whoever comes next looks what is known of its call.
    pub async fn leave_step(&self, step: Claimed) -> Result<(), StoreError> {
        self.insist(Mode::Write, move |db| {
            db.execute(
                "UPDATE steps SET worker = NULL, lease_ms = 0 WHERE run = ?1 AND nr = ?2 AND call_id = ?3 AND state = 'running'",
                cells![step.run, step.nr, step.call_id],
            )
            .map(drop)
        })
        .await
    }

    /// Gives steps back that were claimed and not begun.
    pub async fn give_back(&self, steps: Vec<Claimed>) -> Result<(), StoreError> {
        self.run(Mode::Write, move |db| {
            for step in steps {
                put_back(db, &step)?;
            }
            Ok(())
        })
        .await
    }

    /// Looks after steps whose lease is over: what had not begun is begun again by somebody, what may be done twice as well,
    /// and of the rest nobody knows what came of it.
    pub async fn take_over(&self) -> Result<TakenOver, StoreError> {
        self.run(Mode::Durable, |db| {
            let now = db.now_ms()?;
            let lost = db.all(
                "SELECT run, nr, id, attempt, call_id, repeatable FROM steps WHERE state = 'running' AND lease_ms < ?1
                 ORDER BY lease_ms LIMIT 256",
                cells![now],
                |row| Ok((claimed(row)?, row.get::<bool>(5)?)),
            )?;
            let mut taken = TakenOver::default();
            for (step, repeatable) in lost {
                take(db, &step, repeatable, &mut taken)?;
            }
            for (step, repeatable) in given_up(db, now)? {
                take_approved(db, &step, repeatable, &mut taken)?;
            }
            Ok(taken)
        })
        .await
    }
}

/// Steps that somebody said yes to, and whoever was to do them is gone.
fn given_up(db: &Db<'_>, now: i64) -> DbResult<Vec<(Claimed, bool)>> {
    let sql = format!(
        "SELECT steps.run, steps.nr, steps.id, steps.attempt, steps.call_id, steps.repeatable, {} FROM steps JOIN approvals ON approvals.id = steps.call_id
         LEFT JOIN open_calls ON open_calls.call_id = steps.call_id
         WHERE steps.state = 'asking' AND approvals.state = 'approved'
         AND (approvals.decided_ms < ?1 OR open_calls.call_id IS NOT NULL) LIMIT 256",
        CallOwner::COLUMNS
    );
    let approved = db.all(&sql, cells![now - GIVEN_UP_MS], |row| {
        let owner = row.get::<Option<String>>(6)?.map(|_| CallOwner::read(row, 6)).transpose()?;
        Ok(((claimed(row)?, row.get::<bool>(5)?), owner))
    })?;
    let mut gone = Vec::new();
    for (step, owner) in approved {
        if !owner.map_or(Ok(false), |owner| owner.lives(db))? {
            gone.push(step);
        }
    }
    Ok(gone)
}

fn kinds(db: &Db<'_>, step: &Claimed) -> DbResult<Vec<String>> {
    db.all("SELECT kind FROM journal WHERE call_id = ?1", cells![step.call_id], |row| row.get(0))
}

fn take(db: &Db<'_>, step: &Claimed, repeatable: bool, taken: &mut TakenOver) -> DbResult<()> {
    let asked: bool =
        db.one("SELECT EXISTS (SELECT 1 FROM approvals WHERE id = ?1)", cells![step.call_id], |row| row.get(0))?;
    if asked && !kinds(db, step)?.iter().any(|kind| kind == "intent") {
        taken.asking += 1;
        return end::leave_running(db, step, "asking", None);
    }
    take_approved(db, step, repeatable, taken)
}

/// A step that nobody has to be asked about any more.
fn take_approved(db: &Db<'_>, step: &Claimed, repeatable: bool, taken: &mut TakenOver) -> DbResult<()> {
    let kinds = kinds(db, step)?;
    let begun = kinds.iter().any(|kind| kind == "intent");
    if (!begun || repeatable) && step.attempt < LOST_MAX {
        taken.again += 1;
        return put_back(db, step);
    }
    if !begun || repeatable {
        taken.uncertain += 1;
        let why = format!("{LOST_MAX} workers were lost with it, one after the other");
        return end::leave_running(db, step, "uncertain", Some(&why));
    }
    // A call that is known to have failed has failed, whoever was to note it.
    let failed = "SELECT EXISTS (SELECT 1 FROM journal WHERE call_id = ?1 AND kind = 'outcome'
         AND text LIKE '%\"success\":false%')";
    if db.one(failed, cells![step.call_id], |row| row.get(0))? {
        let error = serde_json::json!({"kind": "internal", "message": "it failed; `haft log` says how"});
        let outcome = serde_json::json!({"success": false, "output": "", "error": error});
        return end::note(db, step, &End::Failed(outcome)).map(drop);
    }
    taken.uncertain += 1;
    let ended = kinds.iter().any(|kind| kind == "outcome");
    let why = if ended {
        "it ran to its end, and what came of it was lost with its worker"
    } else {
        "its worker was lost after it had begun, so it may or may not have happened"
    };
    end::leave_running(db, step, "uncertain", Some(why))
}

/// Whether the outermost run has room for one more step. If not, the step waits; or, if it will never have, the run ends.
fn has_room(db: &Db<'_>, step: &Claimed) -> DbResult<bool> {
    let taken = db.execute(
        "UPDATE runs SET busy = busy + 1, room = room - 1
         WHERE id = (SELECT outermost FROM runs WHERE id = ?1) AND (width IS NULL OR busy < width)
         AND (room IS NULL OR room > 0)",
        cells![step.run],
    )?;
    if taken > 0 {
        return Ok(true);
    }
    let spent: bool = db.one(
        "SELECT coalesce(room, 1) <= 0 FROM runs WHERE id = (SELECT outermost FROM runs WHERE id = ?1)",
        cells![step.run],
        |row| row.get(0),
    )?;
    if spent {
        db.execute(
            "UPDATE steps SET state = 'skipped', worker = NULL, lease_ms = NULL, call_id = NULL WHERE run = ?1 AND nr = ?2",
            cells![step.run, step.nr],
        )?;
        // An end is not forgotten, whatever a claim may be.
        if db.kind() == Kind::Post {
            db.batch("SET LOCAL synchronous_commit = on")?;
        }
        let id = end::outermost(db, &step.run)?;
        end::stop(db, &id, "failed", "it has begun as many steps as its budget allows")?;
    } else {
        // It comes back when another one ends; see `End`.
        db.execute(
            "UPDATE steps SET state = 'held', attempt = attempt - 1, worker = NULL, lease_ms = NULL, call_id = NULL
             WHERE run = ?1 AND nr = ?2",
            cells![step.run, step.nr],
        )?;
    }
    Ok(false)
}

/// Makes a step ready again under the next attempt's name.
fn put_back(db: &Db<'_>, step: &Claimed) -> DbResult<()> {
    end::note(db, step, &End::Again { from_ms: 0, counts: false }).map(drop)
}

impl Claimed {
    /// The id of its call.
    pub fn call(&self) -> Option<CallId> {
        CallId::parse(&self.call_id)
    }
}
