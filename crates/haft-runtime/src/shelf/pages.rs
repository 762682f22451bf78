//! What is in the files that belong to a tool, for whoever is to accept it; and what is kept of it, to show later what
//! changed.

use super::standing::Files;
use haft_core::record::Digest;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How much of one file is kept.
const TEXT_MAX: usize = 64 << 10;
/// How much of all files of one tool is kept.
const TEXTS_MAX: usize = 512 << 10;

/// A file that belongs to a tool, as somebody is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page {
    /// Its path from the project's root; in full, if it lies outside.
    pub path: String,
    /// How large it is.
    pub bytes: usize,
    /// What it says, or how it begins; none if it is not text, or not the project's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether that is all of it.
    pub whole: bool,
    /// What changed in it since it was accepted, if both are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl Page {
    /// What is in a file.
    pub(super) fn of(path: &str, mut content: Vec<u8>) -> Self {
        let (bytes, is_text) = (content.len(), is_text(&content));
        let whole = bytes <= TEXT_MAX;
        content.truncate(TEXT_MAX);
        // Cutting may have left a part of a character.
        let text = is_text.then(|| String::from_utf8_lossy(&content).trim_end_matches('\u{fffd}').to_owned());
        Self { path: path.to_owned(), bytes, text, whole, diff: None }
    }

    /// A file outside the project: it is the user's, and nothing of it is shown or kept.
    pub(super) fn outside(path: &str, bytes: usize) -> Self {
        Self { path: path.to_owned(), bytes, text: None, whole: false, diff: None }
    }

    /// Whether it lies outside the project.
    pub fn is_outside(&self) -> bool {
        self.path.starts_with('/')
    }

    /// All that it says, if that is known.
    pub(super) fn all(&self) -> Option<&str> {
        self.text.as_deref().filter(|_| self.whole)
    }
}

fn is_text(content: &[u8]) -> bool {
    !content.contains(&0) && std::str::from_utf8(content).is_ok()
}

/// What is kept of these pages: so much that a difference can be shown, and no more.
pub(super) fn kept(pages: &[Page]) -> Map<String, Value> {
    let mut left = TEXTS_MAX;
    let fits =
        |page: &&Page| page.all().is_some_and(|text| left.checked_sub(text.len()).map(|rest| left = rest).is_some());
    pages.iter().filter(fits).map(|page| (page.path.clone(), page.all().unwrap_or_default().into())).collect()
}

/// The texts that were kept, as far as they are the ones that were accepted.
pub(super) fn texts_of(kept: &Value, accepted: &Files) -> BTreeMap<String, String> {
    let texts = kept.as_object().into_iter().flatten();
    let texts = texts.filter_map(|(path, text)| Some((path.clone(), text.as_str()?.to_owned())));
    texts.filter(|(path, text)| accepted.get(path) == Some(&Digest::of(text.as_bytes()))).collect()
}

/// Both as a difference, a line each.
pub(crate) fn difference(path: &str, before: &str, now: &str) -> String {
    let (old, new) = (format!("{path} (accepted)"), format!("{path} (now)"));
    similar::TextDiff::from_lines(before, now).unified_diff().header(&old, &new).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_text_or_a_size_and_what_is_kept_is_bounded() {
        let text = Page::of("a", b"x\n".to_vec());
        assert_eq!((text.all(), text.bytes), (Some("x\n"), 2));
        let binary = Page::of("b", b"\x7fELF\0\x01".to_vec());
        assert_eq!((binary.text.as_deref(), binary.bytes), (None, 6));
        let long = Page::of("c", "ä".repeat(TEXT_MAX).into_bytes());
        assert!(long.all().is_none() && long.text.as_ref().unwrap().len() <= TEXT_MAX, "its beginning alone");
        let many: Vec<Page> = (0..20).map(|at| Page::of(&at.to_string(), vec![b'x'; TEXT_MAX])).collect();
        assert_eq!(kept(&many).len(), TEXTS_MAX / TEXT_MAX);
        assert_eq!(kept(&[text, binary, long]).keys().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn what_was_kept_of_something_else_is_not_shown() {
        let accepted = Files::from([("a".to_owned(), Digest::of(b"x")), ("b".to_owned(), Digest::of(b"y"))]);
        let texts = texts_of(&serde_json::json!({"a": "x", "b": "another", "c": "z"}), &accepted);
        assert_eq!(texts, BTreeMap::from([("a".to_owned(), "x".to_owned())]));
    }
}
