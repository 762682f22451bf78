//! The rows: each tool of each client's own, the tool of haft's that policies know it by, and its parameters.
//!
//! A call with a parameter that is not listed is asked about, so each row lists the harmless parameters, too.

use super::{HookClient, PATCH};
use crate::tool::Effect;
use serde_json::{Map, Value, json};

/// How haft treats a native tool.
#[derive(Debug, Clone, Copy)]
pub enum NativeToolKind {
    /// It touches nothing outside the client, and haft has no opinion about it.
    Internal {
        /// Why.
        reason: &'static str,
        /// The parameters with which that holds; none is any.
        params: Option<&'static [&'static str]>,
    },
    /// haft decides about it, as about a tool of its own.
    Tool(&'static NativeTool),
}

/// One tool of a client's own.
#[derive(Debug)]
pub struct NativeTool {
    /// What the client calls it.
    pub name: &'static str,
    /// The tool of haft's that policies, rules and grants know it by.
    pub tool: &'static str,
    /// What it does to the world.
    pub effect: Effect,
    /// Whether it reaches beyond this machine.
    pub open_world: bool,
    /// What it does to a file, if it changes one.
    pub edit: Option<EditKind>,
    /// Its parameters.
    pub params: &'static [NativeParam],
}

/// How a native tool changes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditKind {
    /// The file gets the content of `content`.
    Whole,
    /// `old_string` becomes `new_string`.
    Replace,
    /// In the format of `apply_patch`.
    Patch,
    /// In a way that only the client knows.
    Opaque,
}

/// A parameter of one.
#[derive(Debug)]
pub struct NativeParam {
    /// In the client's words.
    pub native: &'static str,
    /// In haft's.
    pub canonical: &'static str,
    /// What it is.
    pub role: ParamRole,
}

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamRole {
    /// A place that is read.
    Reads,
    /// A place that is changed.
    Writes,
    /// A body, never recorded in clear.
    Body,
    /// A command for a shell.
    Command,
    /// An address on the web.
    Url,
    /// Text with addresses somewhere in it. Only the client knows which it opens.
    Addresses,
    /// A pattern of paths below the place that is searched.
    Pattern,
    /// Nothing that a decision depends on.
    Plain,
    /// The agent's own words about the call.
    Note,
}

impl NativeTool {
    /// Whether it works in the client's working directory.
    pub fn starts_in_directory(&self) -> bool {
        self.effect == Effect::Runs || self.edit == Some(EditKind::Patch)
    }

    /// Whether it looks through a directory: the client's working directory, unless it names another.
    pub fn searches(&self) -> bool {
        self.effect == Effect::Reads && !self.open_world && self.tool != "file.read"
    }

    /// Whether it opens the files below the directory that it looks through.
    pub fn searches_contents(&self) -> bool {
        self.tool == "file.grep"
    }

    /// The schema of its canonical arguments: what a decision depends on has to be there as text.
    pub(super) fn schema(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for param in self.params {
            let decides =
                matches!(param.role, ParamRole::Reads | ParamRole::Writes | ParamRole::Command | ParamRole::Url);
            let text = decides || (self.edit == Some(EditKind::Patch) && param.canonical == PATCH);
            properties.insert(param.canonical.to_owned(), if text { json!({"type": "string"}) } else { json!({}) });
            // A search without a place starts in the working directory.
            if text && !(param.role == ParamRole::Reads && self.tool != "file.read") {
                required.push(json!(param.canonical));
            }
        }
        json!({"type": "object", "properties": properties, "required": required})
    }
}

const fn param(native: &'static str, canonical: &'static str, role: ParamRole) -> NativeParam {
    NativeParam { native, canonical, role }
}

const fn plain(name: &'static str) -> NativeParam {
    param(name, name, ParamRole::Plain)
}

const fn pattern(name: &'static str) -> NativeParam {
    param(name, name, ParamRole::Pattern)
}

const fn body(name: &'static str) -> NativeParam {
    param(name, name, ParamRole::Body)
}

