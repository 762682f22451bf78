//! The browser that browser tools drive, as the configuration says it.

use super::error::ConfigError;
use super::merge::nearer;
use super::placed::{Spot, Text};
use super::web::services;
use haft_core::host::{HostRule, HostRules};
use haft_runtime::browser::BrowserSettings;
use haft_runtime::web::WebSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The sides of a window that make sense.
const SIDES: std::ops::RangeInclusive<u32> = 100..=4000;
/// How many browsers make sense.
const MOST: std::ops::RangeInclusive<usize> = 1..=32;

/// The browser that browser tools drive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Browser {
    /// The program: a name on the PATH, or a full path. Without it Chromium or Chrome is looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Text>,
    /// How many seconds a browser that nobody uses stays open (default 300).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u32>,
    /// How many browsers there may be at once (default 4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<usize>,
    /// The size of a page's window (default 1280 by 800).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub viewport: Option<Viewport>,
    /// The largest download in bytes (default 100 MiB).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub download_bytes: Option<u64>,
    /// Services of `web.allow_private` that every page may reach, and not their own pages alone: `host:port`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_private: Vec<Text>,
}

/// The size of a page's window, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Viewport {
    /// Its width.
    pub width: u32,
    /// Its height.
    pub height: u32,
}

impl Browser {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { program, idle_seconds, max, viewport, download_bytes, allow_private } = layer;
        nearer(&mut self.program, program);
        nearer(&mut self.idle_seconds, idle_seconds);
        nearer(&mut self.max, max);
        nearer(&mut self.viewport, viewport);
        nearer(&mut self.download_bytes, download_bytes);
        self.allow_private.extend(allow_private);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        if let Some(program) = &mut self.program {
            visit(&mut program.spot);
        }
        for text in &mut self.allow_private {
            visit(&mut text.spot);
        }
    }

    /// What the runtime is told. A window or a number that makes no sense is brought to the nearest that does.
    pub(super) fn wanted(&self, web: &WebSettings) -> Result<BrowserSettings, ConfigError> {
        let usual = BrowserSettings::default();
        if let Some(program) = self.program.as_ref().filter(|program| program.value.trim().is_empty()) {
            return Err(ConfigError::malformed(
                &program.spot,
                "`browser.program` names nothing; leave it out".to_owned(),
            ));
        }
        let side = |side: u32| side.clamp(*SIDES.start(), *SIDES.end());
        Ok(BrowserSettings {
            program: self.program.as_ref().map(|program| program.value.clone()),
            idle: self.idle_seconds.map_or(usual.idle, |seconds| Duration::from_secs(seconds.max(1).into())),
            most: self.max.map_or(usual.most, |max| max.clamp(*MOST.start(), *MOST.end())),
            viewport: self.viewport.map_or(usual.viewport, |view| (side(view.width), side(view.height))),
            download_bytes: self.download_bytes.unwrap_or(usual.download_bytes),
            allow_private: self.open(web)?,
        })
    }

    /// What is open to every page has to be open at all.
    fn open(&self, web: &WebSettings) -> Result<HostRules, ConfigError> {
        let rules = services(&self.allow_private)?;
        let known = |rule: &HostRule| web.allow_private.iter().any(|known| known == rule);
        let unknown = rules.iter().zip(&self.allow_private).find(|(rule, _)| !known(rule));
        match unknown {
            Some((_, text)) => {
                let why = format!("`{}` is not in `web.allow_private`, so no page reaches it", text.value);
                Err(ConfigError::malformed(&text.spot, why))
            }
            None => Ok(rules),
        }
    }
}
