//! Making what a command left fit to be kept: without the marks of the file system it was made on,
//! without the right to run as somebody else, without anything but files, links and directories.

use super::tree::DEPTH_MAX;
use super::{LayerError, at};
use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Under these the overlay file system keeps its own notes.
pub(super) const MARKS: [&str; 2] = ["user.overlay.", "trusted.overlay."];

/// Notes that say that a file's content, or a directory's, is elsewhere.
const ELSEWHERE: [&str; 2] = ["metacopy", "redirect"];

/// What is said of something that a command made and that is not kept.
pub(super) const SPECIAL: &str = "is not kept: pipes, sockets and devices cannot be kept";

/// What is said of a directory that was there, and that a command gave attributes.
pub(super) const OF_DIRECTORY: &str =
    "keeps its attributes and access control list: haft does not take over those that a command gives to a directory";

/// What is said of a file whose access control list a command could not keep.
pub(super) const OF_STRANGERS: &str =
    "keeps its access control list: it names users or groups that a command in the sandbox cannot name";

/// What overlayfs leaves where something was deleted.
pub(super) fn is_whiteout(stat: &Stat) -> bool {
    at::kind(stat) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Whether a directory hides everything of its name below.
pub(super) fn is_opaque(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<bool> {
    let held = at::open_at(dir, name, OFlags::PATH)?;
    for mark in MARKS {
        let mut value = [0; 2];
        match rustix::fs::getxattr(at::held_path(held.as_fd()), format!("{mark}opaque"), &mut value) {
            Ok(1) if value[0] == b'y' => return Ok(true),
            Ok(_) | Err(Errno::NODATA | Errno::NOTSUP | Errno::RANGE | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Makes a directory of the upper layer one that its owner may read, enter and change.
pub(super) fn enter(dir: BorrowedFd<'_>, name: &OsStr, stat: &Stat) -> io::Result<OwnedFd> {
    let mode = at::mode(stat);
    if mode & 0o700 != 0o700 {
        at::chmod(dir, name, mode | 0o700)?;
    }
    at::open_at(dir, name, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// Cleans a file or a directory with everything in it. Lists what is taken out of it.
pub(super) fn clean(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    refused: &mut Vec<(PathBuf, &'static str)>,
) -> Result<(), LayerError> {
    clean_within(dir, name, path, refused, 0)
}

fn clean_within(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    refused: &mut Vec<(PathBuf, &'static str)>,
    depth: usize,
) -> Result<(), LayerError> {
    let fail = LayerError::at(path);
    let Some(stat) = at::stat(dir, name).map_err(&fail)? else { return Ok(()) };
    match at::kind(&stat) {
        FileType::RegularFile => {
            strip(dir, name, path, &stat)?;
            if at::mode(&stat) & 0o6000 != 0 {
                at::chmod(dir, name, at::mode(&stat) & !0o6000).map_err(&fail)?;
            }
        }
        FileType::Symlink => {}
        FileType::Directory if depth > DEPTH_MAX => return Err(LayerError::TooDeep { path: path.to_owned() }),
        FileType::Directory => {
            let opened = enter(dir, name, &stat).map_err(&fail)?;
            strip(dir, name, path, &stat)?;
            for inner in at::names(&opened).map_err(&fail)? {
                clean_within(opened.as_fd(), &inner, &path.join(&inner), refused, depth + 1)?;
            }
            if at::mode(&stat) & 0o700 != 0o700 {
                at::chmod(dir, name, at::mode(&stat)).map_err(&fail)?;
            }
        }
        _ => {
            if !is_whiteout(&stat) {
                refused.push((path.to_owned(), SPECIAL));
            }
            rustix::fs::unlinkat(dir, name, AtFlags::empty()).map_err(|error| fail(error.into()))?;
        }
    }
    Ok(())
}

/// Takes the overlay's notes off a file or directory.
fn strip(dir: BorrowedFd<'_>, name: &OsStr, path: &Path, stat: &Stat) -> Result<(), LayerError> {
    let fail = LayerError::at(path);
    let held = at::open_at(dir, name, OFlags::PATH).map_err(&fail)?;
    let held = at::held_path(held.as_fd());
    for mark in marks(&held).map_err(&fail)? {
        if ELSEWHERE.iter().any(|elsewhere| mark.ends_with(elsewhere)) {
            return Err(LayerError::Elsewhere { path: path.to_owned() });
        }
        let removed = match rustix::fs::removexattr(&held, &mark) {
            // Its owner may take notes off what its owner may write; restore the mode right after.
            Err(Errno::ACCESS) if at::kind(stat) == FileType::RegularFile => {
                at::chmod(dir, name, at::mode(stat) | 0o200).map_err(&fail)?;
                let removed = rustix::fs::removexattr(&held, &mark);
                at::chmod(dir, name, at::mode(stat)).map_err(&fail)?;
                removed
            }
            removed => removed,
        };
        removed.map_err(|error| fail(error.into()))?;
    }
    Ok(())
}

/// The overlay's notes on what a path holds.
fn marks(held: &str) -> io::Result<Vec<String>> {
    let mut list = Vec::new();
    match rustix::fs::listxattr_query(held) {
        Ok(length) => list.resize(length + 256, 0),
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    let length = rustix::fs::listxattr(held, list.as_mut_slice())?;
    let names = list[..length].split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    Ok(names.filter(|name| MARKS.iter().any(|mark| name.starts_with(mark))).map(str::to_owned).collect())
}

/// Removes whatever is at a path, with everything in it, even directories that may not be entered.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path).or_else(|error| {
            if error.kind() != io::ErrorKind::PermissionDenied {
                return Err(error);
            }
            let (dir, name) = at::parent(path)?;
            open_up(dir.as_fd(), name, 0)?;
            std::fs::remove_dir_all(path)
        }),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Lets the owner into every directory of a tree that is about to go.
fn open_up(dir: BorrowedFd<'_>, name: &OsStr, depth: usize) -> io::Result<()> {
    match at::stat(dir, name)? {
        Some(stat) if at::kind(&stat) == FileType::Directory && depth <= DEPTH_MAX => {
            let opened = enter(dir, name, &stat)?;
            at::names(&opened)?.iter().try_for_each(|inner| open_up(opened.as_fd(), inner, depth + 1))
        }
        _ => Ok(()),
    }
}
