//! Who does the steps: claims what may begin, does several at once, keeps what it has by renewing its lease, and looks
//! after what others left behind.

use super::step::{self, Loaded};
use crate::approver::Approver;
use crate::events::Event;
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::store_error;
use futures_util::future::OptionFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use haft_core::{CallError, Outcome};
use haft_store::work::{Claim, Claimed, End, RunSeen, Then, WorkerSeen};
use haft_store::{Store, Topic};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// For how long claimed steps are a worker's without a word from it, unless something else is said.
const LEASE: Duration = Duration::from_secs(20);
/// How often it says that it is there in that time.
const BEATS: u32 = 5;
/// How long it waits before it looks again if there was nothing to do: from the first time to the longest.
const LOOK: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));
/// How long it waits for others to end when one has.
const GATHER: Duration = Duration::from_millis(2);
/// How long it waits for a store that fails before it tries again.
const STORE_AGAIN: Duration = Duration::from_secs(1);
/// How many runs are kept read.
const RUNS_KEPT: usize = 256;

/// Somebody who does steps.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Its name, which nobody else has.
    pub id: String,
    /// On which machine it is.
    pub host: String,
    /// The project whose steps it does: as it was called where they were begun.
    pub root: String,
    /// What it has, as labels of steps ask for.
    pub labels: Vec<String>,
    /// How many steps it does at once.
    pub slots: u32,
    /// For how long claimed steps are its own without a word from it. As long may pass before others take them over.
    pub lease: Duration,
}

impl Worker {
    fn lease_ms(&self) -> i64 {
        i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX)
    }
}

/// For how long a worker works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// Until it is told to stop. Then it begins nothing more, and ends when what it has begun has ended.
    Told,
    /// Until a run is over, or nothing of it can be done now. It does nothing else.
    Over(String),
}

/// Why a worker stopped.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// It was told to.
    Told,
    /// The run is over.
    Ended(Box<RunSeen>),
    /// What is left of the run waits: for a person, for a time, or for another worker.
    Waits(Box<RunSeen>),
}

impl Haft {
    /// A worker for this project in this process.
    pub fn worker(&self, slots: u32) -> Worker {
        let id = format!("w-{}", crate::new_call_id());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let root = self.workspace.stored_root();
        Worker { id, host, root, labels: Vec::new(), slots, lease: LEASE }
    }

    /// Takes note of what has happened since somebody last worked here, so that whoever looks sees it: workers that are gone,
    /// and people who have decided. Nothing is begun.
    pub async fn tend(&self) -> Result<(), CallError> {
        self.store.take_over().await.map_err(store_error)?;
        hear(self, &self.workspace.stored_root()).await;
        Ok(())
    }

    /// Works. What needs a person is put to the approver.
    pub async fn work(
        &self,
        worker: &Worker,
        until: &Until,
        approver: &dyn Approver,
        halt: &Halt,
    ) -> Result<Over, CallError> {
        Shift { haft: self, worker, until, approver, halt, runs: HashMap::new() }.work().await
    }
}

/// One worker at work.
struct Shift<'s> {
    haft: &'s Haft,
    worker: &'s Worker,
    until: &'s Until,
    approver: &'s dyn Approver,
    halt: &'s Halt,
    runs: HashMap<String, (Arc<Loaded>, Halt)>,
}

