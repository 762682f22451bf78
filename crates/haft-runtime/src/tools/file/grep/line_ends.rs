//! Line ends: which of them a pattern names, and how a file's are read.
//!
//! Text is searched as it is shown: a carriage return before a line feed is part of the line end, so that `;$` finds a
//! statement in a file of any kind. A pattern that names `\r` is searched in the bytes as they are.

use regex_syntax::ast::{self, Ast, ClassSetItem, Flag, FlagsItemKind, parse::Parser};
use std::io::{self, Read};

/// The line ends that a pattern names. In a negated class, as in `[^\n]`, a name asks for nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NamedLineEnds {
    /// Whether it can match a line feed because it says so: by `\n`, or by `(?s)`, which lets a dot match one.
    pub(super) line_feed: bool,
    /// Whether it says `\r`.
    pub(super) carriage_return: bool,
}

impl NamedLineEnds {
    /// Those of a pattern. One that cannot be read names none.
    pub(super) fn of(pattern: &str) -> Self {
        let Ok(ast) = Parser::new().parse(pattern) else { return Self::default() };
        let visited = ast::visit(&ast, Naming::default());
        visited.unwrap_or_default()
    }
}

/// Looks for them in a pattern.
#[derive(Default)]
struct Naming {
    found: NamedLineEnds,
    /// How many negated classes are around what is looked at.
    negations: usize,
}

impl Naming {
    fn literal(&mut self, c: char) {
        if self.negations == 0 {
            self.found.line_feed |= c == '\n';
            self.found.carriage_return |= c == '\r';
        }
    }

    fn flags(&mut self, flags: &ast::Flags) {
        let dot_matches = FlagsItemKind::Flag(Flag::DotMatchesNewLine);
        let negation = flags.items.iter().position(|item| item.kind.is_negation());
        let set = &flags.items[..negation.unwrap_or(flags.items.len())];
        self.found.line_feed |= set.iter().any(|item| item.kind == dot_matches);
    }
}

impl ast::Visitor for Naming {
    type Output = NamedLineEnds;
    type Err = ();

    fn finish(self) -> Result<NamedLineEnds, ()> {
        Ok(self.found)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), ()> {
        match ast {
            Ast::Literal(literal) => self.literal(literal.c),
            Ast::Flags(set) => self.flags(&set.flags),
            Ast::Group(group) => {
                if let ast::GroupKind::NonCapturing(flags) = &group.kind {
                    self.flags(flags);
                }
            }
            Ast::ClassBracketed(class) => self.negations += usize::from(class.negated),
            _ => {}
        }
        Ok(())
    }

    fn visit_post(&mut self, ast: &Ast) -> Result<(), ()> {
        if let Ast::ClassBracketed(class) = ast {
            self.negations -= usize::from(class.negated);
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), ()> {
        match item {
            ClassSetItem::Literal(literal) => self.literal(literal.c),
            ClassSetItem::Range(range) => {
                self.literal(range.start.c);
                self.literal(range.end.c);
            }
            ClassSetItem::Bracketed(class) => self.negations += usize::from(class.negated),
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_post(&mut self, item: &ClassSetItem) -> Result<(), ()> {
        if let ClassSetItem::Bracketed(class) = item {
            self.negations -= usize::from(class.negated);
        }
        Ok(())
    }
}

/// Reads a text as it is searched.
pub(super) struct TextReader<R> {
    inner: R,
    /// Whether carriage returns before line feeds belong to it.
    with_carriage_returns: bool,
    /// A byte that was read to know what follows a carriage return.
    ahead: Option<u8>,
}

impl<R: Read> TextReader<R> {
    pub(super) fn new(inner: R, with_carriage_returns: bool) -> Self {
        Self { inner, with_carriage_returns, ahead: None }
    }
}

impl<R: Read> Read for TextReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.with_carriage_returns {
            return self.inner.read(buffer);
        }
        let Some(first) = buffer.first_mut() else { return Ok(0) };
        let mut length = 0;
        if let Some(ahead) = self.ahead {
            *first = ahead;
            length = 1;
        }
        if length < buffer.len() {
            length += self.inner.read(&mut buffer[length..])?;
        }
        self.ahead = None;
        let length = drop_carriage_returns(&mut buffer[..length]);
        if let Some(last) = buffer[..length].last_mut().filter(|last| **last == b'\r') {
            let mut next = [0];
            if self.inner.read(&mut next)? == 1 {
                match next[0] {
                    b'\n' => *last = b'\n',
                    other => self.ahead = Some(other),
                }
            }
        }
        Ok(length)
    }
}

/// Removes every carriage return that stands before a line feed, and says how much is left.
pub(super) fn drop_carriage_returns(text: &mut [u8]) -> usize {
    let Some(first) = memchr::memchr(b'\r', text) else { return text.len() };
    let (mut to, mut from) = (first, first);
    while from < text.len() {
        let is_end = text.get(from + 1) == Some(&b'\n');
        let rest = from + 1;
        let next = memchr::memchr(b'\r', &text[rest..]).map_or(text.len(), |at| rest + at);
        let kept = if is_end { rest..next } else { from..next };
        let length = kept.len();
        text.copy_within(kept, to);
        to += length;
        from = next;
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_a_line_end_unless_it_excludes_it() {
        let named = |pattern: &str| {
            let NamedLineEnds { line_feed, carriage_return } = NamedLineEnds::of(pattern);
            [line_feed.then_some("LF"), carriage_return.then_some("CR")].into_iter().flatten().collect::<String>()
        };
        for (pattern, expected) in [
            (r"a\nb", "LF"),
            ("a\nb", "LF"),
            (r"\x0a", "LF"),
            (r"\u{a}", "LF"),
            (r"(foo|bar\n)", "LF"),
            (r"[\n,]+", "LF"),
            (r"[\t-\n]", "LF"),
            (r"[a[\n]]", "LF"),
            (r"(?s)a.b", "LF"),
            (r"(?is:a.b)", "LF"),
            (r"a\r$", "CR"),
            (r"a\r?\nb", "LFCR"),
            (r"[^\n]*;", ""),
            (r"[^\r\n]", ""),
            (r"[a&&[^\n]]", ""),
            (r"(?-s)a.b", ""),
            (r"(?i)a.b\s$", ""),
            (r"\\n", ""),
            ("(", ""),
        ] {
            assert_eq!(named(pattern), expected, "{pattern}");
        }
    }

    /// Gives a text in pieces of these lengths, again and again.
    struct Pieces<'t>(&'t [u8], Vec<usize>, usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1[self.2 % self.1.len()].min(buffer.len()).min(self.0.len());
            self.2 += 1;
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_read_does_not_depend_on_the_pieces(
            text in "[a\r\n]{0,40}",
            pieces in proptest::collection::vec(1usize..5, 1..4),
            room in 1usize..6,
        ) {
            let mut reader = TextReader::new(Pieces(text.as_bytes(), pieces, 0), false);
            let (mut read, mut buffer) = (Vec::new(), vec![0; room]);
            loop {
                match reader.read(&mut buffer).unwrap() {
                    0 => break,
                    length => read.extend(&buffer[..length]),
                }
            }
            proptest::prop_assert_eq!(String::from_utf8(read).unwrap(), text.replace("\r\n", "\n"));
        }
    }
}
