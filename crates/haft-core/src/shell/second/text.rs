//! The bytes that are read, and where they stand in the text that was given.

use std::rc::Rc;

/// What a [`super::Job`] reads.
#[derive(Clone)]
pub(super) enum Text<'a> {
    /// The text itself.
    Source(&'a [u8]),
    /// The inside of backticks, with its backslashes removed.
    Unescaped(Rc<Unescaped>),
}

/// Text that does not stand in the source as it is, with the place of each of its bytes there.
pub(super) struct Unescaped {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

/// Whether backticks stand directly in double quotes, where `\"` is a quote inside them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    DoubleQuotes,
    Other,
}

impl<'a> Text<'a> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Source(bytes) => bytes,
            Self::Unescaped(text) => &text.bytes,
        }
    }

    /// Where the byte at `at` stands in the text that was given.
    pub(super) fn place(&self, at: usize) -> usize {
        match self {
            Self::Source(_) => at,
            Self::Unescaped(text) => text.places.get(at).or(text.places.last()).copied().unwrap_or_default(),
        }
    }

    /// What bash reads between backticks at `start..end`, with the range of it in the text returned.
    pub(super) fn unescape(&self, start: usize, end: usize, around: Around) -> (Text<'a>, usize, usize) {
        let bytes = self.bytes().get(start..end).unwrap_or_default();
        let removed =
            |byte: u8| matches!(byte, b'$' | b'`' | b'\\') || (byte == b'"' && around == Around::DoubleQuotes);
        if !bytes.windows(2).any(|pair| pair[0] == b'\\' && removed(pair[1])) {
            return (self.clone(), start, end);
        }
        let mut text = Unescaped { bytes: Vec::with_capacity(bytes.len()), places: Vec::with_capacity(bytes.len()) };
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let escaped = bytes.get(at + 1).copied().filter(|&next| byte == b'\\' && removed(next));
            text.places.push(self.place(start + at));
            text.bytes.push(escaped.unwrap_or(byte));
            at += 1 + usize::from(escaped.is_some());
        }
        let end = text.bytes.len();
        (Text::Unescaped(Rc::new(text)), 0, end)
    }
}
