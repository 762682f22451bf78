//! What comes near to a text that does not occur.

use haft_core::CallError;
use haft_core::preview::{cut, inert};
use std::collections::HashMap;

/// How many candidates are shown.
const SHOWN: usize = 3;
/// How many lines are looked at: a hint must not cost more than the edit.
const LINES_MAX: usize = 5_000;
/// Longer lines are compared by their beginning.
const LINE_MAX: usize = 160;
/// How alike a line must be to be worth showing.
const ALIKE: f64 = 0.6;

/// Adds what comes near to the error about a text that does not occur.
pub(super) fn hint(mut error: CallError, near: &[String]) -> CallError {
    if near.is_empty() {
        return error;
    }
    error.message = format!("{}. Nearest:\n{}", error.message, near.join("\n"));
    error.details(serde_json::json!({ "candidates": near })).hint("copy the text exactly as it stands in the file")
}

/// The places that come nearest to `old`, one line of text each.
pub(super) fn candidates(text: &str, old: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().take(LINES_MAX).collect();
    let wanted: Vec<&str> = old.lines().map(str::trim).filter(|line| !line.is_empty()).take(LINES_MAX).collect();
    let Some(first) = wanted.first() else { return Vec::new() };
    let spaced = by_white_space(&lines, &wanted);
    if spaced.is_empty() { by_likeness(&lines, first) } else { spaced }
}

/// Runs of lines that are the same but for white space.
fn by_white_space(lines: &[&str], wanted: &[&str]) -> Vec<String> {
    // Lines are compared by number: a run of many long ones that are all the same costs no more than others.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut number = |line: &str| {
        let next = numbers.len();
        *numbers.entry(line.split_whitespace().collect::<Vec<_>>().join(" ")).or_insert(next)
    };
    let filled: Vec<(usize, usize)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| (at, number(line)))
        .collect();
    let wanted: Vec<usize> = wanted.iter().map(|line| number(line)).collect();
    filled
        .windows(wanted.len())
        .filter(|run| run.iter().map(|(_, number)| number).eq(&wanted))
        .take(SHOWN)
        .map(|run| {
            let at = run[0].0;
            format!("line {} differs only in white space: `{}`", at + 1, show(lines[at]))
        })
        .collect()
}

/// Single lines that look like the first line wanted.
fn by_likeness(lines: &[&str], first: &str) -> Vec<String> {
    let first = head(first);
    let mut found: Vec<(f64, usize)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (likeness(head(line.trim()), first), at))
        .filter(|(alike, _)| *alike >= ALIKE)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.iter().take(SHOWN).map(|(_, at)| format!("line {}: `{}`", at + 1, show(lines[*at]))).collect()
}

fn likeness(line: &str, wanted: &str) -> f64 {
    // A line of quite another length cannot be alike enough; saying so early keeps this fast.
    let (short, long) = if line.len() < wanted.len() { (line.len(), wanted.len()) } else { (wanted.len(), line.len()) };
    if short * 2 < long { 0.0 } else { strsim::normalized_levenshtein(line, wanted) }
}

fn head(line: &str) -> &str {
    &line[..haft_core::shape::floor_boundary(line, LINE_MAX)]
}

fn show(line: &str) -> String {
    // `cut` measures all that it is given.
    cut(&inert(&line[..haft_core::shape::floor_boundary(line, LINE_MAX * 4)]), LINE_MAX)
}
