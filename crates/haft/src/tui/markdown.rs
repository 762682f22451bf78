//! What models write, as a terminal can show it: headings, lists, quotes, code, bold and slanted words. Whatever is not
//! understood is shown as it was written, and so is what is not finished yet.

use super::text::{Break, inert, row, wrap};
use crate::style::{BOLD, FAINT, NAME, Row};
use anstyle::{AnsiColor, Style};

/// For code.
const CODE: Style = AnsiColor::Cyan.on_default();
/// For links, and for words that are only slanted.
const SLANTED: Style = Style::new().italic();

/// The lines of a text, each at most `columns` wide.
pub(crate) fn rows(text: &str, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.trim_end().split('\n') {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
            }
            (None, Some(mark)) => {
                fence = Some(mark);
                let language = inert(trimmed.trim_start_matches(['`', '~']).trim());
                if !language.is_empty() {
                    rows.push(row(FAINT, format!("  {language}")));
                }
            }
            (Some(_), _) => rows.extend(code(line, columns)),
            (None, None) => rows.extend(prose(line, columns)),
        }
    }
    rows
}

/// A line of code: no word is moved, and it is told from prose by where it stands, also without colours.
fn code(line: &str, columns: usize) -> Vec<Row> {
    let parts = wrap(&row(CODE, inert(line)), columns.saturating_sub(4), Break::Anywhere);
    parts.into_iter().map(|part| [vec![(FAINT, "  │ ".to_owned())], part].concat()).collect()
}

fn prose(line: &str, columns: usize) -> Vec<Row> {
    let line = inert(line.trim_end());
    let rest = line.trim_start();
    let indent = (line.len() - rest.len()).min(12);
    if let Some(title) = heading(rest) {
        return wrap(&row(BOLD.underline(), title), columns, Break::Words(0));
    }
    if is_rule(rest) {
        return vec![row(FAINT, "─".repeat(columns.min(40)))];
    }
    if let Some(quoted) = rest.strip_prefix('>') {
        let parts = wrap(&spans(quoted.trim_start(), FAINT), columns.saturating_sub(2), Break::Words(0));
        return parts.into_iter().map(|part| [vec![(FAINT, "│ ".to_owned())], part].concat()).collect();
    }
    let (mark, words) = bullet(rest);
    let lead = format!("{}{mark}", " ".repeat(indent));
    let hang = lead.chars().count();
    let lead = if lead.is_empty() { Row::new() } else { row(NAME, lead) };
    let whole = [lead, spans(words, Style::new())].concat();
    wrap(&whole, columns, Break::Words(hang))
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' ')).then(|| title.trim())
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3 && ['-', '*', '_'].iter().any(|mark| line.chars().all(|c| c == *mark))
}

/// What a line of a list begins with, as it is shown, and the rest of it.
fn bullet(line: &str) -> (String, &str) {
    if let Some(rest) = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)) {
        return ("• ".to_owned(), rest);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let number = &line[..digits];
    match line[digits..].strip_prefix(". ").or_else(|| line[digits..].strip_prefix(") ")) {
        Some(rest) if (1..=4).contains(&digits) => (format!("{number}. "), rest),
        _ => (String::new(), line),
    }
}

/// Words with their styles. A mark without its other half is what it is.
fn spans(line: &str, base: Style) -> Row {
    let mut row = Row::new();
    let mut plain = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let found = marked(rest, plain.chars().next_back());
        let Some((style, inner, after)) = found else {
            plain.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        if !plain.is_empty() {
            row.push((base, std::mem::take(&mut plain)));
        }
        row.push((style(base), inner));
        rest = after;
    }
    if !plain.is_empty() || row.is_empty() {
        row.push((base, plain));
    }
    row
}

/// A style over another one.
type Over = fn(Style) -> Style;

/// What is marked at the very beginning of a text: its style, it, and what follows.
fn marked(text: &str, before: Option<char>) -> Option<(Over, String, &str)> {
    let between = |mark: &str| {
        let inner = text.strip_prefix(mark)?;
        let end = inner.find(mark).filter(|end| *end > 0)?;
        let (inner, after) = (&inner[..end], &inner[end + mark.len()..]);
        let fits = mark == "`" || !(inner.starts_with(' ') || inner.ends_with(' '));
        fits.then(|| (inner.to_owned(), after))
    };
    // In the midst of a word these are no marks: snake_case, 2*3*4.
    let apart = before.is_none_or(|c| !c.is_alphanumeric());
    if let Some((inner, after)) = between("`") {
        return Some((|_| CODE, inner, after));
    }
    if let Some((inner, after)) = between("**").or_else(|| apart.then(|| between("__")).flatten()) {
        return Some((Style::bold, inner, after));
    }
    if apart && let Some((inner, after)) = between("*").or_else(|| between("_")) {
        return Some((|_| SLANTED, inner, after));
    }
    let label = text.strip_prefix('[')?;
    let (label, target) = label.split_once("](")?;
    let (target, after) = target.split_once(')')?;
    // Where it leads is always seen: what it is called may be anything.
    let shown = if label == target { target.to_owned() } else { format!("{label} ({target})") };
    (!label.contains('[')).then_some((|_| SLANTED, shown, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, columns: usize) -> String {
        let name = |style: Style| match style {
            style if style == Style::new() => "",
            style if style == BOLD => "b",
            style if style == CODE => "c",
            style if style == SLANTED => "i",
            style if style == FAINT => "f",
            style if style == BOLD.underline() => "h",
            _ => "?",
        };
        let piece = |(style, text): &(Style, String)| match name(*style) {
            "" => text.clone(),
            name => format!("<{name}:{text}>"),
        };
        rows(text, columns).iter().map(|row| row.iter().map(piece).collect::<String>()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_models_write_is_shown_modestly() {
        let text = "# Title\n\nSome **bold** and *slanted* and `code` in snake_case.\n\n- one item that is long enough to wrap\n  - inner\n1. first\n> quoted\n---\n```rust\nfn main() {}\n```\nsee [docs](https://a.test)";
        insta::assert_snapshot!(shown(text, 30), @r"
        <h:Title>

        Some <b:bold> and <i:slanted> and <c:code>
        in snake_case.

        <c:• >one item that is long enough
          to wrap
        <c:  • >inner
        <c:1. >first
        <f:│ ><f:quoted>
        <f:──────────────────────────────>
        <f:  rust>
        <f:  │ ><c:fn main() {}>
        see <i:docs (https://a.test)>
        ");
    }

    #[test]
    fn what_is_not_finished_is_shown_as_it_is() {
        assert_eq!(shown("a **bold without end", 40), "a **bold without end");
        assert_eq!(shown("2 * 3 * 4 and `tick", 40), "2 * 3 * 4 and `tick");
        assert_eq!(shown("```\nlet x", 40), "<f:  │ ><c:let x>");
        assert_eq!(shown("", 40), "");
    }

    #[test]
    fn nothing_a_model_writes_acts() {
        assert!(
            !shown("a\u{1b}[2Jb `c\u{1b}]0;x\u{7}`\n```\n\u{9b}2J\n```", 80)
                .chars()
                .any(|c| c.is_control() && c != '\n')
        );
    }
}
