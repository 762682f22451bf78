//! Files by directory descriptor and name. Nothing here ever follows a symbolic link: a path that was
//! swapped for one in the meantime is an error and not a way out.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Opens a path, if no link is on the way.
pub fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let opened = if crate::faults::is_refused("openat2") {
        Err(Errno::NOSYS)
    } else {
        rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
    };
    match opened {
        // Kernels before 5.6, and some container filters, have no openat2.
        Err(Errno::NOSYS | Errno::PERM) => open_by_component(path, flags),
        opened => Ok(opened?),
    }
}

/// Opens a path below a directory, if no link is on the way and nothing leads out of the directory.
pub fn open_beneath(dir: impl AsFd, inside: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = if crate::faults::is_refused("openat2") {
        Err(Errno::NOSYS)
    } else {
        rustix::fs::openat2(&dir, inside, flags, Mode::empty(), resolve)
    };
    match opened {
        Err(Errno::NOSYS | Errno::PERM) => beneath_by_component(dir.as_fd(), inside, flags),
        opened => Ok(opened?),
    }
}

/// The same one component at a time. `..` goes back to the directory that was opened before, which stays the one it is
/// wherever it is moved meanwhile; before the first one there is nothing to go back to.
fn beneath_by_component(dir: BorrowedFd<'_>, inside: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let named = inside.as_os_str().as_bytes();
    let is_directory = named.ends_with(b"/") || named.ends_with(b"/.");
    let last_flags = if is_directory { flags | OFlags::DIRECTORY } else { flags };
    let mut opened: Vec<OwnedFd> = Vec::new();
    let mut components = inside.components().peekable();
    if components.peek().is_none() {
        return Err(Errno::NOENT.into());
    }
    while let Some(component) = components.next() {
        let is_last = components.peek().is_none();
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => OsStr::new("."),
            Component::ParentDir if opened.pop().is_some() => OsStr::new("."),
            _ => return Err(Errno::XDEV.into()),
        };
        let from = opened.last().map_or(dir, AsFd::as_fd);
        let flags = if is_last { last_flags | OFlags::NOFOLLOW } else { step };
        let found = rustix::fs::openat(from, name, flags, Mode::empty());
        let found = found.map_err(|error| link_error(Some(from), name, error))?;
        // With O_PATH, O_NOFOLLOW opens a link instead of refusing it.
        if flags.contains(OFlags::PATH) && kind(&rustix::fs::fstat(&found)?) == FileType::Symlink {
            return Err(Errno::LOOP.into());
        }
        if is_last {
            return Ok(found);
        }
        if name != "." {
            opened.push(found);
        }
    }
    Err(Errno::NOENT.into())
}

/// Opens a path one component at a time, each in the directory that was opened before it, and each without following a
/// link. Nothing that is renamed or linked meanwhile can lead elsewhere: a directory that is open stays the one it is.
fn open_by_component(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // As the kernel sees it, `name/` and `name/.` say that a name is a directory.
    let named = path.as_os_str().as_bytes();
    let is_directory = named.ends_with(b"/") || named.ends_with(b"/.");
    let last_flags = if is_directory { flags | OFlags::DIRECTORY } else { flags };
    let mut dir: Option<OwnedFd> = None;
    let mut components = path.components().peekable();
    if components.peek().is_none() {
        return Err(Errno::NOENT.into());
    }
    while let Some(component) = components.next() {
        let name = match component {
            Component::RootDir => OsStr::new("/"),
            Component::CurDir => OsStr::new("."),
            Component::ParentDir => OsStr::new(".."),
            Component::Normal(name) => name,
            Component::Prefix(_) => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let flags = if components.peek().is_some() { step } else { last_flags | OFlags::NOFOLLOW };
        let opened = match &dir {
            Some(dir) => rustix::fs::openat(dir, name, flags, Mode::empty()),
            None => rustix::fs::openat(CWD, name, flags, Mode::empty()),
        };
        let opened = opened.map_err(|error| link_error(dir.as_ref().map(AsFd::as_fd), name, error))?;
        // With O_PATH, O_NOFOLLOW opens a link instead of refusing it.
        if flags.contains(OFlags::PATH) && kind(&rustix::fs::fstat(&opened)?) == FileType::Symlink {
            return Err(Errno::LOOP.into());
        }
        dir = Some(opened);
    }
    dir.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// A link where a directory has to be fails as "not a directory" here, and as "too many links" with openat2.
fn link_error(dir: Option<BorrowedFd<'_>>, name: &OsStr, error: Errno) -> io::Error {
    let is_link = || {
        let stat = match dir {
            Some(dir) => rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW),
            None => rustix::fs::statat(CWD, name, AtFlags::SYMLINK_NOFOLLOW),
        };
        stat.is_ok_and(|stat| kind(&stat) == FileType::Symlink)
    };
    if error == Errno::NOTDIR && is_link() { Errno::LOOP.into() } else { error.into() }
}

/// A mount: within one, and only there, a name can be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mount {
    device: u64,
    id: u64,
}

