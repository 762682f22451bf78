//! The shape of a configuration file. The doc comments here are the descriptions that people read in the
//! JSON Schema and in their editors.

use super::browser::Browser;
use super::commands::{CommandRule, entries_schema};
use super::confinement::{Confinement, Permissions};
use super::doors::{Gateway, Mcp, Tools};
use super::hooks::HookSaid;
use super::media::Media;
use super::memory::Memory;
use super::models::{Agent, Models};
use super::placed::{Placed, Text};
use super::security::{SecretSaid, Security};
use super::shell::Shell;
use super::web::Web;
use haft_core::Dialect;
use haft_core::approval;
use haft_core::policy;
use haft_core::shell::Written;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of haft: the user's in ~/.config/haft/config.yml, a project's in .haft/config.yml.
///
/// Lists of all files add up; of single values the nearest counts. Tools are named exactly (`file.read`),
/// by glob (`file.*`) or by group (`group:fs`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "haft configuration")]
pub struct Config {
    /// Which tools exist: `minimal`, `messaging`, `coding`, `full`, or one of `profiles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Profiles of your own, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub profiles: BTreeMap<Text, Rules>,
    /// Tools that do not exist here, whatever the profile says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Text>,
    /// Rules for one agent, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<Text, Narrowing>,
    /// Rules for the models of one provider, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<Text, Narrowing>,
    /// Tools that are confirmed or marked in the log.
    #[serde(skip_serializing_if = "is_default")]
    pub hooks: Hooks,
    /// How much an agent may do by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autonomy: Option<Autonomy>,
    /// Calls that never run; nothing can lift these rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub floor: Vec<FloorRule>,
    /// What runs unasked.
    #[serde(skip_serializing_if = "is_default")]
    pub approval: Approval,
    /// Rules about shell commands, matched against every command in a command line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<CommandRule>,
    /// What programs do that haft does not know, by name: which options read, write, run and send.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "entries_schema")]
    pub commands: BTreeMap<Text, Written>,
    /// Directories outside the project that may be used like the project.
    #[serde(skip_serializing_if = "is_default")]
    pub files: Files,
    /// What programs that tools start may reach.
    #[serde(skip_serializing_if = "is_default")]
    pub permissions: Permissions,
    /// How programs that tools start are confined.
    #[serde(skip_serializing_if = "is_default")]
    pub confinement: Confinement,
    /// How commands are run in a shell.
    #[serde(skip_serializing_if = "is_default")]
    pub shell: Shell,
    /// How much is kept of attachments, downloads and whole outputs.
    #[serde(skip_serializing_if = "is_default")]
    pub kept: Kept,
    /// How much is kept so that changes can be undone.
    #[serde(skip_serializing_if = "is_default")]
    pub undo: Undo,
    /// MCP: haft as a server, and the servers whose tools haft offers as its own.
    #[serde(skip_serializing_if = "is_default")]
    pub mcp: Mcp,
    /// Which tools a model is told about.
    #[serde(skip_serializing_if = "is_default")]
    pub tools: Tools,
    /// The gateway: `haft serve`.
    #[serde(skip_serializing_if = "is_default")]
    pub gateway: Gateway,
    /// What web tools may reach, and how much they may ask for.
    #[serde(skip_serializing_if = "is_default")]
    pub web: Web,
    /// The browser that browser tools drive.
    #[serde(skip_serializing_if = "is_default")]
    pub browser: Browser,
    /// Who looks at pictures and listens to sounds.
    #[serde(skip_serializing_if = "is_default")]
    pub media: Media,
    /// What agents know, and how it is found.
    #[serde(skip_serializing_if = "is_default")]
    pub memory: Memory,
    /// Which models are asked, and where.
    #[serde(skip_serializing_if = "is_default")]
    pub models: Models,
    /// How far an agent may go with one thing that it is told, and what it is told besides.
    #[serde(skip_serializing_if = "is_default")]
    pub agent: Agent,
    /// What agents may make.
    #[serde(skip_serializing_if = "is_default")]
    pub security: Security,
    /// Where secrets come from and where they may go, by name. Not for projects.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<Text, SecretSaid>,
    /// The vocabulary in which tools are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "dialect_schema")]
    pub dialect: Option<Dialect>,
    /// Where the log, grants and approvals are kept: a path, or a server's address, postgres://… Not for projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<Text>,
}

