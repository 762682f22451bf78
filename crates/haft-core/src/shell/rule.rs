//! Rules that people write about shell commands: `git log`, `rm -rf`, `docker exec * ls`.
//!
//! A rule is one command, written as words. It is matched against the commands that the judge found in a
//! command line, wherever they stand, never against its text.
//!
//! - The first word is the program: its name, or a glob.
//! - Words that begin with `-` are options, and have to be there in whatever order. `-rf` is `-r -f`;
//!   `--output=build/*` is a glob over the value.
//! - The other words match the subcommand and the operands from the first on. `*` is any one word; more
//!   operands may follow. A `*` or `**` at the end says the same, for those who like to see it.
//!
//! The two stances err to opposite sides. A deny is found through every wrapper, by the last part of a path,
//! by abbreviated options, and if it cannot be ruled out it asks. An allow has to cover every command of a
//! line, and never covers what its words do not name: see [`Rulebook::allows`].

mod book;
mod matching;
mod mention;
mod pattern;
mod suggest;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub use book::{Allowed, Denied, Found, Rulebook, Stated};
pub use suggest::suggest;

use super::judged::Judged;
use pattern::{Item, Pattern};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest rule.
const RULE_MAX: usize = 1024;

/// What a rule says about the commands that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stance {
    /// They run unasked.
    Allow,
    /// They do not run.
    Deny,
}

impl fmt::Display for Stance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        })
    }
}

/// One command, as a rule describes it.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    program: Pattern,
    items: Vec<Item>,
    /// Whether no operand may follow those that it names.
    closed: bool,
}

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRule {
    /// There is nothing in it.
    #[error("it names no command; write one as in `git log`")]
    Empty,
    /// It is longer than any command that somebody means.
    #[error("it is longer than {RULE_MAX} bytes")]
    Long,
    /// A control character.
    #[error("it holds control characters; a rule is one line of words")]
    Control,
    /// It is more than one command.
    #[error("`{0}` belongs to a shell: a rule is one command; write a rule for each")]
    Operator(char),
    /// A quote without its end.
    #[error("a quote does not end")]
    Quote,
    /// It begins with an option.
    #[error("`{0}` is an option; a rule begins with the program")]
    Program(String),
    /// It begins with a variable.
    #[error("`{0}` sets a variable, for which there are no rules")]
    Variable(String),
    /// `**` before the end.
    #[error("`**` can only stand at the end; `*` is any one word")]
    Deep,
    /// `--`, which says nothing in a rule.
    #[error("`--` says nothing in a rule; leave it out")]
    Dashes,
    /// A word is not a glob.
    #[error("`{word}` is not a pattern: {why}")]
    Glob {
        /// The word.
        word: String,
        /// The glob parser's complaint.
        why: String,
    },
}

impl Rule {
    /// Reads a rule.
    pub fn parse(text: &str) -> Result<Self, BadRule> {
        let text = text.trim();
        if text.len() > RULE_MAX {
            return Err(BadRule::Long);
        }
        if text.chars().any(char::is_control) {
            return Err(BadRule::Control);
        }
        let mut words = pattern::split(text)?;
        if words.is_empty() {
            return Err(BadRule::Empty);
        }
        let program = words.remove(0);
        if program.plain.starts_with('-') {
            return Err(BadRule::Program(program.plain));
        }
        if pattern::is_assignment(&program.plain) {
            return Err(BadRule::Variable(program.plain));
        }
        // A star at the end says what holds anyway.
        if words.last().is_some_and(|last| last.wild && matches!(last.plain.as_str(), "*" | "**")) {
            words.pop();
        }
        let items = words.into_iter().map(Item::new).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), program: Pattern::program(program)?, items, closed: false })
    }

    /// The pattern of a remembered grant as a rule: the same words, and no more operands than it names unless
    /// it ends in `*`.
    pub(crate) fn of_grant(pattern: &str) -> Result<Self, BadRule> {
        let open = pattern.ends_with(" *") || pattern.ends_with(" **");
        Ok(Self { closed: !open, ..Self::parse(pattern)? })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether every command of a line is one that this rule allows. Unlike in a [`Rulebook`], a harmless
    /// command besides is one too many.
    pub(crate) fn covers_all(&self, judged: &Judged) -> bool {
        let whole = judged.error.is_none() && judged.catastrophe.is_none() && !judged.commands.is_empty();
        whole && book::strays(judged).is_none() && judged.commands.iter().all(|one| self.covers(one) == Some(Ok(())))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.closed == other.closed
    }
}

impl Eq for Rule {}
