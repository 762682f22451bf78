//! The clients: which files each reads, and what haft enters there.
//!
//! What turns a client's own tools off is known from the real programs: `tests/agent_clients` runs each of them and
//! looks at the tools of the request that it sends. Cursor and VS Code have no headless mode; what is written for
//! them follows their documentation.

mod editor;
mod terminal;

use super::config_file::ConfigFile;
use super::edits::{self, ConfigEdit, FileFormat};
use crate::app::Failure;
use crate::cli::{Common, McpClient};
use haft_core::CallError;
use haft_runtime::Workspace;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
pub(super) use terminal::{GOOSE_PLUGIN, OPENCODE_NATIVE};

/// What haft is called there.
pub(super) const NAME: &str = "haft";

/// How an installation treats the client's own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InstallMode {
    /// haft's tools stand beside the client's own.
    Beside,
    /// The client's own file, shell and web tools are off.
    Replace,
    /// The client asks `haft hook` before it uses its own tools.
    Hooks,
}

/// What an edit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditPurpose {
    /// haft becomes one of the client's servers.
    Entry,
    /// The client's own tools are turned off.
    NativeOff,
    /// The client does not ask about haft's calls, because haft does.
    PreApproval,
    /// The client runs `haft hook`.
    Hook,
    /// No settings of the project turn hooks off.
    HooksOn,
    /// The client spends no more of its model's context than it did without haft.
    ContextCost,
}

/// The edits of one file.
#[derive(Debug)]
pub(super) struct FilePlan {
    pub(super) path: PathBuf,
    pub(super) format: FileFormat,
    pub(super) edits: Vec<(EditPurpose, ConfigEdit)>,
}

impl FilePlan {
    fn new(path: PathBuf, format: FileFormat) -> Self {
        Self { path, format, edits: Vec::new() }
    }

    /// Whether a file says all of it already.
    pub(super) fn is_in(&self, file: &ConfigFile) -> bool {
        let said = file.text.as_deref().and_then(|text| edits::read(self.format, text).ok());
        said.is_some_and(|said| self.edits.iter().all(|(_, edit)| edit.is_in(&said)))
    }

    fn with(mut self, purpose: EditPurpose, edit: ConfigEdit) -> Self {
        self.edits.push((purpose, edit));
        self
    }
}

/// All that an installation writes.
#[derive(Debug)]
pub(super) struct InstallPlan {
    pub(super) mode: InstallMode,
    /// The server's entry comes first.
    pub(super) files: Vec<FilePlan>,
    /// The keys of the server's entry in the first file.
    pub(super) entry: Vec<String>,
    /// What a person should know beside the diff.
    pub(super) notes: Vec<String>,
}

impl InstallPlan {
    fn new(mode: InstallMode, files: Vec<FilePlan>, entry: &[&str]) -> Self {
        let files = files.into_iter().filter(|file| !file.edits.is_empty()).collect();
        Self { mode, files, entry: entry.iter().map(|name| (*name).to_owned()).collect(), notes: Vec::new() }
    }

    fn note(mut self, note: &str) -> Self {
        self.notes.push(note.to_owned());
        self
    }

    /// The server's entry as it is written.
    pub(super) fn entry_value(&self) -> Option<&Value> {
        let edits = self.files.first()?.edits.iter();
        edits.map(|(_, edit)| edit).find_map(|edit| match edit {
            ConfigEdit::Set { path, value } if *path == self.entry => Some(value),
            _ => None,
        })
    }
}

/// The places of one user and one project.
#[derive(Debug)]
pub(crate) struct ClientPlaces {
    /// The user's home directory.
    pub(super) home: PathBuf,
    /// The project's root, without links.
    pub(super) project: PathBuf,
    /// Where a client is started, without links: the root, or a directory below it.
    pub(super) here: PathBuf,
}

impl ClientPlaces {
    /// The home directory of the environment, and the project that is meant.
    pub(crate) fn find(common: &Common) -> Result<Self, Failure> {
        let gone = |error: std::io::Error| {
            CallError::invalid(format!("the project cannot be found: {error}")).hint("name it with --root DIR")
        };
        let found = match common.root_dir() {
            Some(root) => Workspace::new(&root),
            None => std::env::current_dir().and_then(|here| Workspace::discover(&here)),
        };
        let project = found.and_then(|workspace| workspace.root().canonicalize()).map_err(gone)?;
        let here = match &common.root {
            Some(_) => project.clone(),
            None => std::env::current_dir().and_then(|here| here.canonicalize()).map_err(gone)?,
        };
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let home =
            home.ok_or_else(|| CallError::invalid("HOME is not set, so there is no place for it").hint("set HOME"))?;
        Ok(Self { home, project, here })
    }
}

/// This program as a client can start it, whatever its own PATH is.
fn own_program() -> String {
    std::env::current_exe().ok().and_then(|exe| exe.to_str().map(str::to_owned)).unwrap_or_else(|| NAME.to_owned())
}

/// The command line that runs `haft hook` in a shell.
fn hook_command(program: &str, client: McpClient) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    let program = if program.chars().all(is_plain) {
        program.to_owned()
    } else {
        format!("'{}'", program.replace('\'', r"'\''"))
    };
    format!("{program} hook {}", client.word())
}

