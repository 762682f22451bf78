//! Where a search puts what it finds in one file.

use super::kept::{Hits, Kept};
use super::line::{Kind, Line, reach};
use super::query::{Mode, Query};
use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One file's results in the making.
pub(super) struct FileSink<'a> {
    query: &'a Query,
    kept: &'a Mutex<Kept>,
    path: &'a Path,
    marks: &'a mut Vec<Range<usize>>,
    /// Whether any of this file can be shown; asked only once something is found.
    wanted: Option<bool>,
    gap: bool,
    /// Whether the file turned out to be binary. What came before stays.
    pub(super) binary: bool,
    /// What was found.
    pub(super) hits: Hits,
}

impl<'a> FileSink<'a> {
    /// A sink for the file at `path`. `marks` is scratch space that outlives one file.
    pub(super) fn new(
        query: &'a Query,
        kept: &'a Mutex<Kept>,
        path: &'a Path,
        marks: &'a mut Vec<Range<usize>>,
    ) -> Self {
        Self { query, kept, path, marks, wanted: None, gap: false, binary: false, hits: Hits::default() }
    }

    /// Whether another line can be shown.
    pub(super) fn wants_lines(&mut self) -> bool {
        let (kept, path) = (self.kept, self.path);
        let ask = || kept.lock().unwrap_or_else(PoisonError::into_inner).wants(path);
        self.query.mode == Mode::Content
            && self.hits.lines.len() < self.query.limit
            && *self.wanted.get_or_insert_with(ask)
    }

    /// How many lines are shown before and after a match.
    pub(super) fn context_lines(&self) -> usize {
        self.query.context
    }

    /// Says whether lines are missing before the next one.
    pub(super) fn set_gap(&mut self, gap: bool) {
        self.gap = gap;
    }

    /// Counts matching lines. False once no more have to be found.
    pub(super) fn count(&mut self, lines: &[u8]) -> bool {
        if self.query.mode == Mode::FilesWithMatches {
            self.hits.count = 1;
            return false;
        }
        let ends = memchr::memchr_iter(b'\n', lines).count();
        self.hits.count += ends + usize::from(!lines.ends_with(b"\n"));
        true
    }

    /// Takes matching lines, the first of which has this number. False once no more have to be found.
    pub(super) fn matched_lines(&mut self, text: &[u8], lines: Range<usize>, number: u64) -> bool {
        let more = self.count(&text[lines.clone()]);
        if more && self.wants_lines() {
            self.show(text, lines, number);
        }
        more
    }

    /// Takes a line near a match.
    pub(super) fn context_line(&mut self, number: u64, raw: &[u8]) {
        if self.wants_lines() {
            self.push(number, Kind::Context, raw, &[]);
        }
    }

    fn push(&mut self, number: u64, kind: Kind, raw: &[u8], matches: &[Range<usize>]) {
        let raw = raw.strip_suffix(b"\n").map_or(raw, |text| {
            // Elsewhere it was left out as it was read.
            if self.query.with_carriage_returns { text.strip_suffix(b"\r").unwrap_or(text) } else { text }
        });
        let mut line = Line::new(number, kind, raw, matches);
        line.after_gap = std::mem::take(&mut self.gap);
        self.hits.lines.push(line);
    }

    /// Shows matching lines with the places of their matches.
    fn show(&mut self, text: &[u8], lines: Range<usize>, mut number: u64) {
        let mut marks = std::mem::take(self.marks);
        let mut matches = Matches { query: self.query, text, at: lines.start, ahead: None };
        let mut start = lines.start;
        while start < lines.end && self.wants_lines() {
            let end = memchr::memchr(b'\n', &text[start..lines.end]).map_or(lines.end, |at| start + at + 1);
            matches.mark(start..end, &mut marks);
            self.push(number, Kind::Match, &text[start..end], &marks);
            (start, number) = (end, number + 1);
        }
        *self.marks = marks;
    }
}

/// The matches of a text, one after the other.
struct Matches<'t> {
    query: &'t Query,
    text: &'t [u8],
    at: usize,
    /// A match that ends beyond the line that was looked at, or begins there.
    ahead: Option<Range<usize>>,
}

impl Matches<'_> {
    /// Collects where the matches in a line are that can be shown. Empty ones have nothing to mark.
    fn mark(&mut self, line: Range<usize>, marks: &mut Vec<Range<usize>>) {
        marks.clear();
        self.at = self.at.max(line.start);
        loop {
            let last = marks.first().map_or(line.end, |first| line.end.min(line.start + reach(first.start)));
            let Some(found) = self.ahead.take().or_else(|| self.find()) else { return };
            if found.start >= last {
                self.ahead = Some(found);
                return;
            }
            let mark = found.start.max(line.start) - line.start..found.end.min(line.end).max(line.start) - line.start;
            if !mark.is_empty() {
                marks.push(mark);
            }
            if found.end > line.end {
                self.ahead = Some(found);
                return;
            }
        }
    }

    fn find(&mut self) -> Option<Range<usize>> {
        if self.at > self.text.len() {
            return None;
        }
        // A pattern cannot fail here that did not fail in the search.
        let found = self.query.matcher.find_at(self.text, self.at).ok().flatten();
        let Some(found) = found else {
            self.at = self.text.len() + 1;
            return None;
        };
        self.at = if found.is_empty() { found.end() + 1 } else { found.end() };
        Some(found.start()..found.end())
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let line = found.bytes();
        Ok(self.matched_lines(line, 0..line.len(), found.line_number().unwrap_or(0)))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.context_line(context.line_number().unwrap_or(0), context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.gap = true;
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }
}
