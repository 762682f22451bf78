//! Passwords in the lines of a `.netrc` file: `machine HOST login USER password PASSWORD`.

use super::names::can_be_secret;
use core::ops::Range;

/// Words that are followed by a value.
const WITH_VALUE: &[&str] = &["login", "user", "account", "port", "protocol"];
/// So much of a line is looked at for the quote that a word stands in.
const LINE_MAX: usize = 4096;

/// The passwords of a text.
pub(super) fn passwords(text: &str) -> Vec<Range<usize>> {
    if !text.contains("password") {
        return Vec::new();
    }
    let words = words(text);
    let texts: Vec<&str> = words.iter().map(|span| &text[span.clone()]).collect();
    let begins_line = |at: usize| {
        let gap = at.checked_sub(1).map_or(0, |before| words[before].end)..words[at].start;
        at == 0 || text[gap.clone()].contains('\n') || text[gap].contains("\\n")
    };
    let found = password_words(&texts, begins_line).into_iter().map(|at| value(text, &words[at]));
    found.filter(|span| can_be_secret("password", &text[span.clone()])).collect()
}

/// Which of the words are passwords. An entry names a login as well, and the default one begins a line: prose speaks of
/// machines, logins and passwords, too.
pub(super) fn password_words(words: &[&str], begins_line: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        // The first word may be the first of a string in a program.
        let string = words[at].rsplit_once(['"', '\'', '`']).map(|(_, begin)| begin);
        let mut key = match string.unwrap_or(words[at]) {
            "machine" => at + 2,
            "default" if string.is_some() || begins_line(at) => at + 1,
            _ => {
                at += 1;
                continue;
            }
        };
        let (mut logins, mut passwords) = (0, Vec::new());
        while let Some(name) = words.get(key) {
            match *name {
                "password" => passwords.push(key + 1),
                name if WITH_VALUE.contains(&name) => logins += 1,
                _ => break,
            }
            key += 2;
        }
        if logins > 0 {
            found.extend(passwords.into_iter().filter(|password| *password < words.len()));
        }
        at = key.clamp(at + 1, words.len().max(at + 1));
    }
    found
}

/// Which operands of a `printf` format are passwords: their directives are words of an entry.
pub(super) fn format_operands(format: &str) -> Vec<usize> {
    let format = format.replace("%%", "  ");
    let words = words(&format);
    let texts: Vec<&str> = words.iter().map(|span| &format[span.clone()]).collect();
    let directives = |end: usize| format[..end].matches('%').count();
    let found = password_words(&texts, |at| at == 0).into_iter().filter(|at| texts[*at].contains('%'));
    found.map(|at| directives(words[at].start)).collect()
}

/// The words of a text between blanks, which may be written as escapes: `\n`.
fn words(text: &str) -> Vec<Range<usize>> {
    let (mut words, mut begin, mut rest) = (Vec::new(), None, text.char_indices());
    while let Some((at, c)) = rest.next() {
        let is_escape = c == '\\' && text[at + 1..].starts_with(['n', 't', 'r']);
        if c.is_whitespace() || is_escape {
            words.extend(begin.take().map(|begin| begin..at));
            if is_escape {
                rest.next();
            }
        } else {
            begin.get_or_insert(at);
        }
    }
    words.extend(begin.map(|begin| begin..text.len()));
    words
}

/// A password without quotes around it, and without what follows the end of a string that the entry stands in.
fn value(text: &str, span: &Range<usize>) -> Range<usize> {
    let word = &text[span.clone()];
    if let Some(quote) = word.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let inner = &word[1..];
        return span.start + 1..span.start + 1 + inner.find(quote).unwrap_or(inner.len());
    }
    let from = text.floor_char_boundary(span.start.saturating_sub(LINE_MAX));
    let line = text[from..span.start].rsplit('\n').next().unwrap_or_default();
    let open = ['"', '\'', '`'].into_iter().filter(|quote| line.matches(*quote).count() % 2 == 1);
    let open: Vec<char> = open.collect();
    span.start..span.start + word.find(open.as_slice()).unwrap_or(word.len())
}
