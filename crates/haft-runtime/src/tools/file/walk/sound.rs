//! Ignore files are read by a library that follows links, reads without bound and compiles whatever it
//! finds. A repository can carry any of those as a trap, so each is looked at before the library sees it.

use crate::files;
use haft_core::CallError;
use haft_core::pattern::glob_is_sane;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Larger ignore files are not read.
const IGNORE_MAX: u64 = 256 << 10;
/// What the walking library reads in every directory.
const IGNORE_FILES: &[&str] = &[".gitignore", ".ignore"];

/// Whether the ignore files of a directory can be handed to the library.
pub(super) fn is_sound(dir: &Path) -> bool {
    IGNORE_FILES.iter().all(|name| {
        let path = dir.join(name);
        // Nearly all directories have none, which is the quick way out.
        if path.symlink_metadata().is_err() {
            return true;
        }
        let loaded = files::load(&path, name, IGNORE_MAX);
        loaded.is_ok_and(|(content, _)| String::from_utf8_lossy(&content).lines().all(glob_is_sane))
    })
}

/// Errs if the walk would read an unsound ignore file where it starts or above.
pub(in crate::tools::file) fn require_sound(start: &Path, shown: &str) -> Result<(), CallError> {
    match start.ancestors().find(|dir| !is_sound(dir)) {
        None => Ok(()),
        Some(dir) => Err(CallError::failed(format!(
            "an ignore file in {} is a link, not a regular file, larger than 256 KB or nested too deeply, so {shown} cannot be walked",
            dir.display()
        ))
        .hint("look at its .gitignore and .ignore")),
    }
}

/// The directories that a walk left out because of their ignore files.
#[derive(Debug, Clone, Default)]
pub(in crate::tools::file) struct Unsound(Arc<Mutex<Vec<PathBuf>>>);

impl Unsound {
    /// Whether a directory has to be left out; if so, it is noted.
    pub(super) fn leaves_out(&self, dir: &Path) -> bool {
        let out = !is_sound(dir);
        if out {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(dir.to_owned());
        }
        out
    }

    /// The directories left out, in order.
    pub(in crate::tools::file) fn take(&self) -> Vec<PathBuf> {
        let mut dirs = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        dirs.sort();
        dirs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn traps_are_recognised() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_sound(dir.path()));
        std::fs::write(dir.path().join(".gitignore"), "target\n*.{a,b}\n").unwrap();
        assert!(is_sound(dir.path()));
        std::fs::write(dir.path().join(".gitignore"), "{".repeat(60_000) + "a" + &"}".repeat(60_000)).unwrap();
        assert!(!is_sound(dir.path()), "nested");
        std::fs::remove_file(dir.path().join(".gitignore")).unwrap();
        symlink("/dev/zero", dir.path().join(".ignore")).unwrap();
        assert!(!is_sound(dir.path()), "a link");
        std::fs::remove_file(dir.path().join(".ignore")).unwrap();
        std::fs::write(dir.path().join(".ignore"), "x\n".repeat(150_000)).unwrap();
        assert!(!is_sound(dir.path()), "too large");
    }
}
