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
pub(super) fn run(common: &Common, args: McpArgs) -> Result<u8, Failure> {
    match args.action {
        None => serve::run(common, args.dialect.as_deref(), args.front.as_deref()),
        Some(McpAction::Install { client, replace, hooks, print, yes }) => {
            let wish = match (replace, hooks) {
                (true, _) => Some(InstallMode::Replace),
                (false, true) => Some(InstallMode::Hooks),
                (false, false) => None,
            };
            install::install(common, client, wish, Confirmation::new(print, yes))
        }
        Some(McpAction::Uninstall { client, print, yes }) => {
            install::uninstall(common, client, Confirmation::new(print, yes))
        }
        Some(McpAction::Add(add)) => servers::add(common, &add),
        Some(McpAction::List) => servers::list(common),
        Some(McpAction::Remove { name }) => servers::remove(common, &name),
        Some(McpAction::Test { name, accept }) => servers::test(common, &name, accept),
        Some(McpAction::Import { file, print }) => servers::import(common, &file, print),
    }
}
