//! Work that lasts: runs of pipelines, kept in the store, done by whoever has time.
//!
//! ```text
//! pipeline.run, a task ─► Start ─► store: run and steps
//!                                    │ claim (one worker, until its lease ends)
//!                     Worker ◄───────┘
//!                       │ each step is a call, and goes the whole path of one
//!                       └─► store: the step's end, and all that follows from it
//! ```
//!
//! Nothing of a run is kept in memory that cannot be read again: whoever dies is replaced by anybody.

mod agents;
pub(crate) mod begin;
pub mod drawn;
mod foreseen;
mod stale;
mod step;
mod terms;
mod worker;

pub use crate::tools::pipeline::filed as workflow;
pub use crate::tools::pipeline::filed::{Filed, filed};
pub(crate) use begin::unfit;
pub use begin::{Begun, Wanted};
pub use foreseen::{foreseen, plan};
pub(crate) use step::GATE;
pub use terms::Terms;
pub use worker::{Over, Until, Worker};

use crate::approver::Approver;
use crate::back::{Job, Worked};
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::store_error;
use haft_core::{Call, CallError, ErrorKind, Origin};
use haft_store::work::RUN_PREFIX;

/// How many steps a call does at once for its own run.
const OWN_SLOTS: u32 = 16;

impl Haft {
    /// Begins a run: it is durable when this returns, and any worker goes on with it.
    pub async fn begin(&self, wanted: Wanted) -> Result<Begun, CallError> {
        let root = self.workspace.stored_root();
        begin::begin(&self.store, &self.registry, &root, wanted).await
    }

    /// Does what a call wishes to have done, as far as it goes now.
    pub(crate) async fn labour(
        &self,
        job: Job,
        call: &Call,
        approver: &dyn Approver,
        halt: &Halt,
    ) -> Result<Worked, CallError> {
        // A run in a run is said as such in its plan: then its depth, its budget and its end are those of the run around it.
        if call.parents.iter().any(|parent| parent.as_str().starts_with(RUN_PREFIX)) {
            return Err(CallError::invalid("a step cannot begin a run by a call")
                .hint("name the pipeline in the step itself: {id, pipeline, inputs}"));
        }
        let (id, wait) = match job {
            Job::Begin { wanted, wait } => (self.begin(*wanted).await?.id, wait),
            Job::Again { run, wait } => (self.again(&run, call).await?, wait),
        };
        if wait {
            let worker = self.worker(OWN_SLOTS);
            let own = halt.clone();
            let done = self.work(&worker, &Until::Over(id.clone()), approver, &own).await;
            // Whoever stops waiting does not want it any more.
            if halt.check().is_err() {
                let by = call.caller.agent.as_deref().unwrap_or("the caller");
                self.store.cancel_run(&id, by).await.map_err(store_error)?;
            }
            done?;
        }
        self.worked(&id).await
    }

    /// How a run stands.
    pub(crate) async fn worked(&self, id: &str) -> Result<Worked, CallError> {
        let gone = || CallError::not_found(format!("there is no run {id}"));
        let run = self.store.run_seen(id).await.map_err(store_error)?.ok_or_else(gone)?;
        let steps = self.store.steps(id).await.map_err(store_error)?;
        let gave = if run.state == "running" { None } else { Some(step::result(self, &run).await?) };
        Ok(Worked { run, steps, gave })
    }

    /// Takes up a run again, on the terms it was begun on: only whoever those terms are for may do that, or a person at the
    /// command line. Returns its whole id.
    async fn again(&self, run: &str, call: &Call) -> Result<String, CallError> {
        self.tend().await?;
        let root = self.workspace.stored_root();
        let mut found = self.store.runs_beginning(&root, run).await.map_err(store_error)?;
        found.retain(|run| run.above.is_none());
        let shown = haft_core::preview::inert(run);
        if found.len() > 1 {
            let ids: Vec<String> = found.into_iter().map(|run| run.id).collect();
            return Err(CallError::invalid(format!("`{shown}` could be any of {}", ids.join(", "))));
        }
        let missing =
            || CallError::not_found(format!("there is no run `{shown}`")).hint("`haft pipeline runs` shows them");
        let found = found.pop().ok_or_else(missing)?;
        let terms = Terms::read(&found.terms);
        let own = terms.caller == call.caller && terms.session == call.session && terms.autonomy == call.autonomy;
        let person = call.origin == Origin::Cli && call.caller.agent.is_none();
        if !person && (!own || found.state == "cancelled") {
            return Err(CallError::new(
                ErrorKind::Denied,
                format!("{} is not this session's to take up again", found.id),
            )
            .hint("whoever began it may, unless it was cancelled; a person may with `haft pipeline retry`"));
        }
        let id = found.id;
        let steps = self.store.steps(&id).await.map_err(store_error)?;
        let plan = serde_json::from_value(found.plan).unwrap_or_default();
        let stale = stale::stale(&self.registry, &plan, &steps);
        self.store.redo_steps(&id, stale).await.map_err(store_error)?;
        let again = self.store.run_again(&id).await.map_err(store_error)?;
        if again == 0 {
            return Err(self.why_not_again(&id).await?);
        }
        Ok(id)
    }

    /// Why nothing of a run can be taken up again.
    async fn why_not_again(&self, id: &str) -> Result<CallError, CallError> {
        let steps = self.store.steps(id).await.map_err(store_error)?;
        let is = |state: &str| steps.iter().find(|step| step.state == state);
        let refused = |what: String| CallError::conflict(format!("{id} is not taken up again: {what}"));
        if let Some(step) = is("uncertain") {
            let hint = drawn::settle(id, &step.id);
            return Ok(refused(format!("nobody knows what became of the step `{}`", step.id)).hint(hint));
        }
        if let Some(step) = is("asking") {
            let hint = format!("`haft approvals reject {}` first", step.call_id.as_deref().unwrap_or_default());
            return Ok(refused(format!("its step `{}` waits for a person", step.id)).hint(hint));
        }
        if let Some(step) = is("running") {
            return Ok(refused(format!("its step `{}` is under way", step.id)).hint("try again when that is over"));
        }
        Ok(refused("nothing of it failed or was skipped, or something inside it is open".to_owned())
            .hint(format!("`haft pipeline show {id}`")))
    }
}
