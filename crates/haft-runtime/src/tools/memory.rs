//! memory.*: what agents keep, and find again.

mod change;
mod find;
mod look;
#[cfg(test)]
mod tests;
pub(crate) mod when;

use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use haft_core::memory::Namespace;
use haft_core::outcome::Label;
use haft_core::{CallError, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        tool(look::read_spec(), |scene| Box::pin(look::read(scene))),
        tool(look::list_spec(), |scene| Box::pin(look::list(scene))),
        tool(find::search_spec(), |scene| Box::pin(find::search(scene))),
        tool(find::recall_spec(), |scene| Box::pin(find::recall(scene))),
        tool(change::write_spec(), |scene| Box::pin(change::write(scene))),
        tool(change::store_spec(), |scene| Box::pin(change::store(scene))),
        tool(change::forget_spec(), |scene| Box::pin(change::forget(scene))),
        tool(change::reindex_spec(), |scene| Box::pin(change::reindex(scene))),
    ]
}

type Work = for<'a> fn(&'a Scene) -> BoxFuture<'a, Result<Reply, CallError>>;

struct Remembering {
    spec: Arc<ToolSpec>,
    work: Work,
}

fn tool(spec: ToolSpec, work: Work) -> Arc<dyn Tool> {
    Arc::new(Remembering { spec: Arc::new(spec), work })
}

impl Tool for Remembering {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        (self.work)(scene)
    }
}

/// The schema of the parameter that most have.
fn namespace_schema(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 200, "description": description})
}

/// The namespace that a caller means, as it is kept.
fn namespace(scene: &Scene, text: &str) -> Result<Namespace, CallError> {
    scene.room().kept(text).map_err(|error| {
        CallError::invalid(error.to_string()).hint("a name is like `user`, `project-state` or `sessions/abc`")
    })
}

/// What was written by somebody who had heard strangers is a stranger's word.
fn labels<'l>(mut found: impl Iterator<Item = &'l str>) -> Vec<Label> {
    if found.next().is_some() { vec![Label::Untrusted] } else { Vec::new() }
}
