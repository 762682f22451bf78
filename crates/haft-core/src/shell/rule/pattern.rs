//! The words of a rule: how they are split, and what each of them matches.

use super::BadRule;
use crate::pattern::glob_is_sane;
use crate::shell::deed::name_of;
use crate::shell::word::{Value, Word};
use globset::{GlobBuilder, GlobMatcher};

/// A word of a rule as it was written.
pub(super) struct Piece {
    /// Without its quotes.
    pub(super) plain: String,
    /// As a glob, in which what was quoted is escaped.
    glob: String,
    /// Whether a wildcard stands in it outside quotes.
    pub(super) wild: bool,
}

/// Splits a rule into words.
pub(super) fn split(text: &str) -> Result<Vec<Piece>, BadRule> {
    let mut words = Vec::new();
    let mut word: Option<Piece> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_with(Piece::empty);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\\') => match chars.next() {
                Some(c) => word.get_or_insert_with(Piece::empty).push(c, true),
                None => return Err(BadRule::Quote),
            },
            (None, ';' | '|' | '&' | '<' | '>' | '$' | '`' | '(' | ')') => return Err(BadRule::Operator(c)),
            (quoted, c) => word.get_or_insert_with(Piece::empty).push(c, quoted.is_some()),
        }
    }
    words.extend(word);
    if quote.is_some() { Err(BadRule::Quote) } else { Ok(words) }
}

/// Whether a word sets a variable for the command after it.
pub(super) fn is_assignment(word: &str) -> bool {
    let name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    word.split_once('=').is_some_and(|(before, _)| !before.is_empty() && name(before))
}

impl Piece {
    fn empty() -> Self {
        Self { plain: String::new(), glob: String::new(), wild: false }
    }

    fn push(&mut self, c: char, quoted: bool) {
        let special = matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\');
        if special && quoted {
            self.glob.push('\\');
        }
        self.wild |= special && !quoted && c != ']' && c != '}';
        self.plain.push(c);
        self.glob.push(c);
    }

    /// What comes after the first `=`.
    fn value(&self) -> Self {
        let rest = |text: &str| text.split_once('=').map_or("", |(_, rest)| rest).to_owned();
        Self { plain: rest(&self.plain), glob: rest(&self.glob), wild: self.wild }
    }
}

/// How likely it is that a rule is about something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likely {
    No,
    Maybe,
    Yes,
}

impl From<bool> for Likely {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// What one word of a rule matches.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// Any one word.
    Any,
    /// This one.
    Exact(String),
    /// Those that match.
    Glob {
        matcher: GlobMatcher,
        /// Whether it has no wildcard but stars, so that a narrower glob can be told from a wider one.
        stars: bool,
        /// Whether it is about the home directory.
        home: bool,
    },
}

impl Pattern {
    fn new(piece: &Piece) -> Result<Self, BadRule> {
        Self::of(piece, level(&piece.glob))
    }

    fn of(piece: &Piece, glob: &str) -> Result<Self, BadRule> {
        if piece.wild && piece.plain == "*" {
            return Ok(Self::Any);
        }
        if piece.wild && piece.plain == "**" {
            return Err(BadRule::Deep);
        }
        if !piece.wild {
            return Ok(Self::Exact(piece.plain.clone()));
        }
        let bad = |why: String| BadRule::Glob { word: piece.plain.clone(), why };
        if !glob_is_sane(&piece.glob) {
            return Err(bad("it is too long or nests too deeply".to_owned()));
        }
        let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
        let matcher = glob.map_err(|error| bad(error.kind().to_string()))?.compile_matcher();
        let stars = !piece.plain.contains(['?', '[', '{']);
        Ok(Self::Glob { matcher, stars, home: piece.plain.starts_with("~/") })
    }

    /// The first word: a program is known by its name, wherever the system keeps it.
    pub(super) fn program(mut piece: Piece) -> Result<Self, BadRule> {
        if !piece.wild
            && let Ok(name) = name_of(&piece.plain)
        {
            piece.plain = name.to_owned();
        }
        let glob = piece.glob.clone();
        Self::of(&piece, &glob)
    }

    /// Whether a program is one that it names. Elsewhere than in the system's directories, the path counts.
    pub(super) fn is_program(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(own) => own == name,
            Self::Glob { matcher, .. } => !climbs(name) && matcher.is_match(name),
        }
    }

    /// The same for a deny: by the last part of its path as well.
    pub(super) fn is_denied_program(&self, name: &str) -> bool {
        let last = name.rsplit('/').next().unwrap_or(name);
        self.is_program(name) || self.is(name) || self.is(last)
    }

    /// Whether it names one thing.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    /// Whether it matches a text that is known.
    pub(super) fn is(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(own) => level(own) == level(text),
            Self::Glob { matcher, .. } => matcher.is_match(level(text)),
        }
    }

    /// Whether a word is certainly one that it means.
    pub(super) fn surely(&self, word: &Word) -> bool {
        match (self, &word.value) {
            (Self::Any, _) => !word.splits(),
            (Self::Exact(_), Value::Known(text)) => self.is(text) || self.is_at_home(word),
            (Self::Glob { .. }, Value::Known(text)) => !climbs(text) && (self.is(text) || self.is_at_home(word)),
            // What the shell makes of a glob matches whatever matches the glob itself.
            (Self::Glob { stars: true, .. }, Value::Glob(pattern)) => !climbs(pattern) && self.is(pattern),
            _ => false,
        }
    }

    /// How likely it is that a word is one that it means.
    pub(super) fn likely(&self, word: &Word) -> Likely {
        match (self, word.literal()) {
            (Self::Any, _) => Likely::Yes,
            (_, Some(text)) => (self.is(text) || self.is_at_home(word)).into(),
            (_, None) => Likely::Maybe,
        }
    }

    /// `~/x` in a rule means what `~/x` in a command means.
    fn is_at_home(&self, word: &Word) -> bool {
        let home = match self {
            Self::Any => false,
            Self::Exact(own) => own.starts_with("~/"),
            Self::Glob { home, .. } => *home,
        };
        home && word.text.starts_with("~/") && !word.text.contains(['\'', '"', '\\', '$', '`']) && self.is(&word.text)
    }
}

/// A path without what says nothing.
fn level(path: &str) -> &str {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./").filter(|rest| !rest.is_empty()) {
        path = rest;
    }
    path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path)
}

/// Whether a path leads up, and so out of what a wildcard seems to say.
fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// A word of a rule after the program.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// A subcommand, or an operand.
    Word(Pattern),
    /// An option, and its value if it is said.
    Option(String, Option<Pattern>),
}

impl Item {
    pub(super) fn new(piece: Piece) -> Result<Self, BadRule> {
        if piece.plain == "--" {
            return Err(BadRule::Dashes);
        }
        if piece.plain.len() < 2 || !piece.plain.starts_with('-') {
            return Ok(Self::Word(Pattern::new(&piece)?));
        }
        let name = piece.glob.split('=').next().unwrap_or_default();
        if name.contains(['*', '?', '[', '{']) {
            let why = "the name of an option has no wildcards; its value may: `--output=build/*`".to_owned();
            return Err(BadRule::Glob { word: piece.plain, why });
        }
        if !piece.plain.contains('=') {
            return Ok(Self::Option(piece.plain, None));
        }
        let value = piece.value();
        let value = if value.wild && value.plain == "**" { Pattern::Any } else { Pattern::new(&value)? };
        Ok(Self::Option(name.to_owned(), Some(value)))
    }
}
