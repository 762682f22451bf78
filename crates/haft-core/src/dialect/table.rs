//! The rows: which canonical tool each spoken name means, and where its parameters differ. What is not
//! mentioned is the same in both.

use super::Dialect;
use crate::error::CallError;
use serde_json::{Value, json};

/// One tool of a dialect.
pub struct Row {
    /// The spoken name.
    pub spoken: &'static str,
    /// The tool it means.
    pub canonical: &'static str,
    /// Parameters that differ in name or unit.
    pub params: &'static [Param],
    /// Canonical parameters that the dialect fixes.
    pub fixed: &'static [(&'static str, Fixed)],
    /// What a canonical parameter is if the caller does not say, where the document differs.
    pub usual: &'static [(&'static str, Fixed)],
}

/// A parameter that differs.
pub struct Param {
    /// In the dialect.
    pub spoken: &'static str,
    /// In haft.
    pub canonical: &'static str,
    /// How values differ.
    pub unit: Unit,
}

/// How a dialect's values differ from canonical ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Not at all.
    Same,
    /// A path that has to be absolute.
    Absolute,
    /// Lines are counted from zero.
    ZeroBased,
    /// Seconds for milliseconds.
    Seconds,
    /// A task's number for its name.
    Task,
    /// The caller's own words about the call.
    Note,
}

/// A value that a dialect fixes.
#[derive(Debug, Clone, Copy)]
pub enum Fixed {
    /// A switch.
    Flag(bool),
    /// A number.
    Number(u64),
}

impl Fixed {
    pub(super) fn value(self) -> Value {
        match self {
            Self::Flag(flag) => json!(flag),
            Self::Number(number) => json!(number),
        }
    }
}

impl Unit {
    /// A spoken value in canonical units.
    pub(super) fn inward(self, name: &str, value: &Value) -> Result<Value, CallError> {
        match self {
            Self::Absolute if !value.as_str().is_some_and(|path| path.starts_with('/')) => {
                Err(CallError::invalid(format!("`{name}` has to be an absolute path, not {value}")))
            }
            Self::Same | Self::Absolute | Self::Note => Ok(value.clone()),
            Self::ZeroBased => {
                Ok(value.as_u64().and_then(|n| n.checked_add(1)).map_or_else(|| value.clone(), |n| json!(n)))
            }
            Self::Seconds => Ok(scale(value, 1000.0)),
            Self::Task => Ok(value.as_u64().map_or_else(|| value.clone(), |number| json!(format!("bg_{number}")))),
        }
    }

    /// A canonical value in spoken units.
    pub(super) fn outward(self, value: &Value) -> Value {
        match self {
            Self::Same | Self::Absolute | Self::Note => value.clone(),
            Self::ZeroBased => value.as_u64().map_or_else(|| value.clone(), |n| json!(n.saturating_sub(1))),
            Self::Seconds => scale(value, 0.001),
            Self::Task => {
                let number = value.as_str().and_then(|id| id.trim_start_matches("bg_").parse::<u64>().ok());
                number.map_or_else(|| value.clone(), |number| json!(number))
            }
        }
    }
}

/// Multiplies a number, keeping whole numbers whole.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers below 2^53 are turned into integers")]
fn scale(value: &Value, factor: f64) -> Value {
    let Some(number) = value.as_f64().map(|number| number * factor) else { return value.clone() };
    let rounded = number.round();
    if (number - rounded).abs() < 1e-9 && rounded.abs() < 9e15 { json!(rounded as i64) } else { json!(number) }
}

const fn row(spoken: &'static str, canonical: &'static str) -> Row {
    Row { spoken, canonical, params: &[], fixed: &[], usual: &[] }
}

const fn param(spoken: &'static str, canonical: &'static str, unit: Unit) -> Param {
    Param { spoken, canonical, unit }
}

const LABEL: Param = param("label", "", Unit::Note);
const ABSOLUTE_PATH: Param = param("file_path", "path", Unit::Absolute);
/// These documents' readers give a file's text as it is.
const PLAIN: &[(&str, Fixed)] = &[("line_numbers", Fixed::Flag(false))];

const TIMEOUT: Param = param("timeout", "timeout_ms", Unit::Same);
const HALF_A_MINUTE: &[(&str, Fixed)] = &[("timeout_ms", Fixed::Number(30_000))];
const TEN_SECONDS: &[(&str, Fixed)] = &[("timeout_ms", Fixed::Number(10_000))];
const MIME_TYPE: &[Param] = &[param("mimeType", "mime_type", Unit::Same)];
const PID: &[Param] = &[param("pid", "id", Unit::Task)];

/// Each dialect: its document's declarations, and its rows.
pub(super) const TABLE: &[(Dialect, &str, &[Row])] = &[
    (Dialect::Flynn, include_str!("../../dialects/flynn.json"), FLYNN),
    (Dialect::Flyto, include_str!("../../dialects/flyto.json"), FLYTO),
    (Dialect::Flemma, include_str!("../../dialects/flemma.json"), FLEMMA),
    (Dialect::Nodyn, include_str!("../../dialects/nodyn.json"), NODYN),
    (Dialect::Glee, include_str!("../../dialects/glee.json"), GLEE),
];

