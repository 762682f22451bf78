//! The last look before changes are kept: a program that may write the project must not decide what runs
//! in it later. The kernel protects such places where they exist; this stops them from being made, or
//! slipped in with a directory, wherever they are.

use crate::workspace::linked_client_controls;
use haft_core::change::{Change, State};
use haft_core::place::{
    CLIENT_CONTROL_WHY, GUARDED, GUARDED_GIT, client_control_places, git_controls, guarded, is_client_control,
};
use haft_sandbox::Writes;
use haft_sandbox::layer::tree;
use haft_sandbox::roots::followed;
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
    /// Where haft's own state is, or would be.
    pub own: Vec<PathBuf>,
    /// The user's home, free of links.
    pub home: Option<PathBuf>,
}

impl Guard {
    /// The first guarded place that these changes would touch, and why it is guarded.
    pub fn first(&self, changes: &[Change]) -> Option<(PathBuf, &'static str)> {
        let control = self.client_control(changes);
        control.map(|path| (path, CLIENT_CONTROL_WHY)).or_else(|| self.first_by_name(changes))
    }

    fn first_by_name(&self, changes: &[Change]) -> Option<(PathBuf, &'static str)> {
        changes.iter().find_map(|change| match change {
            Change::Place { path, staged, before, .. } => {
                self.of_staged(path, staged).or_else(|| if before.is_tree() { lost_rules(path) } else { None })
            }
            Change::Remove { path, before } if before.is_tree() => self.of(path, false).or_else(|| lost_rules(path)),
            Change::Move { from, to, .. } => self.of(from, false).or_else(|| self.of(to, false)),
            Change::Write { path, .. } | Change::Remove { path, .. } => self.of(path, false),
            Change::Mode { path, .. } => self.of(path, true),
        })
    }

    /// The first client control file that these changes would touch by a link, by its mode, by taking its directory away,
    /// or in the user's home.
    fn client_control(&self, changes: &[Change]) -> Option<PathBuf> {
        let dirs = || self.roots.iter().chain(&self.home);
        let linked: Vec<PathBuf> = dirs().flat_map(|dir| linked_client_controls(dir)).collect();
        let is_linked = |path: &Path| linked.iter().any(|place| path.starts_with(place) || place.starts_with(path));
        let is_named = |path: &Path| dirs().any(|dir| path.strip_prefix(dir).is_ok_and(is_client_control));
        let touched = changes.iter().flat_map(|change| {
            // A new directory is harmless by itself; what is in it is looked at one by one.
            let is_new_dir = matches!(
                change,
                Change::Place { before: State::Absent, after: State::Tree { .. } | State::Dir { .. }, .. }
            );
            let to = if let Change::Move { to, .. } = change { Some(to) } else { None };
            [Some(change.path()), to].into_iter().flatten().map(move |path| (path, is_new_dir))
        });
        let mut touched = touched.filter(|(path, _)| !self.is_granted(path));
        touched
            .find(|(path, is_new_dir)| is_linked(path) || (!is_new_dir && is_named(path)))
            .map(|(path, _)| path.clone())
    }

    /// Places that the kernel is to protect, as far as they exist in a root. Client control files and those of repositories are
    /// among them where programs write straight into the root. On a layer they are judged when changes are kept, so that a
    /// program which changes one beside a hundred other files, as `git checkout` does, is not stopped half-way.
    pub fn for_kernel(&self, writes: &Writes) -> Vec<PathBuf> {
        // A root may itself be a `.git`: then its places are right in it.
        let is_direct = *writes == Writes::Direct;
        let named = GUARDED.iter().chain(if is_direct { GUARDED_GIT } else { &[] });
        let natural = self.roots.iter().flat_map(|root| named.clone().map(move |place| named_from(root).join(place)));
        let controls = self.roots.iter().filter(|_| is_direct).flat_map(|root| client_control_places(root));
        let natural = natural.chain(controls);
        let natural = natural.filter(|place| self.roots.iter().any(|root| place.starts_with(root)));
        // What a link leads to is protected where it is, if it is in reach.
        let real = natural.filter(|place| !self.is_granted(place)).filter_map(|place| followed(&place).ok());
        let mut places: Vec<PathBuf> =
            real.filter(|place| self.roots.iter().any(|root| place.starts_with(root))).collect();
        places.extend(self.protected.iter().cloned());
        places
    }

    pub(super) fn is_granted(&self, path: &Path) -> bool {
        self.granted.iter().any(|granted| path.starts_with(granted))
    }

    fn of(&self, path: &Path, is_dir: bool) -> Option<(PathBuf, &'static str)> {
        if self.own.iter().any(|place| path.starts_with(place)) {
            return Some((path.to_owned(), "it is haft's own"));
        }
        if self.protected.iter().any(|place| path.starts_with(place)) {
            return Some((path.to_owned(), "it was named as protected"));
        }
        if self.is_granted(path) {
            return None;
        }
        // What is in none of them was not meant to be written: roots are as they really are, and so are changes.
        let Some(root) = self.roots.iter().find(|root| path.starts_with(root)) else {
            return Some((path.to_owned(), "it is in no place that may be written"));
        };
        // A root may be a home, or have one in it.
        let home = self.home.as_ref().filter(|home| home.starts_with(root));
        let at_home = home.and_then(|home| guarded(path.strip_prefix(home).ok()?, is_dir, true));
        let why = at_home.or_else(|| guarded(path.strip_prefix(named_from(root)).ok()?, is_dir, false))?;
        Some((path.to_owned(), why))
    }

