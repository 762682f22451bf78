//! A text in which spellings that count as equal are written alike, and the way back to places in the text as it is.

use memchr::{memchr, memchr2, memmem};
use std::borrow::Cow;
use std::ops::Range;

/// Bytes that are in no UTF-8 text.
const NEVER_IN_UTF8: [u8; 8] = [0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9, 0xf8];

/// Which line ends count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// CRLF and LF.
    Alike,
    /// None. Still an LF alone is never found within a CRLF.
    AsWritten,
}

/// Which quotes count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quotes {
    /// None.
    AsWritten,
    /// Curly and straight ones.
    Alike,
}

/// What counts as equal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling {
    pub(super) line_ends: LineEnds,
    pub(super) quotes: Quotes,
    /// What the LF of a CRLF is replaced by where line ends count as written.
    pub(super) mark: u8,
}

/// A spelling that is replaced by one byte.
#[derive(Debug, Clone, Copy)]
struct Fold {
    at: usize,
    length: usize,
    byte: u8,
}

impl Spelling {
    /// For a search in `text`.
    pub(super) fn new(line_ends: LineEnds, quotes: Quotes, text: &[u8]) -> Self {
        let is_free = |byte: &&u8| line_ends == LineEnds::Alike || memchr(**byte, text).is_none();
        let mark = NEVER_IN_UTF8.iter().find(is_free).copied().unwrap_or(NEVER_IN_UTF8[0]);
        Self { line_ends, quotes, mark }
    }

    /// The first spelling that is replaced, from a place on.
    fn next(self, text: &[u8], from: usize) -> Option<Fold> {
        let mut at = from;
        loop {
            let rest = text.get(at..)?;
            at += match self.quotes {
                Quotes::AsWritten => memchr(b'\r', rest)?,
                Quotes::Alike => memchr2(b'\r', QUOTE_LEAD, rest)?,
            };
            match &text[at..] {
                [b'\r', b'\n', ..] if self.line_ends == LineEnds::Alike => {
                    return Some(Fold { at, length: 2, byte: b'\n' });
                }
                [b'\r', b'\n', ..] => return Some(Fold { at: at + 1, length: 1, byte: self.mark }),
                rest => {
                    if let Some(byte) = straight(rest).filter(|_| self.quotes == Quotes::Alike) {
                        return Some(Fold { at, length: QUOTE_LENGTH, byte });
                    }
                }
            }
            at += 1;
        }
    }

    /// The text written so that what counts as equal is equal.
    pub(super) fn fold(self, text: &[u8]) -> Cow<'_, [u8]> {
        let Some(mut fold) = self.next(text, 0) else { return text.into() };
        let mut folded = Vec::with_capacity(text.len());
        let mut from = 0;
        loop {
            folded.extend_from_slice(&text[from..fold.at]);
            folded.push(fold.byte);
            from = fold.at + fold.length;
            match self.next(text, from) {
                Some(next) => fold = next,
                None => break,
            }
        }
        folded.extend_from_slice(&text[from..]);
        folded.into()
    }
}

/// The first byte of a curly quote.
const QUOTE_LEAD: u8 = 0xe2;
const QUOTE_LENGTH: usize = 3;

/// The straight form of the curly quote that a text begins with: U+2018 to U+201F.
fn straight(text: &[u8]) -> Option<u8> {
    match text {
        [QUOTE_LEAD, 0x80, 0x98..=0x9b, ..] => Some(b'\''),
        [QUOTE_LEAD, 0x80, 0x9c..=0x9f, ..] => Some(b'"'),
        _ => None,
    }
}

/// A text to be searched.
pub(super) struct Folded<'t> {
    original: &'t [u8],
    searched: Cow<'t, [u8]>,
    spelling: Spelling,
}

impl<'t> Folded<'t> {
    pub(super) fn new(original: &'t [u8], spelling: Spelling) -> Self {
        Self { original, searched: spelling.fold(original), spelling }
    }

    /// Where `needle`, which is folded like this text, occurs in the text as it is: in order, none within another. Its first
    /// `head` and last `tail` bytes are left out of each place.
    pub(super) fn occurrences<'s>(
        &'s self,
        needle: &'s [u8],
        (head, tail): (usize, usize),
    ) -> impl Iterator<Item = Occurrence> + 's {
        let mut back = WayBack::new(self);
        memmem::find_iter(&self.searched, needle).map(move |at| {
            let start = back.original(at);
            let changed = back.original(at + head)..back.original(at + needle.len() - tail);
            Occurrence { start, changed }
        })
    }
}

/// A place where a text occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Occurrence {
    /// Where it begins.
    pub(super) start: usize,
    /// The part of it that is replaced.
    pub(super) changed: Range<usize>,
}

/// Goes along a folded text and the text as it is. It never goes back.
struct WayBack<'t> {
    original: &'t [u8],
    spelling: Spelling,
    next: Option<Fold>,
    /// A place in the text as it is, with all folds before it.
    at: usize,
    /// The same place in the folded text.
    folded_at: usize,
}

impl<'t> WayBack<'t> {
    fn new(text: &Folded<'t>) -> Self {
        let is_same = matches!(text.searched, Cow::Borrowed(_));
        let next = if is_same { None } else { text.spelling.next(text.original, 0) };
        Self { original: text.original, spelling: text.spelling, next, at: 0, folded_at: 0 }
    }

    /// The place in the text as it is: before a spelling that was replaced, or behind it, never inside.
    fn original(&mut self, folded: usize) -> usize {
        while let Some(fold) = self.next {
            let fold_at = self.folded_at + (fold.at - self.at);
            if fold_at >= folded {
                break;
            }
            (self.at, self.folded_at) = (fold.at + fold.length, fold_at + 1);
            self.next = self.spelling.next(self.original, self.at);
        }
        self.at + (folded - self.folded_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &[u8], spelling: Spelling, needle: &str) -> Vec<(usize, usize)> {
        let folded = Folded::new(text, spelling);
        let needle = spelling.fold(needle.as_bytes()).into_owned();
        folded.occurrences(&needle, (0, 0)).map(|found| (found.changed.start, found.changed.end)).collect()
    }

    #[test]
    fn an_occurrence_never_begins_or_ends_inside_a_line_end() {
        let text = b"a\r\nb\nc\r\n\r\nd";
        let spelling = Spelling::new(LineEnds::Alike, Quotes::AsWritten, text);
        assert_eq!(found(text, spelling, "\n"), [(1, 3), (4, 5), (6, 8), (8, 10)]);
        let folded = Folded::new(text, spelling);
        let kept: Vec<_> = folded.occurrences(b"c\n", (1, 0)).collect();
        assert_eq!(kept, [Occurrence { start: 5, changed: 6..8 }]);
    }

    #[test]
    fn a_line_feed_as_written_is_not_found_in_a_crlf() {
        let text = b"a\r\nb\n\xff";
        let spelling = Spelling::new(LineEnds::AsWritten, Quotes::AsWritten, text);
        assert_eq!(found(text, spelling, "\n"), [(4, 5)]);
        assert_eq!(found(text, spelling, "\r\n"), [(1, 3)]);
        assert_eq!(found(text, spelling, "\r"), [(1, 2)]);
    }

    #[test]
    fn quotes_are_longer_than_what_they_are_folded_to() {
        let text = "a “é” b".as_bytes();
        let spelling = Spelling::new(LineEnds::Alike, Quotes::Alike, text);
        assert_eq!(found(text, spelling, "\"é\""), [(2, 10)]);
    }
}