const FLYNN: &[Row] = &[
    Row { fixed: PLAIN, ..row("file.read", "file.read") },
    row("file.write", "file.write"),
    Row {
        params: &[param("search", "old_string", Unit::Same), param("replace", "new_string", Unit::Same)],
        ..row("file.edit", "file.edit")
    },
    row("file.list", "file.list"),
    Row { params: &[TIMEOUT], usual: HALF_A_MINUTE, ..row("shell.exec", "shell.exec") },
    row("process.start", "process.start"),
    Row { params: PID, ..row("process.status", "process.status") },
    Row { params: PID, ..row("process.kill", "process.kill") },
    Row { params: PID, ..row("process.output", "process.output") },
    row("process.list", "process.list"),
    Row { params: &[TIMEOUT], usual: TEN_SECONDS, ..row("web.fetch", "web.request") },
    Row { params: &[param("limit", "max_results", Unit::Same)], ..row("web.search", "web.search") },
    row("memory.read", "memory.read"),
    row("memory.write", "memory.write"),
    Row { params: &[param("keywordOnly", "keyword_only", Unit::Same)], ..row("memory.search", "memory.search") },
    Row { params: MIME_TYPE, ..row("media.send", "media.send") },
    Row { params: MIME_TYPE, ..row("image.analyze", "image.analyze") },
    Row { params: MIME_TYPE, ..row("audio.transcribe", "audio.transcribe") },
    row("browser.navigate", "browser.navigate"),
    row("browser.screenshot", "browser.screenshot"),
    row("system.info", "system.info"),
    row("sessions.list", "session.list"),
    Row { params: &[param("sessionId", "session", Unit::Same)], ..row("sessions.delete", "session.delete") },
];

const FLYTO: &[Row] = &[
    Row { params: &[TIMEOUT, param("run_in_background", "background", Unit::Same)], ..row("Bash", "shell.exec") },
    Row { params: &[ABSOLUTE_PATH, param("offset", "offset", Unit::ZeroBased)], ..row("Read", "file.read") },
    Row { params: &[ABSOLUTE_PATH], ..row("Edit", "file.edit") },
    Row { params: &[ABSOLUTE_PATH], ..row("Write", "file.write") },
    row("Glob", "file.glob"),
    row("Grep", "file.grep"),
    Row { params: &[param("timeout", "timeout_ms", Unit::Seconds)], ..row("WebFetch", "web.fetch") },
    row("WebSearch", "web.search"),
    row("TaskCreate", "task.create"),
    row("TaskUpdate", "task.update"),
    row("TaskList", "task.list"),
    row("Gitignore", "file.ignore"),
    Row {
        params: &[
            param("prompt", "task", Unit::Same),
            param("description", "name", Unit::Same),
            param("branch_name", "branch", Unit::Same),
        ],
        ..row("Agent", "agent.spawn")
    },
    row("ToolSearch", "tool.search"),
];

const FLEMMA: &[Row] = &[
    row("calculator", "calc.eval"),
    Row { params: &[param("delay", "delay_ms", Unit::Same)], ..row("calculator_async", "calc.eval") },
    Row {
        params: &[LABEL, param("timeout", "timeout_ms", Unit::Seconds)],
        usual: HALF_A_MINUTE,
        ..row("bash", "shell.exec")
    },
    Row { params: &[LABEL], fixed: PLAIN, ..row("read", "file.read") },
    Row {
        params: &[LABEL, param("oldText", "old_string", Unit::Same), param("newText", "new_string", Unit::Same)],
        ..row("edit", "file.edit")
    },
    Row { params: &[LABEL], ..row("write", "file.write") },
];

const NODYN: &[Row] = &[
    row("bash", "shell.exec"),
    Row { fixed: PLAIN, ..row("read_file", "file.read") },
    row("write_file", "file.write"),
    Row { params: &[param("directory", "path", Unit::Same)], ..row("batch_files", "file.batch") },
    row("memory_store", "memory.store"),
    row("memory_recall", "memory.recall"),
    row("http_request", "web.request"),
    row("ask_user", "user.ask"),
    row("api_setup", "api.setup"),
    Row {
        params: &[
            param("due_date", "due", Unit::Same),
            param("parent_task_id", "parent", Unit::Same),
            param("pipeline_id", "pipeline", Unit::Same),
        ],
        ..row("task_create", "task.create")
    },
    Row {
        params: &[param("task_id", "id", Unit::Same), param("due_date", "due", Unit::Same)],
        ..row("task_update", "task.update")
    },
    row("task_list", "task.list"),
    row("web_research", "web.research"),
    row("run_pipeline", "pipeline.run"),
    row("plan_task", "pipeline.plan"),
    row("capture_process", "pipeline.capture"),
    row("promote_process", "pipeline.promote"),
    row("spawn_agent", "agent.spawn"),
];

/// Glee's own tools run, make and list manifests, and have other agents do a task.
const GLEE: &[Row] = &[
    Row { params: &[param("params", "args", Unit::Same)], ..row("glee_tool", "tool.call") },
    row("glee_tool_create", "tool.create"),
    row("glee_tools_list", "tool.list"),
    Row {
        params: &[param("prompt", "task", Unit::Same), param("session_id", "session", Unit::Same)],
        ..row("glee_task", "agent.delegate")
    },
];
