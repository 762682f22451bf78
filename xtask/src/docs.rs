//! `cargo xtask docs`: the reference pages, written by the program they describe, so that they cannot
//! drift from it unnoticed.

use crate::{build, real, sh};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;

/// A page is what `haft docs KIND` prints, kept in `docs/reference/KIND.md`.
const KINDS: &[&str] = &["tools", "config", "cli"];

/// What to do about a stale page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Rewrite it.
    Write,
    /// Fail.
    Check,
}

pub(crate) fn run(mode: Mode) -> Result<()> {
    build::programs()?;
    let haft = sh::root().join("target/debug/haft");
    let mut stale = Vec::new();
    for kind in KINDS {
        let page = sh::capture(&mut sh::command(&haft, &["docs", kind]))?;
        let path = path(kind);
        if fs::read_to_string(&path).is_ok_and(|old| old == page) {
            continue;
        }
        match mode {
            Mode::Check => stale.push(*kind),
            Mode::Write => {
                fs::create_dir_all(path.parent().context("a page lies in a directory")?)?;
                fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
                println!("docs: wrote docs/reference/{kind}.md");
            }
        }
    }
    if !stale.is_empty() {
        bail!("docs/reference is stale: {}; run `cargo xtask docs`", stale.join(", "));
    }
    Ok(())
}

/// Draws the screens of the real clients with a question of haft's, by the tests that drive them, into `docs/images`.
pub(crate) fn pictures() -> Result<()> {
    real::found("HAFT_TEST_AGENTS")?;
    let images = sh::root().join("docs/images");
    sh::run(sh::cargo(&["test", "-p", "haft", "--test", "agent_screens"]).env("HAFT_PICTURES", &images))
}

fn path(kind: &str) -> PathBuf {
    sh::root().join("docs/reference").join(kind).with_extension("md")
}
