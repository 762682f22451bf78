//! Exact replacement with two mercies: line ends follow the file, and curly quotes match straight ones.

use super::near;
use haft_core::CallError;
use std::ops::Range;

/// A text after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new text.
    pub text: String,
    /// The line numbers (1-based, in the old text) at which something was replaced.
    pub lines: Vec<usize>,
}

/// Why nothing was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditError {
    /// Nothing to look for.
    Empty,
    /// The result would be the same.
    Identical,
    /// It occurs more than once, at these lines.
    Ambiguous(Vec<usize>),
    /// It does not occur; what comes near.
    Missing(Vec<String>),
}

impl EditError {
    /// The error about a file, as the caller hears it.
    pub fn explain(self, shown: &str) -> CallError {
        match self {
            Self::Empty => CallError::invalid("`old_string` is empty").hint("use file.write to write a whole file"),
            Self::Identical => CallError::invalid(format!("the edit would leave {shown} as it is")),
            Self::Ambiguous(lines) => {
                let list = lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                CallError::conflict(format!("`old_string` occurs {} times in {shown}, at lines {list}", lines.len()))
                    .hint("add surrounding lines to make it unique, or set replace_all")
                    .details(serde_json::json!({ "lines": lines }))
            }
            Self::Missing(near) if near.is_empty() => {
                CallError::not_found(format!("`old_string` does not occur in {shown}"))
                    .hint("read the file again: it may differ from what you expect")
            }
            Self::Missing(near) => {
                let details = serde_json::json!({ "candidates": near });
                let message = format!("`old_string` does not occur in {shown}. Nearest:\n{}", near.join("\n"));
                CallError::not_found(message).details(details).hint("copy the text exactly as it stands in the file")
            }
        }
    }
}

/// Replaces `old` by `new` in `text`: the only occurrence, or all.
pub fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<Edited, EditError> {
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    if old == new {
        return Err(EditError::Identical);
    }
    let (found, new) = find(text, old, new);
    let lines: Vec<usize> = found.iter().map(|range| line_of(text, range.start)).collect();
    match found.len() {
        0 => Err(EditError::Missing(near::candidates(text, old))),
        2.. if !all => Err(EditError::Ambiguous(lines)),
        _ => {
            let edited = splice(text, &found, &new);
            if edited == text { Err(EditError::Identical) } else { Ok(Edited { text: edited, lines }) }
        }
    }
}

/// Where `old` stands, and what to put there: tried exactly, then with the file's line ends, then with
/// quotes of any shape.
fn find(text: &str, old: &str, new: &str) -> (Vec<Range<usize>>, String) {
    let exact = occurrences(text, old);
    // In a file of CRLF lines, text that a model writes with LF means the file's own line ends.
    let crlf = text.contains("\r\n") && !old.contains('\r');
    let to_file = |part: &str| if crlf { part.replace("\r\n", "\n").replace('\n', "\r\n") } else { part.to_owned() };
    if !exact.is_empty() {
        let adapted = if crlf && !text.replace("\r\n", "").contains('\n') { to_file(new) } else { new.to_owned() };
        return (exact, adapted);
    }
    let (old, new) = (to_file(old), to_file(new));
    let found = occurrences(text, &old);
    if !found.is_empty() {
        return (found, new);
    }
    (quoted_occurrences(text, &old), new)
}

fn occurrences(text: &str, old: &str) -> Vec<Range<usize>> {
    text.match_indices(old).map(|(at, found)| at..at + found.len()).collect()
}

/// Occurrences where any curly quote counts as its straight form.
fn quoted_occurrences(text: &str, old: &str) -> Vec<Range<usize>> {
    let mut plain = String::with_capacity(text.len());
    // For each byte of `plain`, where its character begins in `text`; one more for the end.
    let mut origin = Vec::with_capacity(text.len() + 1);
    for (at, c) in text.char_indices() {
        let c = straight(c);
        origin.extend(std::iter::repeat_n(at, c.len_utf8()));
        plain.push(c);
    }
    origin.push(text.len());
    let old: String = old.chars().map(straight).collect();
    occurrences(&plain, &old).into_iter().map(|range| origin[range.start]..origin[range.end]).collect()
}

fn straight(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => '"',
        c => c,
    }
}

fn splice(text: &str, ranges: &[Range<usize>], new: &str) -> String {
    let mut edited = String::with_capacity(text.len());
    let mut from = 0;
    for range in ranges {
        edited.push_str(&text[from..range.start]);
        edited.push_str(new);
        from = range.end;
    }
    edited.push_str(&text[from..]);
    edited
}

fn line_of(text: &str, at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, old: &str, new: &str) -> String {
        replace(text, old, new, false).unwrap().text
    }

    #[test]
    fn one_occurrence_or_all() {
        assert_eq!(edited("a b c", "b", "x"), "a x c");
        assert_eq!(replace("a\nb\na\n", "a", "x", false), Err(EditError::Ambiguous(vec![1, 3])));
        assert_eq!(
            replace("a\nb\na\n", "a", "x", true).unwrap(),
            Edited { text: "x\nb\nx\n".into(), lines: vec![1, 3] }
        );
    }

    #[test]
    fn line_ends_follow_the_file() {
        assert_eq!(edited("a\r\nb\r\nc\r\n", "a\nb", "x\ny"), "x\r\ny\r\nc\r\n");
        assert_eq!(edited("a\r\nb\r\n", "b", "x\ny"), "a\r\nx\r\ny\r\n");
        assert_eq!(edited("a\nb\n", "a\nb", "x"), "x\n");
    }

    #[test]
    fn curly_quotes_match_straight_ones() {
        assert_eq!(edited("say \u{201c}hé\u{201d} now", "say \"hé\"", "say 'ho'"), "say 'ho' now");
        assert_eq!(edited("it's", "it\u{2019}s", "is"), "is");
    }

    #[test]
    fn nothing_to_do_is_an_error() {
        assert_eq!(replace("a", "", "b", false), Err(EditError::Empty));
        assert_eq!(replace("a", "a", "a", false), Err(EditError::Identical));
    }

    #[test]
    fn what_is_near_is_shown() {
        let text = "fn main() {\n    let total = 1;\n}\n";
        let error = replace(text, "\tlet total  = 1;\n", "x", false).unwrap_err().explain("m.rs");
        insta::assert_snapshot!(error.message, @r"
        `old_string` does not occur in m.rs. Nearest:
        line 2 differs only in white space: `    let total = 1;`
        ");
        let error = replace(text, "let totals = 2;", "x", false).unwrap_err().explain("m.rs");
        insta::assert_snapshot!(error.message, @r"
        `old_string` does not occur in m.rs. Nearest:
        line 2: `    let total = 1;`
        ");
    }
}
