//! From settings to the policy: profiles, gates, overrides, hooks and the floor.

use super::error::ConfigError;
use super::file::{Config, FloorRule, Hooks, Narrowing, Rules};
use super::layers::Stack;
use super::names::Names;
use super::placed::Text;
use haft_core::Policy;
use haft_core::pattern::ToolPattern;
use haft_core::policy::{self, FloorDeny, Gate, Override, PROFILES, shipped_profile};
use haft_core::suggest::did_you_mean;
use std::collections::BTreeMap;

/// Whose file speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    User,
    Project,
}

impl Voice {
    const fn noun(self) -> &'static str {
        match self {
            Self::User => "your config",
            Self::Project => "the project's config",
        }
    }
}

/// Builds the policy. `merged` decides single values; lists are read layer by layer, so that a verdict can
/// say whose rule it was.
pub(super) fn build(stack: &Stack, merged: &Config, names: &mut Names<'_>) -> Result<Policy, ConfigError> {
    let mut builder = Builder { stack, names };
    builder.check_profiles()?;
    let profile = merged.profile.as_ref().map(|name| builder.chosen(name)).transpose()?;
    Ok(Policy {
        profile,
        gates: builder.gates()?,
        agents: builder.overrides("agent", |config| &config.agents)?,
        providers: builder.overrides("provider", |config| &config.providers)?,
        hooks: builder.hooks(&merged.hooks)?,
        autonomy: merged.autonomy.map(Into::into).unwrap_or_default(),
        floor: merged.floor.iter().map(|rule| builder.floor(rule)).collect::<Result<_, _>>()?,
    })
}

struct Builder<'b, 'k> {
    stack: &'b Stack,
    names: &'b mut Names<'k>,
}

impl Builder<'_, '_> {
    /// The files in which a voice's profiles are looked up, its own first. An untrusted project's words
    /// mean something only to itself.
    fn lookup(&self, voice: Voice) -> Vec<&Config> {
        let Stack { user, project, trusted, .. } = self.stack;
        match voice {
            Voice::User if *trusted => vec![user, project],
            Voice::User => vec![user],
            Voice::Project => vec![project, user],
        }
    }

    /// Reads every profile, used or not, so that a mistake shows where it is made.
    fn check_profiles(&mut self) -> Result<(), ConfigError> {
        for config in [&self.stack.user, &self.stack.project] {
            for (name, rules) in &config.profiles {
                if PROFILES.iter().any(|(shipped, _, _)| *shipped == name.as_str()) {
                    let why = format!("haft ships a profile `{}`; choose another name", name.value);
                    return Err(ConfigError::malformed(&name.spot, why));
                }
                self.rules(rules)?;
            }
        }
        Ok(())
    }

    /// The profile in force. The user's own words (file, environment, flags) mean the user's profiles.
    fn chosen(&mut self, name: &Text) -> Result<Gate, ConfigError> {
        let said = self.stack.project.profile.as_ref().filter(|_| self.stack.trusted);
        let by_project = said.is_some_and(|said| said.spot == name.spot);
        self.profile(name, if by_project { Voice::Project } else { Voice::User })
    }

    fn profile(&mut self, name: &Text, voice: Voice) -> Result<Gate, ConfigError> {
        let files = self.lookup(voice);
        let own = files.iter().find_map(|config| config.profiles.get(name)).cloned();
        let rules = match (own, shipped_profile(name.as_str())) {
            (Some(own), _) => self.rules(&own)?,
            (None, Some(shipped)) => shipped,
            (None, None) => return Err(no_profile(name, &files)),
        };
        Ok(Gate { by: format!("profile {}", name.value), rules })
    }

    fn rules(&mut self, rules: &Rules) -> Result<policy::Rules, ConfigError> {
        let allow = match &rules.allow {
            Some(list) => self.names.patterns(list)?,
            None => everything(),
        };
        Ok(policy::Rules { allow, deny: self.names.patterns(&rules.deny)? })
    }

