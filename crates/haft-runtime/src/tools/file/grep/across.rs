//! Searching a whole text for a pattern that matches across lines.
//!
//! grep-searcher's own search across lines looks at each match from the one before it, where `^` and `\b` see no text in
//! front of them, and goes back to the beginning of the line for each match, which takes forever where a line has a million.

use super::sink::FileSink;
use crate::halt::Halt;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use std::io;
use std::ops::Range;

/// How many matches are found between two looks at the halt.
const MATCHES_PER_LOOK: usize = 4096;

/// A text that is searched as one.
pub(super) struct WholeText<'t> {
    pub(super) text: &'t [u8],
    pub(super) matcher: &'t RegexMatcher,
    pub(super) halt: &'t Halt,
}

impl WholeText<'_> {
    /// Gives the sink all lines that a match is in, in order, and those around them.
    pub(super) fn search(&self, sink: &mut FileSink<'_>) -> io::Result<()> {
        let mut groups = LineGroups { whole: self, at: 0, pending: None, done: false };
        let mut place = Place { text: self.text, at: 0, number: 1 };
        let mut follows = false;
        while let Some(lines) = groups.next()? {
            if !sink.wants_lines() {
                if !sink.count(&self.text[lines]) {
                    return Ok(());
                }
                continue;
            }
            if follows {
                place.context(sink, lines.start);
            }
            let before = lines_before(self.text, place.at..lines.start, sink.context_lines());
            sink.set_gap(follows && before > place.at);
            place.go_to(before);
            place.show_context(sink, before..lines.start);
            place.go_to(lines.start);
            if !sink.matched_lines(self.text, lines.clone(), place.number) {
                return Ok(());
            }
            place.go_to(lines.end);
            follows = true;
        }
        if follows && sink.wants_lines() {
            place.context(sink, self.text.len());
        }
        Ok(())
    }
}

/// Ranges of whole lines that a match is in. No line is in two of them.
struct LineGroups<'t> {
    whole: &'t WholeText<'t>,
    /// Where the next match is looked for.
    at: usize,
    /// Lines that the next match may still make more.
    pending: Option<Range<usize>>,
    done: bool,
}

impl LineGroups<'_> {
    fn next(&mut self) -> io::Result<Option<Range<usize>>> {
        let text = self.whole.text;
        let mut looked = 0;
        while !self.done {
            looked += 1;
            if looked % MATCHES_PER_LOOK == 1 {
                self.whole.halt.check().map_err(io::Error::other)?;
            }
            let is_full = self.pending.as_ref().is_some_and(|pending| pending.end == text.len());
            let found = if is_full { None } else { self.find() };
            // After the last line end there is no line.
            let Some(found) =
                found.filter(|found| found.start < text.len() || text.last().is_some_and(|last| *last != b'\n'))
            else {
                self.done = true;
                break;
            };
            self.at = if found.is_empty() { found.end + 1 } else { found.end };
            match &mut self.pending {
                Some(pending) if found.start < pending.end => {
                    if found.end > pending.end {
                        pending.end = end_of_line(text, &found);
                    }
                }
                pending => {
                    let from = pending.as_ref().map_or(0, |pending| pending.end);
                    let start = memchr::memrchr(b'\n', &text[from..found.start]).map_or(from, |at| from + at + 1);
                    let lines = start..end_of_line(text, &found);
                    if let Some(complete) = pending.replace(lines) {
                        return Ok(Some(complete));
                    }
                }
            }
        }
        Ok(self.pending.take())
    }

    fn find(&self) -> Option<Range<usize>> {
        if self.at > self.whole.text.len() {
            return None;
        }
        // A pattern of this kind does not fail.
        let found = self.whole.matcher.find_at(self.whole.text, self.at).ok().flatten()?;
        Some(found.start()..found.end())
    }
}

/// The end of the line that a match ends in. One that ends with a line end is in no further line.
fn end_of_line(text: &[u8], found: &Range<usize>) -> usize {
    if !found.is_empty() && text[found.end - 1] == b'\n' {
        return found.end;
    }
    memchr::memchr(b'\n', &text[found.end..]).map_or(text.len(), |at| found.end + at + 1)
}

/// Where the last so many lines of a range begin.
fn lines_before(text: &[u8], range: Range<usize>, count: usize) -> usize {
    let mut start = range.end;
    for _ in 0..count {
        if start <= range.start {
            break;
        }
        start = memchr::memrchr(b'\n', &text[range.start..start - 1]).map_or(range.start, |at| range.start + at + 1);
    }
    start
}

/// A line's beginning and its number.
struct Place<'t> {
    text: &'t [u8],
    at: usize,
    number: u64,
}

impl Place<'_> {
    fn go_to(&mut self, at: usize) {
        self.number += memchr::memchr_iter(b'\n', &self.text[self.at..at]).count() as u64;
        self.at = at;
    }

    /// Shows the lines that follow a match, up to `end`.
    fn context(&mut self, sink: &mut FileSink<'_>, end: usize) {
        let mut last = self.at;
        for _ in 0..sink.context_lines() {
            if last >= end {
                break;
            }
            last = memchr::memchr(b'\n', &self.text[last..end]).map_or(end, |at| last + at + 1);
        }
        self.show_context(sink, self.at..last);
        self.go_to(last);
    }

    fn show_context(&self, sink: &mut FileSink<'_>, lines: Range<usize>) {
        let text = &self.text[lines];
        for (number, line) in (self.number..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
            sink.context_line(number, line);
        }
    }
}
