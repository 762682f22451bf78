//! Files by directory descriptor and name. Nothing here ever follows a symbolic link: a path that was
//! swapped for one in the meantime is an error and not a way out.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Opens a path, if no link is on the way.
pub fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Kernels before 5.6, and some container filters, have no openat2: guard the last step at least.
        Err(Errno::NOSYS | Errno::PERM) => Ok(rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())?),
        opened => Ok(opened?),
    }
}

/// Opens a directory, to read and to sync it.
pub fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    open(path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// The directory that a path is in, and its name there.
pub fn parent(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Ok((open_dir(dir)?, name))
}

/// The same, even if the directory may only be entered and not read. It cannot be synced then.
pub fn reach(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    match (parent(path), path.parent(), path.file_name()) {
        (Err(error), Some(dir), Some(name)) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok((open(dir, OFlags::PATH | OFlags::DIRECTORY)?, name))
        }
        (found, ..) => found,
    }
}

/// Opens what has a name in a directory.
pub fn open_at(dir: impl AsFd, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

/// What has a name in a directory, if anything.
pub fn stat(dir: impl AsFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The names in an open directory, in the order of their bytes.
pub fn names(dir: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_bytes().to_owned();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(&name).to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Its kind.
pub fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Its permission bits.
pub fn mode(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

/// When its content last changed, in nanoseconds of the Unix epoch.
pub fn mtime_ns(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec)
}

/// When anything about it last changed, in nanoseconds of the Unix epoch.
pub fn ctime_ns(stat: &Stat) -> i128 {
    i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec)
}

/// Its size.
pub fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Sets the permission bits of a file or directory, even one that may not be opened.
pub fn chmod(dir: impl AsFd, name: &OsStr, mode: u32) -> io::Result<()> {
    let held = open_at(dir, name, OFlags::PATH)?;
    Ok(rustix::fs::chmod(held_path(held.as_fd()), Mode::from_raw_mode(mode))?)
}

/// A path to exactly what a descriptor holds, for the calls that take no `O_PATH` descriptor.
pub(super) fn held_path(held: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}
