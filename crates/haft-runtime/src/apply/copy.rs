//! Copying things to another file system with all that belongs to them: owner, mode, access control lists, extended attributes,
//! times, holes, and the hard links among what is copied.

use super::metadata::{FileMetadata, is_sparse};
use super::place::chmod_held;
use super::spot::Spot;
use haft_sandbox::layer::at;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, Uid};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Copies a file, a link or a directory with everything in it to where nothing is. A link is copied and never followed. The
/// caller brings the copy onto the disk.
pub(crate) fn copy(from: &Spot, to: &Spot) -> io::Result<()> {
    let stat = from.stat()?.ok_or(io::ErrorKind::NotFound)?;
    Copying::default().thing(from.dir.as_fd(), &from.name, to.dir.as_fd(), &to.name, &stat)
}

/// One copy of one thing.
#[derive(Default)]
struct Copying {
    /// Where the first of several names of a file was copied to.
    linked: BTreeMap<(u64, u64), (OwnedFd, OsString)>,
}

impl Copying {
    fn thing(
        &mut self,
        from: BorrowedFd<'_>,
        name: &OsStr,
        to: BorrowedFd<'_>,
        new: &OsStr,
        stat: &Stat,
    ) -> io::Result<()> {
        match at::kind(stat) {
            FileType::RegularFile => return self.file(from, name, to, new, stat),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(from, name, Vec::new())?;
                rustix::fs::symlinkat(target, to, new)?;
                let (owner, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
                // The owner of a link decides nothing but who may remove it from a sticky directory.
                let _ = rustix::fs::chownat(to, new, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW);
            }
            FileType::Directory => let_read(from, name, stat, || self.directory(from, name, to, new))?,
            _ => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "pipes, sockets and devices cannot be copied"));
            }
        }
        Ok(rustix::fs::utimensat(to, new, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn file(
        &mut self,
        from: BorrowedFd<'_>,
        name: &OsStr,
        to: BorrowedFd<'_>,
        new: &OsStr,
        stat: &Stat,
    ) -> io::Result<()> {
        let identity = (stat.st_dev, stat.st_ino);
        if let Some((dir, first)) = self.linked.get(&identity) {
            return Ok(rustix::fs::linkat(dir, first, to, new, AtFlags::empty())?);
        }
        let source = let_read(from, name, stat, || at::open_at(from, name, OFlags::RDONLY | OFlags::NONBLOCK))?;
        let metadata = FileMetadata::read(from, name)?;
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Private until it is whole.
        let copy = File::from(rustix::fs::openat(to, new, create, Mode::from_raw_mode(0o600))?);
        content(&mut File::from(source), &copy, is_sparse(stat))?;
        metadata.give(&copy, Some(at::mode(stat)))?;
        rustix::fs::futimens(&copy, &times(stat))?;
        if stat.st_nlink > 1 {
            self.linked.insert(identity, (to.try_clone_to_owned()?, new.to_owned()));
        }
        Ok(())
    }

    fn directory(&mut self, from: BorrowedFd<'_>, name: &OsStr, to: BorrowedFd<'_>, new: &OsStr) -> io::Result<()> {
        let source = at::open_at(from, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let stat = rustix::fs::fstat(&source)?;
        rustix::fs::mkdirat(to, new, Mode::from_raw_mode(0o700))?;
        let made = at::open_at(to, new, OFlags::RDONLY | OFlags::DIRECTORY)?;
        for inner in at::names(&source)? {
            let stat = at::stat(&source, &inner)?.ok_or(io::ErrorKind::NotFound)?;
            self.thing(source.as_fd(), &inner, made.as_fd(), &inner, &stat)?;
        }
        FileMetadata::read(from, name)?.give(&File::from(made), Some(at::mode(&stat)))
    }
}

/// Copies what a file says, with holes where there are holes.
fn content(source: &mut File, copy: &File, is_sparse: bool) -> io::Result<()> {
    if !is_sparse {
        let mut copy = copy;
        return io::copy(source, &mut copy).map(drop);
    }
    let (mut piece, mut at) = (vec![0; 1 << 16], 0);
    loop {
        let length = match source.read(&mut piece)? {
            0 => return copy.set_len(at),
            length => length,
        };
        if piece[..length].iter().any(|byte| *byte != 0) {
            copy.write_all_at(&piece[..length], at)?;
        }
        at += length as u64;
    }
}

/// Reads what its owner may not read, as a command in a namespace of its own could.
fn let_read<T>(dir: BorrowedFd<'_>, name: &OsStr, stat: &Stat, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mode = at::mode(stat);
    let needed = if at::kind(stat) == FileType::Directory { 0o500 } else { 0o400 };
    if mode & needed == needed || rustix::process::geteuid().is_root() {
        return work();
    }
    let held = at::open_at(dir, name, OFlags::PATH)?;
    let found = rustix::fs::fstat(&held)?;
    if (found.st_dev, found.st_ino) != (stat.st_dev, stat.st_ino) {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "it was exchanged while it was copied"));
    }
    chmod_held(&held, mode | needed)?;
    let done = work();
    chmod_held(&held, mode).and(done)
}

fn times(stat: &Stat) -> Timestamps {
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: nanos },
    }
}
