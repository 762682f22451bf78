//! `ARCHITECTURE.md` numbers what must always hold. A number without a test is a wish, so each names at
//! least one, as `crate::path::test_name` or `tests/file.rs::test_name`, and the test has to exist.

use super::{Finding, Tree};
use std::path::Path;

const DOCUMENT: &str = "ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.get(DOCUMENT) else {
        println!("tidy: skipped, there is no {DOCUMENT} whose invariants could be checked");
        return Vec::new();
    };
    document(text, |name| exists(tree, name))
        .into_iter()
        .map(|(line, said)| Finding::new(DOCUMENT, line, said))
        .collect()
}

/// Whether some file has the function; the very file, if the name begins with one.
fn exists(tree: &Tree, name: &str) -> bool {
    let Some((place, function)) = name.rsplit_once("::") else { return false };
    let signature = format!("fn {function}(");
    let is_file = Path::new(place).extension().is_some();
    tree.rust().any(|(path, source)| (!is_file || path.ends_with(place)) && source.contains(&signature))
}

fn document(text: &str, exists: impl Fn(&str) -> bool) -> Vec<(usize, String)> {
    let invariants = invariants(text);
    if invariants.is_empty() {
        return vec![(1, "no numbered invariants under a heading `Invariants`".to_owned())];
    }
    let mut said = Vec::new();
    for (line, invariant) in invariants {
        let names: Vec<&str> = invariant.split('`').skip(1).step_by(2).filter(|name| name.contains("::")).collect();
        // A name that says it is a test has to be one, even beside another that is.
        let gone = names.iter().filter(|name| (name.contains("tests/") || name.contains("::tests::")) && !exists(name));
        said.extend(gone.map(|name| (line, format!("there is no test `{name}`"))));
        if !names.iter().any(|name| exists(name)) {
            said.push((line, "the invariant names no test that exists".to_owned()));
        }
    }
    said
}

/// Each numbered paragraph under the heading, with its first line's number.
fn invariants(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut level = 0;
    for (index, line) in text.lines().enumerate() {
        let hashes = line.len() - line.trim_start_matches('#').len();
        if hashes > 0 && line[hashes..].starts_with(' ') {
            let is_ours = line[hashes..].trim().eq_ignore_ascii_case("invariants");
            level = if is_ours {
                hashes
            } else if hashes <= level {
                0
            } else {
                level
            };
        } else if level > 0 {
            let numbered = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
            match found.last_mut() {
                _ if numbered => found.push((index + 1, line.to_owned())),
                Some((_, paragraph)) => paragraph.push_str(line),
                None => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_invariant_names_a_test_that_exists() {
        let text = "# A\n## Invariants\n1. One holds: `core::a::holds`.\n2. Two, `std::fs::rename`.\n\
                    3. Three\n   `tests/x.rs::three`, `tests/x.rs::gone`.\n## Else\n4. Not ours.\n";
        let known = ["core::a::holds", "tests/x.rs::three"];
        assert_eq!(
            document(text, |name| known.contains(&name)),
            [
                (4, "the invariant names no test that exists".to_owned()),
                (5, "there is no test `tests/x.rs::gone`".to_owned()),
            ]
        );
        assert_eq!(document("# A\n", |_| true).len(), 1);
    }

    #[test]
    fn a_test_named_with_its_file_has_to_be_in_that_file() {
        let tree = Tree { files: vec![("crates/a/tests/x.rs".into(), "fn holds() {}".to_owned())] };
        assert!(exists(&tree, "tests/x.rs::holds"));
        assert!(exists(&tree, "a::tests::holds"));
        assert!(!exists(&tree, "tests/y.rs::holds"));
        assert!(!exists(&tree, "tests/x.rs::hold"));
    }
}
