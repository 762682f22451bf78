//! Something wrong with a manifest: which rule says so, where, in what words, and how to mend it if a machine can.

use super::fix::Fix;
use serde::Serialize;
use std::fmt;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a look; the tool works.
    Warning,
    /// The tool does not work, or does not do what it says.
    Error,
}

impl Severity {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flaw {
    /// Which rule it breaks.
    pub rule: &'static str,
    /// JSON pointer to what is at fault; empty is the whole.
    pub pointer: String,
    /// Line, from 1; 0 where nothing was written as text.
    pub line: u64,
    /// Column, from 1; 0 where nothing was written as text.
    pub column: u64,
    /// What is wrong, and what to write instead.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
    /// How to mend it, if that is mechanical.
    #[serde(skip)]
    pub fix: Option<Fix>,
}

impl Flaw {
    /// An error.
    pub fn error(rule: &'static str, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let (pointer, message) = (pointer.into(), message.into());
        Self { rule, pointer, line: 0, column: 0, message, severity: Severity::Error, fix: None }
    }

    /// A warning.
    pub fn warning(rule: &'static str, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, pointer, message) }
    }

    /// The same with a way to mend it.
    #[must_use]
    pub fn mended_by(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }

    /// The same at a place.
    #[must_use]
    pub fn at(mut self, (line, column): (u64, u64)) -> Self {
        (self.line, self.column) = (line, column);
        self
    }

    /// Where it is, as people write it: `exec.http.url`, `examples[0].params`.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for part in self.pointer.split('/').skip(1) {
            let part = crate::preview::inert(&part.replace("~1", "/").replace("~0", "~"));
            match part.parse::<usize>() {
                Ok(index) if !path.is_empty() => path.push_str(&format!("[{index}]")),
                _ if path.is_empty() => path.push_str(&part),
                _ => path.push_str(&format!(".{part}")),
            }
        }
        crate::preview::cut(&path, 200)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        let path = self.path();
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// A part of a pointer, with what means something in one escaped.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
