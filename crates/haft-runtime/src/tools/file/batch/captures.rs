//! Globs that remember what their wildcards matched, so that `*.txt` can become `$1.md`.

use haft_core::path_text;
use regex::Regex;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A glob whose wildcards are numbered from the left.
pub(super) struct CapturingGlob(Regex);

impl CapturingGlob {
    /// Reads a glob: `*` and `?` stay within a path segment, `**/` spans any number of directories. Names in it may be in the
    /// form in which haft shows them.
    pub(super) fn new(glob: &str) -> Result<Self, String> {
        Self::of_bytes(path_text::read(glob).as_bytes())
    }

    /// The same with names as they are: what looks like an escape is none.
    pub(super) fn as_written(glob: &str) -> Result<Self, String> {
        Self::of_bytes(glob.as_bytes())
    }

    fn of_bytes(glob: &[u8]) -> Result<Self, String> {
        let mut pattern = String::from("(?s)^");
        let glob = widened(glob);
        let mut rest = glob.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '*' if rest.peek() == Some(&'*') => {
                    rest.next();
                    if rest.next_if_eq(&'/').is_some() {
                        pattern.push_str("((?:[^/]+/)*)");
                    } else {
                        pattern.push_str("(.*)");
                    }
                }
                '*' => pattern.push_str("([^/]*)"),
                '?' => pattern.push_str("([^/])"),
                '[' | ']' | '{' | '}' => return Err(format!("`{c}` is not supported here; use * ? and **")),
                c => pattern.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
        }
        pattern.push('$');
        Regex::new(&pattern).map(Self).map_err(|error| error.to_string())
    }

    /// What each wildcard matched, if the whole path matches.
    pub(super) fn captures(&self, path: &Path) -> Option<Vec<Vec<u8>>> {
        let path = widened(path.as_os_str().as_bytes());
        let found = self.0.captures(&path)?;
        Some(found.iter().skip(1).map(|part| narrowed(part.map_or("", |part| part.as_str()))).collect())
    }
}

/// Where bytes that are not text are, in the last plane of characters that mean nothing.
const BYTES_AT: u32 = 0x0010_ff00;

/// A name as text: a byte that is not text becomes one character. The characters for that become four.
fn widened(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    let push = |text: &mut String, bytes: &[u8]| {
        text.extend(bytes.iter().filter_map(|byte| char::from_u32(BYTES_AT + u32::from(*byte))));
    };
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if u32::from(c) >= BYTES_AT {
                push(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(c);
            }
        }
        push(&mut text, chunk.invalid());
    }
    text
}

/// The name that a text of this form stands for.
fn narrowed(text: &str) -> Vec<u8> {
    let mut name = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u32::from(c).checked_sub(BYTES_AT).and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => name.push(byte),
            None => name.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    name
}

/// The template with `$1`, `$2` … replaced; `$$` is a dollar sign. The rest may be in the form in which haft shows names. Errs
/// with the number of a wildcard that is not there.
pub(super) fn expand(template: &str, captures: &[Vec<u8>]) -> Result<Vec<u8>, usize> {
    let template = path_text::read(template);
    let mut name = Vec::new();
    let mut rest = template.as_bytes().iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match (byte, rest.peek()) {
            (b'$', Some(b'$')) => {
                rest.next();
                name.push(b'$');
            }
            (b'$', Some(digit)) if digit.is_ascii_digit() => {
                let number = usize::from(*digit - b'0');
                rest.next();
                let part = number.checked_sub(1).and_then(|at| captures.get(at));
                name.extend_from_slice(part.ok_or(number)?);
            }
            _ => name.push(byte),
        }
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn caught(glob: &str, path: &[u8]) -> Option<Vec<Vec<u8>>> {
        CapturingGlob::new(glob).unwrap().captures(Path::new(OsStr::from_bytes(path)))
    }

    #[test]
    fn wildcards_are_remembered() {
        assert_eq!(caught("*.txt", b"a.txt"), Some(vec![b"a".to_vec()]));
        assert_eq!(caught("*.txt", b"d/a.txt"), None);
        assert_eq!(caught("**/*.txt", b"d/e/a.txt"), Some(vec![b"d/e/".to_vec(), b"a".to_vec()]));
        assert_eq!(caught("**/*.txt", b"a.txt"), Some(vec![Vec::new(), b"a".to_vec()]));
        assert_eq!(expand("$1-$$.md", &[b"x".to_vec()]).as_deref(), Ok(b"x-$.md".as_slice()));
        assert_eq!(expand("$2.md", &[b"x".to_vec()]), Err(2));
    }

    #[test]
    fn names_that_are_not_text_are_matched_by_what_is_shown_of_them() {
        assert_eq!(caught("caf\\xe9.*", b"caf\xe9.txt"), Some(vec![b"txt".to_vec()]));
        assert_eq!(caught("*.txt", b"caf\xe9.txt"), Some(vec![b"caf\xe9".to_vec()]));
        assert_eq!(caught("a\\x0ab?", b"a\nbc"), Some(vec![b"c".to_vec()]));
        assert_eq!(caught("**", b"d\n/e"), Some(vec![b"d\n/e".to_vec()]));
        assert_eq!(caught("?.txt", "é.txt".as_bytes()), Some(vec!["é".as_bytes().to_vec()]), "a character");
        assert_eq!(caught("??.txt", "é.txt".as_bytes()), None);
        assert_eq!(caught("?.txt", b"\xe9.txt"), Some(vec![b"\xe9".to_vec()]), "or a byte that is none");
        assert_eq!(expand("$1-\\xe8", &[b"\xe9".to_vec()]).as_deref(), Ok(b"\xe9-\xe8".as_slice()));
        // What was matched is taken as it is.
        assert_eq!(expand("$1", &[b"lit\\xe9ral".to_vec()]).as_deref(), Ok(b"lit\\xe9ral".as_slice()));
    }
}