impl McpClient {
    /// All of them, in the order in which they are reported.
    pub(crate) const ALL: [Self; 7] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Goose, Self::Cursor, Self::Vscode];

    /// As commands name it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Goose => "goose",
            Self::Opencode => "opencode",
            Self::Vscode => "vscode",
        }
    }

    /// As its makers call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Goose => "goose",
            Self::Opencode => "opencode",
            Self::Vscode => "VS Code",
        }
    }

    /// Whether its configuration belongs to the project.
    pub(super) fn is_of_project(self) -> bool {
        matches!(self, Self::Claude | Self::Vscode)
    }

    /// The client's own file, shell and web tools, as a person knows them.
    pub(crate) fn native_tools(self) -> &'static str {
        match self {
            Self::Claude => "Bash, Read, Edit, Write, Glob, Grep, NotebookEdit, WebFetch and WebSearch",
            Self::Codex => "exec_command, apply_patch, view_image and web_search",
            Self::Gemini => "run_shell_command, read_file, write_file, replace, glob, grep_search and web_fetch",
            Self::Goose => "shell, write, edit, tree and analyze",
            Self::Opencode => "bash, read, edit, write, glob, grep and webfetch",
            Self::Cursor | Self::Vscode => "terminal, file, search and web tools",
        }
    }

    /// Whether the agent in the editor keeps its tools whatever is written.
    pub(crate) fn keeps_tools_in_editor(self) -> bool {
        matches!(self, Self::Cursor | Self::Vscode)
    }

    /// What to do after an installation.
    pub(super) fn next_step(self) -> &'static str {
        match self {
            Self::Claude => "start `claude` in the project; `/mcp` lists its servers",
            Self::Codex => "start `codex`; `/mcp` lists its servers",
            Self::Gemini => "start `gemini`; `/mcp` lists its servers",
            Self::Cursor => "restart Cursor; its settings list its servers",
            Self::Goose => "start `goose session`; it loads what is enabled",
            Self::Opencode => "start `opencode`; `opencode mcp list` lists its servers",
            Self::Vscode => "open the project; `MCP: List Servers` lists its servers",
        }
    }

    /// Whether there are traces of the client on this machine.
    pub(crate) fn is_found(self, places: &ClientPlaces) -> bool {
        let (home, project) = (&places.home, &places.project);
        let any = |paths: &[PathBuf]| paths.iter().any(|path| path.exists());
        match self {
            Self::Claude => any(&[home.join(".claude"), home.join(".claude.json"), project.join(".claude")]),
            Self::Codex => any(&[home.join(".codex")]),
            Self::Gemini => any(&[home.join(".gemini")]),
            Self::Cursor => any(&[home.join(".cursor")]),
            Self::Goose => any(&[home.join(".config/goose")]),
            Self::Opencode => any(&[home.join(".config/opencode")]),
            Self::Vscode => any(&[home.join(".config/Code"), home.join(".vscode"), project.join(".vscode/mcp.json")]),
        }
    }
}

/// What an installation writes for a client.
pub(super) fn plan(client: McpClient, mode: InstallMode, places: &ClientPlaces) -> Result<InstallPlan, CallError> {
    if mode == InstallMode::Hooks && !has_hooks(client) {
        return Err(CallError::invalid(format!("{} has no hooks that haft can answer", client.title()))
            .hint(format!("`haft mcp install {} --replace` turns its own tools off instead", client.word())));
    }
    match client {
        McpClient::Claude => Ok(terminal::claude_code(mode, &places.project, &own_program())),
        McpClient::Codex => Ok(terminal::codex(mode, &places.home)),
        McpClient::Gemini => Ok(terminal::gemini_cli(mode, &places.home)),
        McpClient::Opencode => Ok(terminal::opencode(mode, &places.home)),
        McpClient::Goose => Ok(terminal::goose(mode, &places.home)),
        McpClient::Cursor => Ok(editor::cursor(mode, &places.home)),
        McpClient::Vscode => editor::vscode(mode, &places.project),
    }
}

/// What an earlier version wrote for a client, which named the program in a hook without its directory.
pub(super) fn plan_by_bare_name(client: McpClient, mode: InstallMode, places: &ClientPlaces) -> Option<InstallPlan> {
    (client == McpClient::Claude).then(|| terminal::claude_code(mode, &places.project, NAME))
}

fn has_hooks(client: McpClient) -> bool {
    matches!(client, McpClient::Claude | McpClient::Codex | McpClient::Gemini | McpClient::Cursor | McpClient::Goose)
}

/// The file that exists of two, the first if neither does.
fn existing(first: PathBuf, second: PathBuf) -> PathBuf {
    if !first.exists() && second.exists() { second } else { first }
}

/// An event under which haft enters a hook, in the format of Claude Code, Codex and Gemini CLI.
struct HookEntry {
    event: &'static str,
    /// Whether it is about a tool, and names which.
    is_of_tool: bool,
    timeout_sec: u32,
}

impl HookEntry {
    const fn new(event: &'static str, is_of_tool: bool, timeout_sec: u32) -> Self {
        Self { event, is_of_tool, timeout_sec }
    }

    /// The edit that enters a hook under this event.
    fn edit(&self, hook: Value) -> ConfigEdit {
        let mut group = serde_json::Map::new();
        if self.is_of_tool {
            group.insert("matcher".to_owned(), "*".into());
        }
        group.insert("hooks".to_owned(), Value::Array(vec![hook]));
        ConfigEdit::include(&["hooks", self.event], vec![Value::Object(group)])
    }
}
