//! `haft mcp`: the tools for an MCP client, over stdin and stdout.

use crate::app::Failure;
use crate::cli::Common;
use haft_core::CallError;

/// Serves one client until it goes.
pub(super) fn run(_: &Common, _: Option<&str>) -> Result<u8, Failure> {
    Err(CallError::internal("not built yet").into())
}