/// The mount that an open directory is on.
pub fn mount(dir: impl AsFd) -> io::Result<Mount> {
    let device = rustix::fs::fstat(&dir)?.st_dev;
    // Kernels before 5.8 do not number mounts here: two mounts of one device then differ when a rename fails.
    let found = rustix::fs::statx(&dir, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
    let id = found.ok().filter(|found| found.stx_mask & StatxFlags::MNT_ID.bits() != 0).map(|found| found.stx_mnt_id);
    Ok(Mount { device, id: id.unwrap_or_default() })
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
pub fn held_path(held: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// What an attempt to open says: the file that was opened, or the error.
    fn said(opened: io::Result<OwnedFd>) -> Result<(u64, u64), Option<i32>> {
        match opened {
            Ok(fd) => rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).map_err(|_| None),
            Err(error) => Err(error.raw_os_error()),
        }
    }

    #[test]
    fn opening_by_component_agrees_with_openat2() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "x").unwrap();
        std::fs::write(root.join("file"), "x").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("b/file", root.join("a/to-file")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("/", root.join("a/root")).unwrap();
        let parts = ["a", "b", "file", "link", "to-file", "dangling", "root", "missing", "..", "."];
        let mut paths: Vec<String> = vec![String::new(), "/".to_owned(), ".".to_owned()];
        for one in parts {
            for two in parts {
                for three in parts {
                    paths.push(format!("{}/{one}/{two}/{three}", root.display()));
                }
                paths.push(format!("{}/{one}/{two}/", root.display()));
                paths.push(format!("{}/{one}/{two}", root.display()));
            }
        }
        let every =
            [OFlags::RDONLY, OFlags::RDONLY | OFlags::DIRECTORY, OFlags::PATH, OFlags::PATH | OFlags::DIRECTORY];
        for path in paths.iter().map(Path::new) {
            for flags in every.map(|flags| flags | OFlags::CLOEXEC) {
                let kernel = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
                let ours = said(open_by_component(path, flags));
                assert_eq!(ours, said(kernel.map_err(io::Error::from)), "{} {flags:?}", path.display());
            }
        }
    }

    #[test]
    fn opening_beneath_by_component_agrees_with_openat2() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "x").unwrap();
        std::fs::write(root.join("../file"), "outside").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("b/file", root.join("a/to-file")).unwrap();
        symlink("../..", root.join("a/out")).unwrap();
        let open_root = open_dir(&root).unwrap();
        let parts = ["a", "b", "file", "link", "to-file", "out", "missing", "..", ".", ""];
        let mut paths = vec![String::new(), "/".to_owned(), root.join("a").display().to_string()];
        for one in parts {
            for two in parts {
                for three in parts {
                    paths.push(format!("{one}/{two}/{three}"));
                }
            }
            paths.push(one.to_owned());
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        for path in paths.iter().map(Path::new) {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let kernel = rustix::fs::openat2(&open_root, path, flags, Mode::empty(), resolve);
            let ours = said(beneath_by_component(open_root.as_fd(), path, flags));
            assert_eq!(ours, said(kernel.map_err(io::Error::from)), "{}", path.display());
        }
    }

    #[cfg(debug_assertions)]
    #[test]
    fn refused_openat2_does_not_let_a_link_in_the_middle_pass() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("swapped")).unwrap();
        let _refused = crate::faults::refuse(&["openat2"]);
        assert!(open(&root.join("real/file"), OFlags::RDONLY).is_ok());
        let error = open(&root.join("swapped/file"), OFlags::RDONLY).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
    }
}
