//! Extended attributes, among them access control lists.

use super::at;
use super::clean::MARKS;
use rustix::fs::{OFlags, XattrFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Attributes that an owner without privileges can set: `user.*` and access control lists.
const USER_SETTABLE: [&str; 2] = ["user.", "system.posix_acl_"];

/// The extended attributes of an open file, also of one that was opened with `O_PATH`.
pub fn attributes(held: BorrowedFd<'_>) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let path = at::held_path(held);
    let mut found = BTreeMap::new();
    for name in names(&path)? {
        let value = value(&path, &name).map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("its attribute {name} cannot be read: {error}"))
        })?;
        found.extend(value.map(|value| (name, value)));
    }
    Ok(found)
}

/// The names of the attributes that a path has.
fn names(path: &str) -> io::Result<BTreeSet<String>> {
    let mut list = vec![0; 1024];
    let length = loop {
        match rustix::fs::listxattr(path, list.as_mut_slice()) {
            Ok(length) => break length,
            Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(BTreeSet::new()),
            // The kernel gives at most 64 KiB.
            Err(Errno::RANGE) if list.len() < 1 << 20 => list.resize(list.len() * 8, 0),
            Err(error) => return Err(error.into()),
        }
    };
    let names = list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| std::str::from_utf8(name).ok()).map(str::to_owned).collect())
}

/// The value of an attribute; none if somebody took it off since its name was listed.
fn value(path: &str, name: &str) -> Result<Option<Vec<u8>>, Errno> {
    let mut value = vec![0; 256];
    loop {
        match rustix::fs::getxattr(path, name, value.as_mut_slice()) {
            Ok(length) => {
                value.truncate(length);
                value.shrink_to_fit();
                return Ok(Some(value));
            }
            Err(Errno::RANGE) if value.len() < 1 << 20 => value.resize(value.len() * 16, 0),
            Err(Errno::NODATA) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Whether the file or directory of a name has the same attributes in both layers, but for those of the overlay itself. What may
/// not be read is not compared.
pub(super) fn have_same_attributes(
    name: &OsStr,
    upper_dir: BorrowedFd<'_>,
    lower_dir: BorrowedFd<'_>,
) -> io::Result<bool> {
    let [upper, lower] = [upper_dir, lower_dir].map(|dir| at::open_at(dir, name, OFlags::PATH));
    let (upper, lower) = (upper?, lower?);
    let [upper, lower] = [&upper, &lower].map(|held| at::held_path(held.as_fd()));
    let starts = |name: &str, with: &[&str]| with.iter().any(|start| name.starts_with(start));
    let settable = |path: &str| -> io::Result<BTreeSet<String>> {
        let mut names = names(path)?;
        names.retain(|name| starts(name, &USER_SETTABLE) && !starts(name, &MARKS));
        Ok(names)
    };
    let names = settable(&upper)?;
    if names != settable(&lower)? {
        return Ok(false);
    }
    for name in &names {
        match (value(&upper, name), value(&lower, name)) {
            (Err(Errno::ACCESS | Errno::PERM), _) | (_, Err(Errno::ACCESS | Errno::PERM)) => {}
            (upper, lower) => {
                if upper? != lower? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// Linux keeps an access control list in an attribute of this name.
pub const ACCESS_LIST: &str = "system.posix_acl_access";
/// The tags of entries for a user and for a group that are named.
const NAMED: [u16; 2] = [0x02, 0x08];

/// Gives a file in the upper layer the access control list of the file that it replaces, if the command could not: in its
/// namespace the users that the list names do not exist. Without the list the group would have what it allows at the most. False
/// if there was nothing to do.
pub(super) fn keep_access_list(name: &OsStr, upper_dir: BorrowedFd<'_>, lower_dir: BorrowedFd<'_>) -> io::Result<bool> {
    let upper = at::open_at(upper_dir, name, OFlags::PATH)?;
    let lower = at::open_at(lower_dir, name, OFlags::PATH)?;
    let [upper, lower] = [&upper, &lower].map(|held| at::held_path(held.as_fd()));
    let list = |path: &str| match value(path, ACCESS_LIST) {
        Err(Errno::NOTSUP) => Ok(None),
        list => list,
    };
    let Some(list) = list(&lower)?.filter(|list| names_strangers(list)) else { return Ok(false) };
    if value(&upper, ACCESS_LIST)?.is_some() {
        return Ok(false);
    }
    rustix::fs::setxattr(&upper, ACCESS_LIST, &list, XattrFlags::empty())?;
    Ok(true)
}

/// Whether an access control list names anybody but the user and the group that haft runs as.
fn names_strangers(list: &[u8]) -> bool {
    let own = [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()];
    // Behind the version: a tag, permissions and a number for each entry.
    list.get(4..).unwrap_or_default().chunks_exact(8).any(|entry| {
        let tag = u16::from_le_bytes([entry[0], entry[1]]);
        let number = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        NAMED.iter().zip(own).any(|(named, own)| tag == *named && number != own)
    })
}
