//! Patterns over tool names: exact names, globs (`file.*`) and groups (`group:fs`).

use crate::name::ToolName;
use crate::tool::{Effect, ToolSpec};
use globset::{Glob, GlobMatcher};
use std::fmt;

/// Which families each group holds. A family is in at most one group.
const GROUPS: &[(&str, &[&str])] = &[
    ("fs", &["file"]),
    ("runtime", &["shell", "process"]),
    ("web", &["web", "browser", "api"]),
    ("memory", &["memory"]),
    ("work", &["task", "pipeline"]),
    ("agents", &["agent", "user"]),
    ("tools", &["tool"]),
    ("media", &["media", "image", "audio"]),
    ("google", &["google"]),
];

/// The group of what runs programs.
const RUNTIME: &str = "group:runtime";

/// The names of all groups.
pub fn group_names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(name, _)| *name)
}

/// The longest glob that is compiled, and the deepest nesting of its braces. A glob becomes a regular
/// expression by recursion; one without bounds could take the process down.
const GLOB_MAX: usize = 4096;
const BRACES_MAX: usize = 8;

/// Whether a glob is small enough to be compiled safely. Ask before handing one to any glob library.
pub fn glob_is_sane(glob: &str) -> bool {
    let mut depth = 0_usize;
    let deepest = glob.bytes().fold(0, |deepest, byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest.max(depth)
    });
    glob.len() <= GLOB_MAX && deepest <= BRACES_MAX
}

/// A set of tools, written as a person would.
#[derive(Debug, Clone)]
pub struct ToolPattern {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Group(&'static [&'static str]),
    Glob(GlobMatcher),
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// The group does not exist.
    #[error("there is no group `{name}`; the groups are {known}")]
    Group {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The glob is malformed.
    #[error("`{text}` is not a pattern for tool names: {why}")]
    Glob {
        /// The pattern.
        text: String,
        /// The glob parser's complaint.
        why: String,
    },
}

impl ToolPattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        let kind = match text.strip_prefix("group:") {
            Some(group) => Kind::Group(families(group)?),
            None if !glob_is_sane(text) => {
                let why = "it is too long or nests too deeply".to_owned();
                return Err(BadPattern::Glob { text: crate::preview::cut(text, 40), why });
            }
            None => Kind::Glob(
                Glob::new(text)
                    .map_err(|error| BadPattern::Glob { text: text.to_owned(), why: error.kind().to_string() })?
                    .compile_matcher(),
            ),
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// Whether the tool is in the set.
    pub fn matches(&self, tool: &ToolName) -> bool {
        match &self.kind {
            Kind::Group(families) => families.contains(&tool.family()),
            Kind::Glob(glob) => glob.is_match(tool.as_str()),
        }
    }

    /// Whether the tool is in the set, where more is known of it than its name: whatever runs programs is in the group of
    /// those that do, whoever made it. What is kept from somebody is kept by this.
    pub fn holds(&self, tool: &ToolSpec) -> bool {
        let programs = self.text == RUNTIME && tool.effects.effect == Effect::Runs;
        programs || self.matches(&tool.name)
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it names one tool exactly, with nothing left open.
    pub fn is_literal(&self) -> bool {
        matches!(self.kind, Kind::Glob(_)) && !self.text.contains(['*', '?', '[', '{'])
    }
}

fn families(group: &str) -> Result<&'static [&'static str], BadPattern> {
    GROUPS.iter().find(|(name, _)| *name == group).map(|(_, families)| *families).ok_or_else(|| BadPattern::Group {
        name: group.to_owned(),
        known: group_names().collect::<Vec<_>>().join(", "),
    })
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The first pattern in a list that holds the tool.
pub fn first_match<'p>(patterns: &'p [ToolPattern], tool: &ToolName) -> Option<&'p ToolPattern> {
    patterns.iter().find(|pattern| pattern.matches(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(pattern: &str, tool: &str) -> bool {
        ToolPattern::new(pattern).unwrap().matches(&ToolName::new(tool).unwrap())
    }

    #[test]
    fn names_globs_and_groups() {
        assert!(holds("file.read", "file.read"));
        assert!(holds("file.*", "file.read"));
        assert!(holds("*", "mcp:x:y"));
        assert!(holds("group:fs", "file.read"));
        assert!(!holds("group:runtime", "file.read"));
        assert!(!holds("file.r", "file.read"));
    }

    #[test]
    fn unknown_groups_are_named_with_what_there_is() {
        let error = ToolPattern::new("group:file").unwrap_err().to_string();
        assert!(error.starts_with("there is no group `file`; the groups are fs, runtime"), "{error}");
    }
}
