//! What is printed and how: colours only where a terminal shows them, JSON alone on stdout.

use crate::cli::Color;
use crate::live;
use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use haft_core::{CallError, preview};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// For what went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// For what did not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// For what deserves a look.
pub(crate) const CARE: Style = AnsiColor::Yellow.on_default();
/// For names.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// For what is said beside.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// For headings.
pub(crate) const BOLD: Style = Style::new().bold();

/// Decides once for the process whether colours are used.
pub(crate) fn choose(color: Color) {
    let choice = match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Text in a style.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints text on stdout. A reader that went away is no error worth a word.
pub(crate) fn out(text: &str) {
    print(&mut anstream::stdout().lock(), text);
}

/// Prints text on stdout byte for byte: nothing in it is taken for a colour.
fn out_raw(text: &str) {
    print(&mut std::io::stdout().lock(), text);
}

fn print(stdout: &mut impl Write, text: &str) {
    live::clear();
    let end: &[u8] = if text.ends_with('\n') || text.is_empty() { b"" } else { b"\n" };
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(end)).and_then(|()| stdout.flush());
    if written.is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
        STDOUT_FAILED.store(true, Ordering::Relaxed);
    }
}

/// Whether something that was to be printed was not (a full disk, say). A reader that had enough and went
/// away is no failure.
pub(crate) fn stdout_failed() -> bool {
    STDOUT_FAILED.load(Ordering::Relaxed)
}

static STDOUT_FAILED: AtomicBool = AtomicBool::new(false);

/// Prints a value as JSON on stdout.
pub(crate) fn json(value: &impl Serialize) {
    out_json(&serde_json::to_string(value).unwrap_or_default());
}

/// Prints a value as indented JSON on stdout.
pub(crate) fn pretty(value: &impl Serialize) {
    out_json(&serde_json::to_string_pretty(value).unwrap_or_default());
}

/// JSON escapes the old control characters by itself, but not those that a terminal also obeys, nor those
/// that reorder text. On a terminal they are escaped as well; it stays the same JSON.
fn out_json(text: &str) {
    if !std::io::stdout().is_terminal() {
        return out_raw(text);
    }
    let escape = |c: char| match c {
        '\n' => "\n".to_owned(),
        c if preview::inert(c.encode_utf8(&mut [0; 4])).len() > c.len_utf8() => {
            c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
        c => c.to_string(),
    };
    out_raw(&text.chars().map(escape).collect::<String>());
}

/// Prints a line on stderr, or gives it to whoever has the screen.
pub(crate) fn note(text: &str) {
    let diverted = DIVERTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(take) = diverted.as_ref() {
        return take(anstream::adapter::strip_str(text).to_string());
    }
    drop(diverted);
    live::clear();
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Whoever takes what would be printed on stderr. It must not wait, nor print.
type Taker = Box<dyn Fn(String) + Send>;

static DIVERTED: Mutex<Option<Taker>> = Mutex::new(None);

/// Has what would be printed on stderr taken by somebody, or by nobody again: a line in the midst of a screen would
/// spoil it.
pub(crate) fn divert(taker: Option<Taker>) {
    *DIVERTED.lock().unwrap_or_else(PoisonError::into_inner) = taker;
}

/// Text that came from a model, a file or a name: line by line, with everything made visible that could
/// act on a terminal.
pub(crate) fn inert(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(preview::inert).collect::<Vec<_>>().join("\t");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Prints what a tool gave: as it is into a pipe or a file, inert on a terminal.
pub(crate) fn out_foreign(text: &str) {
    if std::io::stdout().is_terminal() { out(&inert(text)) } else { out_raw(text) }
}

/// Prints a warning on stderr.
pub(crate) fn warn(text: &str) {
    note(&format!("{} {}", paint(CARE, "warning:"), inert(text)));
}

/// Prints an error and what to do about it on stderr.
pub(crate) fn error(error: &CallError) {
    note(&format!("{} {}", paint(BAD, "error:"), inert(&error.message)));
    if let Some(hint) = &error.hint {
        note(&format!("{} {}", paint(FAINT, "hint:"), inert(hint)));
    }
}

/// A line in pieces, each in its style, for whoever draws it: a terminal line by line, or a whole screen.
pub(crate) type Row = Vec<(Style, String)>;

/// A line as a terminal takes it.
pub(crate) fn painted(row: &[(Style, String)]) -> String {
    row.iter().map(|(style, text)| paint(*style, text)).collect()
}

/// A unified diff with its usual colours; each line made inert, so that file content cannot act.
pub(crate) fn diff(text: &str) -> String {
    text.lines().map(|line| painted(&[diff_line(line)])).collect::<Vec<_>>().join("\n")
}

/// One line of it.
pub(crate) fn diff_line(line: &str) -> (Style, String) {
    let style = match line.as_bytes().first() {
        Some(b'+') if line.starts_with("+++") => BOLD,
        Some(b'-') if line.starts_with("---") => BOLD,
        Some(b'+') => GOOD,
        Some(b'-') => AnsiColor::Red.on_default(),
        Some(b'@') => NAME,
        _ => Style::new(),
    };
    (style, preview::inert(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_tabs_stay_and_nothing_acts() {
        assert_eq!(inert("a\tb\n\x1b[2Jc\r"), "a\tb\n\\u{1b}[2Jc\\u{d}");
    }
}
