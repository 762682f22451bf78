//! The secrets of one command: what its words say by their names, and what is known of its program.

use super::names::{Secrecy, can_be_secret, is_secret_option, secrecy};
use super::netrc;
use super::programs::{
    FROM_STDIN, INTERPRETERS, LOGINS, PROSE, Place, READERS, SEARCHES, SHELLS, SINGLE_DASH, Shape, WAYS, WRAPPERS, Way,
    flags,
};
use super::running::{Before, Role, TextUse, may_be_command};
use super::text::{self, TextKind};
use super::word::Word;
use crate::secret::MASK;
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

/// How often one program is looked for among the words of a command: each time, all words behind it are read.
const SAME_PROGRAM_MAX: usize = 16;

/// A secret: a part of one of the words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) word: usize,
    pub(super) part: Range<usize>,
}

/// One command, its assignments among its words.
pub(super) struct Line<'w> {
    words: &'w [Word],
    text_use: &'w TextUse,
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
pub(super) fn runs_input(program: &str) -> bool {
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
    let said: BTreeSet<&str> = words.iter().map(|word| word.text.strip_prefix("pass:").unwrap_or(&word.text)).collect();
    let reads = |word: &Word| {
        let name = base(&word.text);
        READERS.iter().any(|(program, by)| name == *program && (by.is_empty() || said.contains(by)))
    };
    let through = words.first().is_some_and(|word| is_wrapper(base(&word.text)));
    words.iter().take(if through { usize::MAX } else { 1 }).any(reads)
        || words.iter().any(|word| LOGINS.contains(&base(&word.text)))
            && words.iter().any(|word| FROM_STDIN.iter().any(|sign| word.text.split('=').next() == Some(sign)))
}

impl<'w> Line<'w> {
    pub(super) fn new(words: &'w [Word], text_use: &'w TextUse) -> Self {
        Self { words, text_use, found: Vec::new() }
    }