impl Shift<'_> {
    async fn work(mut self) -> Result<Over, CallError> {
        let mut running = FuturesUnordered::new();
        let mut claiming = None;
        let mut beat = tokio::time::interval(self.worker.lease / BEATS);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut news = self.haft.store.changed(Topic::Work);
        let mut pause = LOOK.0;
        let mut again = Instant::now();
        loop {
            let told = self.halt.check().is_err();
            let free = self.worker.slots.saturating_sub(u32::try_from(running.len()).unwrap_or(u32::MAX));
            if !told && free > 0 && claiming.is_none() && Instant::now() >= again {
                claiming = Some(Box::pin(claim(self.haft.store.clone(), self.wish(free))));
            }
            if running.is_empty()
                && claiming.is_none()
                && let Some(over) = self.over(told).await?
            {
                self.seen("gone").await;
                return Ok(over);
            }
            tokio::select! {
                Some(()) = running.next() => {
                    while running.next().now_or_never().flatten().is_some() {}
                    again = Instant::now() + self.gather(running.len());
                }
                Some((most, claimed)) = OptionFuture::from(claiming.as_mut()) => {
                    claiming = None;
                    pause = if claimed.is_empty() { (pause * 2).min(LOOK.1) } else { LOOK.0 };
                    let all = claimed.len() >= usize::try_from(most).unwrap_or(usize::MAX);
                    again = Instant::now() + if all { Duration::ZERO } else { pause };
                    for (loaded, halt, step) in self.begin(claimed).await {
                        let (layer, approver) = (self.haft, self.approver);
                        running.push(Box::pin(async move { done(layer, approver, &loaded, step, &halt).await }));
                    }
                }
                _ = beat.tick() => self.beat(told).await,
                () = tokio::time::sleep_until(again), if !told && free > 0 && claiming.is_none() => {}
                Ok(()) = news.changed() => again = Instant::now(),
                _ = self.halt.stopped(), if !told => self.seen("draining").await,
            }
        }
    }

    /// How long to wait for more room before something is claimed: what is claimed together costs as much as one.
    fn gather(&self, running: usize) -> Duration {
        let most = usize::try_from(self.worker.slots).unwrap_or(usize::MAX);
        if running <= most - most / 4 { Duration::ZERO } else { GATHER }
    }

    /// What it would like to have.
    fn wish(&self, most: u32) -> Claim {
        let only = match self.until {
            Until::Over(run) => Some(run.clone()),
            Until::Told => None,
        };
        let Worker { id, root, labels, .. } = self.worker.clone();
        Claim { worker: id, root, labels, most, lease_ms: self.worker.lease_ms(), only }
    }

    /// What is needed to begin steps. Whoever was told to stop meanwhile begins nothing.
    async fn begin(&mut self, claimed: Vec<Claimed>) -> Vec<(Arc<Loaded>, Halt, Claimed)> {
        if self.halt.check().is_err() {
            if let Err(error) = self.haft.store.give_back(claimed).await {
                tracing::warn!(%error, "steps could not be given back; others take them over when their lease ends");
            }
            return Vec::new();
        }
        let mut begun = Vec::with_capacity(claimed.len());
        for step in claimed {
            match self.loaded(&step.run).await {
                Ok((loaded, halt)) => begun.push((loaded, halt, step)),
                // What cannot be read now is read by whoever finds that its lease is over.
                Err(error) => {
                    tracing::warn!(%error, run = step.run, "a run could not be read");
                    let _ = self.haft.store.leave_step(step).await;
                }
            }
        }
        begun
    }

    /// A run, read once for all of its steps.
    async fn loaded(&mut self, run: &str) -> Result<(Arc<Loaded>, Halt), CallError> {
        if let Some((loaded, halt)) = self.runs.get(run) {
            return Ok((Arc::clone(loaded), halt.clone()));
        }
        let seen = self.haft.store.run_seen(run).await.map_err(store_error)?;
        let seen = seen.ok_or_else(|| CallError::internal(format!("{run} is gone")))?;
        let loaded = Arc::new(Loaded::new(seen)?);
        if self.runs.len() >= RUNS_KEPT {
            // What is under way is to be found when its run is stopped.
            self.runs.retain(|_, (loaded, _)| Arc::strong_count(loaded) > 1);
        }
        // Whoever is to drain lets what has begun come to its end; whoever waits for one run takes it along.
        let halt = if *self.until == Until::Told { Halt::new() } else { self.halt.narrowed() };
        self.runs.insert(run.to_owned(), (Arc::clone(&loaded), halt.clone()));
        Ok((loaded, halt))
    }

    /// Says that it is there, keeps what it has, ends what is not wanted any more, and looks after what others left.
    async fn beat(&mut self, told: bool) {
        let store = &self.haft.store;
        if let Err(error) = store.renew(&self.worker.id, self.worker.lease_ms()).await {
            tracing::warn!(%error, "the lease could not be renewed");
        }
        for run in store.stopped_under(&self.worker.id).await.unwrap_or_default() {
            if let Some((_, halt)) = self.runs.get(&run) {
                halt.cancel();
            }
        }
        self.seen(if told { "draining" } else { "working" }).await;
        if let Err(error) = store.take_over().await {
            tracing::warn!(%error, "what others left could not be looked after");
        }
        if let Err(error) = store.end_late_runs().await {
            tracing::warn!(%error, "runs that took too long could not be ended");
        }
        hear(self.haft, &self.worker.root).await;
    }

    async fn seen(&self, state: &str) {
        let Worker { id, host, root, labels, slots, .. } = self.worker.clone();
        let pid = i64::from(std::process::id());
        let state = state.to_owned();
        let seen = WorkerSeen { id, host, pid, root, labels, slots, state, begun_ms: 0, seen_ms: 0, busy: 0 };
        let _ = self.haft.store.see_worker(seen).await;
    }

    /// Whether there is nothing more to be done. Asked when nothing is under way here.
    async fn over(&self, told: bool) -> Result<Option<Over>, CallError> {
        let Until::Over(id) = self.until else { return Ok(told.then_some(Over::Told)) };
        let gone = || CallError::internal(format!("{id} is gone"));
        hear(self.haft, &self.worker.root).await;
        let run = self.haft.store.run_seen(id).await.map_err(store_error)?.ok_or_else(gone)?;
        if run.state != "running" {
            return Ok(Some(Over::Ended(Box::new(run))));
        }
        if told {
            return Ok(Some(Over::Waits(Box::new(run))));
        }
        // A moment is no wait: what is tried again, or done by somebody else, comes soon.
        let soon = crate::now_ms().saturating_add(self.worker.lease_ms().saturating_mul(2));
        let moves = self.haft.store.moves(id, soon).await.map_err(store_error)?;
        Ok((!moves).then(|| Over::Waits(Box::new(run))))
    }
}

