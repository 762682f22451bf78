//! What a confined command may leave in a repository: control files are judged by their content when changes are kept
//! (`haft_core::git_control`). A change that would make git run something is taken out and named; the rest is kept.

use super::guard::Guard;
use crate::files;
use haft_core::change::{Change, State};
use haft_core::git_control::{ControlFile, GitControl};
use haft_core::place::git_controls;
use haft_sandbox::layer::{at, tree};
use haft_sandbox::roots::followed;
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

const UNSEEN: &str = "it could not be looked through";

/// A change that is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRefused {
    /// The control file that is to blame.
    pub path: PathBuf,
    /// Why, with the line.
    pub why: String,
}

impl Guard {
    /// Takes out those changes that would make git run something, and says what they were.
    pub fn take_git_refusals(&self, changes: &mut Vec<Change>) -> Vec<GitRefused> {
        let mut refused = Vec::new();
        // A control file that was written as it was before keeps its times, too.
        changes.retain(|change| !self.is_touched_alone(change));
        changes.retain(|change| match self.git_refusal(change) {
            Ok(()) => true,
            Err(found) => {
                refused.push(found);
                false
            }
        });
        refused
    }

    fn git_refusal(&self, change: &Change) -> Result<(), GitRefused> {
        match change {
            Change::Write { path, content, .. } => self.judge_content(path, Some(content)),
            Change::Place { path, before: State::Tree { .. }, .. }
            | Change::Remove { path, before: State::Tree { .. } }
                if is_git_dir(path) =>
            {
                Err(refused(path, "the repository would be lost, with its hooks and settings"))
            }
            Change::Place { path, staged, before, after } => {
                if before.is_tree() {
                    self.judge_lost(path, Some(staged))?;
                }
                if let State::File { mode, .. } = after {
                    self.judge_mode(path, before, *mode)?;
                }
                self.judge_staged(path, staged)
            }
            Change::Remove { path, before } if before.is_tree() => {
                let holds_controls = !self.controls(path, true).is_empty();
                if holds_controls { self.judge_lost(path, None) } else { Ok(()) }
            }
            Change::Remove { path, .. } if self.controls(path, false).contains(&GitControl::Config) => {
                Err(refused(path, "the settings would be lost"))
            }
            Change::Remove { path, .. } => self.judge_content(path, None),
            Change::Move { from, to, .. } => {
                [from, to].into_iter().try_for_each(|path| self.judge_by_name(path, false))
            }
            Change::Mode { path, before, mode } => {
                let old = if let State::Dir { mode } = before { *mode } else { 0 };
                if self.behind_git(path).is_some() && mode & !old & 0o022 != 0 {
                    return Err(refused(path, "others could write it"));
                }
                self.judge_by_name(path, true)
            }
        }
    }

    /// The control files that a path is, in the roots.
    fn controls(&self, path: &Path, is_dir: bool) -> Vec<GitControl> {
        if self.is_granted(path) {
            return Vec::new();
        }
        let inside = self.roots.iter().find_map(|root| path.strip_prefix(super::guard::named_from(root)).ok());
        inside.map(|inside| git_controls(inside, is_dir)).unwrap_or_default()
    }

    /// What of a path lies behind the last `.git` in it, if it is in a root and not granted.
    fn behind_git(&self, path: &Path) -> Option<PathBuf> {
        if self.is_granted(path) {
            return None;
        }
        let inside = self.roots.iter().find_map(|root| path.strip_prefix(super::guard::named_from(root)).ok())?;
        let names: Vec<_> = inside.components().collect();
        let at = names.iter().rposition(|name| name.as_os_str().eq_ignore_ascii_case(".git"))?;
        Some(names[at + 1..].iter().collect())
    }

    /// Whether a link may stand in a repository: those that git makes are names of branches for each other.
    fn judge_link(&self, path: &Path, staged: &Path) -> Result<(), GitRefused> {
        let Some(behind) = self.behind_git(path) else { return Ok(()) };
        let target = std::fs::read_link(staged).map_err(|_| refused(path, UNSEEN))?;
        let is_name = behind == Path::new("HEAD") || behind.starts_with("refs");
        let is_branch =
            target.starts_with("refs") && target.components().all(|part| matches!(part, Component::Normal(_)));
        if is_name && is_branch { Ok(()) } else { Err(refused(path, "git would follow the link")) }
    }

    fn judge_by_name(&self, path: &Path, is_dir: bool) -> Result<(), GitRefused> {
        let controls = self.controls(path, is_dir);
        let is_harmless = controls.iter().all(|control| *control == GitControl::Progress);
        if is_harmless { Ok(()) } else { Err(refused(path, "git runs what stands there")) }
    }

    /// Judges the mode of a file: nobody else may come to write it. A file that changes in nothing but mode, times or attributes is
    /// left as it was.
    fn judge_mode(&self, path: &Path, before: &State, mode: u32) -> Result<(), GitRefused> {
        if !self.controls(path, false).contains(&GitControl::Config) {
            return Ok(());
        }
        match before {
            State::File { mode: old, .. } if *old != mode => Err(refused(path, "its mode was changed")),
            State::File { .. } => Ok(()),
            _ if mode & 0o002 != 0 => Err(refused(path, "everybody could write it")),
            _ => Ok(()),
        }
    }