const fn path(native: &'static str, role: ParamRole) -> NativeParam {
    param(native, "path", role)
}

const fn tool(name: &'static str, tool: &'static str, effect: Effect, params: &'static [NativeParam]) -> NativeTool {
    NativeTool { name, tool, effect, open_world: false, edit: None, params }
}

const fn edit(name: &'static str, tool: &'static str, kind: EditKind, params: &'static [NativeParam]) -> NativeTool {
    NativeTool { name, tool, effect: Effect::Changes, open_world: false, edit: Some(kind), params }
}

const fn web(name: &'static str, tool: &'static str, params: &'static [NativeParam]) -> NativeTool {
    NativeTool { name, tool, effect: Effect::Reads, open_world: true, edit: None, params }
}

const NOTE: NativeParam = param("description", super::NOTE, ParamRole::Note);
const NOTE_OF_EDIT: NativeParam = param("instruction", super::NOTE, ParamRole::Note);
const COMMAND: NativeParam = param("command", "command", ParamRole::Command);

const CLAUDE_CODE: &[NativeTool] = &[
    tool(
        "Read",
        "file.read",
        Effect::Reads,
        &[path("file_path", ParamRole::Reads), plain("offset"), plain("limit"), plain("pages"), plain("allow_large")],
    ),
    edit("Write", "file.write", EditKind::Whole, &[path("file_path", ParamRole::Writes), body("content")]),
    edit(
        "Edit",
        "file.edit",
        EditKind::Replace,
        &[path("file_path", ParamRole::Writes), body("old_string"), body("new_string"), plain("replace_all")],
    ),
    edit("MultiEdit", "file.edit", EditKind::Opaque, &[path("file_path", ParamRole::Writes), body("edits")]),
    edit(
        "NotebookEdit",
        "file.edit",
        EditKind::Opaque,
        &[
            path("notebook_path", ParamRole::Writes),
            plain("cell_id"),
            body("new_source"),
            plain("cell_type"),
            plain("edit_mode"),
        ],
    ),
    tool("Glob", "file.glob", Effect::Reads, &[pattern("pattern"), path("path", ParamRole::Reads)]),
    tool(
        "Grep",
        "file.grep",
        Effect::Reads,
        &[
            plain("pattern"),
            path("path", ParamRole::Reads),
            pattern("glob"),
            plain("output_mode"),
            plain("-A"),
            plain("-B"),
            plain("-C"),
            plain("-n"),
            plain("-i"),
            plain("-o"),
            plain("context"),
            plain("type"),
            plain("head_limit"),
            plain("offset"),
            plain("multiline"),
        ],
    ),
    tool("LS", "file.list", Effect::Reads, &[path("path", ParamRole::Reads), plain("ignore")]),
    tool("Bash", "shell.exec", Effect::Runs, &[COMMAND, NOTE, plain("timeout"), plain("run_in_background")]),
    web("WebFetch", "web.fetch", &[param("url", "url", ParamRole::Url), plain("prompt"), plain("offset")]),
    web("WebSearch", "web.search", &[plain("query"), plain("allowed_domains"), plain("blocked_domains")]),
];

const CODEX: &[NativeTool] = &[
    // The name under which Codex tells hooks about each of its shells.
    tool("Bash", "shell.exec", Effect::Runs, &[COMMAND]),
    edit("apply_patch", "file.edit", EditKind::Patch, &[param("command", PATCH, ParamRole::Body)]),
    tool("view_image", "file.read", Effect::Reads, &[path("path", ParamRole::Reads), plain("detail")]),
];

