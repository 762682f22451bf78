//! Secrets in command lines, found by syntax so that they can be masked where a command is recorded or shown: secret-named
//! assignments, the password options of known programs, credentials in URLs and headers, what is piped into a program that
//! reads a password. The command that runs is never changed.
//!
//! Words come from the second look at a command (`super::second`), which needs no tree: a command that cannot be parsed is
//! recorded, too. Where that look is in trouble, the text is also read as words between blanks, which masks more.

mod line;
mod names;
mod netrc;
mod programs;
mod running;
mod simple;
mod text;
mod word;

use crate::secret::{MASK, mask_urls};
use core::ops::Range;
use line::Line;
use running::TextUse;
use simple::Simple;
use std::borrow::Cow;
use word::Word;

/// How deeply commands in words of commands are followed: `sh -c "sh -c …"`.
const DEPTH_MAX: usize = 8;
/// A secret that is shorter is not looked for in texts about its command: it would be found in every word.
const QUOTED_MIN: usize = 4;

/// A shell command with its secrets masked.
pub fn mask_command(command: &str) -> Cow<'_, str> {
    let spans = secret_spans(command, 0);
    if spans.is_empty() { mask_urls(command) } else { Cow::Owned(mask_urls(&masked(command, &spans)).into_owned()) }
}

/// The words of a command that no shell reads, with their secrets masked. The first is the program.
pub fn mask_words(words: &[&str]) -> Vec<String> {
    let read: Vec<Word> = words.iter().map(|word| Word::plain(word, 0)).collect();
    let mut spans: Vec<Vec<Range<usize>>> = vec![Vec::new(); words.len()];
    for found in Line::new(&read, &TextUse::of(&[&read])).secrets() {
        spans[found.word].push(found.part);
    }
    let runs_shell = words.first().is_some_and(|program| line::is_wrapper(line::base(program)));
    for (word, spans) in words.iter().zip(&mut spans) {
        if runs_shell && running::may_be_command(word) {
            spans.extend(secret_spans(word, 1));
        }
        merge(spans);
    }
    words.iter().zip(&spans).map(|(word, spans)| mask_urls(&masked(word, spans)).into_owned()).collect()
}

/// The secrets of a shell command as they are written in it, for masking what is said about the command.
pub fn command_secrets(command: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for span in secret_spans(command, 0) {
        let text = command[span].to_owned();
        if text.len() >= QUOTED_MIN && !found.contains(&text) {
            found.push(text);
        }
    }
    // What holds another one is masked first.
    found.sort_by_key(|text| std::cmp::Reverse(text.len()));
    found
}

/// A text about a command, with the command's secrets masked wherever it quotes them.
pub fn mask_quoted<'t>(text: &'t str, secrets: &[String]) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(text);
    for secret in secrets {
        if text.contains(secret.as_str()) {
            text = Cow::Owned(text.replace(secret.as_str(), MASK));
        }
    }
    text
}

/// Puts secrets back into a text that was edited while they were masked. None: the masks cannot be told apart any more.
pub fn unmask(edited: &str, before: &str, shown: &str) -> Option<String> {
    if !edited.contains(MASK) || edited == before {
        return Some(edited.to_owned());
    }
    // A mask in a text that has no secret is one that was moved here, unless the text speaks of masks itself.
    if before == shown {
        return before.contains(MASK).then(|| edited.to_owned());
    }
    let mut secrets = hidden_in(before, shown).into_iter();
    let mut pieces = edited.split(MASK);
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        whole.push_str(&secrets.next()?);
        whole.push_str(piece);
    }
    secrets.next().is_none().then_some(whole)
}

/// What stands in a text where its masked form has a mask; nothing if it is not its masked form.
pub fn hidden_in(text: &str, shown: &str) -> Vec<String> {
    let mut pieces = shown.split(MASK);
    let mut found = Vec::new();
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return found };
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let end = match pieces.peek() {
            None => rest.len().checked_sub(piece.len()).filter(|end| rest.get(*end..) == Some(piece)),
            Some(_) => rest.find(piece).filter(|_| !piece.is_empty()),
        };
        let Some(end) = end else { return Vec::new() };
        found.push(rest[..end].to_owned());
        rest = &rest[end + piece.len()..];
    }
    found
}

fn masked(text: &str, spans: &[Range<usize>]) -> String {
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for span in spans {
        out.push_str(&text[done..span.start]);
        out.push_str(MASK);
        done = span.end;
    }
    out.push_str(&text[done..]);
    out
}

/// Sorts spans and joins those that touch the same text.
fn merge(spans: &mut Vec<Range<usize>>) {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans.drain(..).filter(|span| !span.is_empty()) {
        match merged.last_mut().filter(|last| span.start < last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => merged.push(span),
        }
    }
    *spans = merged;
}

