//! Names of namespaces: `user`, `sessions/abc`.

use serde::{Deserialize, Serialize};
use std::fmt;

const NAME_MAX: usize = 200;
const PARTS_MAX: usize = 8;

/// The name of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Namespace(String);

/// Why a name is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no name of a namespace: {why}", crate::preview::cut(&crate::preview::inert(.name), 80))]
pub struct BadNamespace {
    /// What was given.
    pub name: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Namespace {
    /// Parts of letters, digits, `-`, `_` and `.`, with `/` between them.
    pub fn new(name: &str) -> Result<Self, BadNamespace> {
        let wrong = if name.is_empty() {
            Some("it is empty")
        } else if name.len() > NAME_MAX {
            Some("it is longer than 200 bytes")
        } else if name.split('/').count() > PARTS_MAX {
            Some("it has more than 8 parts")
        } else {
            name.split('/').find_map(flaw)
        };
        wrong.map_or_else(|| Ok(Self(name.to_owned())), |why| Err(BadNamespace { name: name.to_owned(), why }))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn flaw(part: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if part.is_empty() {
        Some("a part of it is empty")
    } else if part.starts_with('.') {
        Some("a part of it begins with a dot")
    } else if !part.chars().all(plain) {
        Some("a part may have letters, digits, `-`, `_` and `.`")
    } else {
        None
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Namespace {
    type Error = BadNamespace;

    fn try_from(name: String) -> Result<Self, BadNamespace> {
        Self::new(&name)
    }
}

impl From<Namespace> for String {
    fn from(namespace: Namespace) -> Self {
        namespace.0
    }
}

/// Which namespaces are meant: one, or with `sessions/*` all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// This one.
    One(Namespace),
    /// Those below.
    Below(Namespace),
}

impl Scope {
    /// Reads `user` or `sessions/*`.
    pub fn read(text: &str) -> Result<Self, BadNamespace> {
        match text.strip_suffix("/*") {
            Some(above) => Namespace::new(above).map(Self::Below),
            None => Namespace::new(text).map(Self::One),
        }
    }

    /// Whether a namespace is meant.
    pub fn covers(&self, name: &str) -> bool {
        match self {
            Self::One(namespace) => namespace.as_str() == name,
            Self::Below(above) => name.strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_names() {
        for good in ["user", "sessions/abc", "project-state", "a.b_c/1", "größe", "記憶"] {
            assert_eq!(Namespace::new(good).unwrap().as_str(), good);
        }
        let long = "a".repeat(201);
        for bad in
            ["", "/", "a//b", "a/", "..", "a/../b", ".hidden", "a\0b", "a b", "a\nb", "a*", &long, "a/a/a/a/a/a/a/a/a"]
        {
            assert!(Namespace::new(bad).is_err(), "{bad:?}");
        }
        let error = Namespace::new("x\u{1b}[31m/../y").unwrap_err().to_string();
        assert!(!error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn a_scope_is_one_or_all_below() {
        let below = Scope::read("sessions/*").unwrap();
        assert!(below.covers("sessions/abc") && below.covers("sessions/a/b"));
        assert!(!below.covers("sessions") && !below.covers("sessionsx/abc"));
        assert!(Scope::read("user").unwrap().covers("user"));
        assert!(Scope::read("*").is_err() && Scope::read("../*").is_err());
    }
}
