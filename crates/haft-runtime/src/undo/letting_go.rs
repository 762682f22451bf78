//! Removing what is kept and no longer needed. What somebody wrote into it meanwhile, through a file that they still had open,
//! may be nowhere else: only what is as haft left it is removed, and only if nobody can write to it any more.

use super::invert::{alike, names_of};
use super::{Kept, keep};
use crate::apply;
use haft_core::CallError;
use haft_core::change::State;
use haft_sandbox::layer::{at, remove_all, stands, tree};
use haft_store::UndoStep;
use rustix::fs::{FileType, OFlags};
use std::path::{Path, PathBuf};

/// A version of a file that somebody wrote, or may write, after haft had taken the file away. It stays where it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LateVersion {
    /// The file's place.
    pub(crate) path: PathBuf,
    /// Where the version is.
    pub(crate) kept: PathBuf,
    why: Why,
}

/// Why something that is no longer needed is not removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Written,
    Open,
}

impl LateVersion {
    /// For whoever made the call.
    pub(crate) fn told(&self, shown: &dyn Fn(&Path) -> String) -> String {
        let (path, kept) = (shown(&self.path), self.kept.display());
        let what = match self.why {
            Why::Written => format!("a program that still had {path} open wrote to it after it was replaced"),
            Why::Open => format!("a program still has the replaced version of {path} open for writing"),
        };
        format!("{what}; that version is {kept}")
    }
}

/// The late versions in one sentence, after what was said already.
pub(crate) fn told(said: Option<String>, late: &[LateVersion], shown: &dyn Fn(&Path) -> String) -> Option<String> {
    let sentences: Vec<String> = said.into_iter().chain(late.iter().map(|version| version.told(shown))).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// An error, and what its call leaves besides.
pub(super) fn after(mut error: CallError, late: &[LateVersion], shown: &dyn Fn(&Path) -> String) -> CallError {
    for version in late {
        error.message.push_str("; ");
        error.message.push_str(&version.told(shown));
    }
    error
}

/// Why something must not be removed: it is neither what its step found nor what the step left, or somebody can still write to
/// it. What is in haft's own directory cannot be opened anew.
fn why_not(path: &Path, step: &UndoStep) -> Option<Why> {
    // Looked at first: whoever closes the file after that has written by then.
    let is_open = has_writer(path);
    match stands(path) {
        Ok(State::Absent) => None,
        Ok(state) if alike(&state, &step.before) || alike(&state, &step.after) => is_open.then_some(Why::Open),
        // What cannot be looked at is not known.
        _ => Some(Why::Written),
    }
}

/// Whether somebody has what stands at a path open for writing, or anything in it. Where the system does not say, nobody is
/// known to.
fn has_writer(path: &Path) -> bool {
    let mut found = false;
    let walked = tree::each(path, &mut |entry| {
        // By another name, what is written stays.
        if !found && at::kind(entry.stat) == FileType::RegularFile && entry.stat.st_nlink == 1 {
            let opened = at::open_at(entry.dir, entry.name, OFlags::RDONLY | OFlags::NONBLOCK);
            found = opened.is_ok_and(|file| haft_sandbox::linux::is_open_for_writing(file).unwrap_or(false));
        }
        Ok(())
    });
    walked.is_ok() && found
}

/// Removes something if it may be removed.
fn remove_unneeded(kept: PathBuf, step: &UndoStep) -> Option<LateVersion> {
    if let Some(why) = why_not(&kept, step) {
        Some(LateVersion { path: step.path.clone(), kept, why })
    } else {
        // What stays harms nobody.
        let _ = remove_all(&kept);
        None
    }
}

/// Removes an image and what waited to be exchanged for it. The versions that somebody else wrote stay. So does what the call
/// had made: an undo that died has left it there, and it is nowhere else.
pub(super) fn release_image(image: &Path, step: &UndoStep) -> Vec<LateVersion> {
    let is_made =
        |name: &PathBuf| stands(name).is_ok_and(|state| alike(&state, &step.after) && !alike(&state, &step.before));
    let names = names_of(image).into_iter().filter(|name| !is_made(name));
    names.filter_map(|name| remove_unneeded(name, step)).collect()
}

impl Kept {
    /// Removes what is too large to stay.
    pub(super) fn let_go(&self) -> Vec<LateVersion> {
        crate::crash_point("releasing");
        let image = |number: usize| self.slot(number).dir.join(number.to_string());
        self.excess().filter_map(|number| remove_unneeded(image(number), &self.steps[number])).collect()
    }

    /// What lies in this call's directories and must not be removed.
    pub(super) fn late_versions(&self) -> Vec<LateVersion> {
        crate::crash_point("releasing");
        let mut dirs = vec![self.images().to_owned()];
        dirs.extend(apply::shelves_of(self.images()));
        let backs: Vec<PathBuf> = dirs.iter().map(|dir| dir.join(keep::BACK)).collect();
        dirs.extend(backs);
        dirs.iter().flat_map(|dir| self.late_versions_in(dir)).collect()
    }

    fn late_versions_in(&self, dir: &Path) -> Vec<LateVersion> {
        let names = at::open_dir(dir).and_then(at::names).unwrap_or_default();
        let step = |name: &str| self.steps.get(name.split('.').next()?.parse::<usize>().ok()?);
        let steps = names.iter().filter_map(|name| Some((dir.join(name), step(name.to_str()?)?)));
        let late = |(kept, step): (PathBuf, &UndoStep)| {
            let why = why_not(&kept, step)?;
            Some(LateVersion { path: step.path.clone(), kept, why })
        };
        steps.filter_map(late).collect()
    }
}
