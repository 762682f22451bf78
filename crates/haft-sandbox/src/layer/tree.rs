//! What stands somewhere, and walking over everything in a directory.

use super::at;
use haft_core::change::State;
use haft_core::record::Digest;
use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Deeper trees are refused: each level holds a descriptor open.
pub(super) const DEPTH_MAX: usize = 256;

/// One thing in a tree.
pub struct Entry<'a> {
    /// Where, from the tree's own directory; empty for that directory itself.
    pub inner: &'a Path,
    /// The directory it is in.
    pub dir: BorrowedFd<'a>,
    /// Its name there.
    pub name: &'a OsStr,
    /// What it is.
    pub stat: &'a Stat,
}

/// What stands at a path.
pub fn stands(path: &Path) -> io::Result<State> {
    match at::reach(path) {
        Ok((dir, name)) => stands_at(dir.as_fd(), name),
        Err(error) if is_nowhere(&error) => Ok(State::Absent),
        Err(error) => Err(error),
    }
}

/// What stands at a path, if it is a directory, of it alone.
pub fn stands_alone(path: &Path) -> io::Result<State> {
    match at::reach(path) {
        Ok((dir, name)) => match at::stat(&dir, name)? {
            Some(stat) if at::kind(&stat) == FileType::Directory => Ok(State::Dir { mode: at::mode(&stat) }),
            _ => stands_at(dir.as_fd(), name),
        },
        Err(error) if is_nowhere(&error) => Ok(State::Absent),
        Err(error) => Err(error),
    }
}

/// Whether nothing can stand there, because the directory it would be in is missing.
fn is_nowhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What has a name in a directory.
pub fn stands_at(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<State> {
    let Some(stat) = at::stat(dir, name)? else { return Ok(State::Absent) };
    let mode = at::mode(&stat);
    match at::kind(&stat) {
        FileType::RegularFile => Ok(State::File { digest: content(dir, name, &stat)?, mode }),
        FileType::Symlink => Ok(State::Link { target: target(dir, name)? }),
        FileType::Directory => Ok(State::Tree { digest: manifest(dir, name)?, mode }),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe, a socket or a device")),
    }
}

/// What a link says.
pub(super) fn target(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<PathBuf> {
    let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

/// A file's content as a digest. A file that its owner may not read is known by its size and time.
fn content(dir: BorrowedFd<'_>, name: &OsStr, stat: &Stat) -> io::Result<Digest> {
    // Without NONBLOCK, opening a FIFO that took its place would wait for a writer that never comes.
    let mut file = match at::open_at(dir, name, OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Digest::of(format!("unread {} {}", at::size(stat), at::mtime_ns(stat)).as_bytes()));
        }
        Err(error) => return Err(error),
    };
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(Digest::from_hasher(hasher)),
            n => hasher.update(&piece[..n]),
        }
    }
}

/// A digest of what is in a directory. Where a directory may not be read, its inside does not count.
fn manifest(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    each_at(dir, name, &mut |entry| {
        if entry.inner.as_os_str().is_empty() {
            return Ok(());
        }
        let (kind, stat) = (at::kind(entry.stat), entry.stat);
        let about = match kind {
            FileType::Symlink => target(entry.dir, entry.name)?.into_os_string().into_vec(),
            FileType::RegularFile => format!("{} {}", at::size(stat), at::mtime_ns(stat)).into_bytes(),
            // A directory's time changes with what is in it, and that is listed.
            _ => Vec::new(),
        };
        hasher.update(format!("{kind:?} {:o} ", at::mode(stat)));
        // Neither a path nor what a link says can contain a NUL, so no two trees read alike.
        for part in [entry.inner.as_os_str().as_bytes(), &about] {
            hasher.update(part);
            hasher.update([0]);
        }
        Ok(())
    })?;
    Ok(Digest::from_hasher(hasher))
}

/// What becomes of a directory that may not be looked into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// Its names do not count.
    PassedOver,
    /// It is an error: whoever judges what is in it must not take it for empty.
    AnError,
}

/// Visits a thing and everything in it, a directory before what it contains, in the order of names.
pub fn each(path: &Path, visit: &mut dyn FnMut(&Entry<'_>) -> io::Result<()>) -> io::Result<()> {
    let (dir, name) = at::reach(path)?;
    each_at(dir.as_fd(), name, visit)
}

/// The same, and an error if there is anything in it that cannot be visited.
pub fn each_without_fail(path: &Path, visit: &mut dyn FnMut(&Entry<'_>) -> io::Result<()>) -> io::Result<()> {
    let (dir, name) = at::reach(path)?;
    descend(dir.as_fd(), name, &mut PathBuf::new(), Closed::AnError, visit)
}

/// The same, for what has a name in a directory.
pub(super) fn each_at(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    visit: &mut dyn FnMut(&Entry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    descend(dir, name, &mut PathBuf::new(), Closed::PassedOver, visit)
}

fn descend(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    inner: &mut PathBuf,
    closed: Closed,
    visit: &mut dyn FnMut(&Entry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let stat = at::stat(dir, name)?.ok_or(io::ErrorKind::NotFound)?;
    visit(&Entry { inner, dir, name, stat: &stat })?;
    if at::kind(&stat) != FileType::Directory {
        return Ok(());
    }
    if inner.components().count() >= DEPTH_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "directories are nested too deeply"));
    }
    let opened = match at::open_at(dir, name, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && closed == Closed::PassedOver => return Ok(()),
        Err(error) => return Err(error),
    };
    for name in at::names(&opened)? {
        inner.push(&name);
        let done = descend(opened.as_fd(), &name, inner, closed, visit);
        inner.pop();
        match done {
            // It may be read but not entered: then its names do not count either.
            Err(error)
                if error.raw_os_error() == Some(Errno::ACCESS.raw_os_error()) && closed == Closed::PassedOver => {}
            done => done?,
        }
    }
    Ok(())
}