    /// The gates that every tool passes besides the profile.
    fn gates(&mut self) -> Result<Vec<Gate>, ConfigError> {
        let mut gates = Vec::new();
        for (voice, config) in [(Voice::User, &self.stack.user), (Voice::Project, &self.stack.project)] {
            if !config.deny.is_empty() {
                let rules = policy::Rules { allow: everything(), deny: self.names.patterns(&config.deny)? };
                gates.push(Gate { by: voice.noun().to_owned(), rules });
            }
        }
        if let (false, Some(name)) = (self.stack.trusted, &self.stack.project.profile) {
            let gate = self.profile(name, Voice::Project)?;
            gates.push(Gate { by: format!("{} of {}", gate.by, Voice::Project.noun()), ..gate });
        }
        Ok(gates)
    }

    fn overrides(
        &mut self,
        noun: &str,
        entries: fn(&Config) -> &BTreeMap<Text, Narrowing>,
    ) -> Result<BTreeMap<String, Vec<Override>>, ConfigError> {
        let mut overrides: BTreeMap<String, Vec<Override>> = BTreeMap::new();
        for (voice, config) in [(Voice::User, &self.stack.user), (Voice::Project, &self.stack.project)] {
            for (name, narrowing) in entries(config) {
                let by = format!("{noun} {} in {}", name.value, voice.noun());
                overrides.entry(name.value.clone()).or_default().extend(self.narrowing(&by, narrowing, voice)?);
            }
        }
        Ok(overrides)
    }

    /// A profile that the user's own file names for an agent stands in for the profile in force.
    fn narrowing(&mut self, by: &str, narrowing: &Narrowing, voice: Voice) -> Result<Vec<Override>, ConfigError> {
        let mut overrides = Vec::new();
        if let Some(name) = &narrowing.profile {
            let gate = self.profile(name, voice)?;
            let gate = Gate { by: format!("{} of {by}", gate.by), ..gate };
            overrides.push(Override { gate, replaces_profile: voice == Voice::User });
        }
        let rules = self.rules(&Rules { allow: narrowing.allow.clone(), deny: narrowing.deny.clone() })?;
        overrides.push(Override { gate: Gate { by: by.to_owned(), rules }, replaces_profile: false });
        Ok(overrides)
    }

    fn hooks(&mut self, hooks: &Hooks) -> Result<policy::Hooks, ConfigError> {
        Ok(policy::Hooks {
            confirm: self.names.patterns(&hooks.confirm)?,
            log: self.names.patterns(&hooks.log)?,
            silent: self.names.patterns(&hooks.silent)?,
        })
    }

    fn floor(&mut self, rule: &FloorRule) -> Result<FloorDeny, ConfigError> {
        let tool = self.names.pattern(&rule.tool)?;
        let args = rule.args.as_ref().map(regex).transpose()?;
        let reason = rule.reason.clone().unwrap_or_else(|| format!("a floor rule forbids it ({})", rule.tool.spot));
        Ok(FloorDeny { tool, args, reason })
    }
}

fn everything() -> Vec<ToolPattern> {
    ToolPattern::new("*").into_iter().collect()
}

fn regex(text: &Text) -> Result<regex::Regex, ConfigError> {
    regex::Regex::new(&text.value).map_err(|error| {
        // The parser draws the expression with an arrow over several lines; its last line says what is wrong.
        let said = error.to_string();
        let why = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        ConfigError::malformed(&text.spot, format!("`{}` is not a regular expression: {why}", text.value))
    })
}

fn no_profile(name: &Text, files: &[&Config]) -> ConfigError {
    let own = files.iter().flat_map(|config| config.profiles.keys()).map(|text| text.value.clone());
    let known: Vec<String> = PROFILES.iter().map(|(name, _, _)| (*name).to_owned()).chain(own).collect();
    let suggestion = did_you_mean(&name.value, known.iter().map(String::as_str));
    ConfigError::Profile { spot: name.spot.clone(), name: name.value.clone(), suggestion, known }
}
