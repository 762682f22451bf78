//! One line of a file as it is shown: cut to size, with its matches known.
//!
//! What a cut leaves out is counted beside it, as in `…[+4096 bytes]`.

use std::ops::Range;

/// Longer lines are cut.
const MAX_CHARS: usize = 500;
/// In text that is not UTF-8 characters cannot be counted; bytes can.
const MAX_BYTES: usize = MAX_CHARS * 4;
/// How much is shown before a first match that lies beyond the cut.
const LEAD_CHARS: usize = 100;

/// Why a line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It matches.
    Match,
    /// It stands near one that does.
    Context,
}

/// A line to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) kind: Kind,
    /// Whether lines are missing between this and the one before.
    pub(super) after_gap: bool,
    /// The text, cut.
    pub(super) text: String,
    marks: Vec<Range<usize>>,
}

impl Line {
    /// Makes a line of its bytes without the line end, and of the places of its matches, in order. Those may reach into the line
    /// end.
    pub(super) fn new(number: u64, kind: Kind, raw: &[u8], matches: &[Range<usize>]) -> Self {
        let window = window(raw, matches.first());
        let mut line = Self { number, kind, after_gap: false, text: String::new(), marks: Vec::new() };
        if window.start > 0 {
            line.text = format!("[+{} bytes]…", window.start);
        }
        let mut at = window.start;
        for found in matches {
            let (start, end) = (found.start.clamp(at, window.end), found.end.clamp(at, window.end));
            if start < end {
                line.push(&raw[at..start]);
                let from = line.text.len();
                line.push(&raw[start..end]);
                line.marks.push(from..line.text.len());
                at = end;
            }
        }
        line.push(&raw[at..window.end]);
        if window.end < raw.len() {
            line.text.push_str(&format!("…[+{} bytes]", raw.len() - window.end));
        }
        line
    }

    fn push(&mut self, raw: &[u8]) {
        self.text.push_str(&String::from_utf8_lossy(raw));
    }

    /// The text with every match marked.
    pub(super) fn marked(&self) -> String {
        let mut shown = String::with_capacity(self.text.len() + self.marks.len() * 4);
        let mut at = 0;
        for mark in &self.marks {
            shown.push_str(&self.text[at..mark.start]);
            shown.push_str(">>");
            shown.push_str(&self.text[mark.clone()]);
            shown.push_str("<<");
            at = mark.end;
        }
        shown.push_str(&self.text[at..]);
        shown
    }
}

/// How far past its first match a line has to be looked at to find all that can be shown.
pub(super) const fn reach(first: usize) -> usize {
    first + MAX_BYTES
}

/// The part of a line that is shown: its beginning, or if the first match lies beyond that, the match
/// with a little before it.
fn window(raw: &[u8], first: Option<&Range<usize>>) -> Range<usize> {
    let head = forward(raw, 0, MAX_CHARS);
    match first {
        Some(first) if first.end.min(raw.len()) > head => {
            let start = back(raw, first.start.min(raw.len()), LEAD_CHARS);
            start..forward(raw, start, MAX_CHARS)
        }
        _ => 0..head,
    }
}

/// The end of at most `chars` characters that begin at `from`.
fn forward(raw: &[u8], from: usize, chars: usize) -> usize {
    let end = raw.len().min(from + MAX_BYTES);
    (from..end).filter(|&at| begins_char(raw, at)).nth(chars).unwrap_or(end)
}

/// The beginning of at most `chars` characters that end at `to`.
fn back(raw: &[u8], to: usize, chars: usize) -> usize {
    let floor = to.saturating_sub(LEAD_CHARS * 4);
    (floor..to).rev().filter(|&at| begins_char(raw, at)).take(chars).last().unwrap_or(to)
}

fn begins_char(raw: &[u8], at: usize) -> bool {
    raw[at] & 0xc0 != 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(raw: &str, found: Range<usize>) -> String {
        Line::new(1, Kind::Match, raw.as_bytes(), &Vec::from([found])).marked()
    }

    #[test]
    fn every_match_is_marked() {
        let line = Line::new(1, Kind::Match, b"a fox, a fox", &[2..5, 9..12]);
        assert_eq!(line.marked(), "a >>fox<<, a >>fox<<");
    }

    #[test]
    fn a_match_may_reach_into_the_line_end_or_begin_there() {
        let raw = "x".repeat(300);
        for found in [299..301, 300..301, 300..302, 301..302] {
            assert_eq!(Line::new(1, Kind::Match, raw.as_bytes(), &Vec::from([found])).text, raw);
        }
        let raw = "x".repeat(1000);
        let line = Line::new(1, Kind::Match, raw.as_bytes(), std::slice::from_ref(&(1001..1002)));
        assert_eq!(line.text, format!("[+900 bytes]…{}", "x".repeat(100)));
    }

    #[test]
    fn a_long_line_keeps_its_first_match_and_whole_characters() {
        let raw = format!("{}针{}", "草".repeat(1000), "堆".repeat(1000));
        let text = shown(&raw, 3000..3003);
        assert!(text.starts_with("[+2700 bytes]…草") && text.ends_with("堆…[+1803 bytes]"), "{text}");
        assert!(text.contains("草>>针<<堆"));
        assert_eq!(text.chars().count(), MAX_CHARS + "[+2700 bytes]……[+1803 bytes]>><<".chars().count());
    }

    #[test]
    fn a_match_longer_than_the_line_may_be_is_cut_inside_its_marks() {
        let text = shown(&"日".repeat(2000), 0..6000);
        assert_eq!(text, format!(">>{}<<…[+4500 bytes]", "日".repeat(MAX_CHARS)));
    }

    #[test]
    fn text_that_is_not_utf8_is_bounded_too() {
        let line = Line::new(1, Kind::Match, &vec![0x80; 100_000], std::slice::from_ref(&(99_990..99_991)));
        assert!(line.text.chars().count() <= MAX_BYTES + 30);
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_cut_inside_a_character(raw in "[aé日𝄞]{0,3000}", start: usize, length in 1usize..20) {
            let chars: Vec<usize> = raw.char_indices().map(|(at, _)| at).chain([raw.len()]).collect();
            let first = start % chars.len();
            let found = chars[first]..chars[(first + length).min(chars.len() - 1)];
            let line = Line::new(1, Kind::Match, raw.as_bytes(), std::slice::from_ref(&found));
            proptest::prop_assert!(!line.text.contains(char::REPLACEMENT_CHARACTER));
            let text = line.text.trim_start_matches(|c| c != '…' && line.text.starts_with("[+"));
            let text = text.trim_start_matches('…').split('…').next().unwrap();
            proptest::prop_assert!(raw.contains(text));
            proptest::prop_assert_eq!(line.marks.len(), usize::from(!found.is_empty()));
        }
    }
}
