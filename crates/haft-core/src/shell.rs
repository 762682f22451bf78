//! Shell commands, understood before they run: what each would read, write, run and send.
//!
//! The way from text to judgement, and the types on it, are in `docs/decisions/0008-shell.md`. The rule of
//! the module: what is not understood is a doubt, and a command with a doubt is not known to only read.

mod arithmetic;
mod braces;
mod deed;
mod entry;
mod executed;
mod judged;
pub mod masking;
mod options;
mod paths;
mod repository;
mod ruin;
pub mod rule;
mod second;
mod special;
mod state;
mod table;
mod value;
mod variables;
mod walk;
mod word;

pub use entry::{BadEntry, Directories, Prints, Tracked, Wraps, Written, WrittenWhen};
pub use executed::{ExecutedLanguage, ExecutedLookup, ExecutedTarget};
pub use judged::{
    Cause, Class, Command, Doubt, Flow, Harm, Judged, Redirect, Standing, Subtree, Target, TrackedFiles, Unreadable,
    Used,
};
pub use repository::unsettled;
pub use special::is_portable;
pub use table::Table;
pub use word::{Value, Word};

use state::State;
use walk::{Stream, Walk};

/// The longest command that is looked at. A shell could not be given a longer one, either.
pub const COMMAND_MAX: usize = 131_071;

/// What a command is judged on.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'g> {
    /// Where it starts: an absolute path.
    pub cwd: &'g str,
    /// The home directory that it will be told.
    pub home: Option<&'g str>,
    /// What commands do.
    pub table: &'g Table,
}

/// Judges a command. Nothing is looked up: the same text on the same ground is always judged alike.
pub fn judge(text: &str, ground: &Ground<'_>) -> Judged {
    let mut walk = Walk::new(text, ground.table, ground.home);
    ground.cwd.clone_into(&mut walk.start);
    let error = if text.len() > COMMAND_MAX {
        Some(walk::at(text, 0, &format!("it is longer than {COMMAND_MAX} bytes")))
    } else {
        let begin = || State::new(ground.cwd, ground.home);
        let error = walk.script(text, &Standing::default(), &mut begin(), &Stream::Unknown).err();
        // What is doubted anyway is not looked at again.
        match walk.again(text).filter(|_| walk.is_settled()) {
            Some(again) => {
                walk = again;
                walk.script(text, &Standing::default(), &mut begin(), &Stream::Unknown).err()
            }
            None => error,
        }
    };
    ruin::bombs(&mut walk);
    finish(walk, error)
}

fn finish(walk: Walk<'_>, error: Option<Unreadable>) -> Judged {
    let Walk { commands, reads, subtrees, tracked, writes, mut doubts, catastrophe, repositories, interactive, .. } =
        walk;
    let follows = walk.follows;
    let (executed, unbound) = (walk.executed, walk.unbound);
    let mut class = commands.iter().fold(Class::Neutral, |class, command| class.and(command.class));
    for doubt in commands.iter().flat_map(|command| &command.doubts) {
        if !doubts.contains(doubt) {
            doubts.push(doubt.clone());
        }
    }
    if let Some(error) = &error {
        doubts.push(Doubt::new(Harm::Unknown, format!("it cannot be parsed: {error}")).by(Cause::Line));
        class = Class::General;
    }
    for doubt in &doubts {
        let least = match doubt.harm {
            Harm::Writes if class.looks() => Class::Write,
            Harm::Runs | Harm::Sends => Class::General,
            Harm::Writes | Harm::Unknown => class,
        };
        class = class.max(least);
    }
    if class == Class::Neutral {
        class = Class::Read;
    }
    if catastrophe.is_some() {
        class = class.max(Class::General);
    }
    Judged {
        class,
        commands,
        reads,
        writes,
        doubts,
        catastrophe,
        repositories,
        error,
        subtrees,
        tracked,
        follows,
        interactive,
        executed,
        unbound,
    }
}

/// Whether an example holds: it only reads, or with a leading `!`, it is not known to.
fn holds(table: &Table, example: &str) -> Result<(), String> {
    let ground = Ground { cwd: "/project", home: Some("/home/user"), table };
    let (text, wanted) = match example.strip_prefix('!') {
        Some(text) => (text.trim_start(), false),
        None => (example, true),
    };
    let judged = judge(text, &ground);
    match (judged.only_reads(), wanted) {
        (false, true) => Err(judged.doubts.first().map_or_else(String::new, |doubt| doubt.why.clone())),
        (true, false) => Err("it is judged to only read".to_owned()),
        _ => Ok(()),
    }
}

/// A text short enough for a message, in one line.
fn cut(text: &str) -> String {
    crate::preview::cut(&crate::preview::inert(text), 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Judged {
        judge(text, &Ground { cwd: "/w/p", home: Some("/home/u"), table: Table::shipped() })
    }

    #[test]
    fn whatever_starts_itself_again_and_again_is_a_bomb() {
        for text in [
            ":(){ :|:& };:",
            "b() { b | b & }; b",
            "f() { g & }; g() { f & f; }; f",
            "a() { b | b; }; b() { c; }; c() { a; }; a",
        ] {
            assert!(judged(text).catastrophe.is_some(), "{text}");
        }
        for text in ["f() { ls | wc -l; }; f", "f() { ls & }; f; f", "g() { ls; }; f() { g; }; f | g"] {
            assert!(judged(text).only_reads(), "{text} {:?}", judged(text).doubts);
        }
    }
}
