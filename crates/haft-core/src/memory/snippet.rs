//! What is shown of a piece: the line that answers best, with one line on either side.

use super::words::{hash, words};
use serde::Serialize;

/// So much is shown of a line, in characters.
const SHOWN: usize = 400;

/// A line with its neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// Which line, from 1.
    pub line: u32,
    /// What it says.
    pub content: String,
    /// The line before.
    pub before: Option<String>,
    /// The line after.
    pub after: Option<String>,
}

/// The best line of a piece that begins in line `first`, by the worth of the words that it has. `before` and `after` are
/// the lines around the piece.
pub fn snippet(
    (piece, first): (&str, u32),
    (before, after): (Option<&str>, Option<&str>),
    worth: impl Fn(u32) -> f32,
) -> Snippet {
    let lines: Vec<&str> = piece.lines().collect();
    let mut best = (0, -1.0_f32);
    for (number, line) in lines.iter().enumerate() {
        let mut seen: Vec<u32> = Vec::new();
        words(line, |word| seen.push(hash(word)));
        seen.sort_unstable();
        seen.dedup();
        let score: f32 = seen.iter().map(|word| worth(*word)).sum();
        // Of lines that say nothing of it, the first that says something.
        if score > best.1 && !line.trim().is_empty() {
            best = (number, score);
        }
    }
    let at = best.0;
    let shown = |line: &str| line.trim_end().chars().take(SHOWN).collect::<String>();
    let above = if at == 0 { before } else { lines.get(at - 1).copied() };
    let below = lines.get(at + 1).copied().or_else(|| after.filter(|_| at + 1 == lines.len()));
    Snippet {
        line: first.saturating_add(u32::try_from(at).unwrap_or(u32::MAX)),
        content: shown(lines.get(at).copied().unwrap_or_default()),
        before: above.map(shown),
        after: below.map(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_it_is_shown_with_its_neighbours() {
        let wanted = hash("tab");
        let worth = |word: u32| if word == wanted { 1.0 } else { 0.0 };
        let found = snippet(("one\nuses tabs\nthree", 7), (Some("zero"), None), worth);
        assert_eq!((found.line, found.content.as_str()), (8, "uses tabs"));
        assert_eq!((found.before.as_deref(), found.after.as_deref()), (Some("one"), Some("three")));
        let first = snippet(("tabs", 1), (None, Some("next")), worth);
        assert_eq!((first.before, first.after.as_deref()), (None, Some("next")));
        assert_eq!(snippet(("\n\nfirst words", 3), (None, None), |_| 0.0).line, 5);
        assert_eq!(snippet(("", 1), (None, None), |_| 0.0).content, "");
    }
}
