//! Applying file changes: all of them or none, and never over something that was not expected.
//!
//! # The way of a change
//!
//! 1. [`expect`]: everything stands as the changes expect it; else nothing is begun.
//! 2. [`prepare`]: what replaces something is written into haft's own directory on the same mount (the *shelf*, see
//!    `shelf.rs`), with the metadata of what it replaces. Nothing that others see has changed.
//! 3. The undo log says what is about to happen, durably, and meanwhile the drafts are brought onto the disk.
//! 4. [`prepare_new`]: missing directories, and new files under a draft's name beside their place, so that they get what that
//!    directory gives to new files.
//! 5. [`apply`], under the lock of the project (`project_lock.rs`), step by step (`place.rs`): the draft and the file are *exchanged* in one system call. What came out is what
//!    was there at that very moment; only now it is compared with what was expected. It is the before-image, as it is, or it
//!    goes back, and the call fails with a conflict.
//! 6. After a conflict or an error, the steps before it are taken back by the same law: what somebody changed meanwhile stays
//!    as they left it, and is named.
//!
//! Undo goes the same way, with the before-images as what stands ready.

mod changed_path;
mod commits;
mod copy;
mod diff;
mod metadata;
mod notes;
mod place;
mod prepare;
mod project_lock;
mod ranking;
mod shelf;
mod spot;

pub(crate) use changed_path::{ChangedPath, Side, take_apart};
pub(crate) use copy::{Copying, copy};
pub(crate) use diff::{Viewer, ordered_lists, ordered_names, view, view_paths};
#[cfg(test)]
pub(crate) use haft_sandbox::layer::ACCESS_LIST;
pub(crate) use metadata::FileMetadata;
pub(crate) use notes::{notes, shown_before};
pub(crate) use place::{Draft, ExchangedFrom, Identity, Slot, THEIRS, coming};
pub(crate) use prepare::{prepare, prepare_new, remove_drafts};
pub(crate) use project_lock::ProjectLock;
#[cfg(test)]
pub(crate) use shelf::shelf_name;
pub(crate) use shelf::{Shelves, is_image, remove as remove_kept, shelves_above, shelves_of};
pub(crate) use spot::{PARKED, Spot, spot_in};

use crate::files;
use crate::undo::{self, Kept};
use haft_core::CallError;
use haft_core::change::{Change, State};
use haft_sandbox::layer::{at, stands, stands_alone, tree};
use haft_store::Sighting;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// So many files are synced one by one; for more, the whole file system is synced once.
const SYNC_MAX: usize = 16;

/// Why changes were not made.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Nothing is changed, and nothing is kept.
    Whole(CallError),
    /// Something is changed, or a version of a file that somebody else wrote is kept: what is kept has to stay.
    Half(CallError),
}

/// Why one step was not made.
#[derive(Debug)]
pub(crate) enum StepError {
    /// The system says no. The step may be half made.
    Io(io::Error),
    /// What was taken was not what was expected. It is back in its place, and the step is not made.
    Conflict(Conflict),
}

/// What became of a file that somebody else changed meanwhile.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// A version of theirs that is not in its place, because a newer one is.
    pub(crate) kept: Option<PathBuf>,
}

impl<E: Into<io::Error>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::Io(error.into())
    }
}

/// What stands where a change expects something: of a directory, only as much as is expected.
pub(crate) fn look(path: &Path, expected: &State) -> io::Result<State> {
    if matches!(expected, State::Dir { .. }) { stands_alone(path) } else { stands(path) }
}

/// Checks that everything stands as each change expects it.
pub(crate) fn expect(changes: &[Change], shown: &dyn Fn(&Path) -> String) -> Result<(), CallError> {
    for change in changes {
        match change {
            Change::Move { to, .. } => expect_state(to, &State::Absent, shown)?,
            Change::Place { path, staged, after, .. } => expect_staged(path, staged, after, shown)?,
            Change::Write { .. } | Change::Remove { .. } | Change::Mode { .. } => {}
        }
        expect_state(change.path(), change.before(), shown)?;
    }
    Ok(())
}

