//! What can be wrong with a configuration. Every error says where, and most say how to mend it.

use super::placed::Spot;
use haft_core::approval::BadList;
use haft_core::suggest::did_you_mean;
use std::path::PathBuf;

/// A configuration that cannot be used. For a command line this is bad usage (exit code 2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There is nowhere to look.
    #[error("HOME is not set, so there is no place for {what}")]
    NoHome {
        /// What has no place.
        what: &'static str,
        /// The variable that would do instead.
        instead: &'static str,
    },
    /// The file is there and cannot be read.
    #[error("{file}: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system says.
        why: String,
    },
    /// The file is larger than any configuration needs to be.
    #[error("{file}: larger than {limit} bytes, which is the most a configuration may have")]
    TooLarge {
        /// The file.
        file: String,
        /// The limit.
        limit: usize,
    },
    /// A key that does not exist.
    #[error("{spot}: unknown key `{key}`{}", colon(suggestion.as_deref()))]
    UnknownKey {
        /// Where.
        spot: Spot,
        /// The key.
        key: String,
        /// What was probably meant.
        suggestion: Option<String>,
        /// The keys that exist there.
        known: Vec<&'static str>,
    },
    /// A word where only certain words are possible.
    #[error("{spot}: unknown value `{word}`{}", colon(suggestion.as_deref()))]
    UnknownValue {
        /// Where.
        spot: Spot,
        /// The word.
        word: String,
        /// What was probably meant.
        suggestion: Option<String>,
        /// The words that are possible.
        known: Vec<&'static str>,
    },
    /// It is not YAML, or not of the shape that is expected there.
    #[error("{spot}: {why}")]
    Malformed {
        /// Where.
        spot: Spot,
        /// What is wrong.
        why: String,
    },
    /// A list names something that does not exist, or is not a pattern.
    #[error("{spot}: {source}")]
    Name {
        /// Where.
        spot: Spot,
        /// What is wrong.
        source: BadList,
    },
    /// A profile that does not exist.
    #[error("{spot}: there is no profile `{name}`{}", colon(suggestion.as_deref()))]
    Profile {
        /// Where.
        spot: Spot,
        /// What was asked for.
        name: String,
        /// What was probably meant.
        suggestion: Option<String>,
        /// What there is.
        known: Vec<String>,
    },
    /// A kind of store that this build cannot open.
    #[error("{spot}: haft knows files and PostgreSQL servers, and not {what}")]
    Store {
        /// Where.
        spot: Spot,
        /// What was asked for.
        what: String,
        /// The file that is used when nothing is said.
        default: PathBuf,
    },
}

impl ConfigError {
    /// A value that cannot be used.
    pub(super) fn malformed(spot: &Spot, why: impl Into<String>) -> Self {
        Self::Malformed { spot: spot.clone(), why: why.into() }
    }

    /// A key that does not exist, with the nearest that does.
    pub(super) fn unknown_key(spot: Spot, key: String, known: Vec<&'static str>) -> Self {
        let suggestion = did_you_mean(&key, known.iter().copied());
        Self::UnknownKey { spot, key, suggestion, known }
    }

    /// A word that is not possible, with the nearest that is.
    pub(super) fn unknown_value(spot: Spot, word: String, known: Vec<&'static str>) -> Self {
        let suggestion = did_you_mean(&word, known.iter().copied());
        Self::UnknownValue { spot, word, suggestion, known }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoHome { instead, .. } => Some(format!("set HOME, or {instead} to an absolute path")),
            Self::UnknownKey { known, .. } => Some(format!("known here: {}", known.join(", "))),
            Self::UnknownValue { known, .. } => Some(format!("one of: {}", known.join(", "))),
            Self::Profile { known, .. } => Some(format!("profiles: {}", known.join(", "))),
            Self::Name { source: BadList::Tool { .. }, .. } => Some("`haft tools` lists all tools".to_owned()),
            Self::Store { default, .. } => {
                Some(format!("give a path, a postgres:// address, or nothing at all for {}", default.to_string_lossy()))
            }
            Self::Name { .. } | Self::Unreadable { .. } | Self::TooLarge { .. } | Self::Malformed { .. } => None,
        }
    }
}

/// Appends a suggestion to a sentence.
fn colon(suggestion: Option<&str>) -> String {
    suggestion.map(|text| format!(": {text}")).unwrap_or_default()
}
