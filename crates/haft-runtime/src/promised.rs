//! What was promised is kept: tasks that are due are started, once each, whoever finds them.
//!
//! A task that is due is claimed in one transaction: its next time is another one, and the run is noted. Then it is started.
//! Whoever dies between the two leaves a claim that another takes over a minute later; the run has a name that follows from
//! the task and the time, so that starting it again starts nothing new. A task has one run at a time: what comes due
//! meanwhile was missed, and the task says what is done about that.

mod edit;
mod find;
mod make;
mod runs;
mod show;
mod step;

pub use edit::{Edit, edit};
pub use find::{Query, find, list};
pub use make::{Wanted, Who, make};
pub use show::{data, moment, row, short, standing, table};
pub use step::{Does, does, run_id, told};

use crate::halt::Halt;
use crate::tool::BoxFuture;
use crate::{now_ms, store_error};
use haft_core::error::Blame;
use haft_core::schedule::{Due, Schedule};
use haft_core::{CallError, ErrorKind};
use haft_store::tasks::{Claim, Ended, Task, TaskStatus};
use haft_store::{Store, Topic};
use jiff::tz::TimeZone;
use std::sync::Arc;
use std::time::Duration;

/// No task is run more often.
const SHORTEST_MS: i64 = 10_000;
/// How many due tasks are looked at together.
const TOGETHER: u32 = 100;
/// Processes that share a file add tasks, runs end, and clocks are set: so often is looked.
const LOOK: Duration = Duration::from_secs(2);
/// Whoever lost a race does not run in circles.
const BREATH: Duration = Duration::from_millis(20);

/// Starts what tasks promise.
pub trait Starter: Send + Sync {
    /// Starts what a task promises, for a time, and returns the id of the run. Asked again for the same task and time it
    /// starts nothing new: [`run_id`] is the same.
    fn start<'a>(&'a self, task: &'a Task, at_ms: i64) -> BoxFuture<'a, Result<String, CallError>>;

    /// How a run ended that is over, and what is told of it.
    fn told<'a>(&'a self, task: &'a Task, run: &'a str) -> BoxFuture<'a, Result<(Ended, String), CallError>>;
}

/// A time zone by its name, as this machine knows it.
pub fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

/// A task's schedule, if it has one.
pub fn schedule(task: &Task) -> Result<Option<Schedule>, CallError> {
    let Some(text) = &task.promise.schedule else { return Ok(None) };
    Schedule::read(text, task.promise.zone.as_deref(), task.promise.since_ms, &zone).map(Some)
}

/// A schedule that somebody gives now. Each run is a call with its records, so there is a floor to how often.
fn given(text: &str, zone_name: Option<&str>, now_ms: i64) -> Result<Schedule, CallError> {
    let schedule = Schedule::read(text, zone_name, now_ms, &zone)?;
    match schedule {
        Schedule::Every { period_ms, .. } if period_ms < SHORTEST_MS => {
            let shown = haft_core::preview::inert(text.trim());
            Err(CallError::invalid(format!("`{shown}` is more often than every {} seconds", SHORTEST_MS / 1_000))
                .hint("a task runs every 10 seconds at the most; what has to be quicker is a program of its own"))
        }
        schedule => Ok(schedule),
    }
}

/// What is to be done now about a task whose time has come.
fn due(task: &Task, seen_ms: i64, now_ms: i64) -> Result<Due, CallError> {
    let once = Due { run: Some(seen_ms), next: None, missed: 0 };
    Ok(schedule(task)?.map_or(once, |schedule| schedule.due(seen_ms, now_ms, task.promise.missed)))
}

/// Whoever looks after the tasks of a project. There may be many on one store.
pub struct Scheduler {
    store: Store,
    root: String,
    starter: Arc<dyn Starter>,
}

impl Scheduler {
    /// One that starts by this means what was made in this project.
    pub fn new(store: Store, root: impl Into<String>, starter: Arc<dyn Starter>) -> Self {
        Self { store, root: root.into(), starter }
    }

    /// Hears what has ended, starts everything that is due, and says how many that were.
    pub async fn tick(&self, now_ms: i64) -> Result<usize, CallError> {
        self.hear(now_ms).await?;
        let mut started = 0;
        loop {
            let found = self.store.due_tasks(&self.root, now_ms, TOGETHER).await.map_err(store_error)?;
            for task in &found {
                started += usize::from(self.look_after(task, now_ms).await?);
            }
            if found.len() < TOGETHER as usize {
                return Ok(started);
            }
        }
    }