const GEMINI_CLI: &[NativeTool] = &[
    tool(
        "read_file",
        "file.read",
        Effect::Reads,
        &[
            path("file_path", ParamRole::Reads),
            plain("start_line"),
            plain("end_line"),
            plain("offset"),
            plain("limit"),
            WAIT,
        ],
    ),
    edit("write_file", "file.write", EditKind::Whole, &[path("file_path", ParamRole::Writes), body("content"), WAIT]),
    edit(
        "replace",
        "file.edit",
        EditKind::Replace,
        &[
            path("file_path", ParamRole::Writes),
            body("old_string"),
            body("new_string"),
            NOTE_OF_EDIT,
            param("allow_multiple", "replace_all", ParamRole::Plain),
            WAIT,
        ],
    ),
    tool(
        "run_shell_command",
        "shell.exec",
        Effect::Runs,
        &[COMMAND, NOTE, param("dir_path", "cwd", ParamRole::Reads), plain("is_background"), plain("delay_ms"), WAIT],
    ),
    tool(
        "glob",
        "file.glob",
        Effect::Reads,
        &[
            pattern("pattern"),
            path("dir_path", ParamRole::Reads),
            plain("case_sensitive"),
            plain("respect_git_ignore"),
            plain("respect_gemini_ignore"),
            WAIT,
        ],
    ),
    tool(
        "grep_search",
        "file.grep",
        Effect::Reads,
        &[
            plain("pattern"),
            path("dir_path", ParamRole::Reads),
            pattern("include_pattern"),
            plain("exclude_pattern"),
            plain("names_only"),
            plain("max_matches_per_file"),
            plain("total_max_matches"),
            plain("case_sensitive"),
            plain("fixed_strings"),
            plain("context"),
            plain("before"),
            plain("after"),
            plain("no_ignore"),
            WAIT,
        ],
    ),
    tool(
        "list_directory",
        "file.list",
        Effect::Reads,
        &[path("dir_path", ParamRole::Reads), plain("ignore"), plain("file_filtering_options"), WAIT],
    ),
    web("web_fetch", "web.fetch", &[param("prompt", "prompt", ParamRole::Addresses), WAIT]),
    web("google_web_search", "web.search", &[plain("query"), WAIT]),
];

/// Gemini CLI lets models order calls with it.
const WAIT: NativeParam = plain("wait_for_previous");

const CURSOR: &[NativeTool] = &[
    tool(
        "Shell",
        "shell.exec",
        Effect::Runs,
        &[COMMAND, param("working_directory", "cwd", ParamRole::Reads), NOTE, plain("timeout"), plain("is_background")],
    ),
    tool("Read", "file.read", Effect::Reads, &[path("file_path", ParamRole::Reads), plain("offset"), plain("limit")]),
    edit("Write", "file.write", EditKind::Opaque, &[path("file_path", ParamRole::Writes), body("content")]),
    edit("Delete", "file.write", EditKind::Opaque, &[path("file_path", ParamRole::Writes)]),
];

const GOOSE: &[NativeTool] = &[
    tool("shell", "shell.exec", Effect::Runs, &[COMMAND, plain("timeout_secs")]),
    edit("write", "file.write", EditKind::Whole, &[path("path", ParamRole::Writes), body("content")]),
    edit(
        "edit",
        "file.edit",
        EditKind::Replace,
        &[
            path("path", ParamRole::Writes),
            param("before", "old_string", ParamRole::Body),
            param("after", "new_string", ParamRole::Body),
        ],
    ),
    tool("tree", "file.list", Effect::Reads, &[path("path", ParamRole::Reads), plain("depth")]),
    // It opens the files below a directory.
    tool(
        "analyze",
        "file.grep",
        Effect::Reads,
        &[path("path", ParamRole::Reads), plain("focus"), plain("max_depth"), plain("follow_depth"), plain("force")],
    ),
];

/// A tool that touches nothing outside its client: its name, why, and the parameters with which that holds.
type InternalTool = (&'static str, &'static str, Option<&'static [&'static str]>);

const REASON_NOTES: &str = "it keeps the agent's own list of things to do";
const REASON_MODES: &str = "it changes what the client lets the agent do, which the client asks its user about";
const REASON_ASKS_USER: &str = "it asks the client's user";
const REASON_BACKGROUND: &str = "it reads or stops a command that haft already decided";
const REASON_SUBAGENT: &str = "haft decides each of the subagent's calls";
const REASON_TOOL_LOOKUP: &str = "it tells the model which tools there are";

