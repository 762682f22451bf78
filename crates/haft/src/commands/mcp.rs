//! `haft mcp`: haft as an MCP server, in clients' configurations, and the servers it bridges.

mod install;
mod serve;
mod servers;
mod whole;

use crate::app::Failure;
use crate::cli::{Common, McpAction, McpArgs};
pub(super) use install::{ClientState, NativeTools, client_states};
use install::{Confirmation, InstallMode};

/// Does one thing about MCP.
pub(super) fn run(common: &Common, mut args: McpArgs) -> Result<u8, Failure> {
    let Some(action) = args.action.take() else { return serve::run(common, &args) };
    match action {
        McpAction::Install { client, replace, hooks, print, yes } => {
            let wish = match (replace, hooks) {
                (true, _) => Some(InstallMode::Replace),
                (false, true) => Some(InstallMode::Hooks),
                (false, false) => None,
            };
            install::install(common, client, wish, Confirmation::new(print, yes))
        }
        McpAction::Uninstall { client, print, yes } => {
            install::uninstall(common, client, Confirmation::new(print, yes))
        }
        McpAction::Add(add) => servers::add(common, &add),
        McpAction::List => servers::list(common),
        McpAction::Remove { name } => servers::remove(common, &name),
        McpAction::Test { name, accept } => servers::test(common, &name, accept),
        McpAction::Import { file, print } => servers::import(common, &file, print),
    }
}
