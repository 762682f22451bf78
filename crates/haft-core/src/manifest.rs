//! A tool as a file: what `tool.yml` says, as types. Pure: who finds the files, and who runs them, is elsewhere.
//!
//! Reading goes in one direction: text → a value with places ([`written`]) → the published JSON Schema, which finds
//! everything of the wrong shape → these types → what no schema can say ([`lint`]). What is declared under `permissions`
//! is what the kernel enforces; what is under `exec` is filled in by [`template`], never by a shell.

pub mod answer;
pub mod ceiling;
pub mod fix;
pub mod flaw;
pub mod lint;
pub mod reach;
pub mod secrets;
pub mod shape;
pub mod template;
pub mod written;

pub use flaw::{Flaw, Severity};
pub use written::Written;

use crate::host::HostRule;
use crate::record::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How long a tool may take unless its manifest says otherwise.
pub const TIMEOUT_MS: u64 = 30_000;
/// The longest that a manifest may ask for.
pub const TIMEOUT_MAX_MS: u64 = 600_000;

/// A tool as a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Its name, which is its directory's.
    pub name: String,
    /// What it does, for models and people.
    pub description: String,
    /// Which part of `exec` counts.
    pub kind: Kind,
    /// Counted up by whoever changes it.
    pub version: u64,
    /// What goes in.
    pub inputs: Inputs,
    /// What comes out.
    pub outputs: Outputs,
    /// What is done.
    pub exec: Exec,
    /// What may be touched while it is done.
    pub permissions: Permissions,
    /// Whether a person is asked.
    pub approval: Approval,
    /// How it is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
}

/// What kind of tool it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A request.
    Http,
    /// A program.
    Command,
    /// A function.
    Python,
    /// A tool of a bridged server, under a new name and a narrower schema.
    Mcp,
    /// Several calls.
    Pipeline,
}

impl Kind {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Command => "command",
            Self::Python => "python",
            Self::Mcp => "mcp",
            Self::Pipeline => "pipeline",
        }
    }
}

/// What goes in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// JSON Schema 2020-12.
    pub schema: Value,
}

/// What comes out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outputs {
    /// In which form.
    pub format: Format,
    /// JSON Schema 2020-12. What does not fit it is passed on with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// The form of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A value.
    Json,
    /// Words.
    Text,
}

/// What is done: exactly one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exec {
    /// A request.
    Http(Http),
    /// A program.
    Command(Command),
    /// A function.
    Python(Python),
    /// A tool of a bridged server.
    Mcp(Mcp),
    /// Several calls.
    Pipeline(Pipeline),
}

impl Exec {
    /// Which it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Http(_) => Kind::Http,
            Self::Command(_) => Kind::Command,
            Self::Python(_) => Kind::Python,
            Self::Mcp(_) => Kind::Mcp,
            Self::Pipeline(_) => Kind::Pipeline,
        }
    }
}

/// A request. Every value may hold `${x}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// GET, POST, PUT, DELETE or PATCH.
    pub method: String,
    /// Where. Inputs may be in its path and query, not in what names the host.
    pub url: String,
    /// Headers.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    /// The query, besides what is in the URL.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub query: Map<String, Value>,
    /// What is sent: text as it is, everything else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// What is taken of the answer.
    #[serde(default, skip_serializing_if = "Answer::is_whole")]
    pub response: Answer,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What is taken of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The part that counts, by names with dots between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_path: Option<String>,
    /// What is taken of it, or of each of its items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
}

impl Answer {
    fn is_whole(&self) -> bool {
        *self == Self::default()
    }
}

/// One field of what comes out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Where its value is.
    pub path: String,
}

/// A program. Every value may hold `${x}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program: a path from the project's root, or a name that is looked up.
    pub entrypoint: String,
    /// Its arguments, each as it is: no shell reads them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Value>,
    /// Variables of its own.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub env: Map<String, Value>,
    /// What it reads: text as it is, everything else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Value>,
    /// Where it starts, from the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What it prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<Stdout>,
    /// The exit statuses that are no failure.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    pub exit_codes_ok: Vec<i32>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

fn zero() -> Vec<i32> {
    vec![0]
}