const CLAUDE_CODE_INTERNAL: &[InternalTool] = &[
    ("TodoWrite", REASON_NOTES, None),
    ("TaskCreate", REASON_NOTES, None),
    ("TaskGet", REASON_NOTES, None),
    ("TaskUpdate", REASON_NOTES, None),
    ("TaskList", REASON_NOTES, None),
    ("EnterPlanMode", REASON_MODES, None),
    ("ExitPlanMode", REASON_MODES, None),
    ("AskUserQuestion", REASON_ASKS_USER, None),
    ("BashOutput", REASON_BACKGROUND, None),
    ("TaskOutput", REASON_BACKGROUND, None),
    ("TaskStop", REASON_BACKGROUND, None),
    ("KillShell", REASON_BACKGROUND, None),
    ("ToolSearch", REASON_TOOL_LOOKUP, None),
    ("ListAgents", REASON_TOOL_LOOKUP, None),
    ("Agent", REASON_SUBAGENT, Some(SUBAGENT)),
    ("Task", REASON_SUBAGENT, Some(SUBAGENT)),
];

/// Not among them: `isolation`, which may run it on another machine, and `mode`, which loosens what the client asks.
const SUBAGENT: &[&str] =
    &["description", "prompt", "subagent_type", "model", "effort", "run_in_background", "name", "team_name"];

const CODEX_INTERNAL: &[InternalTool] = &[
    ("update_plan", REASON_NOTES, None),
    ("get_goal", REASON_NOTES, None),
    ("create_goal", REASON_NOTES, None),
    ("update_goal", REASON_NOTES, None),
    ("request_user_input", REASON_ASKS_USER, None),
    ("tool_search", REASON_TOOL_LOOKUP, None),
];

const GEMINI_CLI_INTERNAL: &[InternalTool] = &[
    ("write_todos", REASON_NOTES, None),
    ("update_topic", REASON_NOTES, None),
    ("complete_task", REASON_NOTES, None),
    ("enter_plan_mode", REASON_MODES, None),
    ("exit_plan_mode", REASON_MODES, None),
    ("ask_user", REASON_ASKS_USER, None),
    ("list_background_processes", REASON_BACKGROUND, None),
    ("read_background_output", REASON_BACKGROUND, None),
];

/// Not among them: `read_image`, which also loads addresses, `delegate`, whose subagents may not run hooks, and
/// `extensionmanager__manage_extensions`, which starts programs.
const GOOSE_INTERNAL: &[InternalTool] = &[
    ("todo__todo_write", REASON_NOTES, None),
    ("extensionmanager__search_available_extensions", REASON_TOOL_LOOKUP, None),
];

/// The tools of a client that haft decides about.
pub(super) fn tools(client: HookClient) -> &'static [NativeTool] {
    match client {
        HookClient::ClaudeCode => CLAUDE_CODE,
        HookClient::Codex => CODEX,
        HookClient::GeminiCli => GEMINI_CLI,
        HookClient::Cursor => CURSOR,
        HookClient::Goose => GOOSE,
    }
}

fn internal(client: HookClient) -> &'static [InternalTool] {
    match client {
        HookClient::ClaudeCode => CLAUDE_CODE_INTERNAL,
        HookClient::Codex => CODEX_INTERNAL,
        HookClient::GeminiCli => GEMINI_CLI_INTERNAL,
        HookClient::Cursor => &[],
        HookClient::Goose => GOOSE_INTERNAL,
    }
}

/// What a tool's name means; none for one that haft does not know.
pub(super) fn meaning(client: HookClient, name: &str) -> Option<NativeToolKind> {
    if let Some(native) = tools(client).iter().find(|native| native.name == name) {
        return Some(NativeToolKind::Tool(native));
    }
    let (_, reason, params) = internal(client).iter().find(|(known, ..)| *known == name)?;
    Some(NativeToolKind::Internal { reason, params: *params })
}
