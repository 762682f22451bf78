//! Who looks at pictures and listens to sounds, as the configuration says it.

use super::error::ConfigError;
use super::placed::Spot;
use haft_runtime::media::MediaSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who looks at pictures and listens to sounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Media {}

impl Media {
    pub(super) fn add(&mut self, layer: Self) {
        let Self {} = layer;
    }

    pub(super) fn each_spot(&mut self, _: &mut dyn FnMut(&mut Spot)) {}

    /// What the runtime is told.
    pub(super) fn wanted(&self) -> Result<MediaSettings, ConfigError> {
        Ok(MediaSettings::default())
    }
}
