//! Where before-images are kept: in the vault, and of what is on another mount, in a directory of haft's own on that mount.
//!
//! A before-image is the file itself, moved away: nothing of it is copied, so nothing of it can be lost, and what somebody still
//! writes to it through an open descriptor is in the image. A file can be moved only within its mount.

use haft_sandbox::layer::{at, remove_all};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// In the vault, the list of a call's directories on other mounts.
const LIST: &str = "shelves";
/// What keeps version control away.
const IGNORE: &str = ".gitignore";

/// The name of the directory of before-images on another mount: one of each user.
pub(crate) fn shelf_name() -> String {
    format!("{}{}", haft_core::place::SHELF_PREFIX, rustix::process::geteuid().as_raw())
}

/// Whether a path is that of a before-image.
pub(crate) fn is_image(path: &Path, vault: &Path) -> bool {
    path.starts_with(vault)
        || path.iter().any(|name| name.as_bytes().starts_with(haft_core::place::SHELF_PREFIX.as_bytes()))
}

/// The directories of before-images that stand at or above a directory.
pub(crate) fn shelves_above(dir: &Path) -> Vec<PathBuf> {
    let name = shelf_name();
    dir.ancestors().map(|above| above.join(&name)).filter(|shelf| shelf.is_dir()).collect()
}

/// Where the steps of one call keep their before-images.
#[derive(Debug)]
pub(crate) struct Shelves {
    /// The name of the call.
    name: String,
    /// Its directory in the vault.
    home: PathBuf,
    home_mount: at::Mount,
    of_parent: BTreeMap<PathBuf, PathBuf>,
    of_mount: BTreeMap<at::Mount, PathBuf>,
}

impl Shelves {
    pub(crate) fn new(home: &Path, name: &str) -> io::Result<Self> {
        let home_mount = at::mount(at::open_dir(home)?)?;
        Ok(Self {
            name: name.to_owned(),
            home: home.to_owned(),
            home_mount,
            of_parent: BTreeMap::new(),
            of_mount: BTreeMap::new(),
        })
    }

    /// The directory for the before-image of what stands at a path: on the same mount, private, and there.
    pub(crate) fn for_path(&mut self, path: &Path) -> io::Result<PathBuf> {
        let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        if let Some(known) = self.of_parent.get(parent) {
            return Ok(known.clone());
        }
        // A directory that is yet to be made will be on the mount of the one it is made in.
        let existing = parent.ancestors().find(|dir| dir.symlink_metadata().is_ok()).ok_or(io::ErrorKind::NotFound)?;
        let mount = mount_of(existing)?;
        let images = match self.of_mount.get(&mount) {
            Some(known) => known.clone(),
            None if mount == self.home_mount => self.home.clone(),
            None => self.make(existing, mount)?,
        };
        self.of_mount.insert(mount, images.clone());
        self.of_parent.insert(parent.to_owned(), images.clone());
        Ok(images)
    }

    /// Makes a directory on another mount: as far up as haft may.
    fn make(&self, below: &Path, mount: at::Mount) -> io::Result<PathBuf> {
        let mut candidates: Vec<&Path> =
            below.ancestors().take_while(|dir| mount_of(dir).is_ok_and(|found| found == mount)).collect();
        candidates.reverse();
        let mut failed = io::Error::from(io::ErrorKind::PermissionDenied);
        for dir in candidates {
            match self.make_in(dir) {
                Ok(images) => {
                    self.note(&images)?;
                    return Ok(images);
                }
                Err(error) => failed = error,
            }
        }
        let why =
            format!("no directory for before-images can be made on the file system of {}: {failed}", below.display());
        Err(io::Error::new(failed.kind(), why))
    }

    fn make_in(&self, dir: &Path) -> io::Result<PathBuf> {
        let all = dir.join(shelf_name());
        match DirBuilder::new().mode(0o700).create(&all) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let meta = all.symlink_metadata()?;
        // In a directory that everybody may write, somebody else may have been first.
        if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o077 != 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} is not private", all.display())));
        }
        std::fs::write(all.join(IGNORE), "*\n")?;
        let own = all.join(&self.name);
        DirBuilder::new().recursive(true).mode(0o700).create(&own)?;
        Ok(own)
    }

    /// Writes down that a call has a directory there, so that it is removed with the call.
    fn note(&self, images: &Path) -> io::Result<()> {
        use std::io::Write;
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(self.home.join(LIST))?;
        // No path has a NUL in it.
        list.write_all(&[images.as_os_str().as_bytes(), b"\0"].concat())
    }
}

fn mount_of(dir: &Path) -> io::Result<at::Mount> {
    at::mount(at::open(dir, rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY)?)
}

/// Removes all that is kept for a call, wherever it is. `home` is its directory in the vault.
pub(crate) fn remove(home: &Path) -> io::Result<()> {
    for shelf in shelves_of(home) {
        remove_all(&shelf)?;
        if let Some(all) = shelf.parent() {
            remove_empty(all);
        }
    }
    remove_all(home)
}

/// The directories on other mounts of the call whose directory in the vault this is.
pub(crate) fn shelves_of(home: &Path) -> Vec<PathBuf> {
    let list = std::fs::read(home.join(LIST)).unwrap_or_default();
    let paths: BTreeSet<&[u8]> = list.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
    paths.into_iter().map(|path| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()))).collect()
}

/// Removes the directory of all calls if it keeps nothing any more.
fn remove_empty(all: &Path) {
    let is_empty = || {
        let mut names = std::fs::read_dir(all).into_iter().flatten().flatten();
        names.all(|entry| entry.file_name() == IGNORE)
    };
    if is_empty() && std::fs::remove_file(all.join(IGNORE)).is_ok() && std::fs::remove_dir(all).is_err() {
        // Another call came in between.
        let _ = std::fs::write(all.join(IGNORE), "*\n");
    }
}
