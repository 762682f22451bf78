//! What a file has besides its name and its content: owner, group, mode, access control list and extended attributes.
//!
//! A file that is edited becomes another file under the same name, so all of this is given to the new one before it takes the
//! name. Access never widens: what cannot be kept is taken away, and if that cannot be done either, nothing is changed.

use haft_sandbox::layer::{ACCESS_LIST, at, attributes};
use rustix::fs::{Gid, Mode, OFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Attributes that vouch for a file's content. The kernel takes the first from every file that is written to.
const OF_CONTENT: [&str; 3] = ["security.capability", "security.ima", "security.evm"];

/// Those of them that the kernel writes when a file is closed.
const OF_KERNEL: [&str; 2] = ["security.ima", "security.evm"];

/// How many changed attributes of a file are shown.
const ATTRIBUTES_SHOWN_MAX: usize = 8;
/// How much of an attribute's name is shown.
const ATTRIBUTE_NAME_MAX: usize = 80;

/// A file's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMetadata {
    pub(crate) owner: u32,
    pub(crate) group: u32,
    pub(crate) mode: u32,
    pub(crate) attributes: BTreeMap<String, Vec<u8>>,
    is_sparse: bool,
}

impl FileMetadata {
    /// Of what has a name in a directory.
    pub(crate) fn read(dir: impl AsFd, name: &OsStr) -> io::Result<Self> {
        let held = at::open_at(dir, name, OFlags::PATH)?;
        Self::of(held.as_fd())
    }

    /// Of what stands at a path.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let (dir, name) = at::reach(path)?;
        Self::read(dir, name)
    }

    /// The attributes that a person may want to know of because they differ from those of an earlier version, a line each.
    pub(crate) fn changed_attributes(&self, before: &Self, file: &str) -> Vec<String> {
        let names: BTreeSet<&String> = before.attributes.keys().chain(self.attributes.keys()).collect();
        let told = names.into_iter().filter(|name| name.starts_with("user.") || *name == ACCESS_LIST);
        let lines = told.filter_map(|name| {
            let what = match (before.attributes.get(name), self.attributes.get(name)) {
                (old, new) if old == new => return None,
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            };
            if name == ACCESS_LIST {
                return Some(format!("access control list of {file}: {what}"));
            }
            let shown = haft_core::preview::cut(&haft_core::preview::inert(name), ATTRIBUTE_NAME_MAX);
            Some(format!("attribute {shown} of {file}: {what}"))
        });
        let mut lines: Vec<String> = lines.collect();
        let more = lines.len().saturating_sub(ATTRIBUTES_SHOWN_MAX);
        if more > 0 {
            lines.truncate(ATTRIBUTES_SHOWN_MAX);
            lines.push(format!("{more} more attributes of {file}"));
        }
        lines
    }

    /// Of an open file.
    pub(crate) fn of(held: BorrowedFd<'_>) -> io::Result<Self> {
        let stat = rustix::fs::fstat(held)?;
        Ok(Self {
            owner: stat.st_uid,
            group: stat.st_gid,
            mode: at::mode(&stat),
            attributes: attributes(held)?,
            is_sparse: is_sparse(&stat),
        })
    }

    /// What cannot be kept when this file is written anew, by the user that haft runs as.
    pub(crate) fn losses(&self) -> Vec<&'static str> {
        let mut losses = Vec::new();
        if self.attributes.keys().any(|name| OF_CONTENT.contains(&name.as_str())) {
            losses.push("has capabilities or a signature for its old content; they are dropped");
        }
        if !rustix::process::geteuid().is_root() {
            if self.owner != rustix::process::geteuid().as_raw() {
                losses.push("belongs to another user and will belong to you");
            }
            if !is_own_group(self.group) {
                losses.push("has a group that you are not in; it gets yours, which may do no more than everybody may");
            }
        }
        losses
    }

    /// Whether two files differ in nothing that anybody has given them.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let parts = |metadata: &Self| (metadata.owner, metadata.group, metadata.mode);
        parts(self) == parts(other) && self.given().eq(other.given())
    }

    /// The attributes but for those that the kernel itself renews.
    fn given(&self) -> impl Iterator<Item = (&String, &Vec<u8>)> {
        self.attributes.iter().filter(|(name, _)| !OF_KERNEL.contains(&name.as_str()))
    }

    /// Gives a new file this metadata, with another mode if there is one.
    pub(crate) fn give(&self, file: &File, mode: Option<u32>) -> io::Result<()> {
        let mut mode = mode.unwrap_or(self.mode);
        // Before the mode: changing the owner takes the right to run as somebody else away.
        if rustix::fs::fchown(file, Some(Uid::from_raw(self.owner)), Some(Gid::from_raw(self.group))).is_err() {
            mode &= !0o4000;
            if rustix::fs::fchown(file, None, Some(Gid::from_raw(self.group))).is_err() {
                if self.attributes.contains_key(ACCESS_LIST) {
                    let why =
                        "it has an access control list and a group that you are not in, so its access cannot be kept";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
                }
                // Another group gets no more than everybody has.
                mode = (mode & !0o2070) | (mode & ((mode & 0o007) << 3));
            }
        }
        for name in attributes(file.as_fd())?.keys().filter(|name| !self.attributes.contains_key(*name)) {
            // What the directory gave a new file, and the old one did not have. A label cannot be taken off.
            match rustix::fs::fremovexattr(file, name.as_str()) {
                Err(error) if !name.starts_with("security.") => return Err(unkept(name, error)),
                _ => {}
            }
        }
        for (name, value) in self.attributes.iter().filter(|(name, _)| !OF_CONTENT.contains(&name.as_str())) {
            let set = rustix::fs::fsetxattr(file, name.as_str(), value, XattrFlags::empty());
            set.map_err(|error| unkept(name, error))?;
        }
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
    }

    /// Writes content, with holes for zeros if the old file had holes.
    pub(crate) fn write(&self, file: &mut File, content: &[u8]) -> io::Result<()> {
        if self.is_sparse { write_sparse(file, content) } else { file.write_all(content) }
    }
}

fn unkept(name: &str, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("its attribute {name} cannot be kept: {error}"))
}

fn is_own_group(group: u32) -> bool {
    rustix::process::getegid().as_raw() == group
        || rustix::process::getgroups().is_ok_and(|groups| groups.iter().any(|own| own.as_raw() == group))
}

/// Whether a file takes less room than it is long.
pub(crate) fn is_sparse(stat: &Stat) -> bool {
    stat.st_blocks * 512 < stat.st_size
}

/// The length of the runs of zeros that become holes.
pub(crate) const HOLE: usize = 4096;

/// Writes content so that runs of zeros take no room.
pub(crate) fn write_sparse(file: &mut File, content: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    file.set_len(content.len() as u64)?;
    for (number, piece) in content.chunks(HOLE).enumerate() {
        if piece.iter().any(|byte| *byte != 0) {
            file.write_all_at(piece, (number * HOLE) as u64)?;
        }
    }
    Ok(())
}
