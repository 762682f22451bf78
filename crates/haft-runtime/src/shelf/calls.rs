//! Manifests that make calls of other tools: `mcp`, one, and `pipeline`, several. Each call goes the whole path.

use super::made::{inputs, unfit, values};
use crate::scene::Scene;
use crate::tool::Reply;
use haft_core::manifest::{Mcp, Pipeline};
use haft_core::{CallError, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;

/// Calls a bridged server's tool.
pub(super) async fn forward(mcp: &Mcp, scene: &Scene) -> Result<Reply, CallError> {
    let (inputs, none) = (inputs(scene.args()), BTreeMap::new());
    let args = match &mcp.args {
        Some(template) => values(&inputs, &none).fill_map(template).map_err(|error| unfit(&error))?,
        None => inputs.clone(),
    };
    let call =
        scene.call().makes(crate::new_call_id(), format!("mcp:{}:{}", mcp.server, mcp.tool), Value::Object(args));
    Ok(told(scene.back().call(call).await?))
}

/// Makes the calls of a pipeline.
pub(super) async fn run(pipeline: &Pipeline, scene: &Scene) -> Result<Reply, CallError> {
    let _ = (pipeline, scene);
    Err(CallError::internal("not built yet"))
}

/// What another call gave, as a reply of this one.
fn told(outcome: Outcome) -> Reply {
    Reply {
        text: outcome.output,
        data: outcome.data,
        warnings: outcome.warnings,
        labels: outcome.labels,
        error: outcome.error,
        whole: outcome.full_output,
        ..Reply::default()
    }
}
