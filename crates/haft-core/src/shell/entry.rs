//! What one program does, as it is written in `commands/*.yml` and in people's configuration, and made ready
//! for use. The form is described in `commands/README.md`.

use super::judged::Class;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// An entry as it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a program, each declared by name")]
pub struct Written {
    /// What it is when nothing below says more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The same as another program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// Harmless options.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub options: String,
    /// Options whose value is a path that is read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reads: String,
    /// Options whose value is a path that is written.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub writes: String,
    /// Options that change something else.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub alters: String,
    /// Options that run something.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub runs: String,
    /// Options whose value is a command for a shell.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shell: String,
    /// Options that send or fetch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sends: String,
    /// Options that follow links out of what is named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub follows: String,
    /// It opens further files that the ones it is given name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub opens: bool,
    /// What it does with a directory that it is told to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directories: Option<Directories>,
    /// Options with which it reads the files below a directory all the same.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub descends: String,
    /// It leaves out hidden and ignored files as ripgrep does, unless one of these options is given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unhides: String,
    /// What it prints of the files that a repository tracks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracked: Option<Tracked>,
    /// `-5` is an option.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub numbers: bool,
    /// A word that begins with `+` is text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plus: bool,
    /// Long options have one dash.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub single_dash: bool,
    /// Options end at the first operand.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stops: bool,
    /// The first word may be options without a dash.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dashless: bool,
    /// What the operands are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operands: String,
    /// The path that is read when no operand names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What differs when an option is present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<WrittenWhen>,
    /// No option at all can write, run or send.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub harmless: bool,
    /// What its output is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prints: Option<Prints>,
    /// How it runs the command among its operands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wraps: Option<Wraps>,
    /// It wants a person at a terminal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    /// A repository's configuration decides what it runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repository: bool,
    /// It has a reader of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub special: Option<String>,
    /// Entries by first operand.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub subcommands: BTreeMap<String, Written>,
    /// Commands that have to be judged to only read, or with a leading `!`, not to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// What differs when an option is present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenWhen {
    /// The options, one of which is enough.
    pub has: String,
    /// The class then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The operands then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operands: Option<String>,
    /// The default path then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What is printed then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prints: Option<Prints>,
}

/// What the lines of a program's output are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prints {
    /// Paths that begin with an operand.
    Paths,
    /// Paths relative to where it runs.
    Names,
    /// Some of the lines of its input.
    Lines,
    /// Something else.
    Other,
}

/// What a program does with a directory that it is told to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Directories {
    /// It says names, sizes and dates of what is there, and opens no file.
    Names,
    /// It refuses it, and reads files alone.
    Refuses,
    /// It may read every file below.
    Contents,
}

/// What a program prints of the files that a repository tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tracked {
    /// Those that differ from the index.
    Changes,
    /// Any of them.
    Contents,
}

/// How a program runs the command among its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wraps {
    /// As it would run by itself.
    Plainly,
    /// Elsewhere, or as somebody else.
    Otherwise,
}

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    None,
    Required,
    Attached,
}

/// What an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Nothing,
    Reads,
    Writes,
    Alters,
    Runs,
    Shell,
    Sends,
    Follows,
}

/// What an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Text,
    Read,
    Write,
    Alter,
    Run,
    Send,
    Command,
    Shell,
}

/// What is read of a path that may be a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// That it is there, and what lies below by name.
    Names,
    /// The file; a directory is refused.
    Files,
    /// The files below that ripgrep searches by itself.
    Visible,
    /// All files below.
    Everything,
}

/// How often an operand occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Once,
    Maybe,
    Any,
}

/// An entry made ready.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) written: Written,
    pub(super) class: Class,
    pub(super) options: HashMap<String, (Arity, Does)>,
    pub(super) operands: Vec<(Role, Times)>,
    pub(super) when: Vec<When>,
    pub(super) subcommands: BTreeMap<String, Entry>,
}

/// What differs when an option is present, made ready.
#[derive(Debug, Clone)]
pub(super) struct When {
    pub(super) has: Vec<String>,
    pub(super) class: Option<Class>,
    pub(super) operands: Option<Vec<(Role, Times)>>,
    pub(super) default: Option<String>,
    pub(super) prints: Option<Prints>,
}

/// Why an entry cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// It is not written well.
    #[error("{0}")]
    Malformed(String),
    /// It says nothing about what it is.
    #[error("it has no `class`")]
    NoClass,
    /// It is like a program that is not in the table.
    #[error("it is like `{0}`, which is not in the table")]
    Like(String),
    /// An operand is not a known word.
    #[error("`{0}` is not an operand; they are text, read, write, alter, run, send, command and shell")]
    Operand(String),
    /// An option is not written like one.
    #[error("`{0}` is not an option")]
    Option(String),
    /// An option is said to do two things.
    #[error("`{0}` stands in two lists")]
    Twice(String),
    /// An example does not hold.
    #[error("the example `{example}` does not hold: {why}")]
    Example {
        /// The example.
        example: String,
        /// What was found instead.
        why: String,
    },
}

