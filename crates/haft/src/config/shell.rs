//! How commands are run in a shell, as the configuration says it.

use super::error::ConfigError;
use super::merge::nearer;
use super::placed::{Spot, Text};
use haft_runtime::confined::{SHELLS, Shell as Wanted};
use haft_runtime::output::Order;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// How commands are run in a shell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shell {
    /// The shell: `bash`, `sh`, `dash`, `ash`, `zsh`, `ksh`, `mksh`, or an absolute path. Absent: bash, or sh where
    /// there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Text>,
    /// How long a main agent waits for a command before it goes on in the background; 0 is for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_after_ms: Option<u64>,
    /// In which order what a command prints is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Printed>,
}

/// In which order what a command prints is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Printed {
    /// Line by line, as they came; those of stderr are marked.
    Interleaved,
    /// First stdout, then stderr.
    Separate,
}

impl Shell {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { program, background_after_ms, output } = layer;
        nearer(&mut self.program, program);
        nearer(&mut self.background_after_ms, background_after_ms);
        nearer(&mut self.output, output);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        self.program.iter_mut().for_each(|text| visit(&mut text.spot));
    }

    /// What the runtime is told.
    pub(super) fn wanted(&self) -> Result<Wanted, ConfigError> {
        let usual = Wanted::default();
        Ok(Wanted {
            program: self.program.as_ref().map(program).transpose()?,
            background_after: match self.background_after_ms {
                None => usual.background_after,
                Some(0) => None,
                Some(ms) => Some(Duration::from_millis(ms)),
            },
            order: match self.output {
                None => usual.order,
                Some(Printed::Interleaved) => Order::Interleaved,
                Some(Printed::Separate) => Order::Separate,
            },
        })
    }
}

fn program(text: &Text) -> Result<PathBuf, ConfigError> {
    let known = SHELLS.contains(&text.as_str()) || text.as_str().starts_with('/');
    if known {
        return Ok(PathBuf::from(text.as_str()));
    }
    let why = format!("`{}` is no shell that haft knows; name one of {}, or a path", text.value, SHELLS.join(", "));
    Err(ConfigError::malformed(&text.spot, why))
}
