//! Making ready what a change brings, so that a step is one system call.

use super::place::{bring_near, identity_of};
use super::spot::Spot;
use super::{Copying, FileMetadata, coming, spot_in};
use crate::files;
use crate::undo::Kept;
use haft_core::CallError;
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Files that were written and are not on the disk yet.
type Drafts = Vec<PathBuf>;

/// Makes ready what replaces something. Nothing that others see is changed.
pub(crate) fn prepare(
    changes: &[Change],
    kept: &mut Kept,
    shown: &dyn Fn(&Path) -> String,
) -> Result<Drafts, CallError> {
    let (mut drafts, mut copying) = (Vec::new(), Copying::default());
    for (number, change) in changes.iter().enumerate() {
        let made = match change {
            Change::Write { path, content, before: State::File { .. }, mode } => {
                replacement(kept, number, path, content, *mode).map(Some)
            }
            Change::Write { before: State::Link { .. } | State::Tree { .. } | State::Dir { .. }, .. } => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
            }
            Change::Place { staged, after, .. } => place_ready(kept, number, (staged, after), &mut copying),
            Change::Mode { path, .. } => identity_of(path).map(|found| {
                kept.identified(number, found);
                None
            }),
            Change::Write { before: State::Absent, .. } | Change::Move { .. } | Change::Remove { .. } => Ok(None),
        };
        drafts.extend(made.map_err(|error| not_ready(&shown(change.path()), &error))?);
    }
    Ok(drafts)
}

/// What takes a place, on the mount of the place.
fn place_ready(
    kept: &mut Kept,
    number: usize,
    (staged, after): (&Path, &State),
    copying: &mut Copying,
) -> io::Result<Option<PathBuf>> {
    let near = bring_near(&kept.slot(number), staged, copying)?;
    if let State::File { mode, .. } | State::Tree { mode, .. } = after {
        let ready = Spot::of(near.as_deref().unwrap_or(staged))?;
        let metadata = FileMetadata::read(&ready.dir, &ready.name)?;
        // What gets its mode when it is placed may get other things with it, and a directory may have to be loosened.
        if metadata.mode == *mode && (mode & 0o200 != 0 || !after.is_tree()) {
            kept.made(number, metadata);
        }
    }
    Ok(near)
}

fn not_ready(shown: &str, error: &io::Error) -> CallError {
    let mut error = files::explain(shown, error);
    if !error.message.contains("nothing was changed") {
        error.message.push_str("; nothing was changed");
    }
    error
}

/// A file that replaces another, with all that the other has besides its content.
fn replacement(kept: &mut Kept, number: usize, path: &Path, content: &[u8], mode: Option<u32>) -> io::Result<PathBuf> {
    let target = Spot::of(path)?;
    let metadata = FileMetadata::read(&target.dir, &target.name)?;
    let draft = spot_in(kept.slot(number).dir, coming(&number.to_string()))?;
    // Private until it has the metadata of what it replaces.
    let mut file = create(&draft, 0o600)?;
    metadata.write(&mut file, content)?;
    metadata.give(&file, mode)?;
    let metadata_made = FileMetadata::of(file.as_fd())?;
    kept.prepared(number, State::File { digest: Digest::of(content), mode: metadata_made.mode }, metadata);
    kept.made(number, metadata_made);
    Ok(draft.path)
}

/// Makes missing directories, and new files under the names of drafts beside their places.
pub(crate) fn prepare_new(
    changes: &[Change],
    kept: &mut Kept,
    shown: &dyn Fn(&Path) -> String,
) -> Result<Drafts, CallError> {
    let mut drafts = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        if let Change::Write { path, content, before: State::Absent, mode } = change {
            let made = new_file(&kept.slot(number), path, content, *mode);
            let (draft, metadata) = made.map_err(|error| not_ready(&shown(path), &error))?;
            kept.made(number, metadata);
            drafts.push(draft);
        }
    }
    Ok(drafts)
}

fn new_file(
    slot: &super::Slot<'_>,
    path: &Path,
    content: &[u8],
    mode: Option<u32>,
) -> io::Result<(PathBuf, FileMetadata)> {
    files::make_parents(path)?;
    let draft = Spot::of(path)?.beside(files::draft_name_of(slot.call, slot.number))?;
    let mut file = create(&draft, 0o666)?;
    file.write_all(content)?;
    if let Some(mode) = mode {
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    Ok((draft.path, FileMetadata::of(file.as_fd())?))
}

fn create(spot: &Spot, mode: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(&spot.dir, &spot.name, flags, Mode::from_raw_mode(mode))?))
}

/// Removes the drafts of new files that did not get their names.
pub(crate) fn remove_drafts(kept: &Kept) {
    for (number, path) in kept.new_files() {
        files::remove_draft(kept.slot(number).call, number, path);
    }
}
