//! Manifests of the kind `http`: a request by the guarded way, and what is taken of its answer.

use super::made::{Made, inputs, named_secrets, unfit, values};
use crate::scene::Scene;
use crate::tool::{Aim, Reply};
use haft_core::CallError;
use haft_core::manifest::{Http, Manifest};
use haft_core::web::Target;
use serde_json::Value;

/// Where a call goes, with secrets by their names.
pub(super) fn aim(manifest: &Manifest, http: &Http, args: &Value) -> Result<Aim, CallError> {
    let (inputs, secrets) = (inputs(args), named_secrets(manifest));
    let url = values(&inputs, &secrets).url(&http.url).map_err(|error| unfit(&error))?;
    let target = Target::read(&url).map_err(|error| CallError::invalid(error.to_string()))?;
    Ok(Aim { method: http.method.clone(), target, sent: Vec::new() })
}

/// Sends it.
pub(super) async fn run(made: &Made, http: &Http, scene: &Scene) -> Result<Reply, CallError> {
    let _ = (made.secrets(scene)?, http);
    Err(CallError::internal("not built yet"))
}
