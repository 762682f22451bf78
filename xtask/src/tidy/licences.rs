//! Every package's licence can be met from the list in `deny.toml`, and every package comes from
//! crates.io. cargo-deny says more, but is not everywhere; this part of its work is.

use super::{Finding, Tree};
use crate::sh;
use anyhow::{Context, Result};
use serde_json::Value;

const LIST: &str = "deny.toml";
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(allowed) = tree.get(LIST).and_then(allowed) else {
        return Ok(vec![Finding::new(LIST, 1, "has no list of licences")]);
    };
    // Offline first: everything is there after a build, and a test must not need the network.
    let metadata = |args: &[&str]| sh::capture(sh::cargo(&["metadata", "--format-version", "1"]).args(args));
    let text = metadata(&["--offline", "--locked"]).or_else(|_| metadata(&["--locked"]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    Ok(packages
        .iter()
        .filter_map(|package| complaint(package, &allowed))
        .map(|said| Finding::new("Cargo.lock", 1, said))
        .collect())
}

fn complaint(package: &Value, allowed: &[&str]) -> Option<String> {
    let name = package["name"].as_str().unwrap_or_default();
    if let Some(source) = package["source"].as_str().filter(|source| *source != REGISTRY) {
        return Some(format!("`{name}` comes from {source}, not from crates.io"));
    }
    let licence = package["license"].as_str().unwrap_or_default();
    (!satisfiable(licence, allowed))
        .then(|| format!("`{name}` is licensed as `{licence}`, which {LIST} does not allow"))
}

/// The strings of the first `allow = [ … ]`.
fn allowed(text: &str) -> Option<Vec<&str>> {
    let list = text.split("\nallow = [").nth(1)?.split(']').next()?;
    Some(list.split('"').skip(1).step_by(2).collect())
}

/// Whether an SPDX expression can be met. `AND` binds closer than `OR`; `/` is an old way to write `OR`.
fn satisfiable(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let met = any(&mut words, allowed);
    met && words.next().is_none()
}

type Words<'w> = std::iter::Peekable<std::str::SplitWhitespace<'w>>;

fn any(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut met = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed);
    }
    met
}

fn all(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &[&str]) -> bool {
    let Some(word) = words.next() else { return false };
    if word == "(" {
        let met = any(words, allowed);
        return words.next() == Some(")") && met;
    }
    match words.next_if_eq(&"WITH").and_then(|_| words.next()) {
        Some(exception) => allowed.contains(&format!("{word} WITH {exception}").as_str()),
        None => allowed.contains(&word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_from_the_list() {
        let list = ["MIT", "Apache-2.0", "BSD-3-Clause", "Apache-2.0 WITH LLVM-exception"];
        for met in [
            "MIT",
            "MIT/Unlicense",
            "GPL-3.0 OR MIT",
            "(Apache-2.0 OR GPL-2.0) AND BSD-3-Clause",
            "GPL-2.0 AND MIT OR Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(satisfiable(met, &list), "{met}");
        }
        for unmet in
            ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-2.0) AND GPL-3.0", "MIT WITH other", "(MIT", "MIT)"]
        {
            assert!(!satisfiable(unmet, &list), "{unmet}");
        }
    }

    #[test]
    fn the_list_is_read_from_the_configuration() {
        assert_eq!(allowed("[licenses]\nallow = [\n  \"A\",\n  \"B WITH C\",\n]\n"), Some(vec!["A", "B WITH C"]));
        assert_eq!(allowed("[licenses]\n"), None);
    }

    #[test]
    fn a_stranger_and_a_licence_are_named() {
        let stranger = serde_json::json!({"name": "x", "source": "git+https://example.org/x", "license": "MIT"});
        assert_eq!(
            complaint(&stranger, &["MIT"]).as_deref(),
            Some("`x` comes from git+https://example.org/x, not from crates.io")
        );
        let own = serde_json::json!({"name": "y", "source": null, "license": "GPL-3.0"});
        assert!(complaint(&own, &["MIT"]).is_some_and(|said| said.contains("GPL-3.0")));
    }
}
