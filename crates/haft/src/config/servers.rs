//! MCP servers whose tools haft offers as its own, as the configuration says them.

use super::confinement::Permissions;
use super::error::ConfigError;
use super::file::is_default;
use super::placed::{Spot, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An MCP server: a program that speaks over its input and output, or a URL.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Text>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment, besides harmless variables like PATH and LANG. `${NAME}` stands for haft's own variable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where it starts; the project's root otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Text>,
    /// The address of a server that speaks HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// Headers for every request. `${NAME}` stands for haft's own variable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Tools that are offered, by their names there; globs work. Absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<Text>>,
    /// Tools that are not, whatever `allow` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Text>,
    /// What the program may reach.
    #[serde(skip_serializing_if = "is_default")]
    pub permissions: Permissions,
    /// Directories that the program may read besides the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Text>,
    /// Directories that the program may write. Absent: none, not even the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Text>,
    /// When it is started: at the first call, or at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// How long it may take to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// At the first call of one of its tools.
    Lazy,
    /// When haft starts.
    Eager,
}

impl Server {
    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        self.permissions.each_spot(visit);
        let single = [&mut self.command, &mut self.cwd, &mut self.url].into_iter().flatten();
        let lists = self.allow.iter_mut().flatten().chain(&mut self.deny).chain(&mut self.read).chain(&mut self.write);
        for text in single.chain(lists) {
            visit(&mut text.spot);
        }
    }

    /// What the bridge is told.
    pub(super) fn wanted(&self, name: &Text) -> Result<haft_mcp::client::Server, ConfigError> {
        let _ = self;
        Err(ConfigError::malformed(&name.spot, "MCP servers cannot be bridged yet"))
    }
}
