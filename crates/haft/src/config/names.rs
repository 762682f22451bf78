//! Names of tools in lists, checked against the tools that exist.

use super::error::ConfigError;
use super::placed::Text;
use haft_core::ToolName;
use haft_core::approval::List;
use haft_core::pattern::ToolPattern;
use std::collections::BTreeMap;

/// The tools that exist, and what was noticed while names were read.
pub(super) struct Names<'k> {
    /// The tools that exist.
    pub(super) known: &'k [ToolName],
    /// Names that may be mistakes.
    pub(super) warnings: Vec<String>,
}

impl<'k> Names<'k> {
    /// Nothing noticed yet.
    pub(super) fn new(known: &'k [ToolName]) -> Self {
        Self { known, warnings: Vec::new() }
    }

    /// Reads patterns.
    pub(super) fn patterns(&mut self, texts: &[Text]) -> Result<Vec<ToolPattern>, ConfigError> {
        texts.iter().map(|text| self.pattern(text)).collect()
    }

    /// Reads a pattern. A name that is nearly a tool's is an error: a deny with a typing mistake denies nothing.
    pub(super) fn pattern(&mut self, text: &Text) -> Result<ToolPattern, ConfigError> {
        let spot = &text.spot;
        if text.value.is_empty() {
            return Err(ConfigError::malformed(spot, "expected the name of a tool, found empty text"));
        }
        if text.value.starts_with('$') {
            let why = format!("`{}` is a preset, which only `approval.auto_approve` can hold", text.value);
            return Err(ConfigError::malformed(spot, why));
        }
        let bad = |source| ConfigError::Name { spot: spot.clone(), source };
        List::open(std::slice::from_ref(&text.value), &[], &BTreeMap::new(), self.known).map_err(bad)?;
        let pattern = ToolPattern::new(&text.value).map_err(|error| bad(error.into()))?;
        self.note_stray(text, &pattern);
        Ok(pattern)
    }

    /// A name without a dot may be a tool that comes later, or a family somebody meant.
    fn note_stray(&mut self, text: &Text, pattern: &ToolPattern) {
        let Text { value: name, spot } = text;
        let stray = pattern.is_literal() && !name.contains(':') && !self.known.iter().any(|tool| pattern.matches(tool));
        let family = if name.contains('.') { String::new() } else { format!("; a whole family is `{name}.*`") };
        let warning = format!("{spot}: no tool is named `{name}` in this version{family}");
        // A list may be read twice: once where it is written, once where it is used.
        if stray && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
