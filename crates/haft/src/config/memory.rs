//! What memory goes by, as the configuration says it.

use super::error::ConfigError;
use super::media::Model;
use super::merge::nearer;
use super::placed::Spot;
use haft_runtime::memory::{Embeddings, MemorySettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What agents know, and how it is found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Where meaning comes from: `table` (the word vectors that `haft memory setup` fetches), `none`, or a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<Meaning>,
    /// The most that all documents together may have, in bytes (default 256 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_total_bytes: Option<u64>,
}

/// Where meaning comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Meaning {
    /// A word for it.
    Word(MeaningWord),
    /// A model behind an OpenAI-compatible address; Ollama has one, too.
    Model(Model),
}

/// Where meaning comes from, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MeaningWord {
    /// The table of word vectors.
    Table,
    /// Nowhere: words alone count.
    None,
}

impl Memory {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { embeddings, max_total_bytes } = layer;
        nearer(&mut self.embeddings, embeddings);
        nearer(&mut self.max_total_bytes, max_total_bytes);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        if let Some(Meaning::Model(model)) = &mut self.embeddings {
            model.each_spot(visit);
        }
    }

    /// What the runtime is told.
    pub(super) fn wanted(&self) -> Result<MemorySettings, ConfigError> {
        let usual = MemorySettings::default();
        let embeddings = match &self.embeddings {
            None | Some(Meaning::Word(MeaningWord::Table)) => Embeddings::Table,
            Some(Meaning::Word(MeaningWord::None)) => Embeddings::Off,
            Some(Meaning::Model(model)) => Embeddings::Endpoint(model.wanted()?),
        };
        let most =
            self.max_total_bytes.map_or(usual.max_total_bytes, |most| usize::try_from(most).unwrap_or(usize::MAX));
        Ok(MemorySettings { embeddings, max_total_bytes: most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(yaml: &str) -> Result<MemorySettings, String> {
        let config = super::super::parse(yaml.as_bytes(), &"config.yml".into()).map_err(|error| error.to_string())?;
        config.memory.wanted().map_err(|error| error.to_string())
    }

    #[test]
    fn meaning_comes_from_a_table_a_model_or_nowhere() {
        assert_eq!(said("{}").unwrap(), MemorySettings::default());
        assert_eq!(said("memory: {embeddings: none}").unwrap().embeddings, Embeddings::Off);
        let model =
            said("memory: {embeddings: {url: \"http://127.0.0.1:11434/v1\", model: m}, max_total_bytes: 5}").unwrap();
        assert!(matches!(model.embeddings, Embeddings::Endpoint(_)) && model.max_total_bytes == 5);
        for bad in
            ["memory: {embeddings: some}", "memory: {embeddings: {url: \"ftp://a\", model: m}}", "memory: {x: 1}"]
        {
            assert!(said(bad).is_err(), "{bad}");
        }
    }
}