fn is_zero(codes: &[i32]) -> bool {
    codes == [0]
}

/// What a program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stdout {
    /// In which form.
    pub format: Format,
}

/// A function. Every argument may hold `${x}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// The module, found from `cwd`.
    pub module: String,
    /// The function in it.
    pub function: String,
    /// Its arguments by place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Value>,
    /// Its arguments by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub kwargs: Map<String, Value>,
    /// The virtual environment whose interpreter runs it, from the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venv: Option<String>,
    /// Where it starts, from the project's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What becomes of what it returns.
    #[serde(default = "json", rename = "return")]
    pub gives: Format,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

fn json() -> Format {
    Format::Json
}

/// A tool of a bridged server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// The server, by its name in the configuration.
    pub server: String,
    /// Its tool.
    pub tool: String,
    /// The arguments, with `${x}` in them; the inputs as they are if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
}

/// Several calls, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// The calls.
    pub steps: Vec<Step>,
    /// What comes out; the last step's output if nothing is said. `${steps.ID.PART}` stands for a [`Part`] of what a step
    /// gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// One call of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, with `${x}` and `${steps.ID.output}` in them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
}

/// A part of what a step gave, as later templates name it. There are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What it said, as text.
    Output,
    /// What it said, as a value.
    Data,
    /// Whether it went well.
    Success,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Output, Self::Data, Self::Success];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Data => "data",
            Self::Success => "success",
        }
    }

    /// The part that a word names.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.word() == word)
    }
}

/// What a tool may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// Whether, and whom, it may reach.
    pub network: Reachable,
    /// Files.
    pub fs: Fs,
    /// The secrets it gets, by name. No others.
    #[serde(default)]
    pub secrets: BTreeMap<String, Secret>,
}

/// Whom a tool may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reachable {
    /// Nobody, or the public web.
    Any(bool),
    /// These hosts: `example.com`, `*.example.com`, `localhost:5432`.
    Hosts(Vec<HostRule>),
}

impl Default for Reachable {
    fn default() -> Self {
        Self::Any(false)
    }
}

impl Reachable {
    /// Whether it reaches anybody at all.
    pub fn is_any(&self) -> bool {
        match self {
            Self::Any(any) => *any,
            Self::Hosts(hosts) => !hosts.is_empty(),
        }
    }
}

/// Files that a tool may use, from the project's root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fs {
    /// What it may read.
    #[serde(default)]
    pub read: Vec<String>,
    /// What it may also write.
    #[serde(default)]
    pub write: Vec<String>,
}

/// A secret that a tool gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// Always `string`.
    #[serde(rename = "type", default = "string")]
    pub kind: String,
    /// Whether the tool cannot do without it.
    #[serde(default = "yes")]
    pub required: bool,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

fn string() -> String {
    "string".to_owned()
}

fn yes() -> bool {
    true
}

/// Whether a person is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Before every call.
    pub required: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a tool is used, and what comes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// What it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The inputs.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// What comes out; `...` stands for anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<Value>,
}

/// What a manifest declares of its tool beyond what every tool declares, for whoever decides about a call and holds its
/// program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// What it does.
    pub kind: Kind,
    /// What it may touch, and nothing else.
    pub permissions: Permissions,
    /// Whether a person is asked.
    pub approval: Approval,
    /// Of the whole manifest: a yes to one is none to another.
    pub digest: Digest,
}

impl Manifest {
    /// What is decided by.
    pub fn declared(&self) -> Declared {
        let whole = serde_json::to_vec(self).unwrap_or_default();
        let (permissions, approval) = (self.permissions.clone(), self.approval.clone());
        Declared { kind: self.kind, permissions, approval, digest: Digest::of(&whole) }
    }

    /// How long it may take.
    pub fn timeout_ms(&self) -> u64 {
        let said = match &self.exec {
            Exec::Http(http) => http.timeout_ms,
            Exec::Command(command) => command.timeout_ms,
            Exec::Python(python) => python.timeout_ms,
            Exec::Mcp(_) | Exec::Pipeline(_) => Some(TIMEOUT_MAX_MS),
        };
        said.unwrap_or(TIMEOUT_MS)
    }
}