fn expect_state(path: &Path, expected: &State, shown: &dyn Fn(&Path) -> String) -> Result<(), CallError> {
    let now = look(path, expected).map_err(|error| files::explain(&shown(path), &error))?;
    if undo::same(&now, expected) {
        return Ok(());
    }
    let what = match (expected, now) {
        (State::Absent, _) => "appeared",
        (_, State::Absent) => "disappeared",
        _ => "changed",
    };
    Err(CallError::conflict(format!("{} {what} in the meantime; nothing was changed", shown(path)))
        .hint("look again, then call again"))
}

/// What stands ready must be what was shown. A before-image of an earlier version has another mode, and
/// gets the right one when it is placed.
fn expect_staged(path: &Path, staged: &Path, after: &State, shown: &dyn Fn(&Path) -> String) -> Result<(), CallError> {
    let ready = stands(staged).map_err(|error| files::explain(&shown(path), &error))?;
    if undo::alike(&ready, after) {
        return Ok(());
    }
    Err(CallError::conflict(format!("what was to go to {} has changed; nothing was changed", shown(path))))
}

/// Makes prepared changes. If one fails, those before it are taken back.
pub(crate) fn apply(changes: &[Change], kept: &Kept, shown: &dyn Fn(&Path) -> String) -> Result<(), Failed> {
    for (number, change) in changes.iter().enumerate() {
        if let Err(error) = step(change, &kept.slot(number)) {
            return Err(take_back(change, number, error, kept, shown));
        }
        crate::crash_point("applied");
        if kept.is_undo() {
            crate::crash_point("undone");
        }
    }
    sync_names(changes);
    Ok(())
}

/// One change.
pub(crate) fn step(change: &Change, slot: &Slot<'_>) -> Result<(), StepError> {
    match change {
        Change::Write { path, before: State::Absent, .. } => place::reveal(slot, path),
        Change::Write { path, before, .. } => place::let_into(path, || place::replace(slot, path, before)),
        Change::Move { from, to, before } => {
            files::make_parents(to)?;
            place::rename(slot, from, to, before)
        }
        Change::Remove { path, before } => place::let_into(path, || place::remove(slot, path, before)),
        Change::Place { path, staged, before, after } => {
            // What comes back may come back to directories that went with it.
            if shelf::is_image(staged, slot.vault) {
                files::make_parents(path)?;
            }
            place::let_into(path, || place::place(slot, path, staged, before, after))
        }
        Change::Mode { path, mode, before } => place::mode(slot, path, before, *mode),
    }
}

/// Takes the steps before one that failed back, and says what became of all this.
fn take_back(change: &Change, number: usize, error: StepError, kept: &Kept, shown: &dyn Fn(&Path) -> String) -> Failed {
    let path = change.path();
    let (mut error, theirs, made) = match error {
        StepError::Conflict(Conflict { kept }) => (changed_meanwhile(change, shown), kept, number),
        // The names that were there, or were not, are others now: that is a conflict, too. What was taken until then goes back.
        StepError::Io(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => {
            let made = if undo::is_begun(kept, number) { number + 1 } else { number };
            (changed_meanwhile(change, shown), None, made)
        }
        StepError::Io(error) => (files::explain(&shown(path), &error), None, number + 1),
    };
    let left = undo::take_back(kept, made);
    remove_drafts(kept);
    if left.is_empty() && theirs.is_none() {
        if !error.message.contains("nothing was changed") {
            error.message.push_str("; nothing was changed");
        }
        return Failed::Whole(error);
    }
    if let Some(theirs) = theirs {
        let both = "; it was changed more than once: the newest version is in its place, an older one is";
        error.message.push_str(&format!("{both} {}", theirs.display()));
    }
    if left.is_empty() {
        error.message.push_str("; nothing else was changed");
    }
    for stuck in left {
        error.message.push_str(&format!("; {} could not be taken back: {}", shown(&stuck.path), stuck.why));
    }
    Failed::Half(error)
}

fn changed_meanwhile(change: &Change, shown: &dyn Fn(&Path) -> String) -> CallError {
    let (path, before) = match change {
        Change::Move { from, to, before } if look(from, before).is_ok_and(|now| now == *before) => (to, &State::Absent),
        _ => (change.path(), change.before()),
    };
    let what = match (before, look(path, before)) {
        (State::Absent, _) => "appeared",
        (_, Ok(State::Absent)) => "disappeared",
        _ => "changed",
    };
    CallError::conflict(format!("{} {what} in the meantime", shown(path))).hint("look again, then call again")
}

/// Brings what stands ready onto the disk: a name must not get there before its content. The names themselves follow, those of
/// written files before the call returns, and those of others when the file system sees fit: whichever of the two a machine
/// that lost its power finds, old or new, undo knows both.
pub(crate) fn settle(changes: &[Change], drafts: &[PathBuf], vault: &Path) -> Result<(), CallError> {
    let staged = changes.iter().filter_map(|change| match change {
        Change::Place { staged, .. } if !shelf::is_image(staged, vault) => Some(staged.as_path()),
        _ => None,
    });
    let all: Vec<&Path> = staged.chain(drafts.iter().map(PathBuf::as_path)).collect();
    sync(&all).map_err(|error| CallError::internal(format!("nothing was changed: cannot sync: {error}")))
}

fn sync(paths: &[&Path]) -> io::Result<()> {
    // What cannot be synced alone (a directory, a file that may not be read) is synced with all the rest.
    if paths.len() <= SYNC_MAX && paths.iter().try_for_each(|path| sync_one(path)).is_ok() {
        return Ok(());
    }
    sync_file_systems(paths.iter().filter_map(|path| path.parent()))
}

/// Syncs the file systems of these directories, each once.
fn sync_file_systems<'a>(dirs: impl Iterator<Item = &'a Path>) -> io::Result<()> {
    let (mut synced, mut last) = (BTreeSet::new(), None);
    for dir in dirs {
        if last.replace(dir) == Some(dir) {
            continue;
        }
        let dir = at::open_dir(dir)?;
        if synced.insert(rustix::fs::fstat(&dir)?.st_dev) {
            rustix::fs::syncfs(&dir)?;
        }
    }
    Ok(())
}

