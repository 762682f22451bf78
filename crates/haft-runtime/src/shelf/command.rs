//! Manifests of the kind `command`: a program, held to what its manifest declares.

use super::made::Made;
use crate::scene::Scene;
use crate::tool::Reply;
use haft_core::CallError;
use haft_core::manifest::Command;

/// Runs it to its end.
pub(super) async fn run(made: &Made, command: &Command, scene: &Scene) -> Result<Reply, CallError> {
    let _ = (made.secrets(scene)?, command, made.dir());
    Err(CallError::internal("not built yet"))
}
