//! A word of a command as the program gets it, with the place of each of its bytes in the source.

use core::ops::Range;

/// What a word is after quotes are removed. Expansions stay as they are written and are known as such.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub(super) text: String,
    /// Where each byte of `text` stands in the source.
    places: Vec<Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    end: usize,
    /// Whether the shell puts something else here: `$NAME`, `$( … )`.
    expands: bool,
}

impl Word {
    /// A word that is given as it is, without a shell. It begins at `start` of some source.
    pub(super) fn plain(text: &str, start: usize) -> Self {
        let places = (0..text.len()).map(|at| Place { start: start + at, end: start + at + 1, expands: false });
        Self { text: text.to_owned(), places: places.collect() }
    }

    /// Reads a word of a shell command.
    pub(super) fn read(source: &str, span: Range<usize>) -> Self {
        let mut reader = Reader { source, at: span.start, end: span.end, word: Self::default() };
        reader.run();
        reader.word
    }

    /// Where a part of the word stands in the source.
    pub(super) fn place(&self, part: &Range<usize>) -> Option<Range<usize>> {
        let first = self.places.get(part.start)?;
        let last = self.places.get(part.end.checked_sub(1)?)?;
        Some(first.start..last.end)
    }

    /// Whether all of a part is what the shell puts there.
    pub(super) fn is_expanded(&self, part: &Range<usize>) -> bool {
        self.places.get(part.clone()).is_some_and(|places| places.iter().all(|place| place.expands))
    }

    /// Whether the source of the word is one stretch of text that stands in it as it is.
    pub(super) fn is_one_stretch(&self) -> bool {
        self.places.windows(2).all(|pair| pair[0].end == pair[1].start)
    }
}

struct Reader<'s> {
    source: &'s str,
    at: usize,
    end: usize,
    word: Word,
}

impl Reader<'_> {
    fn run(&mut self) {
        let mut in_double_quotes = false;
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    in_double_quotes = !in_double_quotes;
                    self.at += 1;
                }
                '\'' if !in_double_quotes => self.single_quotes(),
                '\\' => self.escape(in_double_quotes),
                '$' if !in_double_quotes && self.source[self.at..self.end].starts_with("$'") => self.ansi_quotes(),
                '$' => self.dollar(),
                '`' => {
                    let rest = &self.source[self.at + 1..self.end];
                    let length = rest.find('`').map_or(rest.len() + 1, |close| close + 2);
                    self.expansion(length);
                }
                c => self.take(c, c.len_utf8()),
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.source.get(self.at..self.end)?.chars().next()
    }

    /// Takes a character that `length` bytes of the source stand for.
    fn take(&mut self, c: char, length: usize) {
        let (start, end) = (self.at, self.at + length);
        self.word.text.push(c);
        let place = Place { start, end, expands: false };
        self.word.places.extend(std::iter::repeat_n(place, c.len_utf8()));
        self.at = end;
    }

    fn single_quotes(&mut self) {
        self.at += 1;
        while let Some(c) = self.peek() {
            if c == '\'' {
                self.at += 1;
                return;
            }
            self.take(c, c.len_utf8());
        }
    }

    /// `$'…'`: a backslash stands for what follows it, which is all that has to be known here.
    fn ansi_quotes(&mut self) {
        self.at += 2;
        while let Some(c) = self.peek() {
            match c {
                '\'' => {
                    self.at += 1;
                    return;
                }
                '\\' => self.escape(false),
                c => self.take(c, c.len_utf8()),
            }
        }
    }

    fn escape(&mut self, in_double_quotes: bool) {
        let after = self.source.get(self.at + 1..self.end).and_then(|rest| rest.chars().next());
        match after {
            Some('\n') => self.at += 2,
            Some(c) if !in_double_quotes || matches!(c, '"' | '\\' | '$' | '`') => self.take(c, 1 + c.len_utf8()),
            _ => self.take('\\', 1),
        }
    }

    fn dollar(&mut self) {
        let rest = &self.source[self.at..self.end];
        let length = match rest.as_bytes().get(1) {
            Some(b'{') => closing(rest, b'{', b'}'),
            Some(b'(') => closing(rest, b'(', b')'),
            Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => {
                let name = rest[1..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
                1 + name
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?!$-".contains(byte) => 2,
            _ => return self.take('$', 1),
        };
        self.expansion(length);
    }

    fn expansion(&mut self, length: usize) {
        let end = (self.at + length).min(self.end);
        let text = &self.source[self.at..end];
        self.word.text.push_str(text);
        self.word.places.extend((self.at..end).map(|start| Place { start, end: start + 1, expands: true }));
        self.at = end;
    }
}

/// How long an expansion is that opens at the second byte.
fn closing(text: &str, open: u8, close: u8) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        if byte == open {
            depth += 1;
        } else if byte == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + 1;
            }
        }
    }
    text.len()
}