/// Takes up what people have decided.
async fn hear(layer: &Haft, root: &str) {
    for (step, outcome) in layer.store.answered(root).await.unwrap_or_default() {
        let outcome: Option<Outcome> = outcome.and_then(|value| serde_json::from_value(value).ok());
        let rejected = || {
            let error = json!({"kind": "rejected", "message": "a person said no"});
            End::Failed(json!({"success": false, "output": "", "error": error}))
        };
        let end = outcome.as_ref().map_or_else(rejected, step::ended);
        // What ran and asks again would ask for ever.
        let end = if end == End::Asking { End::Failed(json!({"success": false, "output": ""})) } else { end };
        note(layer, step, end).await;
    }
}

/// Claims steps. Says how many it asked for, too.
async fn claim(store: Store, claim: Claim) -> (u32, Vec<Claimed>) {
    let most = claim.most;
    match store.claim(claim).await {
        Ok(claimed) => (most, claimed),
        Err(error) => {
            tracing::warn!(%error, "no steps could be claimed");
            tokio::time::sleep(STORE_AGAIN).await;
            (most, Vec::new())
        }
    }
}

/// Does a step and notes its end.
async fn done(layer: &Haft, approver: &dyn Approver, run: &Loaded, step: Claimed, halt: &Halt) {
    let id = step.id.clone();
    let said = |state: &str| Event::Step {
        session: run.terms.session.clone(),
        run: run.seen.id.clone(),
        step: id.clone(),
        state: state.to_owned(),
    };
    layer.events.send_with(|| said("running"));
    let left = step.clone();
    match step::carry(layer, run, &step, (approver, halt)).await {
        Ok(end) => {
            let word = match &end {
                End::Done(_) => "done",
                End::Failed(_) => "failed",
                End::Unwanted(_) => "skipped",
                End::Asking => "asking",
                End::Nested => "nested",
                End::Again { .. } => "ready",
            };
            let then = note(layer, step, end).await;
            layer.events.send_with(|| said(if then == Some(Then::Again) { "ready" } else { word }));
            if then == Some(Then::Tell) {
                layer.events.send_with(|| said("told"));
            }
        }
        // The store did not answer, or something is broken: whoever comes next looks what is known of its call.
        Err(error) => {
            tracing::warn!(%error, run = run.seen.id, step = id, "a step was left");
            let _ = layer.store.leave_step(left).await;
        }
    }
}

/// Notes an end.
async fn note(layer: &Haft, step: Claimed, end: End) -> Option<Then> {
    let (run, id) = (step.run.clone(), step.id.clone());
    match layer.store.end_step(step, end).await {
        Ok(then) => Some(then),
        Err(error) => {
            tracing::warn!(%error, run, step = id, "a step's end could not be noted");
            None
        }
    }
}
