//! Changes to files as values: made by tools, shown to people, applied and undone by the runtime.

use crate::record::Digest;
use serde::{Deserialize, Serialize};
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
    /// A file goes away.
    Remove {
        /// Where.
        path: PathBuf,
        /// What is there before.
        before: State,
    },
}

/// A digest of what changes would do, to tell whether they are still the ones that were shown.
pub fn digest(changes: &[Change]) -> Digest {
    let mut text = String::new();
    for change in changes {
        let (what, before) = match change {
            Change::Write { content, before, mode, .. } => (format!("write {} {mode:?}", Digest::of(content)), before),
            Change::Move { to, before, .. } => (format!("move {}", to.display()), before),
            Change::Remove { before, .. } => ("remove".to_owned(), before),
        };
        text.push_str(&format!("{what} {} {before:?}\0", change.path().display()));
    }
    Digest::of(text.as_bytes())
}

impl Change {
    /// The path it is about (for a move: the old one).
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Write { path, .. } | Self::Remove { path, .. } => path,
            Self::Move { from, .. } => from,
        }
    }
}
