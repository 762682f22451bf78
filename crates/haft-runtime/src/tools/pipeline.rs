//! pipeline.run, pipeline.plan, pipeline.capture and pipeline.promote: several calls as one, planned, run, learned from what
//! was done, and kept. pipeline.gate is the question that a step may be.

mod capture;
pub mod filed;
mod gate;
mod plan;
mod run;

use crate::tool::Tool;
use crate::workspace::Workspace;
use crate::{new_call_id, store_error};
use filed::{Filed, filed};
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use haft_core::record::secrets_in;
use haft_core::work::Plan;
use haft_store::Store;
use haft_store::work::Stored;
use serde_json::json;
use std::sync::Arc;

/// All of them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![run::tool(), plan::tool(), capture::capture(), capture::promote(), gate::tool()]
}

/// A pipeline by its name or id, to be run: one that is kept, or a file that was accepted.
pub(crate) async fn find(store: &Store, workspace: &Workspace, named: &str) -> Result<Plan, CallError> {
    let files = filed(workspace);
    match files.iter().find(|file| file.name == named) {
        Some(file) => file.accepted(store, workspace).await,
        None => kept(store, workspace, named, &files).await,
    }
}

/// The same to be looked at: files that nobody has accepted, too.
pub(crate) async fn look(store: &Store, workspace: &Workspace, named: &str) -> Result<Plan, CallError> {
    let files = filed(workspace);
    match files.iter().find(|file| file.name == named) {
        Some(file) => file.seen(),
        None => kept(store, workspace, named, &files).await,
    }
}

/// One that is kept. What a person wrote into the project is meant by its name, whatever somebody else has kept under it.
async fn kept(store: &Store, workspace: &Workspace, named: &str, files: &[Filed]) -> Result<Plan, CallError> {
    let shown = cut(&inert(named), 80);
    let root = workspace.stored_root();
    let mut kept = store.pipeline(&root, named).await.map_err(store_error)?;
    if kept.len() > 1 {
        let ids: Vec<String> = kept.iter().map(|kept| format!("{} ({})", kept.id, inert(&kept.name))).collect();
        return Err(
            CallError::invalid(format!("`{shown}` could be any of {}", ids.join(", "))).hint("write more of the id")
        );
    }
    if let Some(kept) = kept.pop() {
        if kept.origin == "captured" {
            return Err(CallError::invalid(format!(
                "`{shown}` was captured, and has to be promoted before it can be run"
            ))
            .hint("pipeline.promote makes a pipeline of it"));
        }
        return serde_json::from_value(kept.plan)
            .map_err(|error| CallError::failed(format!("the pipeline `{shown}` cannot be read: {error}")));
    }
    let all = store.pipelines(&root).await.map_err(store_error)?;
    let known: Vec<&str> =
        all.iter().map(|kept| kept.name.as_str()).chain(files.iter().map(|file| file.name.as_str())).collect();
    let near = haft_core::suggest::did_you_mean(named, known.iter().copied());
    let near = near.map(|near| format!("; {near}")).unwrap_or_default();
    Err(CallError::not_found(format!("there is no pipeline `{shown}`{near}"))
        .hint("`haft pipeline list` shows those there are"))
}

/// Keeps a pipeline. Returns its id.
async fn keep(store: &Store, workspace: &Workspace, origin: &str, plan: &Plan) -> Result<Stored, CallError> {
    let name = plan.name.clone().unwrap_or_default();
    if filed(workspace).iter().any(|file| file.name == name) {
        return Err(CallError::conflict(format!("`{}` is a workflow file of this project", inert(&name)))
            .hint("give it another name"));
    }
    if haft_core::secret::tells_secret(&json!(plan).to_string()) || !secrets_in(&json!(plan)).is_empty() {
        return Err(CallError::invalid("the pipeline has a secret in it, and would be stored with it")
            .hint("keep it with `haft secret set NAME`, and write secret:NAME where a tool takes that"));
    }
    let root = workspace.stored_root();
    let kept = Stored {
        id: new_call_id().to_string(),
        name,
        origin: origin.to_owned(),
        plan: json!(plan),
        at_ms: crate::now_ms(),
    };
    store.keep_pipeline(&root, kept.clone()).await.map_err(store_error)?;
    Ok(kept)
}
