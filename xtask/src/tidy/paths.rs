//! Nothing tracked may name the machine it was written on: neither its directories nor the mirror it
//! takes packages from.

use super::scan;
use super::{Finding, Tree};

/// Written in halves, so that this file does not find itself.
const TELLTALES: &[&str] = &[
    concat!("/ro", "ot/.cargo"),
    concat!("/ro", "ot/.rustup"),
    concat!("/home/", "runner"),
    concat!("[source.", "crates-io]"),
    concat!("replace", "-with ="),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.files.iter().filter(|(path, _)| !path.ends_with("Cargo.lock"));
    files.flat_map(|(path, text)| tells(text).map(move |(line, said)| Finding::new(path, line, said))).collect()
}

fn tells(text: &str) -> impl Iterator<Item = (usize, String)> {
    TELLTALES.iter().flat_map(move |telltale| {
        let found = text.match_indices(telltale).filter(|(at, _)| begins(&text[..*at], telltale));
        found.map(move |(at, _)| (scan::line_at(text, at), format!("`{telltale}` names a machine")))
    })
}

/// A directory counts only where a path begins: `~/x/` is anybody's.
fn begins(before: &str, telltale: &str) -> bool {
    !telltale.starts_with('/') || !before.ends_with(|c: char| scan::is_word(c) || "~.-/}*".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_paths_tell() {
        let here = TELLTALES[0];
        let found = |text: String| tells(&text).map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(found(format!("a\nin `{here}x`\n")), [2]);
        assert!(found(format!("~{here}x $HOME{here}x ${{x}}{here}")).is_empty());
    }
}
