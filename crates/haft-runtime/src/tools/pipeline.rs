//! pipeline.run, pipeline.plan, pipeline.capture and pipeline.promote: several calls as one, planned, run, learned from what
//! was done, and kept. pipeline.gate is the question that a step may be.

mod capture;
mod gate;
mod plan;
mod run;

use crate::tool::Tool;
use crate::workspace::Workspace;
use crate::{new_call_id, store_error};
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use haft_core::work::{Plan, file};
use haft_store::Store;
use haft_store::work::Stored;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Where workflows are kept as files.
const FOLDERS: [&str; 2] = [".haft/workflows", ".glee/workflows"];
/// How many files of a folder are looked at.
const FILES_MAX: usize = 1000;
/// How large a workflow may be.
const FILE_MAX: u64 = 1 << 20;

/// All of them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![run::tool(), plan::tool(), capture::capture(), capture::promote(), gate::tool()]
}

/// A pipeline that is a file.
#[derive(Debug, Clone)]
pub struct Filed {
    /// Its name.
    pub name: String,
    /// Where.
    pub path: PathBuf,
    /// What it says, or what is wrong with it.
    pub plan: Result<Plan, Vec<file::Misfit>>,
}

/// The workflows of a project, by name. One that cannot be read hides no other.
pub fn filed(workspace: &Workspace) -> Vec<Filed> {
    let mut found: Vec<Filed> = Vec::new();
    for folder in FOLDERS {
        let entries = std::fs::read_dir(workspace.root().join(folder)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.take(FILES_MAX).map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let ending = path.extension().and_then(|ending| ending.to_str());
            let (Some("yml" | "yaml"), Some(name)) = (ending, path.file_stem().and_then(|name| name.to_str())) else {
                continue;
            };
            if found.iter().any(|known| known.name == name) {
                continue;
            }
            let (name, plan) = (name.to_owned(), read(&path, name));
            found.push(Filed { name, path, plan });
        }
    }
    found
}

fn read(path: &std::path::Path, name: &str) -> Result<Plan, Vec<file::Misfit>> {
    let odd = |what: String| {
        let fault = haft_core::work::Fault { at: String::new(), what };
        vec![file::Misfit { line: 1, column: 1, fault }]
    };
    let meta = std::fs::symlink_metadata(path).map_err(|error| odd(error.to_string()))?;
    if !meta.is_file() || meta.len() > FILE_MAX {
        return Err(odd(format!("it is no file of at most {} KiB", FILE_MAX >> 10)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| odd(error.to_string()))?;
    file::read(&text, name)
}

/// A pipeline by its name or id: one that is kept, or a file.
pub(crate) async fn find(store: &Store, workspace: &Workspace, named: &str) -> Result<Plan, CallError> {
    let shown = cut(&inert(named), 80);
    // What a person wrote into the project is meant by its name, whatever somebody else has kept under it.
    let files = filed(workspace);
    if let Some(found) = files.iter().find(|file| file.name == named) {
        return found.plan.clone().map_err(|misfits| {
            let all: Vec<String> =
                misfits.iter().take(8).map(|one| format!("{}:{}: {}", one.line, one.column, one.fault)).collect();
            CallError::invalid(format!("{}: {}", found.path.display(), all.join("; ")))
                .hint("`haft lint` checks workflows as well")
        });
    }
    let root = workspace.root().to_string_lossy();
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
    if haft_core::secret::contains_secret(&json!(plan).to_string()) {
        return Err(CallError::invalid("the pipeline has a secret in it, and would be stored with it")
            .hint("keep it with `haft secret set NAME`, and write secret:NAME where a tool takes that"));
    }
    let root = workspace.root().to_string_lossy();
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
