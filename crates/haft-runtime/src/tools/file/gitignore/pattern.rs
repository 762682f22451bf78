//! One line of an ignore file.

use super::Verdict;
use super::wildmatch::Wildmatch;

/// What a line says, whatever it matches.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Where it stands.
    line: usize,
    /// Whether it keeps what it matches (`!pattern`).
    keeps: bool,
    /// Whether it matches directories only (`pattern/`).
    pub(super) dirs_only: bool,
}

/// What a line matches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) scope: Scope,
    pub(super) shape: Shape,
}

/// What a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The last name of a path, at any depth.
    Name,
    /// The whole path, from the directory of the ignore file.
    Path,
}

/// The text that a pattern matches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// This.
    Literal(Box<[u8]>),
    /// Names that end like this.
    EndsWith(Box<[u8]>),
    /// What begins and ends like this, if the rest matches too.
    Wild {
        /// The part before the first wildcard, so that most texts are refused at once.
        begin: Box<[u8]>,
        end: Box<[u8]>,
        whole: Wildmatch,
    },
}

impl Pattern {
    /// Reads a line. None if it can match nothing, as a comment or a malformed pattern.
    pub(super) fn parse(line: usize, text: &[u8]) -> Option<(Self, Form)> {
        if text.first() == Some(&b'#') {
            return None;
        }
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // To git a line is a C string.
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = trim_end(text);
        let (keeps, text) = text.strip_prefix(b"!").map_or((false, text), |rest| (true, rest));
        let (dirs_only, text) = text.strip_suffix(b"/").map_or((false, text), |rest| (true, rest));
        let scope = if text.contains(&b'/') { Scope::Path } else { Scope::Name };
        let text = if scope == Scope::Path { text.strip_prefix(b"/").unwrap_or(text) } else { text };
        if text.is_empty() {
            return None;
        }
        Some((Self { line, keeps, dirs_only }, Form { scope, shape: Shape::of(scope, text)? }))
    }

    pub(super) fn verdict(&self) -> Verdict {
        Verdict { ignored: !self.keeps, line: self.line }
    }
}

/// A line without the spaces at its end, unless a backslash stands before them. Tabs stay.
pub(super) fn trim_end(text: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b' ' => at += 1,
            b'\\' => {
                at += 2;
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    // After a lone backslash at the end, git leaves the line as it is.
    &text[..end.min(text.len())]
}

impl Shape {
    fn of(scope: Scope, text: &[u8]) -> Option<Self> {
        let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let Some(first) = text.iter().position(special) else { return Some(Self::Literal(text.into())) };
        if scope == Scope::Name && first == 0 && text[0] == b'*' && !text[1..].iter().any(special) {
            return Some(Self::EndsWith(text[1..].into()));
        }
        let whole = Wildmatch::compile(text)?;
        if let Some(literal) = whole.literal() {
            return Some(Self::Literal(literal.into()));
        }
        Some(Self::Wild { begin: text[..first].into(), end: whole.literal_end().into(), whole })
    }

    pub(super) fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Literal(literal) => text == &**literal,
            Self::EndsWith(end) => text.ends_with(end),
            Self::Wild { begin, end, whole } => {
                text.len() >= begin.len().max(end.len())
                    && text.starts_with(begin)
                    && text.ends_with(end)
                    && whole.is_match(text)
            }
        }
    }

    /// How long it is, for an estimate of what matching costs.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Literal(text) | Self::EndsWith(text) => text.len(),
            Self::Wild { whole, .. } => whole.size(),
        }
    }
}
