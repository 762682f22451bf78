//! Who searches the web, as the configuration says it.

use super::error::ConfigError;
use super::placed::Spot;
use haft_runtime::tools::web::search::SearchSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who searches the web.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Search {}

impl Search {
    pub(super) fn add(&mut self, layer: Self) {
        let Self {} = layer;
    }

    pub(super) fn each_spot(&mut self, _: &mut dyn FnMut(&mut Spot)) {}

    /// What the runtime is told.
    pub(super) fn wanted(&self) -> Result<SearchSettings, ConfigError> {
        Ok(SearchSettings::default())
    }
}
