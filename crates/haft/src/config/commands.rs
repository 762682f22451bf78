//! Shell commands in the configuration: what programs do, and rules about them. Every example that stands
//! beside an entry or a rule is run when it is loaded.

use super::error::ConfigError;
use super::file::Config;
use super::placed::{Spot, Text};
use haft_core::shell::rule::{Rulebook, Stance, Stated};
use haft_core::shell::{Table, Written};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A rule about shell commands: either `allow` or `deny`, and one command as words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CommandRule {
    /// These commands run unasked, if everything about them is covered: `git log`, `npm run build`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Text>,
    /// These commands never run, whatever they are wrapped in: `rm`, `git push --force`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Text>,
    /// Why, for the person who meets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Command lines that it has to match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<Text>,
    /// Command lines that it must not match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_matches: Vec<Text>,
}

impl CommandRule {
    /// A rule that was said for one run.
    pub fn one_off(stance: Stance, text: &str, flag: &'static str) -> Self {
        let text = Some(Text::new(text, Spot::Flag(flag)));
        match stance {
            Stance::Allow => Self { allow: text, ..Self::default() },
            Stance::Deny => Self { deny: text, ..Self::default() },
        }
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        let Self { allow, deny, matches, not_matches, .. } = self;
        let texts = allow.iter_mut().chain(deny).chain(matches).chain(not_matches);
        texts.for_each(|text| visit(&mut text.spot));
    }

    fn stated(&self, table: &Table) -> Result<Stated, ConfigError> {
        let (stance, text) = match (&self.allow, &self.deny) {
            (Some(text), None) => (Stance::Allow, text),
            (None, Some(text)) => (Stance::Deny, text),
            (Some(text), Some(_)) => {
                let why = "a rule either allows or denies; write two rules";
                return Err(ConfigError::malformed(&text.spot, why));
            }
            (None, None) => {
                let at = self.matches.first().or(self.not_matches.first());
                let spot = at.map_or(Spot::BuiltIn, |text| text.spot.clone());
                return Err(ConfigError::malformed(&spot, "a rule in `rules` needs `allow` or `deny`"));
            }
        };
        let bad = |error: &dyn std::fmt::Display| {
            ConfigError::malformed(&text.spot, format!("`{}` is not a rule: {error}", text.value))
        };
        let stated = Stated { reason: self.reason.clone(), ..Stated::new(stance, &text.value).map_err(|e| bad(&e))? };
        for (examples, wanted) in [(&self.matches, true), (&self.not_matches, false)] {
            for example in examples {
                let held = stated.check(&example.value, wanted, table);
                held.map_err(|why| ConfigError::malformed(&example.spot, format!("the example does not hold: {why}")))?;
            }
        }
        Ok(stated)
    }
}

/// What the runtime is told about commands.
#[derive(Debug, Clone, Default)]
pub(super) struct Commands {
    /// What programs do, if the shipped table is not all.
    pub(super) table: Option<Arc<Table>>,
    /// The rules.
    pub(super) rules: Arc<Rulebook>,
}

/// Reads entries and rules, and runs their examples.
pub(super) fn build(merged: &Config) -> Result<Commands, ConfigError> {
    let own: BTreeMap<String, Written> =
        merged.commands.iter().map(|(name, entry)| (name.value.clone(), entry.clone())).collect();
    let table =
        if own.is_empty() { None } else { Some(Arc::new(Table::with(own).map_err(|bad| at_entry(merged, bad))?)) };
    let known = table.as_deref().unwrap_or_else(|| Table::shipped());
    let stated = merged.rules.iter().map(|rule| rule.stated(known)).collect::<Result<Vec<_>, _>>()?;
    Ok(Commands { table, rules: Arc::new(Rulebook::new(stated)) })
}

fn at_entry(merged: &Config, (name, error): (String, haft_core::shell::BadEntry)) -> ConfigError {
    let spot = merged.commands.keys().find(|key| key.value == name).map_or(Spot::BuiltIn, |key| key.spot.clone());
    ConfigError::malformed(&spot, format!("what `{name}` does cannot be read: {error}"))
}

/// The core's type stays free of schemas.
pub(super) fn entries_schema(_: &mut SchemaGenerator) -> Schema {
    let class = json_schema!({ "enum": ["neutral", "search", "read", "list", "silent", "write", "general"] });
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": { "class": class, "examples": { "type": "array", "items": { "type": "string" } } },
        },
    })
}
