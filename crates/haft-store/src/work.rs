//! Pipelines under way: what was planned, where each step stands, and who works on it.
//!
//! A run is a pipeline that was begun, with its plan as it was then. A step is claimed by one worker until its lease ends,
//! and everything that follows from a step's end (what may begin, what is skipped, whether the run is over, what that means
//! for the run around it) happens in the transaction that notes the end. So whoever dies leaves a state that says what to do
//! next, and nobody has to be asked.
//!
//! Each attempt at a step has a call id of its own, `RUN-STEP-ATTEMPT-CLAIM`, under which its call is recorded: what is known of a
//! call whose worker died is in the log.

mod claim;
mod done;
mod end;
mod look;
mod pipelines;
mod redo;
mod workers;

pub use claim::{Claim, Claimed, TakenOver};
pub(crate) use done::{Done, finish_all};
pub use end::{End, Settle, Then};
pub use look::{RunSeen, StepSeen, Uncertain};
pub use pipelines::Stored;
pub use workers::WorkerSeen;

use crate::cells;
use crate::db::{Cell, Db, DbError, DbResult};
use crate::migrate::Step as Format;
use crate::pending::in_rows;
use crate::{Mode, Param, Store, StoreError, Topic};
use haft_core::CallId;
use haft_core::work::{Graph, OnFailure};
use serde_json::Value;

pub(crate) const TABLES: Format = Format::alike(
    "CREATE TABLE pipelines (
        id TEXT PRIMARY KEY, root TEXT NOT NULL, name TEXT NOT NULL, origin TEXT NOT NULL, plan TEXT NOT NULL,
        at_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX pipelines_by_name ON pipelines (root, name);
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, root TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, plan TEXT NOT NULL,
        inputs TEXT NOT NULL, terms TEXT NOT NULL, task TEXT, above TEXT, above_nr INTEGER, outermost TEXT NOT NULL,
        deep INTEGER NOT NULL, count INTEGER NOT NULL, unsettled INTEGER NOT NULL, busy INTEGER NOT NULL, width INTEGER,
        room INTEGER, until_ms INTEGER, begun_ms INTEGER NOT NULL, ended_ms INTEGER, why TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX runs_by_time ON runs (root, begun_ms);
    CREATE INDEX runs_by_task ON runs (task, begun_ms) WHERE task IS NOT NULL;
    CREATE INDEX runs_bounded ON runs (until_ms) WHERE state = 'running' AND until_ms IS NOT NULL;
    CREATE TABLE steps (
        run TEXT NOT NULL, nr INTEGER NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, missing INTEGER NOT NULL,
        root TEXT NOT NULL, label TEXT, on_failure TEXT NOT NULL, retries INTEGER NOT NULL, repeatable INTEGER NOT NULL,
        narrow INTEGER NOT NULL, wait_ms INTEGER NOT NULL, from_ms INTEGER NOT NULL, attempt INTEGER NOT NULL, worker TEXT, lease_ms INTEGER, call_id TEXT,
        outcome TEXT, begun_ms INTEGER, ended_ms INTEGER, PRIMARY KEY (run, nr)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX steps_ready ON steps (root, from_ms) WHERE state = 'ready';
    CREATE INDEX steps_leased ON steps (lease_ms) WHERE state = 'running';
    CREATE INDEX steps_asking ON steps (root) WHERE state = 'asking';
    CREATE UNIQUE INDEX steps_by_call ON steps (call_id);
    CREATE TABLE edges (
        run TEXT NOT NULL, nr INTEGER NOT NULL, feeds INTEGER NOT NULL, PRIMARY KEY (run, nr, feeds)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE workers (
        id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, root TEXT NOT NULL, labels TEXT NOT NULL,
        slots INTEGER NOT NULL, state TEXT NOT NULL, begun_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;",
);

/// How deep pipelines may be in one another.
pub const DEPTH_MAX: u32 = 3;

/// A step that is to be begun when what it waits for is over.
#[derive(Debug, Clone, Default)]
pub struct NewStep {
    /// Where it may run, if not anywhere.
    pub label: Option<String>,
    /// Whether doing it twice is as good as doing it once.
    pub repeatable: bool,
    /// How long it waits when everything is there that it needs.
    pub wait_ms: u64,
}

/// The run in which another one is a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Above {
    /// That run.
    pub run: String,
    /// Which step.
    pub nr: u32,
}

/// What a run may use up, with all that is in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// How many steps it may begin.
    pub steps: Option<u32>,
    /// How many at once.
    pub width: Option<u32>,
    /// Until when.
    pub until_ms: Option<i64>,
}

/// A run that is to be begun.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its name for ever.
    pub id: CallId,
    /// The project it is about.
    pub root: String,
    /// What people call it.
    pub name: String,
    /// The plan, as it was read.
    pub plan: Value,
    /// What it is given.
    pub inputs: Value,
    /// On whose behalf, and how.
    pub terms: Value,
    /// The task that it is for.
    pub task: Option<String>,
    /// The run around it.
    pub above: Option<Above>,
    /// What it may use up. Inside another run, that one's counts.
    pub room: Room,
    /// The order of its steps.
    pub graph: Graph,
    /// The steps, in the same order.
    pub steps: Vec<NewStep>,
}

