//! Tasks become runs: one step for a call, a stored pipeline's steps, and workers do the rest.

use super::step::{Does, does, run_id, told};
use super::{Scheduler, Starter, said};
use crate::pipeline::Haft;
use crate::tool::BoxFuture;
use crate::tools::pipeline;
use crate::work::{Terms, Wanted};
use haft_core::work::{Plan, Step};
use haft_core::{CallError, SessionId};
use haft_store::tasks::{Ended, Task};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The one step of a task that is no pipeline.
const STEP: &str = "task";

impl Starter for Haft {
    fn start<'a>(&'a self, task: &'a Task, at_ms: i64) -> BoxFuture<'a, Result<String, CallError>> {
        Box::pin(async move {
            let (plan, inputs) = self.planned(task).await?;
            let owner = &task.promise.owner;
            let terms = Terms {
                // What a task reads and hears is its own, run after run.
                session: SessionId::new(&format!("task-{}", task.id)).unwrap_or_default(),
                caller: owner.caller.clone(),
                autonomy: owner.autonomy,
                parents: Vec::new(),
                // Hours later it is decided as it would have been then.
                labels: owner.labels.clone(),
            };
            let (task, id) = (Some(task.id.clone()), Some(run_id(&task.id, at_ms)));
            self.begin(Wanted { plan, inputs, terms, task, id, above: None }).await.map(|begun| begun.id)
        })
    }

    fn told<'a>(&'a self, task: &'a Task, run: &'a str) -> BoxFuture<'a, Result<(Ended, String), CallError>> {
        Box::pin(async move {
            let worked = match self.worked(run).await {
                Ok(worked) => worked,
                Err(error) if error.kind == haft_core::ErrorKind::Internal => return Err(error),
                Err(error) => return Ok((Ended::Badly, said(&error))),
            };
            if worked.run.state == "cancelled" {
                let why = worked.run.why.unwrap_or_else(|| "its run was cancelled".to_owned());
                return Ok((Ended::ForGood, why));
            }
            // Of a call, what came of it; of a pipeline, what that gives.
            let own = worked.steps.into_iter().find(|step| step.id == STEP).and_then(|step| step.outcome);
            let gave = if matches!(does(task), Ok(Does::Pipeline { .. })) { worked.gave } else { own.or(worked.gave) };
            Ok(told(task, &gave.unwrap_or_default()))
        })
    }
}

impl Haft {
    /// What a task does as a plan, and what that is given.
    async fn planned(&self, task: &Task) -> Result<(Plan, Map<String, Value>), CallError> {
        let mut step = Step { id: STEP.to_owned(), ..Step::default() };
        let mut inputs = Map::new();
        match does(task)? {
            Does::Pipeline { pipeline: named, inputs } => {
                let plan = pipeline::find(self.store(), self.workspace(), &named).await?;
                return Ok((plan, inputs.as_object().cloned().unwrap_or_default()));
            }
            Does::Call { tool, args } => {
                step.tool = Some(tool);
                step.args = args.as_object().cloned().unwrap_or_default();
                // What a plan would take for a place to fill in means itself here.
                step.literal = true;
            }
            Does::Prompt(words) => {
                inputs.insert("prompt".to_owned(), words.into());
                step.prompt = Some("{{prompt}}".to_owned());
            }
        }
        let declared = inputs.keys().map(|name| (name.clone(), json!({}))).collect();
        let name = Some(task.about.title.clone());
        Ok((Plan { name, inputs: declared, steps: vec![step], ..Plan::default() }, inputs))
    }
}

impl Haft {
    /// Whoever looks after the tasks of a project: this one, as it is called where they were made.
    pub fn scheduler(self: &Arc<Self>, root: &str) -> Scheduler {
        let starter: Arc<dyn Starter> = self.clone();
        Scheduler::new(self.store().clone(), root, starter)
    }
}
