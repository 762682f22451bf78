//! Replacing one text by another in a file: what file.edit and file.batch share.
//!
//! Line ends: an LF in the text to be replaced stands for the file's line end, LF or CRLF, and an LF in the new text becomes
//! the line end of its place, that is, of the line in which the occurrence begins (of the line before, if that is the last and
//! has none). Whoever writes a CR speaks of line ends: a text to be replaced that holds one is matched as written, and a new
//! text that holds one is written as given. No occurrence begins or ends inside a CRLF unless a CR of its own says so.
//!
//! What the old and the new text have in common at their beginning and end is not touched: it keeps the bytes that it has.

use super::folded::{Folded, LineEnds, Spelling};
use super::near;
use crate::files::LOAD_MAX;
use crate::text_encoding::TextEncoding;
use haft_core::CallError;
use haft_core::preview::size;
use memchr::{memchr, memchr_iter, memrchr};
use serde_json::json;
use std::borrow::Cow;

pub use super::folded::Quotes;

/// The lines of this many occurrences are named; the others are counted.
const LINES_NAMED: usize = 20;

/// How many occurrences are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    /// One, which has to be the only one.
    Only,
    /// All.
    All,
}

/// A text that is to stand in the place of another.
#[derive(Debug, Clone, Copy)]
pub struct Replacement<'r> {
    /// The text to be replaced.
    pub old: &'r str,
    /// What replaces it.
    pub new: &'r str,
    /// How many occurrences are replaced.
    pub occurrences: Occurrences,
    /// Whether curly and straight quotes count as equal where nothing occurs as written.
    pub quotes: Quotes,
}

/// A file after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new content.
    pub content: Vec<u8>,
    /// Where something was replaced.
    pub lines: LineNumbers,
    /// Whether curly and straight quotes counted as equal.
    pub quotes: Quotes,
}

/// The lines (counted from one, in the text before the edit) in which occurrences begin: one number for each of the first ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineNumbers {
    /// The numbers, for as many occurrences as are named.
    pub first: Vec<usize>,
    /// How many occurrences there are.
    pub total: usize,
}