    pub(super) fn secrets(mut self) -> Vec<Found> {
        let is_assignment = |word: &Word| assigned_name(&word.text).is_some();
        let name = self.words.iter().position(|word| !is_assignment(word)).unwrap_or(self.words.len());
        for at in 0..name {
            self.setting(at, Ends::Word);
        }
        let Some(program) = self.words.get(name).map(|word| base(&word.text)) else { return self.found };
        self.known_program(name);
        if is_wrapper(program) {
            let mut named: BTreeMap<&str, usize> = BTreeMap::new();
            for at in name + 1..self.words.len() {
                let count = named.entry(base(self.text(at))).or_default();
                *count += 1;
                if *count <= SAME_PROGRAM_MAX {
                    self.known_program(at);
                }
            }
        }
        if matches!(program, "echo" | "printf" | "print") {
            self.printed(name);
        }
        if !SEARCHES.contains(&program) {
            let mut before = Before::default();
            for at in name..self.words.len() {
                if at > name {
                    self.word(at, program, &before);
                }
                before.add(&self.words[at]);
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

    /// `NAME=VALUE`, and pairs in one word: `a=1,password=2`. Says whether all of the word is such a value.
    fn setting(&mut self, at: usize, ends: Ends) -> bool {
        let text = self.text(at);
        if let Some((name, begin)) = assigned_name(text).filter(|(name, _)| secrecy(name) != Secrecy::None) {
            let end = match ends {
                Ends::Word if self.text_use.runs_variable(name, &text[begin..]) => return true,
                Ends::Word => text.len(),
                Ends::Field => begin + first_field(&text[begin..]),
            };
            self.note_named(name, at, begin..end);
            if end == text.len() {
                return true;
            }
        }
        if !text.contains("://") {
            self.pairs(at, 0);
        }
        false
    }

    /// Each `name=value` of a word, from a place on.
    fn pairs(&mut self, at: usize, from: usize) {
        let text = self.text(at);
        // Of a form, each field but the last ends in this sign, and no other sign ends one.
        let is_form = text[from..].split('&').skip(1).any(begins_field);
        let mut start = from;
        for piece in text[from..].split([',', ';', '&', ' ', '\n']) {
            if let Some((name, value)) = piece.split_once('=')
                && name.chars().all(is_plain)
                && secrecy(name) != Secrecy::None
            {
                let begin = start + name.len() + 1;
                let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
                let skip = usize::from(quote.is_some_and(|quote| value.len() > 1 && value.ends_with(quote)));
                let end = match text[begin..].find('&') {
                    end if is_form => begin + end.unwrap_or(text.len() - begin),
                    _ => begin + value.len(),
                };
                self.note_named(name, at, begin + skip..end - skip);
            }
            start += piece.len() + 1;
        }
    }

    /// What a word says by itself, behind those that are known.
    fn word(&mut self, at: usize, program: &str, before: &Before) {
        let text = self.text(at);
        // A command of its own, which is read as one.
        if may_be_command(text)
            && (before.has(Role::Shell) || before.has(Role::Split) || before.splits(&self.words[at]))
        {
            return;
        }
        self.header(at);
        if let Some(option) = text.strip_prefix('-') {
            return self.option(at, option.trim_start_matches('-'));
        }
        if before.has(Role::Set) && secrecy(text) == Secrecy::Named && !self.text(at + 1).starts_with('-') {
            let value = 0..self.text(at + 1).len();
            self.note_named(text, at + 1, value);
        }
        let kind = self.text_use.of_word(program, before.interpreter);
        let is_variable = before.makes_variable(self.text(at - 1));
        // In a program for these, what stands before a sign is no name.
        let edits = matches!(program, "sed" | "awk" | "gawk" | "perl");
        // What may be a program is read as one.
        let has_settings = !edits && (is_variable || kind == TextKind::Data || text::is_plain_word(text));
        if has_settings && self.setting(at, if is_variable { Ends::Word } else { Ends::Field }) {
            return;
        }
        if !PROSE.contains(&program) && text.contains([' ', '"', '\'', '`', '{', '\n', ':', '=']) {
            for part in text::settings(text, kind) {
                self.note(at, part);
            }
        }
    }

    /// What a command prints whose words are put together: the lines of a `.netrc`, the operands of a format.
    fn printed(&mut self, program_at: usize) {
        let texts: Vec<&str> = self.words[program_at + 1..].iter().map(|word| word.text.as_str()).collect();
        for at in netrc::password_words(&texts, |at| at == 0) {
            self.note_named("password", program_at + 1 + at, 0..texts[at].len());
        }
        let Some(format_at) = texts.iter().position(|text| text.contains('%')) else { return };
        let (format, operands) = (texts[format_at], &texts[format_at + 1..]);
        let mut announced = Vec::new();
        let mut filled = String::new();
        for (number, piece) in format.replace("%%", "").split('%').enumerate() {
            if number > 0 {
                if text::announces_secret(&filled) {
                    announced.push(number - 1);
                }
                filled.push('%');
            }
            filled.push_str(piece);
        }
        // `%s` and its like are words of their own there.
        let passwords = netrc::format_operands(format);
        let directives = format.replace("%%", "").matches('%').count();
        for (number, operand) in operands.iter().enumerate() {
            // A format is used again for what is left.
            let place = number.checked_rem(directives);
            if place.is_some_and(|place| announced.contains(&place) || passwords.contains(&place)) {
                self.note_named("password", program_at + 1 + format_at + 1 + number, 0..operand.len());
            }
        }
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
        let is_long = text.starts_with("--");
        let end = if is_long { text.len() } else { begin + first_field(value) };
        if is_secret_option(name) {
            self.note_named("password", at, begin..end);
        } else if secrecy(name) != Secrecy::None {
            self.note_named(name, at, begin..end);
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

/// Where the value of a setting ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// With the word: it is a variable.
    Word,
    /// Where another setting begins.
    Field,
}

/// How long the first value of a text is: to where a sign is followed by another setting, `value&name=…`.
fn first_field(text: &str) -> usize {
    let ends = text.match_indices(['&', ',', ';', ' ', '\n', '\\']).find(|(at, sign)| match *sign {
        // A line end as `printf` has it.
        "\\" => text[at + 1..].strip_prefix('n').is_some_and(begins_field),
        _ => !text[..*at].ends_with('\\') && begins_field(&text[at + 1..]),
    });
    ends.map_or(text.len(), |(at, _)| at)
}

/// Whether a text begins with a name and a sign.
fn begins_field(text: &str) -> bool {
    let name = text.find(|c: char| !is_plain(c)).unwrap_or(text.len());
    name > 0 && text[name..].starts_with('=')
}

/// The name of `NAME=VALUE`, and where the value begins: of variables, settings with dots, and with a subscript.
pub(super) fn assigned_name(text: &str) -> Option<(&str, usize)> {
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
