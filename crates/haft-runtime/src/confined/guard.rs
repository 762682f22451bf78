//! The last look before changes are kept: a program that may write the project must not decide what runs
//! in it later. The kernel protects such places where they exist; this stops them from being made, or
//! slipped in with a directory, wherever they are.

use haft_core::change::Change;
use haft_core::place::{GUARDED, guarded};
use haft_sandbox::layer::tree;
use std::path::{Path, PathBuf};

/// Which places are guarded.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// The roots that may be written.
    pub roots: Vec<PathBuf>,
    /// Places that were named as writable themselves.
    pub granted: Vec<PathBuf>,
    /// Places that are protected by name, besides those that are by nature.
    pub protected: Vec<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
}

impl Guard {
    /// The first guarded place that these changes would touch, and why it is guarded.
    pub fn first(&self, changes: &[Change]) -> Option<(PathBuf, &'static str)> {
        changes.iter().find_map(|change| match change {
            Change::Place { path, staged, .. } => self.of_staged(path, staged),
            Change::Move { from, to, .. } => self.of(from, false).or_else(|| self.of(to, false)),
            Change::Write { path, .. } | Change::Remove { path, .. } => self.of(path, false),
            Change::Mode { path, .. } => self.of(path, true),
        })
    }

    /// Places that the kernel is to protect, as far as they exist in a root.
    pub fn for_kernel(&self) -> Vec<PathBuf> {
        let natural = self.roots.iter().flat_map(|root| GUARDED.iter().map(move |place| root.join(place)));
        let there = |place: &PathBuf| std::fs::symlink_metadata(place).is_ok_and(|meta| !meta.is_symlink());
        let mut places: Vec<PathBuf> = natural.filter(there).filter(|place| !self.is_granted(place)).collect();
        places.extend(self.protected.iter().cloned());
        places
    }

    fn is_granted(&self, path: &Path) -> bool {
        self.granted.iter().any(|granted| path.starts_with(granted))
    }

    fn of(&self, path: &Path, is_dir: bool) -> Option<(PathBuf, &'static str)> {
        if self.protected.iter().any(|place| path.starts_with(place)) {
            return Some((path.to_owned(), "it was named as protected"));
        }
        if self.is_granted(path) {
            return None;
        }
        let root = self.roots.iter().find(|root| path.starts_with(root))?;
        let home = self.home.as_ref() == Some(root);
        let why = guarded(path.strip_prefix(root).ok()?, is_dir, home)?;
        Some((path.to_owned(), why))
    }

    /// What is placed may be a whole directory: each thing in it is looked at.
    fn of_staged(&self, path: &Path, staged: &Path) -> Option<(PathBuf, &'static str)> {
        let is_dir = std::fs::symlink_metadata(staged).is_ok_and(|meta| meta.is_dir());
        if let Some(found) = self.of(path, is_dir) {
            return Some(found);
        }
        if !is_dir {
            return None;
        }
        let mut found = None;
        let walked = tree::each(staged, &mut |entry| {
            if found.is_none() {
                let inner_dir = haft_sandbox::layer::at::kind(entry.stat).is_dir();
                found = self.of(&path.join(entry.inner), inner_dir);
            }
            Ok(())
        });
        // What cannot be looked at cannot be called harmless.
        found.or_else(|| walked.is_err().then(|| (path.to_owned(), "it could not be looked through")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::change::State;
    use haft_core::record::Digest;

    #[test]
    fn a_hook_is_found_however_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let staged = dir.path().canonicalize().unwrap().join("sub");
        std::fs::create_dir_all(staged.join("deep/.git/hooks")).unwrap();
        std::fs::write(staged.join("deep/.git/hooks/pre-commit"), "x").unwrap();
        let after = State::Tree { digest: Digest::ZERO, mode: 0o755 };
        let place = Change::Place { path: "/p/vendor".into(), staged: staged.clone(), before: State::Absent, after };
        let guard = Guard { roots: vec!["/p".into()], ..Guard::default() };
        let (path, _) = guard.first(std::slice::from_ref(&place)).unwrap();
        assert!(path.starts_with("/p/vendor/deep/.git/hooks"), "{path:?}");
        let granted = Guard { granted: vec!["/p/vendor/deep/.git/hooks".into()], ..guard.clone() };
        assert!(granted.first(&[place]).is_none());
        let link = Change::Remove { path: "/p/.git".into(), before: State::Absent };
        assert!(guard.first(&[link]).is_some(), "a repository must not be swapped for another");
    }
}
