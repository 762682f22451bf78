//! Where the searcher puts what it finds in one file.

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
    fn shows(&mut self) -> bool {
        let (kept, path) = (self.kept, self.path);
        let ask = || kept.lock().unwrap_or_else(PoisonError::into_inner).wants(path);
        self.query.mode == Mode::Content
            && self.hits.lines.len() < self.query.limit
            && *self.wanted.get_or_insert_with(ask)
    }

    fn push(&mut self, number: u64, kind: Kind, raw: &[u8], matches: &[Range<usize>]) {
        let mut line = Line::new(number, kind, raw, matches);
        line.after_gap = std::mem::take(&mut self.gap);
        self.hits.lines.push(line);
    }

    /// Shows the lines of a match. Across lines, one match may have many.
    fn show(&mut self, found: &SinkMatch<'_>) {
        let mut marks = std::mem::take(self.marks);
        mark(self.query, found, &mut marks);
        let mut start = 0;
        for (number, raw) in (found.line_number().unwrap_or(0)..).zip(found.lines()) {
            if !self.shows() {
                break;
            }
            let mine: Vec<_> = marks.iter().filter_map(|mark| clip(mark, start, raw.len())).collect();
            self.push(number, Kind::Match, raw, &mine);
            start += raw.len();
        }
        *self.marks = marks;
    }
}

/// Collects where the matches are. Empty ones have nothing to mark.
fn mark(query: &Query, found: &SinkMatch<'_>, marks: &mut Vec<Range<usize>>) {
    marks.clear();
    // A pattern cannot fail here that did not fail in the search.
    let _ = query.matcher.find_iter(found.bytes(), |at| {
        if !at.is_empty() {
            marks.push(at.start()..at.end());
        }
        let first = marks.first().map_or(0, |mark| mark.start);
        query.across_lines || at.start() < reach(first)
    });
}

/// The part of a mark that lies in the line of `length` bytes at `start`, counted from there.
fn clip(mark: &Range<usize>, start: usize, length: usize) -> Option<Range<usize>> {
    let from = mark.start.max(start) - start;
    let to = mark.end.min(start + length).checked_sub(start)?;
    (from < to).then_some(from..to)
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.query.mode == Mode::FilesWithMatches {
            self.hits.count = 1;
            return Ok(false);
        }
        self.hits.count += if self.query.across_lines { found.lines().count() } else { 1 };
        if self.shows() {
            self.show(found);
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.shows() {
            self.push(context.line_number().unwrap_or(0), Kind::Context, context.bytes(), &[]);
        }
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
