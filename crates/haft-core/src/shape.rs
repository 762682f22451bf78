//! Cutting output to size without lying about it: by lines and by bytes, head, tail or both ends, never
//! through the middle of a character.

mod binary;

pub use binary::{Binary, detect};

/// Which part of a long output survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning.
    Head,
    /// The end.
    Tail,
    /// Four fifths from the beginning, one fifth from the end.
    HeadAndTail,
}

/// How much output may be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// At most so many lines.
    pub lines: usize,
    /// At most so many bytes.
    pub bytes: usize,
    /// Which part survives.
    pub keep: Keep,
}

impl Default for Limits {
    fn default() -> Self {
        Self { lines: 2000, bytes: 51_200, keep: Keep::Head }
    }
}

/// What is left of a text, and how much is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// What is left, with a note where something is missing.
    pub text: String,
    /// Bytes left out; zero means the text is whole.
    pub hidden_bytes: usize,
    /// Lines left out, in whole or in part.
    pub hidden_lines: usize,
}

/// Cuts `text` to the limits.
pub fn truncate(text: &str, limits: Limits) -> Cut {
    let whole = || Cut { text: text.to_owned(), hidden_bytes: 0, hidden_lines: 0 };
    if text.len() <= limits.bytes && text.lines().count() <= limits.lines {
        return whole();
    }
    let (head, tail) = ends(text, text, limits);
    // Where both ends meet, nothing is between them.
    let tail = if head.len() + tail.len() > text.len() { &text[head.len()..] } else { tail };
    let hidden = &text[head.len()..text.len() - tail.len()];
    if hidden.is_empty() {
        return whole();
    }
    Cut { text: joined(head, hidden.len(), tail), hidden_bytes: hidden.len(), hidden_lines: hidden.lines().count() }
}

/// The same for a text of which only both ends are at hand, with so many bytes between them. Each end has to
/// hold at least what the limits leave of it.
pub fn truncate_ends(first: &str, between: usize, last: &str, limits: Limits) -> Cut {
    let (head, tail) = ends(first, last, limits);
    let hidden_lines = first[head.len()..].lines().count() + last[..last.len() - tail.len()].lines().count();
    let hidden_bytes = first.len() - head.len() + between + last.len() - tail.len();
    Cut { text: joined(head, hidden_bytes, tail), hidden_bytes, hidden_lines }
}

/// What the limits leave of both ends of a text.
fn ends<'t>(first: &'t str, last: &'t str, limits: Limits) -> (&'t str, &'t str) {
    match limits.keep {
        Keep::Head => (head(first, limits.lines, limits.bytes), ""),
        Keep::Tail => ("", tail(last, limits.lines, limits.bytes)),
        Keep::HeadAndTail => {
            let (lines, bytes) = (four_fifths(limits.lines), four_fifths(limits.bytes));
            (head(first, lines, bytes), tail(last, limits.lines - lines, limits.bytes - bytes))
        }
    }
}

fn joined(head: &str, hidden_bytes: usize, tail: &str) -> String {
    let note = format!("[Output truncated - {hidden_bytes} bytes hidden]");
    let parts = [head.trim_end_matches('\n'), note.as_str(), tail.trim_start_matches('\n')];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Rounded down, and safe for the largest number, which is how "no limit" is written.
fn four_fifths(whole: usize) -> usize {
    whole - whole.div_ceil(5)
}

/// The longest beginning within the limits.
fn head(text: &str, lines: usize, bytes: usize) -> &str {
    let by_lines = text.match_indices('\n').nth(lines.wrapping_sub(1)).map_or(text.len(), |(at, _)| at + 1);
    let by_lines = if lines == 0 { 0 } else { by_lines };
    &text[..floor_boundary(text, by_lines.min(bytes))]
}

/// The longest end within the limits.
fn tail(text: &str, lines: usize, bytes: usize) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let by_lines = match lines {
        0 => text.len(),
        lines => body.rmatch_indices('\n').nth(lines - 1).map_or(0, |(at, _)| at + 1),
    };
    let mut start = by_lines.max(text.len().saturating_sub(bytes));
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The largest character boundary that is not past `at`.
pub fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, lines: usize, bytes: usize, keep: Keep) -> String {
        truncate(text, Limits { lines, bytes, keep }).text
    }

    #[test]
    fn each_way_of_keeping() {
        let text = (1..=10).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n") + "\n";
        insta::assert_snapshot!(cut(&text, 2, 1000, Keep::Head), @r"
        line 1
        line 2
        [Output truncated - 57 bytes hidden]
        ");
        insta::assert_snapshot!(cut(&text, 2, 1000, Keep::Tail), @r"
        [Output truncated - 56 bytes hidden]
        line 9
        line 10
        ");
        insta::assert_snapshot!(cut(&text, 5, 1000, Keep::HeadAndTail), @r"
        line 1
        line 2
        line 3
        line 4
        [Output truncated - 35 bytes hidden]
        line 10
        ");
        assert_eq!(cut(&text, 10, 1000, Keep::Head), text);
    }

    #[test]
    fn no_limit_is_no_overflow() {
        assert_eq!((0..=6).map(four_fifths).collect::<Vec<_>>(), [0, 0, 1, 2, 3, 4, 4]);
        assert_eq!(cut("a\nb\nc", 2, usize::MAX, Keep::HeadAndTail), "a\n[Output truncated - 2 bytes hidden]\nc");
        assert_eq!(cut("abc", usize::MAX, 1, Keep::HeadAndTail), "[Output truncated - 2 bytes hidden]\nc");
    }

    #[test]
    fn both_ends_are_enough_to_cut() {
        let text = (1..=100).map(|n| format!("line {n}\n")).collect::<String>();
        for keep in [Keep::Head, Keep::Tail, Keep::HeadAndTail] {
            let limits = Limits { lines: usize::MAX, bytes: 50, keep };
            let whole = truncate(&text, limits);
            let parted = truncate_ends(&text[..60], text.len() - 100, &text[text.len() - 40..], limits);
            let parted = if keep == Keep::Tail {
                truncate_ends(&text[..40], text.len() - 100, &text[text.len() - 60..], limits)
            } else {
                parted
            };
            assert_eq!((parted.text, parted.hidden_bytes), (whole.text, whole.hidden_bytes), "{keep:?}");
        }
    }

    #[test]
    fn a_character_is_never_split() {
        let text = "日本語".repeat(10);
        for bytes in 0..text.len() {
            for keep in [Keep::Head, Keep::Tail, Keep::HeadAndTail] {
                cut(&text, 100, bytes, keep);
            }
        }
    }
}
