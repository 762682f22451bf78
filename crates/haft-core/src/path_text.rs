//! Paths as text, and back without loss. A path is bytes, while JSON, a database column and a screen take text.
//!
//! [`show`] is the form for people and models: a byte that is not UTF-8, and every byte of a control character (a line break
//! would let one name pass for two), is written as `\xNN`. A backslash that would read as such an escape is written as
//! `\x5c`. [`read`] is its inverse, so the form that is shown is accepted back.
//!
//! [`store`] is the form for the store: an absolute path that is text is stored as it is, as it always was; any other is
//! stored in the form of `show` behind a prefix that no absolute path begins with. [`load`] is its inverse.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// No absolute path begins with this.
const ESCAPED: &str = "escaped:";

/// The byte that an escape at the beginning of `text` stands for.
fn escape_at(text: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

/// A name or a path for people and JSON.
pub fn show(name: &OsStr) -> String {
    let mut shown = String::with_capacity(name.len());
    let escape = |shown: &mut String, byte: u8| shown.push_str(&format!("\\x{byte:02x}"));
    for chunk in name.as_bytes().utf8_chunks() {
        let valid = chunk.valid();
        for (at, c) in valid.char_indices() {
            // An escape that ends in the bytes behind this chunk is none: those are escaped themselves.
            if c.is_control() || (c == '\\' && escape_at(&valid.as_bytes()[at..]).is_some()) {
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| escape(&mut shown, byte));
            } else {
                shown.push(c);
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(&mut shown, *byte));
    }
    shown
}

/// The name or the path that a text in the form of [`show`] stands for.
pub fn read(text: &str) -> OsString {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some(first) = rest.first() {
        // No path has a NUL in it, and none is ever shown.
        let escaped = escape_at(rest).filter(|byte| *byte != 0);
        bytes.push(escaped.unwrap_or(*first));
        rest = &rest[if escaped.is_some() { 4 } else { 1 }..];
    }
    OsString::from_vec(bytes)
}

/// Whether a text says something else than what it is, in the form of [`show`].
pub fn has_escape(text: &str) -> bool {
    read(text).as_bytes() != text.as_bytes()
}

/// A path as the store keeps it.
pub fn store(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.starts_with(ESCAPED) => text.to_owned(),
        _ => format!("{ESCAPED}{}", show(path.as_os_str())),
    }
}

/// The path that the store keeps as this text.
pub fn load(text: &str) -> PathBuf {
    match text.strip_prefix(ESCAPED) {
        Some(escaped) => read(escaped).into(),
        None => PathBuf::from(text),
    }
}

/// A path in a stored or sent document, in the form of [`store`]: for `#[serde(with = "…")]`, because serde itself refuses a
/// path that is not text.
pub mod stored {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::path::{Path, PathBuf};

    /// Writes the path.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::store(path))
    }

    /// Reads it back.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        String::deserialize(deserializer).map(|text| super::load(&text))
    }
}

/// The same for a list of paths.
pub mod stored_each {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::path::PathBuf;

    /// Writes the paths.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| super::store(path)))
    }

    /// Reads them back.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?.iter().map(|text| super::load(text)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_control_characters_and_misleading_backslashes_are_escaped() {
        let shown = |bytes: &[u8]| show(OsStr::from_bytes(bytes));
        assert_eq!(shown(b"caf\xe9.txt"), "caf\\xe9.txt");
        assert_eq!(shown(b"caf\\xe9.txt"), "caf\\x5cxe9.txt", "another name than the one before");
        assert_eq!(shown("a\nb\u{85}".as_bytes()), "a\\x0ab\\xc2\\x85");
        assert_eq!(shown("\u{fc}\\n \\x".as_bytes()), "\u{fc}\\n \\x");
    }

    #[test]
    fn documents_hold_paths_that_are_not_text() {
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Document {
            #[serde(with = "stored")]
            one: PathBuf,
            #[serde(with = "stored_each")]
            many: Vec<PathBuf>,
        }
        let odd = PathBuf::from(OsStr::from_bytes(b"/proj\xe9ct"));
        let document = Document { one: odd.clone(), many: vec![odd, "/plain".into()] };
        let text = serde_json::to_string(&document).unwrap();
        assert_eq!(text, r#"{"one":"escaped:/proj\\xe9ct","many":["escaped:/proj\\xe9ct","/plain"]}"#);
        assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document);
    }

    proptest! {
        #[test]
        fn what_is_shown_is_accepted_back(bytes in proptest::collection::vec(
            prop_oneof![Just(b'\\'), Just(b'x'), Just(b'e'), Just(b'9'), Just(b'/'), 1_u8..], 0..24,
        )) {
            let name = OsString::from_vec(bytes);
            prop_assert_eq!(read(&show(&name)), name.clone());
            prop_assert_eq!(load(&store(Path::new(&name))), PathBuf::from(name));
        }
    }
}
