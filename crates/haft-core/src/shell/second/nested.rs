//! What is read byte by byte: quotes, expansions, arithmetic, subscripts and patterns.

use super::Job;
use super::frame::{Kind, State};
use super::scan::Scan;
use super::text::Around;

impl Scan<'_, '_, '_> {
    /// Inside double quotes, or the body of a here-document.
    pub(super) fn quoted(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let special = |&byte: &u8| matches!(byte, b'"' | b'\\' | b'$' | b'`');
        let Some(skip) = rest.iter().position(special) else { return self.at = self.bytes.len() };
        self.at += skip;
        match self.byte(self.at) {
            b'\\' => self.at += 2,
            b'$' => self.dollar(),
            b'`' => self.backtick(),
            _ if self.frame.kind == Kind::Body => self.at += 1,
            _ => {
                self.at += 1;
                self.pop();
            }
        }
    }

    /// Inside `${ … }`.
    pub(super) fn param(&mut self) {
        match self.byte(self.at) {
            b'}' => {
                self.at += 1;
                self.pop();
            }
            b'#' | b'%' | b'/' | b'^' | b',' if self.frame.part == 0 => {
                self.frame.part = 2;
                self.at += 1;
            }
            b':' | b'-' | b'=' | b'?' | b'+' | b'~' if self.frame.part == 0 => {
                self.frame.part = 1;
                self.at += 1;
            }
            byte => self.common(byte),
        }
    }

    /// Inside `(( … ))`, `[ … ]` or the parentheses of a pattern.
    pub(super) fn bracketed(&mut self) {
        let (open, close) = match self.frame.kind {
            Kind::Bracket | Kind::Subscript => (b'[', b']'),
            _ => (b'(', b')'),
        };
        let byte = self.byte(self.at);
        if byte == open {
            self.at += 1;
            self.frame.count += 1;
            self.deepen();
        } else if byte != close {
            self.common(byte);
        } else if self.frame.count > 0 {
            self.at += 1;
            self.frame.count -= 1;
            self.depth = self.depth.saturating_sub(1);
        } else if matches!(self.frame.kind, Kind::Arith | Kind::ArithCommand | Kind::ArithFor) {
            self.close_arithmetic();
        } else {
            self.at += 1;
            let subscript = self.frame.kind == Kind::Subscript;
            self.pop();
            if subscript {
                self.frame.word.subscript = self.at;
            }
        }
    }

    /// What is the same in all brackets.
    fn common(&mut self, byte: u8) {
        match byte {
            b'\\' => self.at += 2,
            b'\'' => self.single_quotes(self.at, Escapes::None),
            b'"' => self.push(Kind::Double, self.at, self.at + 1),
            b'`' => self.backtick(),
            b'$' => self.dollar(),
            b'<' | b'>' => self.process_substitution(),
            _ => self.at += 1,
        }
    }

    /// At `<` or `>` in brackets: in arithmetic they mean nothing, nor in double quotes but in a pattern.
    fn process_substitution(&mut self) {
        let next = self.next(self.at);
        let active = match self.frame.kind {
            Kind::Pattern | Kind::Subscript => true,
            kind => kind == Kind::Param && (!self.frame.quoted || self.frame.part == 2),
        };
        if active && self.byte(next) == b'(' {
            self.substitution(next + 1);
        } else {
            self.at += 1;
        }
    }

    /// Goes into the substitution that opens here and whose commands begin at `inner`.
    pub(super) fn substitution(&mut self, inner: usize) {
        self.found_substitution(self.at);
        self.push(Kind::Substitution, self.at, inner);
    }

    /// At `$`, anywhere but in single quotes.
    pub(super) fn dollar(&mut self) {
        let open = self.at;
        let second = self.next(open);
        match self.byte(second) {
            b'(' => {
                let third = self.next(second);
                if self.byte(third) == b'(' && !self.was_refused(open) {
                    self.try_arithmetic(Kind::Arith, open, third + 1);
                } else {
                    self.substitution(second + 1);
                }
            }
            b'{' => self.brace(second),
            b'[' => self.push(Kind::Bracket, open, second + 1),
            b'\'' if !matches!(self.frame.kind, Kind::Double | Kind::Body) => {
                self.single_quotes(second, Escapes::Backslash);
            }
            b'$' => self.at = second + 1,
            _ => self.at = open + 1,
        }
    }

    /// At the `{` of `${`.
    fn brace(&mut self, brace: usize) {
        let first = self.next(brace);
        match self.byte(first) {
            b' ' | b'\t' | b'\n' | b'|' => {
                self.found_substitution(self.at);
                self.push(Kind::Funsub, self.at, first + usize::from(self.byte(first) == b'|'));
            }
            b'(' => {
                self.doubt(self.at, "`${(` is not for bash");
                self.push(Kind::Param, self.at, first);
            }
            // These are the parameter itself, or come before its name: not yet an operator.
            b'#' | b'!' | b'?' | b'-' | b'$' | b'*' | b'@' => self.push(Kind::Param, self.at, first + 1),
            _ => self.push(Kind::Param, self.at, first),
        }
    }

    /// At a single quote that begins at `open`, past a `$` if there is one.
    pub(super) fn single_quotes(&mut self, open: usize, escapes: Escapes) {
        let mut end = open + 1;
        loop {
            match self.byte(end) {
                0 => return self.fail(open, "a single quote is not closed"),
                b'\'' => break,
                b'\\' if escapes == Escapes::Backslash => end += 2,
                _ => end += 1,
            }
        }
        let inner = self.bytes.get(open + 1..end).unwrap_or_default();
        if self.quotes_only_seem() && may_expand(inner) {
            self.doubt(open, "single quotes that do not quote");
        }
        self.at = end + 1;
        self.frame.word.blur();
    }

    /// Whether single quotes here are matched, yet what stands in them is expanded: in arithmetic, in
    /// subscripts, and in the word of an expansion inside double quotes.
    fn quotes_only_seem(&self) -> bool {
        match self.frame.kind {
            Kind::Param => self.frame.quoted && self.frame.part != 2,
            kind => !kind.holds_words() && kind != Kind::Pattern,
        }
    }

    /// At a backtick: it ends at the next that no backslash escapes, whatever quotes stand between.
    pub(super) fn backtick(&mut self) {
        let open = self.at;
        let mut end = open + 1;
        loop {
            match self.byte(end) {
                0 => return self.fail(open, "a backtick is not closed"),
                b'`' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        let around = if self.frame.kind == Kind::Double { Around::DoubleQuotes } else { Around::Other };
        let inner = self.bytes.get(open + 1..end).unwrap_or_default();
        if self.frame.quoted && around == Around::Other && inner.windows(2).any(|pair| pair == b"\\\"") {
            self.doubt(open, "an escaped quote in backticks in an expansion in quotes");
        }
        let (text, start, stop) = self.text.unescape(open + 1, end, around);
        self.jobs.push(Job { text, start, end: stop, kind: Kind::Top, depth: self.depth + 1 });
        self.found_substitution(open);
        self.frame.word.blur();
        self.at = end + 1;
    }

    /// `))` was read: what stands around it goes on.
    pub(super) fn after_arithmetic(&mut self, kind: Kind) {
        match kind {
            Kind::ArithCommand => self.frame.state = State::Closed,
            Kind::ArithFor => self.frame.state = State::ForIn,
            _ => {}
        }
    }
}

/// Whether a backslash escapes in single quotes: after `$` it does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    None,
    Backslash,
}

/// Whether anything stands in it that would run a command if it were expanded.
fn may_expand(bytes: &[u8]) -> bool {
    bytes.contains(&b'`') || bytes.windows(2).any(|pair| matches!(pair, b"$(" | b"${" | b"$[" | b"$\\"))
}
