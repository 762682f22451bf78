//! Passing over sensitive files without slowing a walk down: nearly all files are harmless, and files of
//! one directory come one after another.

use crate::workspace::Workspace;
use haft_core::place::Sensitive;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One thread's memory of the directory it judged last.
pub(super) struct Guard<'w> {
    workspace: &'w Workspace,
    dir: PathBuf,
    dir_held_back: bool,
}

impl<'w> Guard<'w> {
    pub(super) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace, dir: PathBuf::new(), dir_held_back: false }
    }

    /// Whether a file holds credentials or haft's own state.
    pub(super) fn holds_back(&mut self, path: &Path) -> bool {
        let bytes = path.as_os_str().as_bytes();
        let end_of_dir = memchr::memrchr(b'/', bytes).unwrap_or(0);
        let dir = &bytes[..end_of_dir];
        if dir != self.dir.as_os_str().as_bytes() {
            self.dir = PathBuf::from(OsStr::from_bytes(dir));
            self.dir_held_back = self.judge(&self.dir);
        }
        self.dir_held_back || self.judge(path)
    }

    fn judge(&self, path: &Path) -> bool {
        matches!(self.workspace.judge(path), Some(Sensitive::Credentials | Sensitive::OwnState))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_judges_as_the_workspace_does() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(dir.path()).unwrap().own(&dir.path().join("state"));
        let mut guard = Guard::new(&workspace);
        let mut held_back = |path: &str| guard.holds_back(&workspace.root().join(path));
        for path in ["a/.env", ".env", "a/.ssh/deep/er/config", ".haft/config.yml", ".haft/notes", "state/db"] {
            assert!(held_back(path), "{path}");
        }
        for path in ["a/b.rs", "config.yml", "a/.env.example", "stated/db"] {
            assert!(!held_back(path), "{path}");
        }
    }
}