/// An allow list and a deny list. Deny wins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Tools that exist. Absent: every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<Text>>,
    /// Tools that do not, whatever `allow` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Text>,
}

/// Rules for one agent or provider. They narrow what the profile gives; only a `profile` named in the
/// user's own file stands in for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Narrowing {
    /// A profile, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Tools that exist. Absent: every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<Text>>,
    /// Tools that do not, whatever `allow` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Text>,
}

/// Tools per hook. Confirm outranks log outranks silent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hooks {
    /// Tools that a person confirms every time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirm: Vec<Text>,
    /// Tools that are marked in the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Text>,
    /// Tools that nobody has an opinion about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<Text>,
    /// Programs and addresses that are asked before a call is decided. They can only tighten. Not for projects that
    /// nobody trusts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<HookSaid>,
    /// Programs and addresses that are told what came of a call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<HookSaid>,
}

/// How much an agent may do by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Autonomy {
    /// Everything that writes or runs is asked.
    Conservative,
    /// The approval chain decides.
    Standard,
    /// Nobody is asked: what would be asked is refused.
    Autonomous,
}

impl From<Autonomy> for policy::Autonomy {
    fn from(autonomy: Autonomy) -> Self {
        match autonomy {
            Autonomy::Conservative => Self::Conservative,
            Autonomy::Standard => Self::Standard,
            Autonomy::Autonomous => Self::Autonomous,
        }
    }
}

/// A rule that nothing can lift.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FloorRule {
    /// The tools it is about.
    pub tool: Text,
    /// A regular expression over the arguments as JSON. Absent: every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Text>,
    /// Why, for the person who meets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What runs unasked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Approval {
    /// Tools that run unasked inside the project; `$readonly`, `$default` and `presets` may be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_approve: Option<Vec<Text>>,
    /// Tools taken out of `auto_approve`, for instance out of a preset.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<Text>,
    /// Tools whose calls are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Text>,
    /// Lists with a name that begins with `$`, for use in `auto_approve`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub presets: BTreeMap<Text, Preset>,
    /// Decides, by what a mistake would cost, calls that nothing else decides. Absent: they are asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// How often "always for this pattern" holds before a person is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub grant_uses: Option<Placed<u32>>,
}

/// A list with a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Preset {
    /// Tools it approves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approve: Vec<Text>,
    /// Tools it denies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Text>,
}

/// How much is asked, by what a mistake would cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Asks every call, reading included.
    Hitl,
    /// Asks high and critical calls.
    Supervised,
    /// Asks critical calls.
    Autonomous,
    /// Asks nothing where the kernel confines, everything elsewhere.
    Yolo,
}

impl From<Level> for approval::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Hitl => Self::Hitl,
            Level::Supervised => Self::Supervised,
            Level::Autonomous => Self::Autonomous,
            Level::Yolo => Self::Yolo,
        }
    }
}

/// Directories outside the project. Absolute, below `~/`, or (in a project's file) relative to the project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// Directories that may be read unasked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Text>,
    /// Directories that count as the project when written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Text>,
}

/// How much is kept so that changes can be undone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Undo {
    /// For how many days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_days: Option<u32>,
    /// A larger file is not kept, and a change to it cannot be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_file_bytes: Option<u64>,
    /// Beyond this the oldest go first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_bytes: Option<u64>,
}

/// How much is kept of what calls leave for people: attachments, downloads and whole outputs, all of them together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Kept {
    /// For how many days (default 30).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_days: Option<u32>,
    /// Beyond this the oldest go first (default 2 GiB); what is younger than an hour stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_bytes: Option<u64>,
    /// For how many days the audit log keeps what records say (default: always). After that they are redacted: who called
    /// which tool when, and whether it succeeded, stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_days: Option<u32>,
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The core's type stays free of schemas; its own list of names feeds this one.
fn dialect_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": Dialect::ALL.map(Dialect::name) })
}
