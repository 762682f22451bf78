//! Copying things to another file system, with modes and times, durably.

use haft_sandbox::layer::at;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Copies a file, a link or a directory with everything in it to where nothing is, and waits until it is
/// on the disk. A link is copied and never followed.
pub(super) fn durably(from: &OwnedFd, name: &OsStr, to: &OwnedFd, new: &OsStr) -> io::Result<()> {
    let stat = at::stat(from, name)?.ok_or(io::ErrorKind::NotFound)?;
    copy(from.as_fd(), name, to.as_fd(), new, &stat)?;
    match at::kind(&stat) {
        // One file is synced as it is copied; for many, once for all is faster.
        FileType::Directory => Ok(rustix::fs::syncfs(to)?),
        _ => Ok(rustix::fs::fsync(to)?),
    }
}

fn copy(from: BorrowedFd<'_>, name: &OsStr, to: BorrowedFd<'_>, new: &OsStr, stat: &Stat) -> io::Result<()> {
    match at::kind(stat) {
        FileType::RegularFile => file(from, name, to, new, stat)?.sync_data()?,
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(from, name, Vec::new())?;
            rustix::fs::symlinkat(target, to, new)?;
            rustix::fs::utimensat(to, new, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        FileType::Directory => {
            let_read(from, name, stat, || directory(from, name, to, new))?;
            at::chmod(to, new, at::mode(stat))?;
            rustix::fs::utimensat(to, new, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "pipes, sockets and devices cannot be copied")),
    }
    Ok(())
}

/// Reads what its owner may not read, as a command in a namespace of its own could.
fn let_read<T>(dir: BorrowedFd<'_>, name: &OsStr, stat: &Stat, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mode = at::mode(stat);
    let needed = if at::kind(stat) == FileType::Directory { 0o500 } else { 0o400 };
    if mode & needed == needed || rustix::process::geteuid().is_root() {
        return work();
    }
    at::chmod(dir, name, mode | needed)?;
    let done = work();
    at::chmod(dir, name, mode).and(done)
}

fn file(from: BorrowedFd<'_>, name: &OsStr, to: BorrowedFd<'_>, new: &OsStr, stat: &Stat) -> io::Result<File> {
    let mut source =
        File::from(let_read(from, name, stat, || at::open_at(from, name, OFlags::RDONLY | OFlags::NONBLOCK))?);
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Private until it is whole.
    let mut copy = File::from(rustix::fs::openat(to, new, create, Mode::from_raw_mode(0o600))?);
    io::copy(&mut source, &mut copy)?;
    rustix::fs::fchmod(&copy, Mode::from_raw_mode(at::mode(stat)))?;
    rustix::fs::futimens(&copy, &times(stat))?;
    Ok(copy)
}

fn directory(from: BorrowedFd<'_>, name: &OsStr, to: BorrowedFd<'_>, new: &OsStr) -> io::Result<()> {
    let source = at::open_at(from, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
    rustix::fs::mkdirat(to, new, Mode::from_raw_mode(0o700))?;
    let made = at::open_at(to, new, OFlags::RDONLY | OFlags::DIRECTORY)?;
    for inner in at::names(&source)? {
        let stat = at::stat(&source, &inner)?.ok_or(io::ErrorKind::NotFound)?;
        match at::kind(&stat) {
            FileType::RegularFile => {
                file(source.as_fd(), &inner, made.as_fd(), &inner, &stat)?;
            }
            _ => copy(source.as_fd(), &inner, made.as_fd(), &inner, &stat)?,
        }
    }
    Ok(())
}

fn times(stat: &Stat) -> Timestamps {
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: nanos },
    }
}
