//! Tool names: the canonical dotted form, and the form that model providers accept.

use crate::record::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The longest name that every provider accepts.
const API_NAME_MAX: usize = 64;
/// The longest canonical name.
const NAME_MAX: usize = 200;

/// A canonical tool name: `family.verb`, `mcp:server:tool`, or a manifest's plain name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(Arc<str>);

/// Why a string is not a tool name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tool name: use letters, digits and . _ - : (at most {NAME_MAX}), starting with a letter")]
pub struct BadName(String);

impl ToolName {
    /// Accepts a well-formed name.
    pub fn new(name: &str) -> Result<Self, BadName> {
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let body_ok = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':'));
        if starts_well && body_ok && name.len() <= NAME_MAX {
            Ok(Self(name.into()))
        } else {
            Err(BadName(crate::preview::inert(name)))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first word of a dotted name, or the whole of a plain one.
    pub fn family(&self) -> &str {
        self.0.split(['.', ':']).next().unwrap_or(&self.0)
    }

    /// The name as providers take it (`^[a-zA-Z0-9_-]{1,64}$`): dots become underscores, colons two of
    /// them, and a name too long is cut and given a hash of the whole so that it stays stable and distinct.
    pub fn api_name(&self) -> String {
        let spoken = self.0.replace(':', "__").replace('.', "_");
        if spoken.len() <= API_NAME_MAX {
            return spoken;
        }
        let digest = Digest::of(self.0.as_bytes()).to_string();
        let tail = &digest[..8];
        format!("{}_{tail}", &spoken[..API_NAME_MAX - tail.len() - 1])
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ToolName {
    type Error = BadName;
    fn try_from(name: String) -> Result<Self, BadName> {
        Self::new(&name)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ToolName {
        ToolName::new(text).unwrap()
    }

    #[test]
    fn providers_hear_underscores() {
        assert_eq!(name("file.read").api_name(), "file_read");
        assert_eq!(name("mcp:github:list_issues").api_name(), "mcp__github__list_issues");
    }

    #[test]
    fn a_long_name_is_shortened_stably_and_distinctly() {
        let (a, b) = (name(&format!("mcp:{}:a", "s".repeat(80))), name(&format!("mcp:{}:b", "s".repeat(80))));
        assert_eq!(a.api_name().len(), 64);
        assert_eq!(a.api_name(), a.api_name());
        assert_ne!(a.api_name(), b.api_name());
    }

    #[test]
    fn names_are_checked_on_the_way_in() {
        for bad in ["", "9lives", "file read", "a/b", "file.read\u{202e}"] {
            assert!(ToolName::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(name("file.read").family(), "file");
        assert_eq!(name("mcp:a:b").family(), "mcp");
    }
}