impl Store {
    /// Begins a run: it is durable when this returns, and somebody will work on it.
    pub async fn start_run(&self, run: NewRun) -> Result<(), StoreError> {
        self.insist(Mode::Durable, move |db| start(db, &run)).await
    }
}

impl Store {
    /// Fails if a call is that of a step which was taken from its worker.
    pub async fn is_still_mine(&self, call: &CallId) -> Result<(), StoreError> {
        let call = call.clone();
        self.run(Mode::Read, move |db| still_mine(db, &call)).await
    }
}

/// Begins a run as part of something else. A run that is there already is left as it is: whoever begins one twice under one
/// name began it once.
pub fn start(db: &Db<'_>, run: &NewRun) -> DbResult<()> {
    let now = db.now_ms()?;
    let (outermost, deep) = match &run.above {
        None => (run.id.as_str().to_owned(), 0),
        Some(above) => {
            let sql = "SELECT outermost, deep FROM runs WHERE id = ?1 AND state = 'running'";
            let found = db.first(sql, cells![above.run], |row| Ok((row.get::<String>(0)?, row.get::<i64>(1)? + 1)))?;
            found.ok_or_else(|| DbError::Odd(format!("{} is over, so nothing is begun in it", above.run)))?
        }
    };
    let count = i64::try_from(run.steps.len()).unwrap_or(i64::MAX);
    let room = if run.above.is_none() { run.room } else { Room::default() };
    let new = db.execute(
        "INSERT INTO runs (id, root, name, state, plan, inputs, terms, task, above, above_nr, outermost, deep, count,
         unsettled, busy, width, room, until_ms, begun_ms)
         VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12, 0, ?13, ?14, ?15, ?16)
         ON CONFLICT (id) DO NOTHING",
        cells![
            run.id.as_str(),
            run.root,
            run.name,
            run.plan.to_string(),
            run.inputs.to_string(),
            run.terms.to_string(),
            run.task,
            run.above.as_ref().map(|above| above.run.as_str()),
            run.above.as_ref().map(|above| above.nr),
            outermost,
            deep,
            count,
            room.width,
            room.steps,
            room.until_ms,
            now
        ],
    )?;
    if new == 0 {
        return Ok(());
    }
    db.notify(Topic::Work);
    let bounded = "SELECT (width IS NOT NULL OR room IS NOT NULL) FROM runs WHERE id = ?1";
    let narrow: bool = db.one(bounded, cells![outermost], |row| row.get(0))?;
    let nodes = run.graph.nodes().iter().zip(&run.steps).enumerate();
    let steps: Vec<Vec<Cell<'_>>> = nodes
        .map(|(nr, (node, step))| {
            let waits = number(run.graph.needs(nr).len());
            let wait = i64::try_from(step.wait_ms).unwrap_or(i64::MAX / 2);
            let state = if waits == 0 { "ready" } else { "waiting" };
            vec![
                Cell::Text(run.id.as_str().into()),
                Cell::Int(number(nr)),
                node.id.cell(),
                Cell::Text(state.into()),
                Cell::Int(waits),
                run.root.cell(),
                step.label.cell(),
                Cell::Text(word(node.on_failure).into()),
                node.retries.cell(),
                step.repeatable.cell(),
                Cell::Int(narrow.into()),
                Cell::Int(wait),
                Cell::Int(now + wait),
                Cell::Int(0),
            ]
        })
        .collect();
    in_rows(db, &steps, &[], |values| {
        format!(
            "INSERT INTO steps (run, nr, id, state, missing, root, label, on_failure, retries, repeatable, narrow, wait_ms,
             from_ms, attempt) VALUES {values}"
        )
    })?;
    let needs = (0..steps.len()).flat_map(|nr| run.graph.needs(nr).iter().map(move |need| (*need, nr)));
    let edges: Vec<Vec<Cell<'_>>> = needs
        .map(|(need, nr)| vec![Cell::Text(run.id.as_str().into()), Cell::Int(number(need)), Cell::Int(number(nr))])
        .collect();
    in_rows(db, &edges, &[], |values| format!("INSERT INTO edges (run, nr, feeds) VALUES {values}")).map(drop)
}

