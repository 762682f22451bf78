//! The clients: where each keeps its servers, and in what form.

use crate::app::Failure;
use crate::cli::{Common, McpClient};
use haft_core::CallError;
use haft_runtime::Workspace;
use serde_json::{Value, json};
use std::path::PathBuf;

/// What haft is called there.
pub(super) const NAME: &str = "haft";

/// In what form a file is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// JSON, with the servers under this name.
    Json { under: &'static str },
    /// TOML with a table a server.
    Toml,
    /// YAML with the servers under `extensions`.
    Yaml,
}

/// Where and how haft is entered.
pub(super) struct Target {
    pub(super) file: PathBuf,
    pub(super) form: Form,
    pub(super) entry: Value,
    /// What to do then.
    pub(super) then: &'static str,
}

impl Target {
    /// The entry as it stands in the file.
    pub(super) fn snippet(&self) -> String {
        match self.form {
            Form::Json { under } => {
                serde_json::to_string_pretty(&json!({ under: { NAME: self.entry } })).unwrap_or_default()
            }
            Form::Toml => super::text::toml_section(&self.entry),
            Form::Yaml => format!("extensions:\n{}", super::text::yaml_block(&self.entry, "  ")),
        }
    }
}

/// Where a client keeps its servers.
enum Home {
    /// In the project, for everybody who works on it.
    Project(&'static str),
    /// In the user's home directory.
    User(&'static str),
}

/// A client's row: file, form, and what to do then.
fn row(client: McpClient) -> (Home, Form, &'static str) {
    let json = |under| Form::Json { under };
    match client {
        McpClient::Claude => (
            Home::Project(".mcp.json"),
            json("mcpServers"),
            "start `claude` in the project; it asks once whether to use it",
        ),
        McpClient::Codex => (Home::User(".codex/config.toml"), Form::Toml, "start `codex`; `/mcp` lists its servers"),
        McpClient::Gemini => {
            (Home::User(".gemini/settings.json"), json("mcpServers"), "start `gemini`; `/mcp` lists its servers")
        }
        McpClient::Cursor => {
            (Home::User(".cursor/mcp.json"), json("mcpServers"), "restart Cursor; its settings list its servers")
        }
        McpClient::Goose => {
            (Home::User(".config/goose/config.yaml"), Form::Yaml, "start `goose session`; it loads what is enabled")
        }
        McpClient::Opencode => (
            Home::User(".config/opencode/opencode.json"),
            json("mcp"),
            "start `opencode`; `opencode mcp list` lists its servers",
        ),
        McpClient::Vscode => (
            Home::Project(".vscode/mcp.json"),
            json("servers"),
            "open the project; `MCP: List Servers` lists its servers",
        ),
    }
}

/// Where and how haft is entered for a client.
pub(super) fn target(client: McpClient, common: &Common) -> Result<Target, Failure> {
    let (home, form, then) = row(client);
    // A project's file is for others, too, whose haft may be elsewhere.
    let (file, program) = match home {
        Home::Project(file) => (project(common)?.join(file), NAME.to_owned()),
        Home::User(file) => (user_home()?.join(file), myself()),
    };
    Ok(Target { file, form, entry: entry(client, &program), then })
}

fn project(common: &Common) -> Result<PathBuf, CallError> {
    let gone = |error: std::io::Error| {
        CallError::invalid(format!("the project cannot be found: {error}")).hint("name it with --root DIR")
    };
    let found = match &common.root {
        Some(root) => Workspace::new(root),
        None => std::env::current_dir().and_then(|here| Workspace::discover(&here)),
    };
    found.map(|workspace| workspace.root().to_owned()).map_err(gone)
}

fn user_home() -> Result<PathBuf, CallError> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    home.ok_or_else(|| CallError::invalid("HOME is not set, so there is no place for it").hint("set HOME"))
}

/// This program as a client can start it, whatever its own PATH is.
fn myself() -> String {
    std::env::current_exe().ok().and_then(|exe| exe.to_str().map(str::to_owned)).unwrap_or_else(|| NAME.to_owned())
}

fn entry(client: McpClient, program: &str) -> Value {
    match client {
        McpClient::Opencode => json!({"type": "local", "command": [program, "mcp"], "enabled": true}),
        McpClient::Vscode => {
            json!({"type": "stdio", "command": program, "args": ["mcp", "--root", "${workspaceFolder}"]})
        }
        McpClient::Claude => json!({"type": "stdio", "command": program, "args": ["mcp"]}),
        McpClient::Goose => json!({
            "name": NAME, "type": "stdio", "cmd": program, "args": ["mcp"], "enabled": true, "timeout": 300,
        }),
        McpClient::Codex | McpClient::Gemini | McpClient::Cursor => json!({"command": program, "args": ["mcp"]}),
    }
}
