//! Where tests find the real programs that `cargo xtask needs` installed.

use std::path::{Path, PathBuf};

/// What a variable names, or what the last `cargo xtask needs` wrote down for it. `None` only for who said that
/// tests are to do without: what is missing must not look like what passed.
pub(crate) fn need(variable: &str) -> Option<PathBuf> {
    let without = match variable {
        "HAFT_TEST_CHROMIUM" => "HAFT_TEST_WITHOUT_CHROMIUM",
        "HAFT_TEST_SPEECH" => "HAFT_TEST_WITHOUT_SPEECH",
        "HAFT_TEST_PDFTOTEXT" => "HAFT_TEST_WITHOUT_PDFTOTEXT",
        "HAFT_TEST_RG" => "HAFT_TEST_WITHOUT_RG",
        "HAFT_TEST_FD" => "HAFT_TEST_WITHOUT_FD",
        "HAFT_TEST_WORDLLAMA" => "HAFT_TEST_WITHOUT_WORDLLAMA",
        _ => "HAFT_TEST_WITHOUT_MCP",
    };
    if std::env::var_os(without).is_some_and(|value| value == "1") {
        eprintln!("left out: {without} is set");
        return None;
    }
    let found = std::env::var_os(variable).map(PathBuf::from).or_else(|| noted(variable));
    Some(found.unwrap_or_else(|| {
        panic!("{variable} is not known: run `cargo xtask needs` first, or set {without}=1 to leave this test out")
    }))
}

fn noted(variable: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let notes = std::fs::read_to_string(root.join("target/needs/env")).ok()?;
    let mut pairs = notes.lines().filter_map(|line| line.split_once('='));
    let (_, path) = pairs.find(|(name, _)| *name == variable)?;
    Some(PathBuf::from(path)).filter(|path| path.exists())
}
