//! Here-documents: their delimiters, and where their bodies end.

use super::Job;
use super::frame::{Kind, Tabs, Word};
use super::scan::Scan;

/// A here-document whose body comes after the end of the line.
pub(super) struct Heredoc {
    delimiter: Vec<u8>,
    /// Whether the body is expanded: nothing in the delimiter was quoted.
    expands: bool,
    tabs: Tabs,
}

/// Where a line of a body leads.
enum Line {
    /// It is the delimiter, and reading goes on here.
    Last(usize),
    /// The next line begins here.
    Next(usize),
}

impl Scan<'_, '_, '_> {
    /// Notes the here-document whose delimiter was just read.
    pub(super) fn heredoc(&mut self, word: &Word, tabs: Tabs) {
        let raw = self.bytes.get(word.start..self.at).unwrap_or_default();
        match delimiter(raw) {
            Some((delimiter, expands)) => self.pending.push(Heredoc { delimiter, expands, tabs }),
            None => self.fail(word.start, "an unusual delimiter of a here-document"),
        }
    }

    /// At the beginning of a line: reads the bodies that are due.
    pub(super) fn gather(&mut self) {
        if self.pending.len() > self.frame.pending {
            for heredoc in self.pending.split_off(self.frame.pending) {
                self.body(&heredoc);
            }
        }
    }

    fn body(&mut self, heredoc: &Heredoc) {
        let start = self.at;
        while self.at < self.bytes.len() {
            let end = self.at;
            match self.line(heredoc) {
                Line::Next(at) => self.at = at,
                Line::Last(at) => {
                    self.at = at;
                    return self.expand(heredoc, start, end);
                }
            }
        }
        self.fail(start.min(self.bytes.len()), "a here-document is not closed");
    }

    fn expand(&mut self, heredoc: &Heredoc, start: usize, end: usize) {
        let body = self.bytes.get(start..end).unwrap_or_default();
        if heredoc.expands && body.iter().any(|byte| matches!(byte, b'$' | b'`')) {
            let (text, depth) = (self.text.clone(), self.depth + 1);
            self.jobs.push(Job { text, start, end, kind: Kind::Body, depth });
        }
    }

    /// Where the line at the cursor leads. Lines that a backslash joins are one, if the body is expanded.
    fn line(&self, heredoc: &Heredoc) -> Line {
        let mut at = self.joined(self.at, heredoc);
        while heredoc.tabs == Tabs::Removed && self.byte(at) == b'\t' {
            at = self.joined(at + 1, heredoc);
        }
        let mut rest = heredoc.delimiter.as_slice();
        while let [first, tail @ ..] = rest {
            if self.byte(at) != *first {
                break;
            }
            at = self.joined(at + 1, heredoc);
            rest = tail;
        }
        let end = self.line_end(self.at, heredoc);
        if !rest.is_empty() {
            return Line::Next(end + 1);
        }
        let tail = self.bytes.get(at..end).unwrap_or_default();
        match tail {
            [] => Line::Last(self.bytes.len().min(end + 1)),
            // Bash lets `EOF)` end both the body and the substitution around it.
            _ if self.inside > 0 && tail.contains(&b')') => Line::Last(at),
            _ => Line::Next(end + 1),
        }
    }

    /// `at`, past newlines that a backslash removes.
    fn joined(&self, mut at: usize, heredoc: &Heredoc) -> usize {
        while heredoc.expands && self.byte(at) == b'\\' && self.byte(at + 1) == b'\n' {
            at += 2;
        }
        at
    }

    /// Where the newline is that ends the line, or the end of the text.
    fn line_end(&self, mut at: usize, heredoc: &Heredoc) -> usize {
        loop {
            match self.byte(at) {
                0 => return self.bytes.len(),
                b'\n' => return at,
                b'\\' if heredoc.expands => at += 2,
                _ => at += 1,
            }
        }
    }
}

/// The delimiter without its quotes, and whether it had none. Nothing where it is not plain text.
fn delimiter(raw: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut delimiter = Vec::with_capacity(raw.len());
    let (mut rest, mut double, mut expands) = (raw, false, true);
    loop {
        match *rest {
            [] => return (!double && !delimiter.contains(&b'\n')).then_some((delimiter, expands)),
            [b'\\', b'\n', ref tail @ ..] => rest = tail,
            [b'\\', byte, ref tail @ ..] => {
                expands = false;
                if double && !matches!(byte, b'\\' | b'"' | b'$' | b'`') {
                    delimiter.push(b'\\');
                }
                delimiter.push(byte);
                rest = tail;
            }
            [b'\'', ref tail @ ..] if !double => {
                expands = false;
                let end = tail.iter().position(|&byte| byte == b'\'')?;
                delimiter.extend(tail.get(..end)?);
                rest = tail.get(end + 1..)?;
            }
            [b'"', ref tail @ ..] => {
                expands = false;
                double = !double;
                rest = tail;
            }
            [b'`', ..] | [b'$', b'(' | b'{' | b'[' | b'\'' | b'"' | b'\\', ..] | [b'<' | b'>', b'(', ..] => {
                return None;
            }
            [byte, ref tail @ ..] => {
                delimiter.push(byte);
                rest = tail;
            }
        }
    }
}