    /// What is placed may be a whole directory: each thing in it is looked at.
    fn of_staged(&self, path: &Path, staged: &Path) -> Option<(PathBuf, &'static str)> {
        // What cannot be looked at cannot be called harmless.
        let Ok(meta) = std::fs::symlink_metadata(staged) else {
            return Some((path.to_owned(), "it could not be looked at"));
        };
        let is_dir = meta.is_dir();
        if let Some(found) = self.of(path, is_dir) {
            return Some(found);
        }
        if !is_dir {
            return None;
        }
        let mut found = None;
        let walked = tree::each_without_fail(staged, &mut |entry| {
            if found.is_none() {
                let inner_dir = haft_sandbox::layer::at::kind(entry.stat).is_dir();
                found = self.of(&path.join(entry.inner), inner_dir);
            }
            Ok(())
        });
        found.or_else(|| walked.is_err().then(|| (path.to_owned(), "it could not be looked through")))
    }
}

/// A project's own rules that would go with a directory: without them more would be allowed there.
fn lost_rules(path: &Path) -> Option<(PathBuf, &'static str)> {
    let mut found = None;
    let walked = tree::each(path, &mut |entry| {
        if found.is_none() && matches!(entry.name.to_str(), Some(".haft" | ".glee")) {
            found = Some((path.join(entry.inner), "haft's own configuration and tools"));
        }
        Ok(())
    });
    found.or_else(|| walked.is_err().then(|| (path.to_owned(), "it could not be looked through")))
}

/// From where on a root's path says something about what is in it: a root inside a repository's `.git` is
/// judged by that name as well.
pub(super) fn named_from(root: &Path) -> &Path {
    let repository = |dir: &&Path| dir.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    root.ancestors().find(repository).and_then(Path::parent).unwrap_or(root)
}

/// Whether a root is itself a guarded place, and so named on purpose. Where it lies says nothing: a project
/// may be kept anywhere.
fn is_meant(root: &Path) -> bool {
    let own =
        root.file_name().is_some_and(|name| [".haft", ".glee"].iter().any(|known| name.eq_ignore_ascii_case(known)));
    let inside = root.strip_prefix(named_from(root)).unwrap_or(root);
    let is_guarded = || guarded(inside, true, false).is_some() || !git_controls(inside, true).is_empty();
    own || (named_from(root) != root && is_guarded())
}

/// Roots that are directories, and places that were named to be granted: a file inside a root, or a guarded
/// directory.
pub fn split(roots: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let inside = |path: &Path| roots.iter().any(|root| root != path && path.starts_with(root));
    let (files, dirs): (Vec<_>, Vec<_>) = roots.iter().cloned().partition(|path| !path.is_dir() && inside(path));
    let meant = dirs.iter().filter(|dir| is_meant(dir)).cloned();
    let granted = files.into_iter().chain(meant).collect();
    (dirs, granted)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let refused = |guard: &Guard, change: &Change| guard.take_git_refusals(&mut vec![change.clone()]).pop();
        let found = refused(&guard, &place).unwrap();
        assert!(found.path.starts_with("/p/vendor/deep/.git/hooks"), "{found:?}");
        let granted = Guard { granted: vec!["/p/vendor/deep/.git/hooks".into()], ..guard.clone() };
        assert!(refused(&granted, &place).is_none());
        let inner = Guard { roots: vec!["/p/.git".into()], ..Guard::default() };
        let remove = |path: &str| Change::Remove { path: path.into(), before: State::Absent };
        assert!(refused(&inner, &remove("/p/.git/hooks/x")).is_some(), "naming the repository does not name its hooks");
        let tree = State::Tree { digest: Digest::ZERO, mode: 0o755 };
        let repository = Change::Remove { path: "/p/.git".into(), before: tree };
        assert!(refused(&guard, &repository).is_some(), "a repository must not be swapped for another");
        assert!(guard.first(&[remove("/q/x")]).is_some(), "what is in no root is nobody's to write");
    }

    #[test]
    fn client_control_files_are_guarded_by_name_by_link_and_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (root, home) = (base.join("project"), base.join("home"));
        std::fs::create_dir_all(root.join("dotfiles/claude")).unwrap();
        std::fs::create_dir_all(home.join(".codex")).unwrap();
        std::os::unix::fs::symlink("dotfiles/claude", root.join(".claude")).unwrap();
        std::os::unix::fs::symlink("../../project/codex.toml", home.join(".codex/config.toml")).unwrap();
        let guard = Guard { roots: vec![root.clone()], home: Some(home), ..Guard::default() };
        let remove = |path: &str| Change::Remove { path: root.join(path), before: State::Absent };
        let mode = |path: &str| Change::Mode { path: root.join(path), before: State::Dir { mode: 0o755 }, mode: 0 };
        let moved =
            |to: &str| Change::Move { from: root.join("x"), to: root.join(to), before: State::Dir { mode: 0o755 } };
        for change in [
            remove(".mcp.json"),
            remove("sub/.gemini/settings.json"),
            remove("dotfiles/claude/settings.json"),
            remove("dotfiles"),
            remove("codex.toml"),
            mode(".gemini"),
            moved(".vscode"),
        ] {
            assert!(guard.first(std::slice::from_ref(&change)).is_some(), "{change:?}");
        }
        assert!(guard.first(&[remove("CLAUDE.md"), remove(".vscode/extensions.json"), moved("y")]).is_none());
        let named = Guard { granted: vec![root.join(".mcp.json")], ..guard.clone() };
        assert!(named.first(&[remove(".mcp.json")]).is_none(), "a file that is named itself is granted");
        let staging = Writes::Layered(base.join("staging"));
        assert!(guard.for_kernel(&staging).is_empty());
        assert_eq!(guard.for_kernel(&Writes::Direct), [root.join("dotfiles/claude")]);
    }
}
