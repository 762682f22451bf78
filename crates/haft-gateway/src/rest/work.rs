//! Work that lasts, to be looked at and decided about: runs of pipelines, tasks, who works, and what is remembered.
//!
//! It is the owner's, like the log: a plan says what other sessions do, and settling a step is a decision. Agents have the
//! tools for what is theirs.

use crate::body::{self, Asked};
use crate::gateway::{Gateway, Shared};
use crate::guard::Visitor;
use crate::problem::Problem;
use crate::rest::tools::Wanted;
use crate::run::Manner;
use axum::extract::{Path, Request, State};
use axum::{Extension, Json};
use haft_core::CallError;
use haft_core::preview::cut;
use haft_core::work::Plan;
use haft_store::tasks::TaskFilter;
use haft_store::work::{RunSeen, Settle, StepSeen};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// How many runs or tasks are listed at the most.
const LIMIT: u32 = 500;
/// How much of what a step gave is told: all of it is in its call.
const SAID_MAX: usize = 400;

#[derive(Deserialize)]
pub(crate) struct Which {
    limit: Option<u32>,
}

#[derive(Deserialize)]
pub(crate) struct Tasks {
    limit: Option<u32>,
    #[serde(default)]
    closed: bool,
}

#[derive(Deserialize)]
pub(crate) struct Sought {
    q: String,
    limit: Option<u32>,
}

/// What somebody says came of a step.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settled {
    step: String,
    how: How,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum How {
    Done,
    Failed,
    Again,
}

impl From<How> for Settle {
    fn from(how: How) -> Self {
        match how {
            How::Done => Self::Done,
            How::Failed => Self::Failed,
            How::Again => Self::Again,
        }
    }
}

/// `GET /v1/runs`.
pub(crate) async fn runs(State(gateway): State<Shared>, Asked(which): Asked<Which>) -> Result<Json<Value>, Problem> {
    let limit = which.limit.unwrap_or(50).min(LIMIT);
    let runs = gateway.haft.store().runs(&gateway.root(), limit).await?;
    Ok(Json(json!({ "runs": runs.iter().map(line).collect::<Vec<_>>() })))
}

/// `GET /v1/runs/ID`.
pub(crate) async fn run(State(gateway): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let run = gateway.run_here(&id).await?;
    let steps: Vec<Value> = gateway.haft.store().steps(&id).await?.iter().map(step).collect();
    // What each step waits for, by number: words in its arguments count, too, so that the plan alone does not say it.
    let order = serde_json::from_value::<Plan>(run.plan.clone()).ok().and_then(|plan| plan.order().ok());
    let needs: Vec<&[usize]> =
        (0..steps.len()).map(|nr| order.as_ref().map_or(&[][..], |order| order.needs(nr))).collect();
    Ok(Json(json!({ "run": line(&run), "plan": run.plan, "inputs": run.inputs, "steps": steps, "needs": needs })))
}

/// `POST /v1/runs/ID/cancel`.
pub(crate) async fn cancel(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let run = gateway.run_here(&id).await?;
    let cancelled = gateway.haft.store().cancel_run(&run.id, visitor.name()).await?;
    Ok(Json(json!({ "cancelled": cancelled })))
}

/// `POST /v1/runs/ID/settle`.
pub(crate) async fn settle(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let Settled { step, how } = body::json(&gateway, request).await?;
    let run = gateway.run_here(&id).await?;
    if !gateway.haft.store().settle_step(&run.id, &step, how.into(), visitor.name()).await? {
        return Err(CallError::conflict("nothing is uncertain about that step, or it was settled already")
            .hint(format!("/v1/runs/{} says where each stands", run.id))
            .into());
    }
    Ok(Json(json!({ "run": run.id, "step": step, "settled": format!("{how:?}").to_lowercase() })))
}

/// `GET /v1/tasks`.
pub(crate) async fn tasks(State(gateway): State<Shared>, Asked(which): Asked<Tasks>) -> Result<Json<Value>, Problem> {
    // Those of this project, and those that are the user's own, wherever they are.
    let places = vec![gateway.root(), String::new()];
    let limit = which.limit.unwrap_or(100).clamp(1, LIMIT);
    let filter = TaskFilter { places, closed: which.closed, limit, ..TaskFilter::default() };
    Ok(Json(json!({ "tasks": gateway.haft.store().tasks(filter).await? })))
}

/// `GET /v1/workers`.
pub(crate) async fn workers(State(gateway): State<Shared>) -> Result<Json<Value>, Problem> {
    let root = gateway.root();
    let mut workers = gateway.haft.store().workers().await?;
    workers.retain(|worker| worker.root == root);
    Ok(Json(json!({ "workers": workers })))
}

/// `GET /v1/memory/search`: a call like any other, so that it is recorded and decided about.
pub(crate) async fn search(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Asked(sought): Asked<Sought>,
) -> Result<Json<Value>, Problem> {
    let mut args = json!({ "query": sought.q });
    if let Some(limit) = sought.limit {
        args["limit"] = limit.into();
    }
    let wanted = Wanted { args: Some(args), dialect: Some("haft".to_owned()), ..Wanted::default() };
    let call = gateway.wanted("memory.search".to_owned(), wanted, visitor)?;
    let outcome = gateway.call(call, Manner { patience: Duration::ZERO, dry_run: false }).await;
    if let Some(error) = outcome.error {
        return Err(error.into());
    }
    let mut data = outcome.data.unwrap_or_default();
    Ok(Json(json!({ "results": data["results"].take(), "warnings": outcome.warnings })))
}

impl Gateway {
    /// The project that is served, as the store knows it.
    fn root(&self) -> String {
        self.haft.workspace().stored_root()
    }

    /// A run of this project. Those of others are looked at where they are.
    async fn run_here(&self, id: &str) -> Result<RunSeen, Problem> {
        let found = self.haft.store().run_seen(id).await?.filter(|run| run.root == self.root());
        found
            .ok_or_else(|| Problem::not_found("there is no such run in this project").hint("/v1/runs lists the latest"))
    }
}

/// A run without its plan, which may be large.
fn line(run: &RunSeen) -> Value {
    json!({
        "id": run.id, "name": run.name, "state": run.state, "stands": run.stands, "why": run.why, "task": run.task,
        "above": run.above, "count": run.count, "unsettled": run.unsettled, "begun_ms": run.begun_ms, "ended_ms": run.ended_ms,
    })
}

fn step(step: &StepSeen) -> Value {
    let outcome = step.outcome.as_ref();
    let text = |path: &str| outcome.and_then(|outcome| outcome.pointer(path)).and_then(Value::as_str);
    let said = ["/uncertain", "/settled", "/error/message", "/output"].into_iter().find_map(text).unwrap_or_default();
    json!({
        "nr": step.nr, "id": step.id, "state": step.state, "attempt": step.attempt, "label": step.label,
        "worker": step.worker, "call_id": step.call_id, "begun_ms": step.begun_ms, "ended_ms": step.ended_ms,
        "said": cut(said, SAID_MAX),
    })
}
