//! The secrets of one command: what its words say by their names, and what is known of its program.

use super::names::{Secrecy, can_be_secret, is_secret_option, secrecy};
use super::programs::{
    FROM_STDIN, INTERPRETERS, LOGINS, PROSE, Place, READERS, SEARCHES, SHELLS, SINGLE_DASH, Shape, WAYS, WRAPPERS, Way,
    flags,
};
use super::text;
use super::word::Word;
use crate::secret::MASK;
use core::ops::Range;

/// A secret: a part of one of the words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) word: usize,
    pub(super) part: Range<usize>,
}

/// One command, its assignments among its words.
pub(super) struct Line<'w> {
    words: &'w [Word],
    found: Vec<Found>,
}

/// The program of a path.
pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// Whether a program runs the command that follows it.
pub(super) fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&program)
}

/// Whether a program runs what it is given.
fn runs_input(program: &str) -> bool {
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    SHELLS.contains(&program) || INTERPRETERS.contains(&name)
}

/// Whether the whole input of a command is its secret. `sudo` takes one line, and leaves the rest to what it runs.
pub(super) fn takes_whole_input<'w>(words: impl IntoIterator<Item = &'w str>) -> bool {
    words.into_iter().all(|word| base(word) != "sudo")
}

/// Whether `sudo` starts a shell, which reads its input if no password is needed.
fn starts_shell(words: &[Word]) -> bool {
    let is_shell_option = |word: &Word| match word.text.strip_prefix("--") {
        Some(long) => matches!(long, "shell" | "login"),
        None => word.text.strip_prefix('-').is_some_and(|short| short.contains(['s', 'i'])),
    };
    words.iter().any(|word| base(&word.text) == "sudo") && words.iter().any(is_shell_option)
}

/// Whether a command reads a secret from its standard input, and runs nothing of it.
pub(super) fn reads_secret(words: &[Word]) -> bool {
    if words.iter().any(|word| runs_input(base(&word.text))) || starts_shell(words) {
        return false;
    }
    let has = |wanted: &str| words.iter().any(|word| word.text == wanted || word.text == format!("pass:{wanted}"));
    let reads = |word: &Word| {
        let name = base(&word.text);
        READERS.iter().any(|(program, by)| name == *program && (by.is_empty() || has(by)))
    };
    let through = words.first().is_some_and(|word| is_wrapper(base(&word.text)));
    words.iter().take(if through { usize::MAX } else { 1 }).any(reads)
        || words.iter().any(|word| LOGINS.contains(&base(&word.text)))
            && words.iter().any(|word| FROM_STDIN.iter().any(|sign| word.text.split('=').next() == Some(sign)))
}

impl<'w> Line<'w> {
    pub(super) fn new(words: &'w [Word]) -> Self {
        Self { words, found: Vec::new() }
    }

    pub(super) fn secrets(mut self) -> Vec<Found> {
        let is_assignment = |word: &Word| assigned_name(&word.text).is_some();
        let name = self.words.iter().position(|word| !is_assignment(word)).unwrap_or(self.words.len());
        for at in 0..name {
            self.setting(at);
        }
        let Some(program) = self.words.get(name).map(|word| base(&word.text)) else { return self.found };
        self.known_program(name);
        if is_wrapper(program) {
            (name + 1..self.words.len()).for_each(|at| self.known_program(at));
        }
        if !SEARCHES.contains(&program) {
            for at in name + 1..self.words.len() {
                self.word(at, program);
            }
        }
        self.found
    }