    /// Judges a file that gets this content, or goes.
    fn judge_content(&self, path: &Path, after: Option<&[u8]>) -> Result<(), GitRefused> {
        let controls = self.controls(path, false);
        if controls.is_empty() {
            return Ok(());
        }
        let root = self.roots.iter().find(|root| path.starts_with(root));
        let root = root.ok_or_else(|| refused(path, "it is in no place that may be written"))?;
        for control in controls {
            // Only settings are compared with those that were there.
            let before = match control {
                GitControl::Config => read(path, control),
                _ => Ok(Vec::new()),
            };
            let before = match before {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                before => {
                    before.map_err(|error| refused(path, format!("what is there now cannot be read: {error}")))?
                }
            };
            let Some(after) = after else {
                judge_removal(control, path, root, &before)?;
                continue;
            };
            let file = ControlFile { control, path, root, before: &before, after, leads_outside };
            file.judge().map_err(|refusal| refused(path, refusal.to_string()))?;
        }
        Ok(())
    }

    /// Judges what stands ready: a file, a link, or a directory with everything in it.
    fn judge_staged(&self, path: &Path, staged: &Path) -> Result<(), GitRefused> {
        let meta = std::fs::symlink_metadata(staged).map_err(|_| refused(path, UNSEEN))?;
        self.judge_entry(path, staged, &meta)?;
        if !meta.is_dir() {
            return Ok(());
        }
        let mut found = Ok(());
        let walked = tree::each_without_fail(staged, &mut |entry| {
            if found.is_ok() {
                let (path, staged) = (path.join(entry.inner), staged.join(entry.inner));
                found = match std::fs::symlink_metadata(&staged) {
                    Ok(meta) => self.judge_entry(&path, &staged, &meta),
                    Err(_) => Err(refused(&path, UNSEEN)),
                };
            }
            Ok(())
        });
        found.and(walked.map_err(|_| refused(path, UNSEEN)))
    }

    fn judge_entry(&self, path: &Path, staged: &Path, meta: &Metadata) -> Result<(), GitRefused> {
        if self.behind_git(path).is_none() {
            return Ok(());
        }
        if meta.is_symlink() {
            // A `.git` that is a link is a repository wherever it leads.
            return if is_git_dir(path) {
                Err(refused(path, "git would follow the link"))
            } else {
                self.judge_link(path, staged)
            };
        }
        if meta.mode() & 0o002 != 0 {
            return Err(refused(path, "everybody could write it"));
        }
        let controls = self.controls(path, meta.is_dir());
        if meta.is_dir() {
            let is_dir = |control: &GitControl| matches!(control, GitControl::Progress | GitControl::Hook { .. });
            return if controls.iter().all(is_dir) { Ok(()) } else { Err(refused(path, "git expects a file there")) };
        }
        if controls.iter().all(|control| *control == GitControl::Progress) {
            return Ok(());
        }
        let largest = controls.iter().max_by_key(|control| control.max_bytes()).copied().unwrap_or(GitControl::Config);
        let after = read(staged, largest).map_err(|error| refused(path, format!("it cannot be read: {error}")))?;
        self.judge_content(path, Some(&after))
    }

    /// Whether a control file is what it was but for its times and attributes.
    fn is_touched_alone(&self, change: &Change) -> bool {
        let Change::Place { path, staged, before: State::File { mode: old, .. }, after: State::File { mode, .. } } =
            change
        else {
            return false;
        };
        let is_control = self.controls(path, false).contains(&GitControl::Config);
        let is_same = || matches!((read(path, GitControl::Index), read(staged, GitControl::Index)), (Ok(before), Ok(after)) if before == after);
        old == mode && is_control && is_same()
    }

    /// Judges the control files of a directory that goes, or that another directory replaces in which they are not.
    fn judge_lost(&self, path: &Path, staged: Option<&Path>) -> Result<(), GitRefused> {
        let mut found = Ok(());
        let walked = tree::each(path, &mut |entry| {
            let is_there = staged.is_some_and(|staged| std::fs::symlink_metadata(staged.join(entry.inner)).is_ok());
            if found.is_ok() && !is_there && !at::kind(entry.stat).is_dir() {
                found = self.judge_content(&path.join(entry.inner), None);
            }
            Ok(())
        });
        found.and(walked.map_err(|_| refused(path, UNSEEN)))
    }
}

/// What goes runs nothing any more; but hooks and settings may have kept something from being done.
fn judge_removal(control: GitControl, path: &Path, root: &Path, before: &[u8]) -> Result<(), GitRefused> {
    match control {
        GitControl::Hook { is_sample: false } => Err(refused(path, "a hook would be lost")),
        GitControl::Attributes => Err(refused(path, "it chooses which filters git runs, and would be lost")),
        GitControl::Closed => Err(refused(path, "git may believe what stands there")),
        GitControl::Config => {
            let file = ControlFile { control, path, root, before, after: &[], leads_outside };
            file.judge().map_err(|refusal| refused(path, refusal.to_string()))
        }
        _ => Ok(()),
    }
}

/// The kernel's own links lead to whoever asks, so they lead nowhere.
fn leads_outside(path: &Path, root: &Path) -> bool {
    const KERNEL: &[&str] = &["/proc", "/dev", "/sys"];
    let is_kernels = |path: &Path| KERNEL.iter().any(|dir| path.starts_with(dir));
    let place = followed(path);
    !is_kernels(path) && place.is_ok_and(|place| !is_kernels(&place) && !place.starts_with(root))
}

fn is_git_dir(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

fn refused(path: &Path, why: impl Into<String>) -> GitRefused {
    GitRefused { path: path.to_owned(), why: why.into() }
}

/// A regular file, if it is no larger than a control file may be.
fn read(path: &Path, control: GitControl) -> io::Result<Vec<u8>> {
    let (mut content, max) = (Vec::new(), control.max_bytes());
    files::open(path)?.take(max + 1).read_to_end(&mut content)?;
    if content.len() as u64 > max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(content) }
}
