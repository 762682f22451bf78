//! From layers to what the runtime needs: everything is joined, checked and explained here.

use super::approval;
use super::commands;
use super::error::ConfigError;
use super::file::Config;
use super::layers::{Layers, Stack, Trust};
use super::names::Names;
use super::policy;
use super::settings::{self, Settings};
use haft_core::approval::Chain;
use haft_core::{Policy, ToolName};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A configuration, ready for use.
#[derive(Clone)]
pub struct Loaded {
    /// All layers joined.
    pub config: Config,
    /// Which layers each top-level key comes from.
    pub origins: BTreeMap<String, Vec<String>>,
    /// Which tools exist for whom.
    pub policy: Arc<Policy>,
    /// What runs unasked.
    pub chain: Chain,
    /// Everything else.
    pub settings: Settings,
    /// What a person should know: ignored keys, names that match nothing.
    pub warnings: Vec<String>,
    /// The files that were looked at.
    pub sources: Vec<Source>,
}

/// A file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it is there.
    pub present: bool,
    /// Whether it counts; the user's own always does.
    pub trust: Trust,
}

impl Layers {
    /// Joins the layers. `known` are the tools that exist, which lists may name.
    pub fn resolve(&self, known: &[ToolName], trust: Trust) -> Result<Loaded, ConfigError> {
        let stack = self.stack(trust);
        let (config, origins) = self.merged(&stack);
        let mut names = Names::new(known);
        let policy = Arc::new(policy::build(&stack, &config, &mut names)?);
        let commands = commands::build(&config)?;
        let chain = approval::chain(&stack, &config, (&policy, &commands.rules), &mut names)?;
        let settings = settings::build(self, &stack, &config, commands, &mut names)?;
        let mut warnings = names.warnings;
        warnings.extend(self.ignored(&stack, trust));
        Ok(Loaded { config, origins, policy, chain, settings, warnings, sources: self.sources(trust) })
    }

    /// All layers joined, and which of them each key comes from.
    fn merged(&self, stack: &Stack) -> (Config, BTreeMap<String, Vec<String>>) {
        let mut project = stack.project.clone();
        let mut narrowed = None;
        if !stack.trusted {
            // These are gates of their own (see `policy`), not a choice that replaces the user's.
            narrowed = project.profile.take();
            project.profiles.clear();
        }
        let layers = vec![
            ("built in", self.built_in()),
            ("user", stack.user.clone()),
            ("project", project),
            ("environment", self.environment.as_config()),
            ("flags", self.flags.as_config()),
        ];
        let (mut merged, mut origins) = (Config::default(), BTreeMap::new());
        for (layer, config) in layers {
            note_origins(&mut origins, layer, &config);
            merged.add(config);
        }
        if let Some(name) = narrowed {
            let said = format!("project (narrowed to `{}`)", name.value);
            origins.entry("profile".to_owned()).or_default().push(said);
        }
        (merged, origins)
    }

    fn ignored(&self, stack: &Stack, trust: Trust) -> Option<String> {
        let file = self.paths.shown(&self.paths.project_config());
        let keys = stack.ignored.join(", ");
        let state = match trust {
            _ if keys.is_empty() => return None,
            Trust::Trusted => return Some(format!("{file}: not for a project, ignored: {keys}")),
            Trust::Changed => "has changed since you trusted it",
            Trust::Untrusted | Trust::Absent => "is not trusted",
        };
        Some(format!("{file} {state}; ignored: {keys}; review it and run `haft trust`"))
    }

    fn sources(&self, trust: Trust) -> Vec<Source> {
        let user = if self.user.is_some() { Trust::Trusted } else { Trust::Absent };
        let source = |path, present, trust| Source { path, present, trust };
        vec![
            source(self.paths.user_config(), self.user.is_some(), user),
            source(self.paths.project_config(), self.project.is_some(), trust),
        ]
    }
}

/// A single value comes from its nearest layer alone; lists and groups of settings from all that add to them.
fn note_origins(origins: &mut BTreeMap<String, Vec<String>>, layer: &str, config: &Config) {
    let Ok(Value::Object(said)) = serde_json::to_value(config) else { return };
    for (key, value) in said {
        let from = origins.entry(key).or_default();
        if value.is_string() {
            from.clear();
        }
        from.push(layer.to_owned());
    }
}
