//! Reading the words after a program as its options and operands, as the program itself would.

use super::entry::{Arity, Does, Entry};
use super::judged::{Cause, Class, Doubt, Harm};
use super::word::{Value, Word};

/// An option that was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) value: Option<Word>,
    pub(super) does: Does,
}

/// The words of a command, sorted.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) options: Vec<Found>,
    pub(super) operands: Vec<Word>,
    /// Where among the words each operand stands.
    pub(super) at: Vec<usize>,
    pub(super) doubts: Vec<Doubt>,
}

impl Sorted {
    pub(super) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.name == name)
    }

    pub(super) fn value(&self, name: &str) -> Option<&Word> {
        self.options.iter().rev().find(|option| option.name == name).and_then(|option| option.value.as_ref())
    }

    fn doubt(&mut self, why: String) {
        self.doubts.push(Doubt::new(Harm::Unknown, why));
    }
}

/// Sorts words. `until_operand` stops at the first operand: what follows belongs to a subcommand.
pub(super) fn sort(entry: &Entry, words: &[Word], until_operand: bool) -> Sorted {
    let mut reading = Reading { entry, words, next: 0, sorted: Sorted::default(), ended: false };
    while reading.next < words.len() {
        let at = reading.next;
        reading.next += 1;
        let before = reading.sorted.operands.len();
        reading.word(at);
        if until_operand && reading.sorted.operands.len() > before {
            break;
        }
    }
    reading.sorted
}

struct Reading<'r> {
    entry: &'r Entry,
    words: &'r [Word],
    next: usize,
    sorted: Sorted,
    ended: bool,
}

impl Reading<'_> {
    fn word(&mut self, at: usize) {
        let word = &self.words[at];
        let written = &self.entry.written;
        match word.literal() {
            Some(_) if self.ended => self.operand(at),
            Some("--") if !written.single_dash => self.ended = true,
            Some(text) if text.len() > 1 && text.starts_with('-') => self.dashed(&text.to_owned()),
            Some(text) if text.len() > 1 && text.starts_with('+') && self.entry.options.contains_key(text) => {
                let name = text.to_owned();
                self.take(&name, None);
            }
            Some(text) if written.plus && text.starts_with('+') => {}
            Some(text) if at == 0 && written.dashless && is_bundle(text) => self.bundle(&text.to_owned(), true),
            Some(_) => self.operand(at),
            None if self.ended || !word.may_be_option() => self.operand(at),
            None => self.partial(at),
        }
    }

    fn operand(&mut self, at: usize) {
        self.ended |= self.entry.written.stops;
        self.sorted.operands.push(self.words[at].clone());
        self.sorted.at.push(at);
    }

    /// A word that may turn out to be an option.
    fn partial(&mut self, at: usize) {
        let word = self.words[at].clone();
        let start = word.start().to_owned();
        if let (Some((name, value)), false) = (start.split_once('='), word.splits())
            && let Some((arity, _)) = self.entry.options.get(name)
            && *arity != Arity::None
        {
            let value = Value::Partial { start: value.to_owned(), splits: false };
            return self.take(name, Some(Word { text: word.text.clone(), value }));
        }
        let numeric = word.value == Value::Number && (self.entry.written.numbers || self.entry.harmless());
        if !self.entry.harmless() && !numeric {
            self.sorted.doubt(format!("`{}` may turn out to be an option", super::cut(&word.text)));
        }
        self.operand(at);
    }

    fn dashed(&mut self, text: &str) {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(Word::known(value))),
            None => (text, None),
        };
        let known = self.entry.options.get(name).copied();
        match known {
            Some((Arity::None, _)) if value.is_some() => {
                self.sorted.doubt(format!("`{}` takes no value", super::cut(name)));
            }
            Some((Arity::None | Arity::Attached, _)) => self.take(name, value),
            Some((Arity::Required, _))
                if value.is_some() && (text.starts_with("--") || self.entry.written.single_dash) =>
            {
                self.take(name, value);
            }
            Some((Arity::Required, _)) if value.is_none() => {
                let value = self.following(name);
                self.take(name, value);
            }
            _ if text.starts_with("--") || self.entry.written.single_dash => {
                let number = self.entry.written.numbers && text[1..].chars().all(|c| c.is_ascii_digit());
                if !number {
                    self.unknown(name);
                }
            }
            _ => self.bundle(&text[1..], false),
        }
    }

    /// The next word, as an option's value.
    fn following(&mut self, name: &str) -> Option<Word> {
        let Some(word) = self.words.get(self.next) else {
            if !self.entry.harmless() {
                self.sorted.doubt(format!("`{name}` has no value"));
            }
            return None;
        };
        self.next += 1;
        let dashed = word.literal().is_some_and(|text| {
            text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| !c.is_ascii_digit()))
        });
        if dashed && !self.entry.harmless() {
            // Some programs take it for an option all the same.
            self.sorted.doubt(format!("`{}` after `{name}` may be an option of its own", super::cut(&word.text)));
        }
        if word.splits() && !self.entry.harmless() {
            let why = format!("`{}` after `{name}` may be more than one word, or none", super::cut(&word.text));
            self.sorted.doubt(why);
        }
        Some(word.clone())
    }

    /// Short options in one word.
    fn bundle(&mut self, text: &str, dashless: bool) {
        for (at, c) in text.char_indices() {
            let name = format!("-{c}");
            let rest = &text[at + c.len_utf8()..];
            match self.entry.options.get(name.as_str()) {
                Some((Arity::None, _)) => self.take(&name, None),
                Some((Arity::Required, _)) if dashless => {
                    let value = self.following(&name);
                    self.take(&name, value);
                }
                Some((Arity::Required, _)) if rest.is_empty() => {
                    let value = self.following(&name);
                    return self.take(&name, value);
                }
                Some((Arity::Required, _)) => return self.take(&name, Some(Word::known(rest))),
                Some((Arity::Attached, _)) if dashless => self.take(&name, None),
                Some((Arity::Attached, _)) => {
                    return self.take(&name, (!rest.is_empty()).then(|| Word::known(rest)));
                }
                None if self.entry.written.numbers && c.is_ascii_digit() => {}
                None => return self.unknown(&format!("-{}", &text[at..])),
            }
        }
    }

    fn unknown(&mut self, name: &str) {
        // Who only says things says this as well.
        if self.entry.class == Class::Neutral && self.entry.harmless() {
            return;
        }
        let why = format!("the option `{}` is not known to be harmless", super::cut(name));
        self.sorted.doubts.push(Doubt::new(Harm::Unknown, why).by(Cause::Option(name.to_owned())));
    }

    fn take(&mut self, name: &str, value: Option<Word>) {
        let does = self.entry.options.get(name).map_or(Does::Runs, |(_, does)| *does);
        self.sorted.options.push(Found { name: name.to_owned(), value, does });
    }
}

fn is_bundle(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic())
}
