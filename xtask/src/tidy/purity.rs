//! The deciding crate does no I/O: no files, no network, no clock, no chance, nothing async.

use super::scan;
use super::{Finding, Tree};

/// What only the rim may name.
const RIM: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "SystemTime",
    "Instant",
    "tokio",
    "async fn",
    ".await",
    "getrandom",
    "File::open",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let core = tree.rust().filter(|(path, _)| path.starts_with("crates/haft-core/src"));
    core.flat_map(|(path, text)| acts(text).map(move |(line, said)| Finding::new(path, line, said))).collect()
}

fn acts(text: &str) -> impl Iterator<Item = (usize, String)> {
    RIM.iter().flat_map(move |word| {
        text.match_indices(word)
            .map(move |(at, _)| (scan::line_at(text, at), format!("`{word}` in the deciding crate")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_in_the_core_is_found() {
        let lines: Vec<usize> =
            acts("use std::fmt;\nuse std::fs;\nlet now = SystemTime::now();\n").map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