impl std::fmt::Display for LineNumbers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noun = if self.total == 1 { "line" } else { "lines" };
        let list = self.first.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(formatter, "{noun} {list}")?;
        match self.total - self.first.len() {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// Why nothing was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditError {
    /// Nothing to look for.
    Empty,
    /// The result would be the same.
    Identical,
    /// It occurs more than once.
    Ambiguous(LineNumbers),
    /// It does not occur.
    Missing,
    /// The file's encoding does not have a character of the new text.
    Unrepresentable {
        /// The first such character.
        character: char,
        /// The encoding.
        encoding: &'static str,
    },
    /// Some of the content is not valid in the file's encoding, which is this.
    Undecodable(&'static str),
    /// The result would be larger than files may be.
    TooLarge,
}

impl Replacement<'_> {
    /// Replaces in a text.
    pub fn apply_to_text(&self, text: &str) -> Result<Edited, EditError> {
        self.apply(text.as_bytes(), TextEncoding::UTF_8)
    }

    /// Replaces in the content of a file.
    pub(crate) fn apply(&self, content: &[u8], encoding: TextEncoding) -> Result<Edited, EditError> {
        if self.old.is_empty() {
            return Err(EditError::Empty);
        }
        if self.old == self.new {
            return Err(EditError::Identical);
        }
        // Bytes that are not valid UTF-8 stay where they are.
        let text = if encoding.is_utf8() {
            Cow::Borrowed(content)
        } else {
            match encoding.decode_exactly(content) {
                Some(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
                Some(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
                None => return Err(EditError::Undecodable(encoding.name())),
            }
        };
        let as_written = Search::new(&text, self, Quotes::AsWritten);
        let lines = as_written.lines();
        let (search, lines) = if lines.total == 0 && self.quotes == Quotes::Alike {
            let alike = Search::new(&text, self, Quotes::Alike);
            let lines = alike.lines();
            (alike, lines)
        } else {
            (as_written, lines)
        };
        match lines.total {
            0 => return Err(EditError::Missing),
            2.. if self.occurrences == Occurrences::Only => return Err(EditError::Ambiguous(lines)),
            _ => {}
        }
        let edited = search.replace(content, encoding)?;
        if edited == content {
            return Err(EditError::Identical);
        }
        Ok(Edited { content: edited, lines, quotes: search.quotes })
    }

    /// How much of the old and the new text is the same at their beginning and at their end, in bytes.
    fn common_ends(&self) -> (usize, usize) {
        let same = |(old, new): &(char, char)| old == new;
        let head = self.old.chars().zip(self.new.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
        let (old, new) = (&self.old[head..], &self.new[head..]);
        let tail = old.chars().rev().zip(new.chars().rev()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
        (head, tail)
    }
}

impl EditError {
    /// The error about a file, as the caller hears it.
    pub fn explain(self, shown: &str) -> CallError {
        match self {
            Self::Empty => CallError::invalid("`old_string` is empty").hint("use file.write to write a whole file"),
            Self::Identical => CallError::invalid(format!("the edit would leave {shown} as it is")),
            Self::Ambiguous(lines) => {
                CallError::conflict(format!("`old_string` occurs {} times in {shown}, at {lines}", lines.total))
                    .hint("add surrounding lines to make it unique, or set replace_all")
                    .details(json!({ "lines": lines.first, "total": lines.total }))
            }
            Self::Missing => CallError::not_found(format!("`old_string` does not occur in {shown}"))
                .hint("read the file again: it may differ from what you expect"),
            Self::Unrepresentable { character, encoding } => CallError::failed(format!(
                "{shown} is in {encoding}, which does not have the character `{character}` (U+{:04X}); nothing was changed",
                u32::from(character)
            ))
            .hint(format!("use characters that {encoding} has, or convert the file to UTF-8 with `iconv` in a shell")),
            Self::Undecodable(encoding) => CallError::failed(format!(
                "{shown} looks like {encoding}, but some of its bytes are not valid {encoding}; nothing was changed"
            ))
            .hint("change it with a program in a shell"),
            Self::TooLarge => {
                let most = size(usize::try_from(LOAD_MAX).unwrap_or(usize::MAX));
                CallError::failed(format!("{shown} would become larger than {most}, the limit for an edit; nothing was changed"))
                    .hint("change it with a program in a shell")
            }
        }
    }

    /// The same, with what comes nearest to a text that does not occur.
    pub(crate) fn explain_near(self, shown: &str, text: &str, old: &str) -> CallError {
        match self {
            Self::Missing => near::hint(self.explain(shown), &near::candidates(text, old)),
            other => other.explain(shown),
        }
    }
}

/// A search for one text, and what is put in its place.
struct Search<'t> {
    text: &'t [u8],
    folded: Folded<'t>,
    needle: Vec<u8>,
    /// How much of the needle is not replaced, at both ends.
    kept: (usize, usize),
    /// What replaces the rest.
    new: &'t str,
    /// Whether an LF in it becomes the line end of its place.
    adapts: bool,
    quotes: Quotes,
}

impl<'t> Search<'t> {
    fn new(text: &'t [u8], replacement: &Replacement<'t>, quotes: Quotes) -> Self {
        let Replacement { old, new, .. } = *replacement;
        let line_ends = if old.contains('\r') { LineEnds::AsWritten } else { LineEnds::Alike };
        let spelling = Spelling::new(line_ends, quotes, text);
        // A new text with a CR goes in as it is, also where it says the same as the old one.
        let is_literal = line_ends == LineEnds::Alike && new.contains('\r');
        let (head, tail) = if is_literal { (0, 0) } else { replacement.common_ends() };
        let folded_length = |part: &str| spelling.fold(part.as_bytes()).len();
        Self {
            text,
            folded: Folded::new(text, spelling),
            needle: spelling.fold(old.as_bytes()).into_owned(),
            kept: (folded_length(&old[..head]), folded_length(&old[old.len() - tail..])),
            new: &new[head..new.len() - tail],
            adapts: line_ends == LineEnds::Alike && !is_literal,
            quotes,
        }
    }

    /// The lines of the occurrences, and how many there are.
    fn lines(&self) -> LineNumbers {
        let mut numbers = LineNumbers::default();
        let (mut line, mut from) = (1, 0);
        for found in self.folded.occurrences(&self.needle, self.kept) {
            if numbers.total < LINES_NAMED {
                line += memchr_iter(b'\n', &self.text[from..found.start]).count();
                from = found.start;
                numbers.first.push(line);
            }
            numbers.total += 1;
        }
        numbers
    }

    /// The content with every occurrence replaced. Bytes outside of what is replaced are copied.
    fn replace(&self, content: &[u8], encoding: TextEncoding) -> Result<Vec<u8>, EditError> {
        let name = encoding.name();
        let unrepresentable = |character| EditError::Unrepresentable { character, encoding: name };
        let encode = |text: &str| encoding.encode(text).map_err(unrepresentable);
        let as_given = encode(self.new)?;
        let with_crlf = if self.adapts { encode(&self.new.replace('\n', "\r\n"))? } else { Vec::new() };
        let mut offsets = encoding.byte_offsets(content);
        let mut places = PlaceLineEnds::of(self.text);
        let mut edited = Vec::with_capacity(content.len());
        let mut from = 0;
        for found in self.folded.occurrences(&self.needle, self.kept) {
            let bytes = |offset: Option<usize>| offset.ok_or(EditError::Undecodable(name));
            let (start, end) = (bytes(offsets.of(found.changed.start))?, bytes(offsets.of(found.changed.end))?);
            let new = if self.adapts && places.is_crlf(found.start) { &with_crlf } else { &as_given };
            edited.extend_from_slice(&content[from..start]);
            edited.extend_from_slice(new);
            from = end;
            if edited.len() as u64 > LOAD_MAX {
                return Err(EditError::TooLarge);
            }
        }
        edited.extend_from_slice(&content[from..]);
        if edited.len() as u64 > LOAD_MAX { Err(EditError::TooLarge) } else { Ok(edited) }
    }
}

/// The line ends of places in a text, asked for in order.
struct PlaceLineEnds<'t> {
    text: &'t [u8],
    /// The first LF that is not before the last place asked for.
    next: Option<usize>,
    last: Option<usize>,
}

impl<'t> PlaceLineEnds<'t> {
    fn of(text: &'t [u8]) -> Self {
        Self { text, next: memchr(b'\n', text), last: memrchr(b'\n', text) }
    }

    /// Whether the line of a place ends in CRLF.
    fn is_crlf(&mut self, place: usize) -> bool {
        if self.next.is_some_and(|next| next < place) {
            self.next = memchr(b'\n', &self.text[place..]).map(|at| place + at);
        }
        let end = self.next.or(self.last);
        end.is_some_and(|end| self.text[..end].ends_with(b"\r"))
    }
}

#[cfg(test)]
mod tests;
