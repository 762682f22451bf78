//! `haft mcp add`, `list`, `remove`, `test` and `import`: the servers whose tools haft offers as its own.

use crate::app::Failure;
use crate::cli::{Common, McpAdd};
use haft_core::CallError;
use std::path::Path;

/// Bridges a server.
pub(super) fn add(_: &Common, _: &McpAdd) -> Result<u8, Failure> {
    Err(CallError::internal("not built yet").into())
}

/// Lists the bridged servers.
pub(super) fn list(_: &Common) -> Result<u8, Failure> {
    Err(CallError::internal("not built yet").into())
}

/// Bridges a server no longer.
pub(super) fn remove(_: &Common, _: &str) -> Result<u8, Failure> {
    Err(CallError::internal("not built yet").into())
}

/// Starts a bridged server and says what it offers.
pub(super) fn test(_: &Common, _: &str, _: bool) -> Result<u8, Failure> {
    Err(CallError::internal("not built yet").into())
}

/// Takes over servers from another client's configuration.
pub(super) fn import(_: &Common, _: &Path, _: bool) -> Result<u8, Failure> {
    Err(CallError::internal("not built yet").into())
}