/// Where the secrets of a command stand in it, in order.
fn secret_spans(command: &str, depth: usize) -> Vec<Range<usize>> {
    if depth > DEPTH_MAX || command.len() > super::COMMAND_MAX {
        return Vec::new();
    }
    let (mut commands, in_trouble) = simple::commands(command);
    if in_trouble {
        commands.extend(simple::rough_commands(command));
    }
    let read = |one: &Simple| one.words.iter().map(|span| Word::read(command, span.clone())).collect();
    let words: Vec<Vec<Word>> = commands.iter().map(read).collect();
    let text_use = TextUse::of(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut spans = Vec::new();
    for (at, (one, words)) in commands.iter().zip(&words).enumerate() {
        for found in Line::new(words, &text_use).secrets() {
            spans.extend(words[found.word].place(&found.part));
        }
        spans.extend(nested(command, words, depth));
        for body in &one.bodies {
            let found = text::settings(&command[body.clone()], text_use.of_body(words));
            spans.extend(found.into_iter().map(|part| shift(&part, body.start)));
        }
        if line::reads_secret(words) {
            given(command, &commands, at, &mut spans);
        }
    }
    merge(&mut spans);
    spans.retain(|span| command.is_char_boundary(span.start) && command.is_char_boundary(span.end));
    // Whoever decides about a command sees everything that it runs: a secret that is put together by commands stays.
    spans.retain(|span| !runs_commands(&command[span.clone()]));
    spans
}

/// Whether a part of a command may run further commands. A plain `$(echo …)` runs nothing that its words do not say.
fn runs_commands(part: &str) -> bool {
    let has_substitution = ["$(", "`", "<(", ">("].iter().any(|sign| part.contains(sign));
    has_substitution && !is_plain_print(part)
}

fn is_plain_print(part: &str) -> bool {
    let inner = part.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    let inner = inner.or_else(|| part.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')));
    inner.is_some_and(|inner| {
        let is_print = inner.starts_with("echo ") || inner.starts_with("printf ");
        is_print && !inner.contains(['$', '`', ';', '&', '|', '<', '>', '(', ')', '\n', '\r'])
    })
}

fn shift(part: &Range<usize>, by: usize) -> Range<usize> {
    part.start + by..part.end + by
}

/// The secrets of commands that stand in words of a command, whole or in quotes: `sh -c '…'`, `ssh host "…"`.
fn nested(command: &str, words: &[Word], depth: usize) -> Vec<Range<usize>> {
    if !words.iter().any(|word| line::is_wrapper(line::base(&word.text))) {
        return Vec::new();
    }
    let mut spans = Vec::new();
    let words = words.iter().skip_while(|word| line::assigned_name(&word.text).is_some());
    for word in words.filter(|word| running::may_be_command(&word.text)) {
        let whole = word.place(&(0..word.text.len()));
        if let Some(whole) = whole.filter(|_| word.is_one_stretch()) {
            // As it stands in the source: in double quotes a backslash may be too many, and no word is lost by it.
            let inner = secret_spans(&command[whole.clone()], depth + 1);
            spans.extend(inner.iter().map(|part| shift(part, whole.start)));
        } else {
            let inner = secret_spans(&word.text, depth + 1);
            spans.extend(inner.iter().filter_map(|part| word.place(part)));
        }
    }
    spans
}

/// What a program is given that reads a secret: by a here-document, a here-string, or what prints into its pipe.
fn given(command: &str, commands: &[Simple], reader: usize, spans: &mut Vec<Range<usize>>) {
    let one = &commands[reader];
    let whole_input = line::takes_whole_input(one.words.iter().map(|span| &command[span.clone()]));
    let first = spans.len();
    spans.extend(one.bodies.iter().map(|body| trimmed(command, body)));
    for span in &one.strings {
        let word = Word::read(command, span.clone());
        let whole = 0..word.text.len();
        spans.extend(word.place(&whole).filter(|_| !word.is_expanded(&whole)));
    }
    if let Some(printer) = one.piped_from.and_then(|at| commands.get(at)) {
        printed(command, printer, spans);
    }
    if !whole_input {
        // What follows the first line is read by the program that is run with the secret.
        let is_one_line = |span: &Range<usize>| {
            let text = command[span.clone()].trim_end_matches("\\n");
            !text.contains('\n') && !text.contains("\\n")
        };
        let given = spans.split_off(first);
        spans.extend(given.into_iter().filter(is_one_line));
    }
}

/// What a command prints into the pipe of one that reads a secret.
fn printed(command: &str, printer: &Simple, spans: &mut Vec<Range<usize>>) {
    spans.extend(printer.bodies.iter().map(|body| trimmed(command, body)));
    let words: Vec<Word> = printer.words.iter().map(|span| Word::read(command, span.clone())).collect();
    let name = words.first().map(|word| line::base(&word.text)).unwrap_or_default();
    if !matches!(name, "echo" | "printf" | "print") {
        return;
    }
    let operands = words.iter().skip(1).filter(|word| !word.text.starts_with('-'));
    // A format that says nothing stays.
    for word in operands.filter(|word| !word.text.replace("%s", "").replace("\\n", "").is_empty()) {
        let whole = 0..word.text.len();
        spans.extend(word.place(&whole).filter(|_| !word.is_expanded(&whole)));
    }
}

fn trimmed(command: &str, body: &Range<usize>) -> Range<usize> {
    let text = &command[body.clone()];
    let start = body.start + (text.len() - text.trim_start().len());
    start..(body.start + text.trim_end().len()).max(start)
}

#[cfg(test)]
mod tests;
