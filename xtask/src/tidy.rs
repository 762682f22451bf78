//! `cargo xtask tidy`: the conventions that a compiler does not check, as checks. Every rule is a function
//! from the tree to findings; a new rule is one line in [`findings`].
//!
//! It also runs as a test, so that no way of testing the project forgets it.

mod arrows;
mod clients;
mod invariants;
mod licences;
mod paths;
mod purity;
mod scan;
mod source;

use crate::{docs, sh};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::path::PathBuf;

/// Something that is not as agreed, and where.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    file: PathBuf,
    line: usize,
    message: String,
}

impl Finding {
    fn new(file: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

/// The tracked text of the repository, read once.
struct Tree {
    files: Vec<(PathBuf, String)>,
}

impl Tree {
    fn read() -> Result<Self> {
        let mut files = Vec::new();
        for path in sh::tracked()? {
            let bytes = std::fs::read(sh::root().join(&path)).with_context(|| path.display().to_string())?;
            // What is not text has no conventions.
            files.extend(String::from_utf8(bytes).ok().map(|text| (path, text)));
        }
        Ok(Self { files })
    }

    fn get(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|(file, _)| file.as_os_str() == path).map(|(_, text)| text.as_str())
    }

    fn rust(&self) -> impl Iterator<Item = &(PathBuf, String)> {
        self.files.iter().filter(|(path, _)| path.extension().is_some_and(|ext| ext == "rs"))
    }
}

pub(crate) fn run() -> Result<()> {
    let tree = Tree::read()?;
    let mut findings = findings(&tree)?;
    if let Err(error) = docs::run(docs::Mode::Check) {
        findings.push(Finding::new("docs/reference", 1, error.to_string()));
    }
    for finding in &findings {
        println!("{finding}");
    }
    println!("{}", source::measure(&tree));
    if !findings.is_empty() {
        bail!("tidy: {} findings", findings.len());
    }
    println!("tidy: {} files, no findings", tree.files.len());
    Ok(())
}

/// Everything but the generated pages, which take a build to check.
fn findings(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    findings.extend(arrows::check(tree));
    findings.extend(clients::check(tree));
    findings.extend(source::check(tree));
    findings.extend(invariants::check(tree));
    findings.extend(paths::check(tree));
    findings.extend(purity::check(tree));
    findings.extend(licences::check(tree)?);
    for needed in ["CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        if tree.get(needed).is_none() {
            findings.push(Finding::new(needed, 1, "does not exist"));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let found = findings(&Tree::read().unwrap()).unwrap();
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }
}
