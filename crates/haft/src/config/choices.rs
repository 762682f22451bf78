//! What a person says for one run: by environment variable or by flag.

use super::commands::CommandRule;
use super::error::ConfigError;
use super::file::{Approval, Autonomy, Config, Level};
use super::models::Models;
use super::placed::{Spot, Text};
use haft_core::Dialect;
use std::ffi::OsString;
use std::str::FromStr;

/// Choices for one run. The environment and the flags each are one of these; flags are nearer.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// The profile.
    pub profile: Option<Text>,
    /// How much happens unasked.
    pub autonomy: Option<Autonomy>,
    /// What decides the rest.
    pub level: Option<Level>,
    /// The vocabulary.
    pub dialect: Option<Dialect>,
    /// Where the log is kept.
    pub store: Option<Text>,
    /// The agent on whose behalf calls are made.
    pub agent: Option<String>,
    /// The provider whose model makes the calls.
    pub provider: Option<String>,
    /// The models to ask, `provider/model`, with commas between.
    pub model: Option<Text>,
    /// Rules about shell commands.
    pub rules: Vec<CommandRule>,
}

impl Choices {
    /// What the environment says. An empty variable says nothing.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    pub(super) fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let text = |name: &'static str| -> Result<Option<Text>, ConfigError> {
            let Some(value) = lookup(name).filter(|value| !value.is_empty()) else { return Ok(None) };
            let spot = Spot::Variable(name);
            let value = value.into_string().map_err(|_| ConfigError::malformed(&spot, "is not UTF-8"))?;
            Ok(Some(Text::new(value, spot)))
        };
        let word = |name| text(name).map(|found| found.map(|text| text.value));
        Ok(Self {
            profile: text("HAFT_PROFILE")?,
            autonomy: text("HAFT_AUTONOMY")?.map(|said| parsed(&said)).transpose()?,
            level: text("HAFT_LEVEL")?.map(|said| parsed(&said)).transpose()?,
            dialect: text("HAFT_DIALECT")?.map(|said| dialect(&said)).transpose()?,
            store: text("HAFT_STORE")?,
            agent: word("HAFT_AGENT")?,
            provider: word("HAFT_PROVIDER")?,
            model: text("HAFT_MODEL")?,
            rules: Vec::new(),
        })
    }

    /// The same as a layer of configuration.
    pub(super) fn as_config(&self) -> Config {
        Config {
            profile: self.profile.clone(),
            autonomy: self.autonomy,
            approval: Approval { level: self.level, ..Approval::default() },
            rules: self.rules.clone(),
            dialect: self.dialect,
            store: self.store.clone(),
            models: self.model.as_ref().map(Models::named).unwrap_or_default(),
            ..Config::default()
        }
    }
}

/// A word that is none of those that are possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not one of {}", known.join(", "))]
pub struct BadWord {
    word: String,
    known: Vec<&'static str>,
}

fn find<T: Copy>(table: &[(&'static str, T)], word: &str) -> Result<T, BadWord> {
    let found = table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    found.ok_or_else(|| BadWord { word: word.to_owned(), known: table.iter().map(|(name, _)| *name).collect() })
}

impl FromStr for Autonomy {
    type Err = BadWord;
    fn from_str(word: &str) -> Result<Self, BadWord> {
        let table =
            [("conservative", Self::Conservative), ("standard", Self::Standard), ("autonomous", Self::Autonomous)];
        find(&table, word)
    }
}

impl FromStr for Level {
    type Err = BadWord;
    fn from_str(word: &str) -> Result<Self, BadWord> {
        let table = [
            ("hitl", Self::Hitl),
            ("supervised", Self::Supervised),
            ("autonomous", Self::Autonomous),
            ("yolo", Self::Yolo),
        ];
        find(&table, word)
    }
}

fn parsed<T: FromStr<Err = BadWord>>(said: &Text) -> Result<T, ConfigError> {
    said.as_str().parse().map_err(|bad: BadWord| ConfigError::unknown_value(said.spot.clone(), bad.word, bad.known))
}

fn dialect(said: &Text) -> Result<Dialect, ConfigError> {
    Dialect::parse(said.as_str()).ok_or_else(|| {
        ConfigError::unknown_value(said.spot.clone(), said.value.clone(), Dialect::ALL.map(Dialect::name).to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, value: &str) -> Result<Choices, String> {
        Choices::from_lookup(|asked| (asked == name).then(|| value.into())).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_read_and_bad_words_name_the_variable() {
        assert_eq!(read("HAFT_LEVEL", "yolo").unwrap().level, Some(Level::Yolo));
        assert_eq!(read("HAFT_LEVEL", "").unwrap().level, None);
        assert_eq!(
            read("HAFT_LEVEL", "supervise").unwrap_err(),
            "HAFT_LEVEL: unknown value `supervise`: did you mean `supervised`?"
        );
        assert_eq!(
            read("HAFT_DIALECT", "flin").unwrap_err(),
            "HAFT_DIALECT: unknown value `flin`: did you mean `flynn`?"
        );
    }
}
