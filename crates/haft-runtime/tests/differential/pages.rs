//! Web pages beside the markdown that was written for them by hand: `pages/*.html` and `pages/*.md`.

use crate::server::{Server, inner};
use std::path::PathBuf;

#[test]
fn pages_are_what_was_written_for_them() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/differential/pages");
    let mut pages: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "html"));
    pages.sort();
    let server = Server::start();
    for path in &pages {
        let expected = std::fs::read_to_string(path.with_extension("md")).unwrap();
        let outcome = server.fetch("text/html; charset=utf-8", std::fs::read(path).unwrap());
        assert_eq!(inner(&outcome), expected, "{}", path.display());
    }
    assert!(pages.len() >= 8, "{pages:?}");
}