    /// Starts one task if it is due, and gives its run.
    pub async fn tick_one(&self, id: &str, now_ms: i64) -> Result<Option<String>, CallError> {
        let gone = || CallError::not_found(format!("task {id} is gone"));
        let task = self.store.task(id).await.map_err(store_error)?.ok_or_else(gone)?;
        if task.standing.next_ms.is_some_and(|next| next <= now_ms) {
            self.look_after(&task, now_ms).await?;
        }
        Ok(self.store.task(id).await.map_err(store_error)?.and_then(|task| task.standing.run))
    }

    /// Until it is told to stop: sleeps until something is due or has changed.
    pub async fn run(&self, halt: &Halt) {
        self.run_by(halt, now_ms).await;
    }

    /// The same by another clock.
    pub async fn run_by(&self, halt: &Halt, clock: impl Fn() -> i64 + Send + Sync) {
        let mut changed = self.store.changed(Topic::Tasks);
        while halt.check().is_ok() {
            changed.mark_unchanged();
            if let Err(error) = self.tick(clock()).await {
                // The store is away, or full: what is due stays due.
                tracing::warn!(error = %error, "due tasks could not be started");
            }
            let next = self.store.next_task_ms(&self.root).await.ok().flatten();
            let wait = next.map_or(LOOK, |next| Duration::from_millis(u64::try_from(next - clock()).unwrap_or(0)));
            tokio::select! {
                () = tokio::time::sleep(wait.clamp(BREATH, LOOK)) => {}
                _ = changed.changed() => {}
                _ = halt.stopped() => return,
            }
        }
    }

    /// Notes what came of runs that are over, and which of the others wait for a person.
    pub async fn hear(&self, now_ms: i64) -> Result<(), CallError> {
        for task in self.store.ended_tasks(&self.root, TOGETHER).await.map_err(store_error)? {
            let Some(run) = &task.standing.run else { continue };
            let (ended, result) = self.starter.told(&task, run).await?;
            self.store.task_ran_at(&task.id, run, ended, &result, now_ms).await.map_err(store_error)?;
        }
        for asking in self.store.asking_tasks(&self.root).await.map_err(store_error)? {
            let question = asking.question.as_deref();
            self.store.task_waits(&asking.task, &asking.run, question).await.map_err(store_error)?;
        }
        Ok(())
    }

    /// Claims one due task and starts it. Says whether something was started.
    async fn look_after(&self, task: &Task, now_ms: i64) -> Result<bool, CallError> {
        let Some(seen_ms) = task.standing.next_ms else { return Ok(false) };
        let due = match due(task, seen_ms, now_ms) {
            Ok(due) => due,
            Err(error) => return self.give_up(task, &error, now_ms).await.map(|()| false),
        };
        let claim = self.store.claim_task(&task.id, seen_ms, due, now_ms).await.map_err(store_error)?;
        match claim {
            Some(claim) => self.start(&claim, now_ms).await,
            None => Ok(false),
        }
    }

    async fn start(&self, Claim { task, at_ms }: &Claim, now_ms: i64) -> Result<bool, CallError> {
        match self.starter.start(task, *at_ms).await {
            Ok(run) => {
                self.store.task_started(&task.id, *at_ms, &run).await.map_err(store_error)?;
                Ok(true)
            }
            // The store's own trouble says nothing about the task: the claim is taken over later.
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => {
                let run = run_id(&task.id, *at_ms);
                let ended = if error.kind.blame() == Blame::Tool { Ended::Badly } else { Ended::ForGood };
                let said = said(&error);
                self.store.task_ran_at(&task.id, run.as_str(), ended, &said, now_ms).await.map_err(store_error)?;
                Ok(false)
            }
        }
    }

    /// A schedule that cannot be read any more (a zone is gone) is shown, and does not come up every few seconds.
    async fn give_up(&self, task: &Task, error: &CallError, now_ms: i64) -> Result<(), CallError> {
        let said = said(error);
        let edit = move |task: &mut Task| {
            task.status = TaskStatus::Failed;
            task.standing.closed_ms = Some(now_ms);
            (task.standing.next_ms, task.standing.ok) = (None, Some(false));
            task.standing.result = Some(said);
        };
        self.store.edit_task(&task.id, edit).await.map(drop).map_err(store_error)
    }
}

/// An error as a result that is kept.
fn said(error: &CallError) -> String {
    match &error.hint {
        Some(hint) => format!("{}\nhint: {hint}", error.message),
        None => error.message.clone(),
    }
}
