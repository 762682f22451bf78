//! The browser that browser tools drive, as the configuration says it.

use super::error::ConfigError;
use super::placed::Spot;
use haft_runtime::browser::BrowserSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The browser that browser tools drive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Browser {}

impl Browser {
    pub(super) fn add(&mut self, layer: Self) {
        let Self {} = layer;
    }

    pub(super) fn each_spot(&mut self, _: &mut dyn FnMut(&mut Spot)) {}

    /// What the runtime is told.
    pub(super) fn wanted(&self) -> Result<BrowserSettings, ConfigError> {
        Ok(BrowserSettings::default())
    }
}
