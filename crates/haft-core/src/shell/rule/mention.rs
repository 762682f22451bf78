//! Commands that stand in a text which a command runs, in a language that is not read here: the value of
//! `tar --to-command`, a pager in a variable, `system("rm x")` in a program for awk or python. They are told by
//! the place in which a name stands. Only a deny looks here: it rather finds too much than too little.

use super::Rule;
use super::pattern::{Item, Likely};
use crate::shell::judged::{Cause, Command, Harm};
use crate::shell::word::Word;

/// What may stand before the name of a command in a text.
const BEFORE: &[char] = &['=', '!', '"', '\'', '`', '(', '[', '{', ';', '|', '&', '\n'];

/// A word of a text, and whether a command may begin there.
struct Token<'t> {
    text: &'t str,
    begins: bool,
}

impl Rule {
    /// How likely it is that a command that it is about stands in a text which a command runs.
    pub(super) fn mentioned(&self, command: &Command) -> Likely {
        let runs = |doubt: &&crate::shell::Doubt| match doubt.cause {
            Cause::Option(_) => matches!(doubt.harm, Harm::Runs | Harm::Unknown),
            Cause::Variable | Cause::Other => doubt.harm == Harm::Runs,
            _ => false,
        };
        let harm = command.doubts.iter().filter(runs).map(|doubt| doubt.harm).min();
        let literals = || command.args.iter().filter_map(Word::literal);
        let Some(harm) = harm else {
            // A program that nobody knows may run what it is given.
            let alone = command.nature.is_none() && self.items.is_empty() && self.program.is_exact();
            let named = alone && literals().any(|word| self.program.is_denied_program(word));
            return if named { Likely::Maybe } else { Likely::No };
        };
        let values = command.options.iter().filter(|used| used.harm == Some(Harm::Runs));
        let values = values.filter_map(|used| used.value.as_ref()?.literal());
        let given = command.assignments.iter().filter_map(|(_, word)| word.literal());
        let sed = command.name.as_deref().is_some_and(|name| name.ends_with("sed"));
        let whole = values.chain(given).any(|text| self.stands_in(text, true, sed));
        let found = whole || literals().any(|text| self.stands_in(text, text.contains(char::is_whitespace), sed));
        match (found, harm) {
            (true, Harm::Runs) => Likely::Yes,
            (true, _) => Likely::Maybe,
            (false, _) => Likely::No,
        }
    }

    /// Whether such a command stands in a text. `at_start`: one may begin at its beginning.
    fn stands_in(&self, text: &str, at_start: bool, anywhere: bool) -> bool {
        let tokens = tokens(text, at_start);
        let named = |token: &Token<'_>| (token.begins || anywhere) && self.program.is_denied_program(token.text);
        let mut starts = tokens.iter().enumerate().filter(|(_, token)| named(token));
        starts.any(|(at, _)| {
            let rest = &tokens[at + 1..];
            self.items.iter().all(|item| match item {
                Item::Word(pattern) => rest.iter().any(|token| pattern.is(token.text)),
                Item::Option(name, _) => rest.iter().any(|token| token.text.starts_with(name.as_str())),
            })
        })
    }
}

fn tokens(text: &str, at_start: bool) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut begins = at_start;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c: char| c.is_whitespace() || c == ',' || BEFORE.contains(&c) || c == ')' || c == ']');
        match end {
            Some(0) => {
                // Blanks change nothing about what may begin here.
                begins = if c.is_whitespace() && c != '\n' { begins } else { BEFORE.contains(&c) };
                rest = &rest[c.len_utf8()..];
            }
            end => {
                let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
                found.push(Token { text: token, begins });
                begins = false;
                rest = after;
            }
        }
    }
    found
}
