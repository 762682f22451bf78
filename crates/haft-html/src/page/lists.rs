//! Lists: which number or letter stands before an item.

use super::Tag;
use crate::tokens;
use html5gum::emitters::callback::CallbackEvent;
use std::collections::VecDeque;

/// Lists inside lists are told apart so far, where their items are counted.
const DEPTH_MAX: usize = 512;

/// How items are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    Decimal,
    Letters { upper: bool },
    Roman { upper: bool },
}

/// A list that is open.
#[derive(Debug)]
pub(super) struct ItemList {
    /// The number of the next item, and what is added for the one after; none if items have dots.
    next: Option<(i64, i64)>,
    numbering: Numbering,
    /// Whether there was an item.
    pub(super) begun: bool,
}

impl ItemList {
    pub(super) fn dotted() -> Self {
        Self { next: None, numbering: Numbering::Decimal, begun: false }
    }

    /// One whose items are numbered. If it counts down, it is known how many items it has.
    pub(super) fn numbered(tag: &Tag, items: Option<i64>) -> Self {
        let start = integer(tag.text("start")).or(items).unwrap_or(1);
        let step = if items.is_some() { -1 } else { 1 };
        Self { next: Some((start, step)), numbering: numbering(tag).unwrap_or(Numbering::Decimal), begun: false }
    }

    /// What stands before the next item.
    pub(super) fn mark(&mut self, tag: &Tag) -> String {
        let Some((next, step)) = &mut self.next else { return "- ".to_owned() };
        let number = integer(tag.text("value")).unwrap_or(*next);
        *next = number.saturating_add(*step);
        format!("{}. ", written(number, numbering(tag).unwrap_or(self.numbering)))
    }
}

/// The number that an attribute begins with, if it is one.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim_ascii_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    text[..sign + digits].parse().ok()
}

fn numbering(tag: &Tag) -> Option<Numbering> {
    Some(match tag.text("type") {
        "1" => Numbering::Decimal,
        "a" => Numbering::Letters { upper: false },
        "A" => Numbering::Letters { upper: true },
        "i" => Numbering::Roman { upper: false },
        "I" => Numbering::Roman { upper: true },
        _ => return None,
    })
}

fn written(number: i64, numbering: Numbering) -> String {
    let (lower, upper) = match numbering {
        Numbering::Letters { upper } if number > 0 => (letters(number), upper),
        Numbering::Roman { upper } if (1..4000).contains(&number) => (roman(number), upper),
        _ => return number.to_string(),
    };
    if upper { lower.to_uppercase() } else { lower }
}

/// a to z, then aa, ab and so on.
fn letters(mut number: i64) -> String {
    let mut letters = Vec::new();
    while number > 0 {
        number -= 1;
        letters.push(char::from(b'a' + u8::try_from(number % 26).unwrap_or_default()));
        number /= 26;
    }
    letters.iter().rev().collect()
}

fn roman(mut number: i64) -> String {
    const SIGNS: &[(i64, &str)] = &[
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    let mut text = String::new();
    for (value, sign) in SIGNS {
        while number >= *value {
            text.push_str(sign);
            number -= value;
        }
    }
    text
}

/// How many items each list has that counts down, in the order in which those lists begin. They begin with that number,
/// so that it has to be known before the first item is read.
pub(super) fn reversed_counts(html: &str) -> VecDeque<i64> {
    let mut counter = Counter::default();
    let word = b"reversed";
    let mut places = memchr::memchr2_iter(b'r', b'R', html.as_bytes());
    let some =
        places.any(|at| html.as_bytes().get(at..at + word.len()).is_some_and(|here| here.eq_ignore_ascii_case(word)));
    if some {
        tokens::each(html, |event| counter.take(&event));
    }
    counter.counts
}

/// Counts items while tags come by.
#[derive(Default)]
struct Counter {
    counts: VecDeque<i64>,
    /// The lists that are open: which of the counts is theirs, if one is. How many are open beyond the deepest.
    open: Vec<(Vec<u8>, Option<usize>)>,
    deeper: usize,
    name: Vec<u8>,
    reversed: bool,
}

impl Counter {
    fn take(&mut self, event: &CallbackEvent<'_>) {
        match *event {
            CallbackEvent::OpenStartTag { name } => {
                self.name.clear();
                self.name.extend_from_slice(&name[..name.len().min(8)]);
                self.reversed = false;
            }
            CallbackEvent::AttributeName { name } => self.reversed |= name == b"reversed",
            CallbackEvent::CloseStartTag { .. } => self.start(),
            CallbackEvent::EndTag { name } if is_list(name) => {
                if self.deeper > 0 {
                    self.deeper -= 1;
                } else if let Some(at) = self.open.iter().rposition(|(open, _)| open == name) {
                    self.open.truncate(at);
                }
            }
            _ => {}
        }
    }

    fn start(&mut self) {
        if self.name == b"li" {
            let count = self.open.last().and_then(|(_, count)| *count).filter(|_| self.deeper == 0);
            if let Some(count) = count.and_then(|at| self.counts.get_mut(at)) {
                *count += 1;
            }
        } else if is_list(&self.name) {
            let count = (self.reversed && self.name == b"ol").then(|| {
                self.counts.push_back(0);
                self.counts.len() - 1
            });
            if self.open.len() < DEPTH_MAX {
                self.open.push((self.name.clone(), count));
            } else {
                self.deeper += 1;
            }
        }
    }
}

fn is_list(name: &[u8]) -> bool {
    matches!(name, b"ol" | b"ul" | b"menu" | b"dir")
}
