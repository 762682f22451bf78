//! All rules that hold, and what they say together about a command line.

use super::pattern::Likely;
use super::{BadRule, Rule, Stance};
use crate::shell::judged::{Cause, Class, Command, Harm, Judged};
use crate::shell::table::Table;
use crate::shell::word::Word;
use crate::shell::{Ground, cut, judge};
use serde::Serialize;

/// A rule, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// What it says.
    pub stance: Stance,
    /// About which commands.
    pub rule: Rule,
    /// Why, for the person who meets it.
    pub reason: Option<String>,
}

impl std::fmt::Display for Stated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.stance, self.rule)
    }
}

impl Stated {
    /// Reads a rule.
    pub fn new(stance: Stance, text: &str) -> Result<Self, BadRule> {
        Ok(Self { stance, rule: Rule::parse(text)?, reason: None })
    }

    /// Whether an example holds: this rule alone covers (or finds) the command line, or does not.
    pub fn check(&self, example: &str, wanted: bool, table: &Table) -> Result<(), String> {
        let judged = judge(example, &Ground { cwd: "/home/user/project", home: Some("/home/user"), table });
        let book = Rulebook::new(vec![self.clone()]);
        let (matched, why) = match self.stance {
            Stance::Allow => match book.allows(&judged) {
                Allowed::All { .. } => (true, String::new()),
                Allowed::Not(why) => (false, format!(": {why}")),
                Allowed::Silent => (false, String::new()),
            },
            Stance::Deny => (matches!(book.denies(&judged), Denied::Yes(_)), String::new()),
        };
        let example = cut(example);
        match (matched, wanted) {
            (false, true) => Err(format!("`{self}` does not match `{example}`{why}")),
            (true, false) => Err(format!("`{self}` matches `{example}`")),
            _ => Ok(()),
        }
    }
}

/// Whether rules allow a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// No rule is about it.
    Silent,
    /// Some rule is, but not everything is covered, for this reason.
    Not(String),
    /// Every command is covered.
    All {
        /// By which rules.
        reason: String,
        /// Whether each that counts is named by its program, and not by a wildcard or for being harmless.
        named: bool,
    },
}

/// Whether rules deny a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// None does.
    No,
    /// That cannot be ruled out, for this reason.
    Maybe(String),
    /// One does, for this reason.
    Yes(String),
}

/// A rule that is about a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The rule, as in a configuration.
    pub rule: String,
    /// The command.
    pub command: String,
    /// Through what it is reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<String>,
    /// Whether the rule holds: a deny that is found, an allow that covers the command.
    pub holds: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// All rules that hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rulebook {
    stated: Vec<Stated>,
}

impl Rulebook {
    /// The rules in the order in which they were written. The order decides nothing.
    pub fn new(stated: Vec<Stated>) -> Self {
        Self { stated }
    }

    /// The rules.
    pub fn iter(&self) -> impl Iterator<Item = &Stated> {
        self.stated.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.stated.is_empty()
    }

    /// Whether some rule denies.
    pub fn can_deny(&self) -> bool {
        self.of(Stance::Deny).next().is_some()
    }

    fn of(&self, stance: Stance) -> impl Iterator<Item = &Stated> {
        self.stated.iter().filter(move |stated| stated.stance == stance)
    }

    /// Whether a deny is about any command of a line, however it is reached. What cannot be ruled out is
    /// said, too: a program or a text that is not known before it runs may be anything.
    pub fn denies(&self, judged: &Judged) -> Denied {
        let mut maybe = None;
        for stated in self.of(Stance::Deny) {
            for command in &judged.commands {
                match stated.rule.likely(command) {
                    Likely::Yes => return Denied::Yes(found_text(stated, command)),
                    Likely::Maybe => {
                        let why =
                            || format!("`{stated}` may match `{}`, which is not known before it runs", said(command));
                        maybe.get_or_insert_with(why);
                    }
                    Likely::No => {}
                }
            }
        }
        if !self.can_deny() {
            return Denied::No;
        }
        let hidden = maybe.or_else(|| {
            let commands = judged.commands.iter().flat_map(|command| &command.doubts);
            let mut doubts = judged.doubts.iter().filter(|doubt| doubt.cause == Cause::Line).chain(commands);
            let unknown = doubts.find(|doubt| match doubt.cause {
                Cause::Code => true,
                Cause::Line => matches!(doubt.harm, Harm::Unknown | Harm::Runs),
                _ => false,
            });
            unknown.map(|doubt| format!("{}, and no deny rule can be ruled out for that", doubt.why))
        });
        hidden.map_or(Denied::No, Denied::Maybe)
    }

