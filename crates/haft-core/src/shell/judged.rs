//! What is known of a command before it runs.

use super::entry::Tracked;
use super::executed::ExecutedTarget;
use super::word::Word;
use crate::shape::Keep;
use serde::{Deserialize, Serialize};

/// What kind of thing a command does. Ordered from what matters least to what may do anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// It says or tests something, and does not count beside others.
    Neutral,
    /// It looks for something.
    Search,
    /// It reads.
    Read,
    /// It lists.
    List,
    /// It changes files and prints nothing.
    Silent,
    /// It writes.
    Write,
    /// It may do anything.
    General,
}

impl Class {
    /// Whether a command of this class only looks.
    pub fn looks(self) -> bool {
        self < Self::Silent
    }

    /// The class of two commands together: the first that counts among those that look, else the weaker.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Neutral, other) => other,
            (one, other) if one.looks() && other.looks() => one,
            (one, other) => one.max(other),
        }
    }

    /// Which part of a long output matters, where that is not both ends: of what is searched or listed, the
    /// beginning; what comes last is as good as what is left out.
    pub const fn keep(self) -> Option<Keep> {
        match self {
            Self::Search | Self::List => Some(Keep::Head),
            _ => None,
        }
    }

    /// What a command of this class does, to finish the sentence "it …".
    pub const fn does(self) -> &'static str {
        match self {
            Self::Neutral => "says or tests something",
            Self::Search => "searches",
            Self::Read => "reads",
            Self::List => "lists",
            Self::Silent => "changes files",
            Self::Write => "writes",
            Self::General => "may do anything",
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::Search => "search",
            Self::Read => "read",
            Self::List => "list",
            Self::Silent => "silent",
            Self::Write => "write",
            Self::General => "general",
        }
    }
}

/// What a doubt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Harm {
    /// It writes, or changes something else that stays.
    Writes,
    /// It runs something.
    Runs,
    /// It sends or fetches.
    Sends,
    /// It is not known what it does.
    Unknown,
}

/// What of a command a doubt comes from. Rules go by it: most of this no rule can speak for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cause {
    /// What the program is for, or that it is not in the table.
    Nature,
    /// Its subcommand, which is not in the table.
    Subcommand,
    /// This option: what it does, or that it is not in the table.
    Option(String),
    /// It runs a command elsewhere, or as somebody else.
    Elsewhere,
    /// It runs something that is not known before.
    Code,
    /// A variable that it is given.
    Variable,
    /// A redirection.
    Redirect,
    /// It belongs to no single command.
    Line,
    /// Anything else: a word that is not known, a script in a language of its own.
    #[default]
    Other,
}

/// Why a command is not known to only read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// What it is about.
    pub harm: Harm,
    /// The reason, as half a sentence.
    pub why: String,
    /// What it comes from.
    #[serde(skip)]
    pub cause: Cause,
}

impl Doubt {
    /// A doubt that no rule can speak for.
    pub(super) fn new(harm: Harm, why: impl Into<String>) -> Self {
        Self { harm, why: why.into(), cause: Cause::Other }
    }

    /// The same, from somewhere else.
    #[must_use]
    pub(super) fn by(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }
}

/// A path that a command reads or writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// This one.
    Path(String),
    /// Those that match, in a directory that is known.
    Glob(String),
}

impl Target {
    /// As it was said: absolute, or relative to where the call starts.
    pub fn text(&self) -> &str {
        match self {
            Self::Path(text) | Self::Glob(text) => text,
        }
    }
}

/// Directories that a command reads the files of, however deep they lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subtree {
    /// Where it begins. It need not be a directory.
    pub top: Target,
    /// Whether hidden and ignored files are left out, as ripgrep does by itself.
    pub visible_only: bool,
}

/// The tracked files of a repository, as far as a command prints them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedFiles {
    /// A directory in the repository.
    pub dir: String,
    /// Which of them.
    pub which: Tracked,
}

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flow {
    /// Reads a file.
    Reads,
    /// Writes, appends to, or makes a file.
    Writes,
    /// Does both.
    Both,
    /// Joins or closes descriptors.
    Joins,
    /// Gives text.
    Gives,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// The descriptor, where one is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fd: Option<i32>,
    /// What it does.
    pub flow: Flow,
    /// From or to where, for those that name a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Word>,
    /// Whether the target is known before it runs.
    pub fixed: bool,
}

/// How an option of a command matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Used {
    /// As it was written, without its value.
    pub name: String,
    /// Its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Word>,
    /// The harm that it does beyond what its program is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harm: Option<Harm>,
}

/// Where a command stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Through what it is reached: wrappers and substitutions, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<String>,
    /// Which member of its pipeline it is, from 1, and of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<(usize, usize)>,
    /// Whether nobody waits for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

impl Standing {
    /// Where something stands that is reached through this.
    pub(super) fn through(&self, what: impl Into<String>) -> Self {
        let mut through = self.through.clone();
        through.push(what.into());
        Self { through, pipeline: None, background: self.background }
    }

    /// The same, where perhaps nobody waits.
    pub(super) fn in_background(&self, background: bool) -> Self {
        Self { background: self.background || background, ..self.clone() }
    }
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    /// The program's real name; none if it is not known before it runs.
    pub name: Option<String>,
    /// Its subcommand, for programs that have some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subcommand: Vec<String>,
    /// The words after the program.
    pub args: Vec<Word>,
    /// Variables that it gets, and their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assignments: Vec<(String, Word)>,
    /// Its redirections.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<Redirect>,
    /// Where it stands.
    #[serde(flatten)]
    pub standing: Standing,
    /// What kind of thing it does.
    pub class: Class,
    /// Whether it only runs another command that is listed as well, as that would run by itself.
    pub wrapper: bool,
    /// What its program is for by the table, whatever its options and redirections add; none if the table
    /// does not know it, so that its words were not read.
    #[serde(skip)]
    pub nature: Option<Class>,
    /// Its options as far as they were understood.
    #[serde(skip)]
    pub options: Vec<Used>,
    /// Its operands.
    #[serde(skip)]
    pub operands: Vec<Word>,
    /// Why it is not known to only read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
}

/// Why a command cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct Unreadable {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong there.
    pub why: String,
}

/// What is known of a command line before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// What kind of thing it does, as a whole.
    pub class: Class,
    /// Every simple command in it.
    pub commands: Vec<Command>,
    /// What it reads.
    #[serde(skip)]
    pub reads: Vec<Target>,
    /// What it writes.
    #[serde(skip)]
    pub writes: Vec<Target>,
    /// Why it is not known to only read. None: it provably does.
    pub doubts: Vec<Doubt>,
    /// Why it must never run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catastrophe: Option<String>,
    /// Directories whose git configuration decides what it runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// Why it could not be parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Unreadable>,
    /// Directories of which the files below may be read as well, as far as the targets are directories.
    #[serde(skip)]
    pub subtrees: Vec<Subtree>,
    /// Repositories of which tracked files may be printed.
    #[serde(skip)]
    pub tracked: Vec<TrackedFiles>,
    /// Whether it follows links out of what it names.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub follows: bool,
    /// A program in it that wants a person at a terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive: Option<String>,
    /// Files whose content decides what it does.
    #[serde(skip)]
    pub executed: Vec<ExecutedTarget>,
    /// What it runs as well and is not known to be a file.
    #[serde(skip)]
    pub unbound: Vec<String>,
}

impl Judged {
    /// Whether it provably only reads, wherever that is.
    pub fn only_reads(&self) -> bool {
        self.doubts.is_empty() && self.error.is_none() && self.catastrophe.is_none() && self.class.looks()
    }
}
