//! `haft mcp install`: haft in a client's own configuration.

use crate::app::Failure;
use crate::cli::{Common, McpClient};
use haft_core::CallError;

/// Enters haft in a client's configuration.
pub(super) fn run(_: &Common, _: McpClient, _: bool, _: bool) -> Result<u8, Failure> {
    Err(CallError::internal("not built yet").into())
}