    /// Whether the allows cover every command of a line.
    ///
    /// A command needs no rule if it is known to do nothing but read or say something; so does a wrapper that
    /// only runs another command of the list. Any other has to be one that a rule is about, and everything
    /// about it has to be what its program is for, or named by the rule. An option that writes, runs or
    /// sends, or that the table does not know, is covered only if the rule names that very option. Never
    /// covered are redirections that write, variables, words and programs that are not known before it
    /// runs, and whatever is not understood.
    pub fn allows(&self, judged: &Judged) -> Allowed {
        let about = |command: &Command| self.of(Stance::Allow).any(|stated| stated.rule.is_about(command));
        if !judged.commands.iter().any(about) {
            return Allowed::Silent;
        }
        if let Some(error) = &judged.error {
            return Allowed::Not(format!("it cannot be parsed: {error}"));
        }
        if let Some(why) = judged.catastrophe.as_deref().or_else(|| strays(judged)) {
            return Allowed::Not(why.to_owned());
        }
        let (mut reasons, mut named) = (Vec::new(), true);
        for command in &judged.commands {
            match self.covering(command) {
                Ok(Some(stated)) => {
                    named &= stated.rule.program.is_exact() || command.class == Class::Neutral;
                    let reason = format!("`{stated}` covers `{}`", said(command));
                    if !reasons.contains(&reason) {
                        reasons.push(reason);
                    }
                }
                Ok(None) => named &= command.class == Class::Neutral,
                Err(why) => return Allowed::Not(format!("`{}` is not covered: {why}", said(command))),
            }
        }
        let more = reasons.len().saturating_sub(SHOWN);
        reasons.truncate(SHOWN);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        Allowed::All { reason: format!("{}{more}", reasons.join(", ")), named }
    }

    /// Checks that every command in the line matches an allow rule, by name only; used for lists that restrict. Unlike
    /// [`Self::allows`] it ignores what an option does: policy decides what a named command may do. Only commands that
    /// neither read nor write (`cd`, `true`) need no rule.
    pub fn covers_every_command(&self, judged: &Judged) -> Result<(), String> {
        if let Some(error) = &judged.error {
            return Err(format!("it cannot be parsed: {error}"));
        }
        if let Some(why) = strays(judged) {
            return Err(why.to_owned());
        }
        let named = |command: &Command| self.of(Stance::Allow).any(|stated| stated.rule.is_about(command));
        let beside = |command: &Command| harmless(command) && command.class == Class::Neutral;
        match judged.commands.iter().find(|command| !named(command) && !beside(command)) {
            Some(command) => Err(format!("`{}` is not among them", said(command))),
            None if judged.commands.is_empty() => Err("it names no command".to_owned()),
            None => Ok(()),
        }
    }

    /// The allow that covers a command; none if it is harmless without one.
    fn covering(&self, command: &Command) -> Result<Option<&Stated>, String> {
        let mut lacking = None;
        for stated in self.of(Stance::Allow) {
            match stated.rule.covers(command) {
                Some(Ok(())) => return Ok(Some(stated)),
                Some(Err(why)) => lacking = lacking.or(Some(why)),
                None => {}
            }
        }
        if harmless(command) {
            return Ok(None);
        }
        let doubt =
            || command.doubts.first().map_or_else(|| "it may do anything".to_owned(), |doubt| doubt.why.clone());
        Err(lacking.unwrap_or_else(doubt))
    }

    /// Every rule that is about a command of a line, for people.
    pub fn found(&self, judged: &Judged) -> Vec<Found> {
        let mut found = Vec::new();
        for stated in &self.stated {
            for command in &judged.commands {
                let (holds, why) = match (stated.stance, stated.rule.likely(command)) {
                    (Stance::Deny, Likely::Yes) => (true, None),
                    (Stance::Deny, Likely::Maybe) => (false, Some("it is not known before it runs".to_owned())),
                    (Stance::Deny, Likely::No) => continue,
                    (Stance::Allow, _) => match stated.rule.covers(command) {
                        None => continue,
                        Some(Ok(())) => (true, None),
                        Some(Err(why)) => (false, Some(why)),
                    },
                };
                let (command, through) = (said(command), command.standing.through.clone());
                found.push(Found { rule: stated.to_string(), command, through, holds, why });
                if found.len() >= FOUND_MAX {
                    return found;
                }
            }
        }
        found
    }
}

/// How many rules a reason names.
const SHOWN: usize = 4;
/// How many findings are told.
const FOUND_MAX: usize = 200;

/// Why a line as a whole is not known to do only what its commands do.
pub(super) fn strays(judged: &Judged) -> Option<&str> {
    judged.doubts.iter().find(|doubt| doubt.cause == Cause::Line).map(|doubt| doubt.why.as_str())
}

/// Whether a command does nothing that somebody would have to allow.
pub(super) fn harmless(command: &Command) -> bool {
    command.name.is_some() && command.class.looks() && command.doubts.is_empty()
}

/// A command in one line.
pub(super) fn said(command: &Command) -> String {
    let words = command.args.iter().map(Word::shown);
    let all: Vec<&str> = std::iter::once(command.name.as_deref().unwrap_or("?")).chain(words).collect();
    cut(&all.join(" "))
}

fn found_text(stated: &Stated, command: &Command) -> String {
    let through = match command.standing.through.as_slice() {
        [] => String::new(),
        through => format!(", found through {}", cut(&through.join(", "))),
    };
    let reason = stated.reason.as_ref().map(|why| format!("{why}: ")).unwrap_or_default();
    format!("{reason}`{stated}` matches `{}`{through}", said(command))
}
