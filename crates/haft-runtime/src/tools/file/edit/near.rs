//! What comes near to a text that does not occur.

use haft_core::preview::{cut, inert};

/// How many candidates are shown.
const SHOWN: usize = 3;
/// How many lines are looked at: a hint must not cost more than the edit.
const LINES_MAX: usize = 5_000;
/// Longer lines are compared by their beginning.
const LINE_MAX: usize = 160;
/// How alike a line must be to be worth showing.
const ALIKE: f64 = 0.6;

/// The places that come nearest to `old`, one line of text each.
pub(super) fn candidates(text: &str, old: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().take(LINES_MAX).collect();
    let wanted: Vec<&str> = old.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let Some(first) = wanted.first() else { return Vec::new() };
    let spaced = by_white_space(&lines, &wanted);
    if spaced.is_empty() { by_likeness(&lines, first) } else { spaced }
}

/// Runs of lines that are the same but for white space.
fn by_white_space(lines: &[&str], wanted: &[&str]) -> Vec<String> {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let filled: Vec<(usize, &str)> =
        lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(at, line)| (at, *line)).collect();
    let wanted: Vec<String> = wanted.iter().map(|line| squeezed(line)).collect();
    filled
        .windows(wanted.len())
        .filter(|run| run.iter().zip(&wanted).all(|((_, line), wanted)| squeezed(line) == *wanted))
        .take(SHOWN)
        .map(|run| format!("line {} differs only in white space: `{}`", run[0].0 + 1, show(run[0].1)))
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
    cut(&inert(line), 160)
}