    fn text(&self, at: usize) -> &'w str {
        self.words.get(at).map(|word| word.text.as_str()).unwrap_or_default()
    }

    /// Notes a part of a word as secret, unless the shell puts something there that is not written here.
    fn note(&mut self, word: usize, part: Range<usize>) {
        let value = self.text(word).get(part.clone()).unwrap_or_default();
        let prints = ["$(echo ", "$(printf ", "`echo ", "`printf "].iter().any(|begin| value.starts_with(begin));
        let expanded = self.words.get(word).is_some_and(|word| word.is_expanded(&part));
        if !value.is_empty() && (!expanded || prints) {
            self.found.push(Found { word, part });
        }
    }

    /// The same for a value that a name says is secret.
    fn note_named(&mut self, name: &str, word: usize, part: Range<usize>) {
        if can_be_secret(name, self.text(word).get(part.clone()).unwrap_or_default()) {
            self.note(word, part);
        }
    }

    /// `NAME=VALUE`, and pairs in one word: `a=1,password=2`.
    fn setting(&mut self, at: usize) -> bool {
        let text = self.text(at);
        if let Some((name, value)) = assigned_name(text).filter(|(name, _)| secrecy(name) != Secrecy::None) {
            self.note_named(name, at, value..text.len());
            return true;
        }
        if text.contains("://") {
            return false;
        }
        self.pairs(at, 0);
        false
    }

    /// Each `name=value` of a word, from a place on.
    fn pairs(&mut self, at: usize, from: usize) {
        let text = self.text(at);
        let mut start = from;
        for piece in text[from..].split([',', ';', '&', ' ', '\n']) {
            if let Some((name, value)) = piece.split_once('=')
                && name.chars().all(is_plain)
                && secrecy(name) != Secrecy::None
            {
                let begin = start + name.len() + 1;
                let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
                let skip = usize::from(quote.is_some_and(|quote| value.len() > 1 && value.ends_with(quote)));
                self.note_named(name, at, begin + skip..begin + value.len() - skip);
            }
            start += piece.len() + 1;
        }
    }

    /// What a word says by itself.
    fn word(&mut self, at: usize, program: &str) {
        let text = self.text(at);
        let before = self.words[..at].iter().map(|word| base(&word.text));
        // A command of its own, which is read as one.
        if text.contains(char::is_whitespace) && before.into_iter().any(|name| SHELLS.contains(&name)) {
            return;
        }
        self.header(at);
        if let Some(option) = text.strip_prefix('-') {
            return self.option(at, option.trim_start_matches('-'));
        }
        if secrecy(text) == Secrecy::Named && self.sets(at) && !self.text(at + 1).starts_with('-') {
            let value = 0..self.text(at + 1).len();
            self.note_named(text, at + 1, value);
        }
        // In a program for these, what stands before a sign is no name.
        let edits = matches!(program, "sed" | "awk" | "gawk" | "perl");
        if (!edits && self.setting(at)) || PROSE.contains(&program) {
            return;
        }
        if text.contains([' ', '"', '\'', '{', '\n', ':']) {
            for part in text::settings(text) {
                self.note(at, part);
            }
        }
    }

    /// Whether a word before this one says that a setting is set: `aws configure set NAME VALUE`.
    fn sets(&self, at: usize) -> bool {
        self.words[..at].iter().any(|word| matches!(word.text.as_str(), "set" | "config" | "configure"))
    }

    fn option(&mut self, at: usize, option: &str) {
        let text = self.text(at);
        let Some((name, value)) = option.split_once('=') else {
            // Its value is masked already; the mask itself reads like the name of a secret.
            if option.contains(MASK) {
                return;
            }
            let next = self.text(at + 1);
            if option.len() > 1 && is_secret_option(option) && !next.starts_with('-') {
                self.note_named("password", at + 1, 0..next.len());
            }
            return;
        };
        let begin = text.len() - value.len();
        if is_secret_option(name) {
            self.note_named("password", at, begin..text.len());
        } else if secrecy(name) != Secrecy::None {
            self.note_named(name, at, begin..text.len());
        } else if value.contains('=') && !value.contains("://") {
            self.pairs(at, begin);
        }
    }

    /// `Authorization: Bearer …` and its like, also as the value of an option or of a setting.
    fn header(&mut self, at: usize) {
        let text = self.text(at);
        let option = ["--header=", "--headers=", "-H"].iter().find_map(|option| text.strip_prefix(option));
        let after_option = at > 0 && matches!(self.text(at - 1), "-H" | "--header" | "--headers" | "--proxy-header");
        let from = match option {
            Some(rest) => text.len() - rest.len(),
            None => text
                .find('=')
                .filter(|end| text[..*end].to_ascii_lowercase().ends_with("extraheader"))
                .map_or(0, |end| end + 1),
        };
        if let Some(part) = text::header(&text[from..], after_option || option.is_some()) {
            self.note(at, part.start + from..part.end + from);
        }
    }

    /// What is known of the program that this word may be.
    fn known_program(&mut self, at: usize) {
        let program = base(self.text(at));
        for way in WAYS.iter().filter(|way| way.programs.contains(&program)) {
            self.way(way, at, program);
        }
    }

    fn way(&mut self, way: &Way, program_at: usize, program: &str) {
        let operands: Vec<usize> = (program_at + 1..self.words.len())
            .filter(|at| !self.text(*at).starts_with('-') || way.under.contains(&self.text(*at)))
            .collect();
        let mut rest = operands.as_slice();
        for word in way.under {
            let Some(found) = rest.iter().position(|at| self.text(*at) == *word) else { return };
            rest = &rest[found + 1..];
        }
        match way.place {
            Place::Operand(number) => rest.get(number).into_iter().for_each(|at| self.shaped(*at, 0, way.shape)),
            Place::Operands(number) => rest.iter().skip(number).for_each(|at| self.shaped(*at, 0, way.shape)),
            Place::LastWith(letter) => {
                let flagged = |word: &Word| word.text.starts_with('-') && word.text.contains(letter);
                let last = rest.last().filter(|_| rest.len() > 1);
                if let Some(at) = last.filter(|_| self.words[program_at..].iter().any(flagged)) {
                    self.shaped(*at, 0, way.shape);
                }
            }
            Place::Next(word) => {
                let is_it = |at: &&usize| {
                    let text = self.text(**at).to_ascii_lowercase();
                    text.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                };
                if let Some(at) = operands.iter().find(is_it) {
                    self.shaped(at + 1, 0, way.shape);
                }
            }
            Place::Attached(option) => {
                for at in program_at + 1..self.words.len() {
                    if self.text(at).starts_with(option) {
                        self.shaped(at, option.len(), way.shape);
                    }
                }
            }
            Place::Option(option) => {
                // What follows the first operand of a wrapper is another program's.
                let stops = is_wrapper(program) && way.under.is_empty();
                for at in program_at + 1..self.words.len() {
                    let is_operand = !self.text(at).starts_with('-') && !self.text(at - 1).starts_with('-');
                    if stops && is_operand {
                        break;
                    }
                    if let Some((word, from)) = self.value_of(at, option, program) {
                        self.shaped(word, from, way.shape);
                    }
                }
            }
        }
    }

    /// Where the value of an option stands, if this word is that option.
    fn value_of(&self, at: usize, option: &str, program: &str) -> Option<(usize, usize)> {
        let text = self.text(at);
        if text == option {
            return (!self.text(at + 1).starts_with("--")).then_some((at + 1, 0));
        }
        if option.starts_with("--") || option.len() > 2 || SINGLE_DASH.contains(&program) {
            return text.strip_prefix(option)?.starts_with('=').then_some((at, option.len() + 1));
        }
        // A letter, perhaps behind others that take no value.
        let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        let letter = option.chars().nth(1)?;
        let place = letters.find(letter)?;
        let bundled = letters[..place].chars().all(|c| flags(program).contains(c));
        let end = 1 + place + letter.len_utf8();
        match bundled {
            true if end == text.len() => Some((at + 1, 0)),
            true => Some((at, end)),
            false => None,
        }
    }

    /// Notes what of a value is secret, which begins in a word at `from`.
    fn shaped(&mut self, at: usize, from: usize, shape: Shape) {
        let text = self.text(at);
        let Some(value) = text.get(from..).filter(|value| !value.is_empty()) else { return };
        let end = text.len();
        match shape {
            Shape::Whole => self.note_named("password", at, from..end),
            Shape::After(sign) => {
                if let Some(found) = value.find(sign) {
                    self.note(at, from + found + sign.len_utf8()..end);
                }
            }
            Shape::Login => {
                let login = value.split_once('/').filter(|(user, _)| !user.is_empty() && !user.contains(['.', '@']));
                if let Some((user, rest)) = login {
                    let begin = from + user.len() + 1;
                    self.note(at, begin..begin + rest.rfind('@').unwrap_or(rest.len()));
                }
            }
            Shape::Source => {
                if let Some(rest) = value.strip_prefix("pass:").filter(|rest| *rest != "stdin") {
                    self.note(at, end - rest.len()..end);
                }
            }
            Shape::Pairs => self.pairs(at, from),
        }
    }
}

/// The name of `NAME=VALUE`, and where the value begins: of variables, settings with dots, and with a subscript.
fn assigned_name(text: &str) -> Option<(&str, usize)> {
    let (name, _) = text.split_once('=')?;
    let value = name.len() + 1;
    let name = name.strip_suffix('+').unwrap_or(name);
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/'));
    (begins && name.chars().all(is_plain)).then_some((name, value))
}

/// Whether a character may stand in the name of a setting.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.-[]/:".contains(c)
}