/// Ends a run that nobody wants any more as part of something else, with all that is in it: what it asked is taken back in
/// the same transaction, so that no answer runs anything. Says whether it was under way.
pub(crate) fn cancel(db: &Db<'_>, run: &str, why: &str) -> DbResult<bool> {
    let running = "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND state = 'running')";
    if !db.one(running, cells![run], |row| row.get::<bool>(0))? {
        return Ok(false);
    }
    db.notify(Topic::Work);
    let whole = end::outermost(db, run)?;
    // A call may have asked, and its step not know of it yet.
    let sql = "SELECT call_id FROM steps WHERE run IN (SELECT id FROM runs WHERE outermost = ?1) AND state = 'running'
         AND call_id IS NOT NULL";
    Store::withdraw_all(db, &db.all(sql, cells![whole], |row| row.get(0))?, why)?;
    end::stop(db, &whole, "cancelled", why).map(|()| true)
}

/// How long a lease has to last yet for something to be begun.
const MOMENT_MS: i64 = 250;

/// How the ids of runs begin, and so those of their steps' calls.
pub const RUN_PREFIX: &str = "run-";

/// Whether a call is made for a step.
pub(crate) fn is_a_steps(call: &CallId) -> bool {
    call.as_str().starts_with(RUN_PREFIX)
}

/// How long the lease of a step has to last for something to be begun. One that is over may be taken over any moment, and
/// what is about to happen takes a moment, too.
pub(crate) fn lease_needed(db: &Db<'_>) -> DbResult<i64> {
    Ok(db.now_ms()? + MOMENT_MS)
}

/// The step of a call was taken from its worker: one that was held up must not do what somebody else does by now. Whether it
/// was is asked in the transaction that writes the intent, so that there is nothing between the two.
pub(crate) fn given_away(calls: &str) -> DbError {
    DbError::Odd(format!(
        "the step of {calls} is given to another worker, or its run was stopped, so nothing was done here"
    ))
}

fn still_mine(db: &Db<'_>, call: &CallId) -> DbResult<()> {
    let sql = "SELECT EXISTS (SELECT 1 FROM steps JOIN runs ON runs.id = steps.run WHERE call_id = ?1
         AND runs.state = 'running' AND (steps.state = 'asking' OR (steps.state = 'running' AND lease_ms > ?2)))";
    if !is_a_steps(call) || db.one(sql, cells![call.as_str(), lease_needed(db)?], |row| row.get(0))? {
        return Ok(());
    }
    Err(given_away(call.as_str()))
}

fn number(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The words of the table.
fn word(on_failure: OnFailure) -> &'static str {
    match on_failure {
        OnFailure::Stop => "stop",
        OnFailure::Continue => "continue",
        OnFailure::Notify => "notify",
    }
}
