//! What is known of APIs: how to sign in, how often to ask, what to look out for.

use std::path::{Path, PathBuf};

/// The profiles on disk, read again when they change.
#[derive(Debug)]
pub struct Profiles {
    dir: PathBuf,
}

impl Profiles {
    /// Those in this directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Where they are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