impl Entry {
    /// Makes an entry ready.
    pub(super) fn new(written: Written) -> Result<Self, BadEntry> {
        let class = written.class.ok_or(BadEntry::NoClass)?;
        let mut options = HashMap::new();
        let lists = [
            (&written.options, Does::Nothing),
            (&written.reads, Does::Reads),
            (&written.writes, Does::Writes),
            (&written.alters, Does::Alters),
            (&written.runs, Does::Runs),
            (&written.shell, Does::Shell),
            (&written.sends, Does::Sends),
            (&written.follows, Does::Follows),
        ];
        for (list, does) in lists {
            for word in list.split_whitespace() {
                let (name, arity) = option(word)?;
                if options.insert(name.to_owned(), (arity, does)).is_some() {
                    return Err(BadEntry::Twice(name.to_owned()));
                }
            }
        }
        let when = written.when.iter().map(when).collect::<Result<_, _>>()?;
        let subcommands = written.subcommands.iter().map(|(name, entry)| Ok((name.clone(), Self::new(entry.clone())?)));
        let subcommands = subcommands.collect::<Result<_, BadEntry>>()?;
        Ok(Self { class, options, operands: operands(&written.operands)?, when, subcommands, written })
    }

    /// What is read below the directories that it is told to read, with these options.
    pub(super) fn depth(&self, given: impl Fn(&str) -> bool) -> Depth {
        let written = &self.written;
        let has = |list: &str| list.split_whitespace().any(&given);
        if has(&written.descends) {
            return Depth::Everything;
        }
        match written.directories {
            Some(Directories::Names) => Depth::Names,
            Some(Directories::Refuses) => Depth::Files,
            _ if written.unhides.is_empty() || has(&written.unhides) => Depth::Everything,
            _ => Depth::Visible,
        }
    }

    /// Whether no option, listed or not, can do harm.
    pub(super) fn harmless(&self) -> bool {
        self.written.harmless
    }
}

fn when(written: &WrittenWhen) -> Result<When, BadEntry> {
    Ok(When {
        has: written.has.split_whitespace().map(str::to_owned).collect(),
        class: written.class,
        operands: written.operands.as_deref().map(operands).transpose()?,
        default: written.default.clone(),
        prints: written.prints,
    })
}

fn option(word: &str) -> Result<(&str, Arity), BadEntry> {
    let (name, arity) = match word.strip_suffix('=') {
        Some(name) => (name, Arity::Required),
        None => word
            .strip_suffix('?')
            .filter(|name| name.len() > 1)
            .map_or((word, Arity::None), |name| (name, Arity::Attached)),
    };
    let signed = name.starts_with(['-', '+']) && name.len() > 1;
    if signed { Ok((name, arity)) } else { Err(BadEntry::Option(word.to_owned())) }
}

fn operands(text: &str) -> Result<Vec<(Role, Times)>, BadEntry> {
    text.split_whitespace()
        .map(|word| {
            let (name, times) = match word.strip_suffix('*') {
                Some(name) => (name, Times::Any),
                None => word.strip_suffix('?').map_or((word, Times::Once), |name| (name, Times::Maybe)),
            };
            let role = match name {
                "text" => Role::Text,
                "read" => Role::Read,
                "write" => Role::Write,
                "alter" => Role::Alter,
                "run" => Role::Run,
                "send" => Role::Send,
                "command" => Role::Command,
                "shell" => Role::Shell,
                _ => return Err(BadEntry::Operand(word.to_owned())),
            };
            Ok((role, times))
        })
        .collect()
}

impl Written {
    /// This entry, with another's for what it does not say.
    #[must_use]
    pub(super) fn over(self, base: Self) -> Self {
        let text = |own: String, base: String| if own.is_empty() { base } else { own };
        Self {
            class: self.class.or(base.class),
            like: None,
            options: text(self.options, base.options),
            reads: text(self.reads, base.reads),
            writes: text(self.writes, base.writes),
            alters: text(self.alters, base.alters),
            runs: text(self.runs, base.runs),
            shell: text(self.shell, base.shell),
            sends: text(self.sends, base.sends),
            follows: text(self.follows, base.follows),
            opens: self.opens || base.opens,
            directories: self.directories.or(base.directories),
            descends: text(self.descends, base.descends),
            unhides: text(self.unhides, base.unhides),
            tracked: self.tracked.or(base.tracked),
            numbers: self.numbers || base.numbers,
            plus: self.plus || base.plus,
            single_dash: self.single_dash || base.single_dash,
            stops: self.stops || base.stops,
            dashless: self.dashless || base.dashless,
            operands: text(self.operands, base.operands),
            default: self.default.or(base.default),
            when: if self.when.is_empty() { base.when } else { self.when },
            harmless: self.harmless || base.harmless,
            prints: self.prints.or(base.prints),
            wraps: self.wraps.or(base.wraps),
            interactive: self.interactive || base.interactive,
            repository: self.repository || base.repository,
            special: self.special.or(base.special),
            subcommands: if self.subcommands.is_empty() { base.subcommands } else { self.subcommands },
            examples: self.examples,
        }
    }
}
