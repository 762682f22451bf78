//! The editors: Cursor and VS Code. They have no headless mode, so what is written for them follows
//! their documentation and is not tested with the real programs.

use super::EditPurpose::{Entry, Hook, NativeOff, PreApproval};
use super::{FilePlan, InstallMode, InstallPlan, NAME, hook_command, own_program};
use crate::cli::McpClient;
use crate::commands::mcp::install::edits::{ConfigEdit, FileFormat};
use haft_core::CallError;
use serde_json::json;
use std::path::Path;

/// Cursor reads its servers from `mcp.json`; its program for the terminal reads permissions from `cli-config.json`.
pub(super) fn cursor(mode: InstallMode, home: &Path) -> InstallPlan {
    let program = own_program();
    let entry = json!({"command": program, "args": ["mcp"]});
    let servers = FilePlan::new(home.join(".cursor/mcp.json"), FileFormat::Json)
        .with(Entry, ConfigEdit::set(&["mcpServers", NAME], entry));
    let mut permissions = FilePlan::new(home.join(".cursor/cli-config.json"), FileFormat::Json);
    if mode == InstallMode::Replace {
        // Cursor's program refuses a file without these.
        permissions = permissions
            .with(PreApproval, ConfigEdit::default(&["version"], 1.into()))
            .with(PreApproval, ConfigEdit::default(&["editor"], json!({"vimMode": false})));
        let off = ["Shell(*)", "Read(**)", "Write(**)", "WebFetch(*)"].map(Into::into).to_vec();
        permissions = permissions
            .with(PreApproval, ConfigEdit::include(&["permissions", "allow"], vec!["Mcp(haft:*)".into()]))
            .with(NativeOff, ConfigEdit::include(&["permissions", "deny"], off));
    }
    let mut hooks = FilePlan::new(home.join(".cursor/hooks.json"), FileFormat::Json);
    if mode == InstallMode::Hooks {
        let command = hook_command(&program, McpClient::Cursor);
        let before = json!({"command": command, "timeout": 300, "failClosed": true});
        let after = json!({"command": command, "timeout": 60});
        hooks = hooks.with(Hook, ConfigEdit::default(&["version"], 1.into()));
        hooks = hooks.with(Hook, ConfigEdit::include(&["hooks", "preToolUse"], vec![before]));
        for event in ["postToolUse", "postToolUseFailure", "sessionEnd"] {
            hooks = hooks.with(Hook, ConfigEdit::include(&["hooks", event], vec![after.clone()]));
        }
    }
    InstallPlan::new(mode, vec![servers, permissions, hooks], &["mcpServers", NAME])
}

/// VS Code reads the project's servers from `.vscode/mcp.json`.
pub(super) fn vscode(mode: InstallMode, project: &Path) -> Result<InstallPlan, CallError> {
    if mode == InstallMode::Replace {
        return Err(CallError::invalid("VS Code has no setting that turns its agent's own tools off")
            .hint("install without --replace, and turn the built-in tools off in the chat's tool picker"));
    }
    let entry = json!({"type": "stdio", "command": NAME, "args": ["mcp", "--root", "${workspaceFolder}"]});
    let servers = FilePlan::new(project.join(".vscode/mcp.json"), FileFormat::Json)
        .with(Entry, ConfigEdit::set(&["servers", NAME], entry));
    Ok(InstallPlan::new(mode, vec![servers], &["servers", NAME]))
}
