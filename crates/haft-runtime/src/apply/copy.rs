//! Copying things to another file system with all that belongs to them: owner, mode, access control lists, extended attributes,
//! times, holes, and the hard links among what is copied.

use super::metadata::{FileMetadata, HOLE, is_sparse};
use super::place::chmod_held;
use super::spot::Spot;
use haft_sandbox::faults;
use haft_sandbox::layer::at;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, Uid};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Copies a file, a link or a directory with everything in it to where nothing is. A link is copied and never followed. The
/// caller brings the copy onto the disk.
pub(crate) fn copy(from: &Spot, to: &Spot) -> io::Result<()> {
    Copying::default().copy(from, to)
}

/// The copies of one call. Names of one file that are copied one after the other are names of one file again.
#[derive(Default)]
pub(crate) struct Copying {
    /// Where the first of several names of a file was copied to. By path: of open directories there may be too many.
    linked: BTreeMap<(u64, u64), PathBuf>,
}

impl Copying {
    /// Copies one thing to where nothing is, as [`copy`] does.
    pub(crate) fn copy(&mut self, from: &Spot, to: &Spot) -> io::Result<()> {
        let stat = from.stat()?.ok_or(io::ErrorKind::NotFound)?;
        self.thing((from.dir.as_fd(), &from.name), (to.dir.as_fd(), &to.path), &stat)
    }

    /// Copies what has a name in a directory. The other directory is open, too; its path leads to where a copy can be linked.
    fn thing(
        &mut self,
        (from, name): (BorrowedFd<'_>, &OsStr),
        (to, path): (BorrowedFd<'_>, &Path),
        stat: &Stat,
    ) -> io::Result<()> {
        let new = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        match at::kind(stat) {
            FileType::RegularFile => return self.file((from, name), (to, path), stat),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(from, name, Vec::new())?;
                rustix::fs::symlinkat(target, to, new)?;
                let (owner, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
                // The owner of a link decides nothing but who may remove it from a sticky directory.
                let _ = rustix::fs::chownat(to, new, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW);
            }
            FileType::Directory => let_read(from, name, stat, || self.directory((from, name), (to, path)))?,
            _ => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "pipes, sockets and devices cannot be copied"));
            }
        }
        Ok(rustix::fs::utimensat(to, new, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn file(
        &mut self,
        (from, name): (BorrowedFd<'_>, &OsStr),
        (to, path): (BorrowedFd<'_>, &Path),
        stat: &Stat,
    ) -> io::Result<()> {
        let new = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let identity = (stat.st_dev, stat.st_ino);
        if let Some(first) = self.linked.get(&identity) {
            match rustix::fs::linkat(rustix::fs::CWD, first, to, new, AtFlags::empty()) {
                // The other copy is on another mount, out of reach, or has too many names: then this is a file of its own.
                Err(Errno::XDEV | Errno::NOENT | Errno::ACCESS | Errno::MLINK | Errno::NAMETOOLONG) => {}
                linked => return Ok(linked?),
            }
        }
        let source = let_read(from, name, stat, || at::open_at(from, name, OFlags::RDONLY | OFlags::NONBLOCK))?;
        let metadata = FileMetadata::read(from, name)?;
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Private until it is whole.
        let copy = File::from(rustix::fs::openat(to, new, create, Mode::from_raw_mode(0o600))?);
        let write = || {
            content(&mut File::from(source), &copy, is_sparse(stat))?;
            metadata.give(&copy, Some(at::mode(stat)))?;
            if faults::is_refused("futimens") {
                return Err(Errno::NOSYS.into());
            }
            Ok(rustix::fs::futimens(&copy, &times(stat))?)
        };
        write().inspect_err(|_: &io::Error| remove_part(&copy, to, new))?;
        if stat.st_nlink > 1 {
            self.linked.insert(identity, path.to_owned());
        }
        Ok(())
    }

    fn directory(
        &mut self,
        (from, name): (BorrowedFd<'_>, &OsStr),
        (to, path): (BorrowedFd<'_>, &Path),
    ) -> io::Result<()> {
        let new = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let source = at::open_at(from, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let stat = rustix::fs::fstat(&source)?;
        rustix::fs::mkdirat(to, new, Mode::from_raw_mode(0o700))?;
        let made = at::open_at(to, new, OFlags::RDONLY | OFlags::DIRECTORY)?;
        for inner in at::names(&source)? {
            let stat = at::stat(&source, &inner)?.ok_or(io::ErrorKind::NotFound)?;
            self.thing((source.as_fd(), &inner), (made.as_fd(), &path.join(&inner)), &stat)?;
        }
        FileMetadata::read(from, name)?.give(&File::from(made), Some(at::mode(&stat)))
    }
}

/// Removes a copy that was not finished, if it still has its name.
fn remove_part(copy: &File, dir: BorrowedFd<'_>, name: &OsStr) {
    let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
    let here = at::stat(dir, name).ok().flatten().map(identity);
    if here.is_some() && here == rustix::fs::fstat(copy).ok().map(identity) {
        let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
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
        // A read may end anywhere: holes begin where those of the file system do.
        let mut rest = &piece[..length];
        while !rest.is_empty() {
            let end = HOLE - usize::try_from(at).unwrap_or_default() % HOLE;
            let (block, more) = rest.split_at(end.min(rest.len()));
            if block.iter().any(|byte| *byte != 0) {
                copy.write_all_at(block, at)?;
            }
            at += block.len() as u64;
            rest = more;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(path: &Path) -> Spot {
        Spot::of(path).unwrap()
    }

    #[test]
    fn copy_that_fails_half_way_leaves_no_part() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::write(&from, "whole\n").unwrap();
        let refused = faults::refuse(&["futimens"]);
        assert!(copy(&spot(&from), &spot(&to)).is_err());
        assert!(!to.exists(), "its content was there, its times were not");
        drop(refused);
        // A file that says that it is a regular one, and cannot be read.
        let memory = PathBuf::from(format!("/proc/{}/mem", std::process::id()));
        assert!(copy(&spot(&memory), &spot(&to)).is_err());
        assert!(!to.exists());
        copy(&spot(&from), &spot(&to)).unwrap();
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "whole\n");
    }

    #[test]
    fn copy_that_fails_removes_nothing_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::write(&from, "ours").unwrap();
        std::fs::write(&to, "theirs").unwrap();
        assert!(copy(&spot(&from), &spot(&to)).is_err(), "a copy replaces nothing");
        // Somebody gives the name to another file while the copy is written.
        let copied = File::open(&from).unwrap();
        remove_part(&copied, spot(&to).dir.as_fd(), OsStr::new("to"));
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "theirs");
    }

    #[test]
    fn file_stays_where_its_move_by_copy_fails() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::write(&from, "whole\n").unwrap();
        let _refused = faults::refuse(&["renameat2", "linkat", "futimens"]);
        assert!(spot(&from).move_to(&spot(&to)).is_err());
        assert!(!to.exists());
        assert_eq!(std::fs::read_to_string(&from).unwrap(), "whole\n");
    }
}
