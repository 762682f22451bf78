//! Changes to files as values: made by tools, shown to people, applied and undone by the runtime.

use crate::record::Digest;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Of its content.
        digest: Digest,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// What it says, whether or not anything is there.
        #[serde(with = "raw")]
        target: PathBuf,
    },
    /// A directory with everything in it.
    Tree {
        /// Of a list of what is in it: names, kinds, modes, sizes, times and link targets. Not of contents,
        /// so that a tree of many files costs one look at each.
        digest: Digest,
        /// The directory's own permission bits.
        mode: u32,
    },
    /// A directory of which only its own permission bits matter.
    Dir {
        /// These.
        mode: u32,
    },
}

/// One step. A change says what it expects to find, so that it never overwrites something it has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file gets this content, whole.
    Write {
        /// Where.
        path: PathBuf,
        /// What.
        content: Vec<u8>,
        /// What is there before.
        before: State,
        /// Its permission bits afterwards; none keeps what is there, or the default.
        mode: Option<u32>,
    },
    /// A file goes elsewhere, where nothing may be.
    Move {
        /// From here.
        from: PathBuf,
        /// To here.
        to: PathBuf,
        /// What is there before.
        before: State,
    },
    /// A file, a link or a directory with everything in it goes away.
    Remove {
        /// Where.
        path: PathBuf,
        /// What is there before.
        before: State,
    },
    /// What stands ready elsewhere takes this place, whatever was there.
    Place {
        /// Where.
        path: PathBuf,
        /// Where it stands ready: a file, a link or a directory with everything in it.
        staged: PathBuf,
        /// What is there before.
        before: State,
        /// What is there afterwards.
        after: State,
    },
    /// A directory gets these permission bits.
    Mode {
        /// Which.
        path: PathBuf,
        /// What is there before.
        before: State,
        /// Its permission bits afterwards.
        mode: u32,
    },
}

/// A digest of what changes would do, to tell whether they are still the ones that were shown.
pub fn digest(changes: &[Change]) -> Digest {
    let mut bytes = Vec::new();
    for change in changes {
        let (what, target) = match change {
            Change::Write { content, mode, .. } => (format!("write {} {mode:?}", Digest::of(content)), None),
            Change::Move { to, .. } => ("move".to_owned(), Some(to)),
            Change::Remove { .. } => ("remove".to_owned(), None),
            Change::Place { after, .. } => (format!("place {after:?}"), None),
            Change::Mode { mode, .. } => (format!("mode {mode:o}"), None),
        };
        bytes.extend_from_slice(format!("{what} {:?}\0", change.before()).as_bytes());
        // Not as they are displayed: two names that are not text could then pass for one.
        for path in [Some(change.path()), target].into_iter().flatten() {
            bytes.extend_from_slice(path.as_os_str().as_bytes());
            bytes.push(0);
        }
    }
    Digest::of(&bytes)
}

impl Change {
    /// The path it is about (for a move: the old one).
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Write { path, .. }
            | Self::Remove { path, .. }
            | Self::Place { path, .. }
            | Self::Mode { path, .. } => path,
            Self::Move { from, .. } => from,
        }
    }

    /// What it expects there.
    pub fn before(&self) -> &State {
        match self {
            Self::Write { before, .. }
            | Self::Move { before, .. }
            | Self::Remove { before, .. }
            | Self::Place { before, .. }
            | Self::Mode { before, .. } => before,
        }
    }
}

impl State {
    /// Whether it is a directory with everything in it.
    pub fn is_tree(&self) -> bool {
        matches!(self, Self::Tree { .. })
    }
}

/// A path as text where it is text, and as its bytes where it is not: JSON knows only text.
mod raw {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Raw {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(serializer),
            None => path.as_os_str().as_bytes().serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(match Raw::deserialize(deserializer)? {
            Raw::Text(text) => PathBuf::from(text),
            Raw::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn link(target: &[u8]) -> State {
        State::Link { target: std::ffi::OsString::from_vec(target.to_vec()).into() }
    }

    #[test]
    fn what_is_stored_already_is_still_read() {
        let digest = Digest::of(b"x");
        let stored = format!(r#"{{"file":{{"digest":"{digest}","mode":420}}}}"#);
        assert_eq!(serde_json::from_str::<State>(&stored).unwrap(), State::File { digest, mode: 0o644 });
        assert_eq!(serde_json::from_str::<State>("\"absent\"").unwrap(), State::Absent);
    }

    #[test]
    fn every_state_comes_back_as_it_was_stored() {
        let digest = Digest::of(b"x");
        let all = [State::Tree { digest, mode: 0o755 }, State::Dir { mode: 0 }, link(b"a/b"), link(b"\xff\n")];
        for state in all {
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(serde_json::from_str::<State>(&text).unwrap(), state, "{text}");
        }
    }

    #[test]
    fn the_digest_is_of_what_is_placed_and_not_of_where_it_waits() {
        let place = |path: &[u8], staged: &str, after: State| {
            let path = std::ffi::OsString::from_vec(path.to_vec()).into();
            digest(&[Change::Place { path, staged: staged.into(), before: State::Absent, after }])
        };
        assert_eq!(place(b"/p", "/a", link(b"x")), place(b"/p", "/b", link(b"x")));
        assert_ne!(place(b"/p", "/a", link(b"x")), place(b"/p", "/a", link(b"y")));
        assert_ne!(place(b"/\xff", "/a", link(b"x")), place(b"/\xfe", "/a", link(b"x")));
    }
}
