//! Passing over sensitive files without slowing a walk down: nearly all files are harmless, and files of
//! one directory come one after another.

use crate::own_state::{FileIdentity, is_one_of, linked_files};
use crate::workspace::Workspace;
use haft_core::place::{Sensitive, sensitive};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One thread's memory of the directory it judged last.
pub(super) struct Guard<'w> {
    workspace: &'w Workspace,
    /// The files of haft's that have another name somewhere: usually none.
    linked: HashSet<FileIdentity>,
    dir: PathBuf,
    dir_held_back: bool,
    dir_is_root: bool,
}

impl<'w> Guard<'w> {
    pub(super) fn new(workspace: &'w Workspace) -> Self {
        let linked = linked_files(workspace.own_places());
        Self { workspace, linked, dir: PathBuf::new(), dir_held_back: false, dir_is_root: false }
    }

    /// Whether a file holds credentials or haft's own state.
    pub(super) fn holds_back(&mut self, path: &Path) -> bool {
        let bytes = path.as_os_str().as_bytes();
        let end_of_dir = memchr::memrchr(b'/', bytes).unwrap_or(0);
        let dir = &bytes[..end_of_dir];
        if dir != self.dir.as_os_str().as_bytes() {
            self.dir = PathBuf::from(OsStr::from_bytes(dir));
            self.dir_held_back = self.judge(&self.dir);
            self.dir_is_root = self.dir == self.workspace.root();
        }
        // The directory has been judged with all its names; what is left is the file's own, which may be
        // sensitive only together with its directory's. The project's own directory says nothing.
        let tail = if self.dir_is_root { end_of_dir } else { memchr::memrchr(b'/', dir).unwrap_or(0) };
        let names = Path::new(OsStr::from_bytes(&bytes[(tail + 1).min(bytes.len())..]));
        self.dir_held_back
            || sensitive(names).is_some_and(is_kept)
            || self.workspace.is_own(path)
            || is_one_of(&self.linked, path)
    }

    fn judge(&self, path: &Path) -> bool {
        self.workspace.judge(path).is_some_and(is_kept)
    }
}

/// Version control is left out by the walk itself.
fn is_kept(why: Sensitive) -> bool {
    matches!(why, Sensitive::Credentials | Sensitive::OwnState | Sensitive::OwnFiles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_judges_as_the_workspace_does() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("my.key");
        std::fs::create_dir(&root).unwrap();
        let workspace = Workspace::new(&root).unwrap().own(&root.join("state")).own(&root.join("x/st.db"));
        let mut guard = Guard::new(&workspace);
        let mut held_back = |path: &str| guard.holds_back(&workspace.root().join(path));
        for path in
            ["a/.env", ".env", "a/.ssh/deep/er/config", ".haft/config.yml", ".haft/notes", "state/db", "x/st.db"]
        {
            assert!(held_back(path), "{path}");
        }
        for path in ["a/b.rs", "config.yml", "a/.env.example", "stated/db", "x/st.db2"] {
            assert!(!held_back(path), "{path}");
        }
    }
}
