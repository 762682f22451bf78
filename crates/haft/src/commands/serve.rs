//! `haft serve`: the gateway.

use crate::app::Failure;
use crate::cli::{Common, ServeArgs};
use haft_core::CallError;

/// Serves until it is told to end.
pub(super) fn run(_: &Common, _: &ServeArgs) -> Result<u8, Failure> {
    Err(CallError::internal("not built yet").into())
}
