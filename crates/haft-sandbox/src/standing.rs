//! What is in force, said honestly: per mechanism what this machine offers, per permission by what it is
//! enforced and where the gap is.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// How much of a confinement this machine can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Nothing.
    #[serde(rename = "none")]
    None,
    /// Landlock and seccomp, without namespaces.
    #[serde(rename = "landlock+seccomp")]
    Flat,
    /// Namespaces and seccomp, with Landlock as a second wall where the kernel has it.
    #[serde(rename = "full")]
    Full,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Flat => "landlock+seccomp",
            Self::Full => "full",
        })
    }
}

/// One thing that the kernel may or may not offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mechanism {
    /// What it is called.
    pub name: Cow<'static, str>,
    /// Whether it works here, found out by using it.
    pub works: bool,
    /// Its version, or why it does not work.
    pub found: String,
    /// What would make it work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Cow<'static, str>>,
}

/// What this machine offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The level that follows.
    pub level: Level,
    /// Whether writes can go to a copy-on-write view.
    pub layers: bool,
    /// The Landlock ABI; zero without it.
    pub landlock: u32,
    /// Each mechanism.
    pub mechanisms: Vec<Mechanism>,
}

impl Machine {
    /// A machine that enforces nothing.
    pub fn bare(why: impl Into<String>) -> Self {
        let found = Mechanism { name: "confinement".into(), works: false, found: why.into(), fix: None };
        Self { level: Level::None, layers: false, landlock: 0, mechanisms: vec![found] }
    }
}

/// How a permission is enforced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "held")]
pub enum Held {
    /// By these mechanisms, without a known gap.
    Enforced {
        /// Which.
        by: String,
    },
    /// By these, except for this.
    Partial {
        /// Which.
        by: String,
        /// What is not covered.
        gap: String,
    },
    /// Not at all.
    NotEnforced {
        /// Why.
        why: String,
    },
}

impl Held {
    pub(crate) fn enforced(by: impl Into<String>) -> Self {
        Self::Enforced { by: by.into() }
    }

    pub(crate) fn partial(by: impl Into<String>, gap: impl Into<String>) -> Self {
        Self::Partial { by: by.into(), gap: gap.into() }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enforced { by } => write!(f, "enforced ({by})"),
            Self::Partial { by, gap } => write!(f, "partial ({by}; {gap})"),
            Self::NotEnforced { why } => write!(f, "not enforced ({why})"),
        }
    }
}

/// What a plan enforces, permission by permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The level in force.
    pub level: Level,
    /// Reading.
    pub read: Held,
    /// Writing.
    pub write: Held,
    /// The network.
    pub network: Held,
    /// Environment, memory and descriptors of others.
    pub secrets: Held,
    /// Memory, processes, time, disk.
    pub limits: Held,
}

impl Standing {
    /// Nothing is enforced.
    pub fn bare(why: &str) -> Self {
        let not = || Held::NotEnforced { why: why.to_owned() };
        Self { level: Level::None, read: not(), write: not(), network: not(), secrets: not(), limits: not() }
    }

    /// Each permission by name.
    pub fn each(&self) -> [(&'static str, &Held); 5] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("network", &self.network),
            ("secrets", &self.secrets),
            ("limits", &self.limits),
        ]
    }

    /// Whether the kernel holds every permission, be it with a named gap.
    pub fn holds(&self) -> bool {
        self.each().iter().all(|(_, held)| !matches!(held, Held::NotEnforced { .. }))
    }
}