fn sync_one(path: &Path) -> io::Result<()> {
    let (dir, name) = at::reach(path)?;
    match at::stat(&dir, name)?.map(|stat| at::kind(&stat)) {
        Some(rustix::fs::FileType::RegularFile) => {
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
            Ok(rustix::fs::fsync(at::open_at(&dir, name, flags)?)?)
        }
        Some(rustix::fs::FileType::Directory) => Err(io::ErrorKind::IsADirectory.into()),
        _ => Ok(()),
    }
}

/// Brings the names of written and moved files onto the disk. Best effort: the changes are made.
fn sync_names(changes: &[Change]) {
    let mut dirs = BTreeSet::new();
    for change in changes {
        match change {
            Change::Write { path, .. } => dirs.extend(path.parent()),
            Change::Move { from, to, .. } => dirs.extend([from.parent(), to.parent()].into_iter().flatten()),
            Change::Place { .. } | Change::Remove { .. } | Change::Mode { .. } => {}
        }
    }
    if dirs.len() <= SYNC_MAX {
        for dir in dirs {
            let _ = at::open_dir(dir).and_then(|dir| Ok(rustix::fs::fsync(dir)?));
        }
    } else {
        let _ = sync_file_systems(dirs.into_iter());
    }
}

/// What the session now knows of each changed file.
pub(crate) fn sightings(changes: &[Change]) -> Vec<(PathBuf, Sighting)> {
    let known = |path: &Path, content: &[u8]| {
        let meta = std::fs::metadata(path).ok()?;
        Some((path.to_owned(), crate::seen::whole(content, files::mtime_ns(&meta))))
    };
    changes
        .iter()
        .filter_map(|change| match change {
            Change::Write { path, content, .. } => known(path, content),
            // Nobody has seen what a command wrote.
            _ => None,
        })
        .collect()
}

/// Every path that a change touches: for a directory that comes or goes, also everything in it.
pub(crate) fn touched(change: &Change) -> Vec<PathBuf> {
    let mut paths = vec![change.path().clone()];
    let mut inside = |root: &Path, state: &State| {
        if state.is_tree() {
            // What cannot be walked cannot be applied either.
            let _ = tree::each(root, &mut |entry| {
                paths.push(change.path().join(entry.inner));
                Ok(())
            });
        }
    };
    match change {
        Change::Place { path, staged, before, after } => {
            inside(path, before);
            inside(staged, after);
        }
        Change::Remove { path, before } => inside(path, before),
        Change::Move { to, .. } => paths.push(to.clone()),
        Change::Write { .. } | Change::Mode { .. } => {}
    }
    paths
}
