//! What agents go by: models, limits, roles.

use super::model::{Facts, ModelRef};
use haft_core::agent::wire::{Effort, Wire};
use std::collections::BTreeMap;
use std::time::Duration;

/// What agents go by.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// The models to ask: the first choice, then those to fall back to.
    pub models: Vec<ModelRef>,
    /// Providers besides those that haft knows, or instead of them, by name.
    pub providers: BTreeMap<String, Provider>,
    /// What is known of models that haft does not know, or otherwise.
    pub facts: BTreeMap<ModelRef, Facts>,
    /// How hard models think.
    pub effort: Option<Effort>,
    /// How much a model writes at once, at the most.
    pub max_output: Option<u32>,
    /// Whether providers' own search of the web is offered.
    pub native_search: bool,
    /// How often a model is asked, for one thing that somebody says.
    pub max_turns: u32,
    /// Tokens read and written.
    pub max_tokens: Option<u64>,
    /// Money, in millionths of a dollar.
    pub max_micros: Option<u64>,
    /// How long.
    pub max_time: Option<Duration>,
    /// Above so many tools, or so many tokens of them, only some are told and the rest is found.
    pub defer_above: (usize, usize),
    /// How deep children may have children: 1 is children only.
    pub max_depth: usize,
    /// How many children may run at once.
    pub max_children: usize,
    /// Roles by name, besides those that haft has.
    pub roles: BTreeMap<String, Role>,
    /// What an agent is told of its work besides, by the user and by the project.
    pub instructions: Vec<String>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            providers: BTreeMap::new(),
            facts: BTreeMap::new(),
            effort: None,
            max_output: None,
            native_search: false,
            max_turns: 100,
            max_tokens: None,
            max_micros: None,
            max_time: None,
            defer_above: (15, 2_000),
            max_depth: 1,
            max_children: 8,
            roles: BTreeMap::new(),
            instructions: Vec::new(),
        }
    }
}

/// Where models are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// In which form.
    pub wire: Wire,
    /// Where: what comes before `/v1/messages`, `/responses`, `/chat/completions` or `/models/…`.
    pub url: String,
    /// The variables or secrets that may hold its key, by name; none if it needs none.
    pub keys: Vec<String>,
    /// Headers besides.
    pub headers: BTreeMap<String, String>,
}

/// What a child is: its tools, its model, its words. It never gets more than its parent has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Role {
    /// When to use it.
    pub description: String,
    /// What it is told of itself.
    pub prompt: String,
    /// The tools it may use, as patterns; none means all that its parent has.
    pub tools: Option<Vec<String>>,
    /// The tools it may not use.
    pub deny: Vec<String>,
    /// The model; none is its parent's.
    pub model: Option<ModelRef>,
    /// How hard that thinks.
    pub effort: Option<Effort>,
    /// How often it is asked.
    pub max_turns: Option<u32>,
    /// Whether it asks nobody: what would be asked is refused.
    pub autonomous: bool,
    /// Where it was read from, if from a file.
    pub source: Option<String>,
}
