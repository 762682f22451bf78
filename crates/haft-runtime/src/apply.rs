//! Applying file changes: all of them or none, and never over something that was not expected.

mod copy;
mod diff;
mod place;

pub(crate) use diff::{Drawing, Side, diff};
pub(crate) use place::{Slot, coming};

use crate::files;
use crate::undo::{self, Kept};
use haft_core::CallError;
use haft_core::change::{Change, State};
use haft_sandbox::layer::{at, stands, stands_alone, tree};
use haft_store::Sighting;
use rustix::fs::OFlags;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// So many files are synced one by one; for more, the whole file system is synced once.
const SYNC_MAX: usize = 16;

/// Why changes were not made.
pub(crate) enum Failed {
    /// Nothing is changed.
    Whole(CallError),
    /// Something is changed and could not be taken back: what was kept is the only way to do so later.
    Half(CallError),
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

/// Applies changes whose undo is kept. If one fails, those before it are taken back.
pub(crate) fn apply(changes: &[Change], kept: &Kept, shown: &dyn Fn(&Path) -> String) -> Result<(), Failed> {
    // Copies of before-images take their time; renaming keeps whatever is there.
    if changes.iter().any(|change| matches!(change, Change::Write { .. })) {
        expect(changes, shown).map_err(Failed::Whole)?;
    }
    for (number, change) in changes.iter().enumerate() {
        if let Err(error) = step(change, &kept.slot(number)) {
            let failed = files::explain(&shown(change.path()), &error);
            return Err(match undo::take_back(kept, number) {
                Ok(()) => Failed::Whole(failed),
                Err(why) => Failed::Half(CallError::internal(format!(
                    "{failed}; and what was done before could not be taken back: {why}"
                ))),
            });
        }
        crate::crash_point("applied");
        if kept.is_undo() {
            crate::crash_point("undone");
        }
    }
    Ok(())
}

/// One change. The runtime's last look at the file was a moment ago, in [`expect`].
pub(crate) fn step(change: &Change, slot: &Slot<'_>) -> io::Result<()> {
    match change {
        Change::Write { path, content, mode, .. } => {
            files::make_parents(path)?;
            files::replace(path, content, *mode)
        }
        Change::Move { from, to, .. } => {
            files::make_parents(to)?;
            files::rename(from, to)
        }
        Change::Remove { path, before } => place::let_into(path, || place::remove(slot, path, before)),
        Change::Place { path, staged, before, after } => {
            // What comes back may come back to directories that went with it.
            if staged.starts_with(slot.vault) {
                files::make_parents(path)?;
            }
            place::let_into(path, || place::place(slot, path, staged, before, after))
        }
        Change::Mode { path, mode, .. } => place::mode(path, *mode),
    }
}

/// Brings what is to be placed onto the disk: a name must not get there before its content. What the vault
/// keeps is there already. The names themselves follow when the file system sees fit: whichever of the two
/// a machine that lost its power finds, old or new, undo knows both.
pub(crate) fn settle(changes: &[Change], vault: &Path) -> Result<(), CallError> {
    let fail = |error: io::Error| CallError::internal(format!("nothing was changed: cannot sync: {error}"));
    sync_staged(changes, vault).map_err(fail)
}

fn sync_staged(changes: &[Change], vault: &Path) -> io::Result<()> {
    let staged: Vec<(&Path, &State)> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Place { staged, after, .. } if !staged.starts_with(vault) => Some((staged.as_path(), after)),
            _ => None,
        })
        .collect();
    let Some((any, _)) = staged.first() else { return Ok(()) };
    let sync = |(path, state): &(&Path, &State)| match state {
        State::File { .. } => Ok(rustix::fs::fsync(at::open(path, OFlags::RDONLY | OFlags::NONBLOCK)?)?),
        State::Tree { .. } => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        _ => Ok(()),
    };
    // What cannot be synced alone (a directory, a file that may not be read) is synced with all the rest.
    if staged.len() <= SYNC_MAX && staged.iter().try_for_each(sync).is_ok() {
        return Ok(());
    }
    Ok(rustix::fs::syncfs(at::parent(any)?.0)?)
}

/// A warning for each file that has other names: an atomic replacement gives this name the new content, and
/// the others keep the old.
pub(crate) fn hard_linked(changes: &[Change], shown: &dyn Fn(&Path) -> String) -> Vec<String> {
    let written = changes.iter().filter_map(|change| match change {
        Change::Write { path, .. } | Change::Place { path, .. } => Some(path),
        _ => None,
    });
    let linked =
        written.filter(|path| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.nlink() > 1));
    linked.map(|path| format!("{} had other hard links; they keep the old content", shown(path))).collect()
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
