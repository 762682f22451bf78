//! Manifests of the kind `python`: a function, in an interpreter that is held to what its manifest declares.

use super::made::Made;
use crate::scene::Scene;
use crate::tool::Reply;
use haft_core::CallError;
use haft_core::manifest::Python;

/// Calls it.
pub(super) async fn run(made: &Made, python: &Python, scene: &Scene) -> Result<Reply, CallError> {
    let _ = (made.secrets(scene)?, python);
    Err(CallError::internal("not built yet"))
}
