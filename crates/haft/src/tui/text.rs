//! Lines that fit: text from anywhere is made inert, and broken where the screen ends. A column is what a terminal shows, so
//! that 漢 takes two of them.

use crate::style::Row;
use anstyle::Style;
use haft_core::preview;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// How many columns a tab is shown as.
const TAB: &str = "    ";

/// Where a line may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// Between words; what follows is indented by so many columns.
    Words(usize),
    /// Anywhere: every column means something.
    Anywhere,
}

/// A line that came from a model, a tool or a file, with nothing in it that acts.
pub(crate) fn inert(line: &str) -> String {
    preview::inert(&line.replace('\t', TAB))
}

/// How many columns a line takes.
pub(crate) fn width(row: &[(Style, String)]) -> usize {
    row.iter().map(|(_, text)| text.width()).sum()
}

/// A line in one style.
pub(crate) fn row(style: Style, text: impl Into<String>) -> Row {
    vec![(style, text.into())]
}

/// What a person sees as one character.
struct Piece<'t> {
    style: Style,
    text: &'t str,
    columns: usize,
}

/// Breaks a line so that no part of it is wider than `columns`. There is always at least one part.
pub(crate) fn wrap(row: &[(Style, String)], columns: usize, at: Break) -> Vec<Row> {
    let columns = columns.max(4);
    if width(row) <= columns {
        return vec![row.to_vec()];
    }
    let pieces: Vec<Piece<'_>> = row
        .iter()
        .flat_map(|(style, text)| text.graphemes(true).map(|g| Piece { style: *style, text: g, columns: g.width() }))
        .collect();
    let hang = match at {
        Break::Words(hang) if hang * 2 <= columns => hang,
        _ => 0,
    };
    let mut rows = Vec::new();
    let mut rest = pieces.as_slice();
    while !rest.is_empty() {
        let indent = if rows.is_empty() { 0 } else { hang };
        let (here, skipped) = fitting(rest, columns - indent, at);
        let mut joined = join(&rest[..here]);
        if indent > 0 {
            joined.insert(0, (Style::new(), " ".repeat(indent)));
        }
        rows.push(joined);
        rest = &rest[here + skipped..];
    }
    rows
}

/// How many pieces fit, and how many after them are only the space that the break takes the place of.
fn fitting(pieces: &[Piece<'_>], columns: usize, at: Break) -> (usize, usize) {
    let mut used = 0;
    let mut space = None;
    for (index, piece) in pieces.iter().enumerate() {
        if used + piece.columns > columns {
            let spaces = pieces[index..].iter().take_while(|piece| piece.text == " ").count();
            return match (at, space) {
                (Break::Words(_), _) if spaces > 0 => (index.max(1), spaces),
                // A space at the very beginning is an indent, not a place to break.
                (Break::Words(_), Some(space)) => (space, 1),
                _ => (index.max(1), 0),
            };
        }
        used += piece.columns;
        if piece.text == " " && pieces[..index].iter().any(|before| before.text != " ") {
            space = Some(index);
        }
    }
    (pieces.len(), 0)
}

fn join(pieces: &[Piece<'_>]) -> Row {
    let mut row = Row::new();
    for piece in pieces {
        match row.last_mut() {
            Some((style, text)) if *style == piece.style => text.push_str(piece.text),
            _ => row.push((piece.style, piece.text.to_owned())),
        }
    }
    row
}

/// A line cut to so many columns, with `…` at the cut.
pub(crate) fn cut(row: &[(Style, String)], columns: usize) -> Row {
    if width(row) <= columns {
        return row.to_vec();
    }
    let mut left = columns.saturating_sub(1);
    let mut short = Row::new();
    for (style, text) in row {
        let mut kept = String::new();
        for piece in text.graphemes(true) {
            if piece.width() > left {
                kept.push('…');
                short.push((*style, kept));
                return short;
            }
            left -= piece.width();
            kept.push_str(piece);
        }
        short.push((*style, kept));
    }
    short
}

/// A number as people read it at a glance: 950, 12.3k, 1.5M.
pub(crate) fn count(number: u64) -> String {
    let tenths = |scale: u64, unit: &str| {
        let tenths = number.saturating_mul(10) / scale;
        if tenths < 1000 { format!("{}.{}{unit}", tenths / 10, tenths % 10) } else { format!("{}{unit}", tenths / 10) }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => tenths(1_000, "k"),
        _ => tenths(1_000_000, "M"),
    }
}

/// Millionths of a dollar.
pub(crate) fn money(micros: u64) -> String {
    if micros < 1_000_000 {
        format!("${}.{:04}", micros / 1_000_000, micros / 100 % 10_000)
    } else {
        format!("${}.{:02}", micros / 1_000_000, micros / 10_000 % 100)
    }
}

/// A length of time: 0.4s, 12s, 3m05s, 1h02m.
pub(crate) fn lasted(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{seconds}.{}s", ms / 100 % 10),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(rows: &[Row]) -> Vec<String> {
        rows.iter().map(|row| row.iter().map(|(_, text)| text.as_str()).collect()).collect()
    }

    fn broken(text: &str, columns: usize, at: Break) -> Vec<String> {
        plain(&wrap(&row(Style::new(), text), columns, at))
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(broken("the quick brown fox", 10, Break::Words(0)), ["the quick", "brown fox"]);
        assert_eq!(broken("- the quick brown", 9, Break::Words(2)), ["- the", "  quick", "  brown"]);
        assert_eq!(broken("abcdefghij", 4, Break::Words(0)), ["abcd", "efgh", "ij"]);
        assert_eq!(broken("ab cd ef", 4, Break::Anywhere), ["ab c", "d ef"]);
        assert_eq!(broken("", 10, Break::Words(0)), [""]);
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        assert_eq!(broken("日本語テキスト", 8, Break::Words(0)), ["日本語テ", "キスト"]);
        assert_eq!(broken("a日本語", 4, Break::Anywhere), ["a日", "本語"]);
        assert_eq!(plain(&[cut(&row(Style::new(), "日本語テキスト"), 8)]), ["日本語…"]);
    }

    #[test]
    fn nothing_acts() {
        assert_eq!(inert("a\tb\u{1b}[2J\u{202e}c\r"), "a    b\\u{1b}[2J\\u{202e}c\\u{d}");
    }

    #[test]
    fn numbers_are_short() {
        let counts = [0, 999, 1_000, 12_345, 123_456, 1_500_000].map(count);
        assert_eq!(counts, ["0", "999", "1.0k", "12.3k", "123k", "1.5M"]);
        assert_eq!([0, 1_234, 1_230_000].map(money), ["$0.0000", "$0.0012", "$1.23"]);
        assert_eq!([450, 12_000, 185_000, 3_720_000].map(lasted), ["0.4s", "12s", "3m05s", "1h02m"]);
    }

    proptest! {
        #[test]
        fn whatever_is_said_fits_and_no_word_is_lost(text in "[a-z 日é👍]{0,60}", columns in 4_usize..40, hang in 0_usize..6) {
            for at in [Break::Words(hang), Break::Anywhere] {
                let rows = wrap(&row(Style::new(), text.clone()), columns, at);
                prop_assert!(rows.iter().all(|row| width(row) <= columns), "{:?}", rows);
                let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
                prop_assert_eq!(letters(&plain(&rows).concat()), letters(&text));
            }
        }
    }
}
