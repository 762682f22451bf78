//! Extended attributes, among them access control lists.

use super::at;
use super::clean::MARKS;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Attributes that an owner without privileges can set: `user.*` and access control lists.
const USER_SETTABLE: [&str; 2] = ["user.", "system.posix_acl_"];

/// The extended attributes of an open file, also of one that was opened with `O_PATH`.
pub fn attributes(held: BorrowedFd<'_>) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let path = at::held_path(held);
    let mut list = vec![0; 1024];
    let length = loop {
        match rustix::fs::listxattr(&path, list.as_mut_slice()) {
            Ok(length) => break length,
            Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(BTreeMap::new()),
            // The kernel gives at most 64 KiB.
            Err(Errno::RANGE) if list.len() < 1 << 20 => list.resize(list.len() * 8, 0),
            Err(error) => return Err(error.into()),
        }
    };
    let mut found = BTreeMap::new();
    for name in list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let mut value = vec![0; 256];
        let length = loop {
            match rustix::fs::getxattr(&path, name, value.as_mut_slice()) {
                Ok(length) => break Some(length),
                Err(Errno::RANGE) if value.len() < 1 << 20 => value.resize(value.len() * 16, 0),
                // Somebody took it off since it was listed.
                Err(Errno::NODATA) => break None,
                Err(error) => {
                    let error = io::Error::from(error);
                    return Err(io::Error::new(error.kind(), format!("its attribute {name} cannot be read: {error}")));
                }
            }
        };
        if let Some(length) = length {
            value.truncate(length);
            found.insert(name.to_owned(), value);
        }
    }
    Ok(found)
}

/// Whether the file or directory of a name has the same attributes in both layers, but for those of the overlay itself.
pub(super) fn have_same_attributes(
    name: &OsStr,
    upper_dir: BorrowedFd<'_>,
    lower_dir: BorrowedFd<'_>,
) -> io::Result<bool> {
    let settable = |dir: BorrowedFd<'_>| -> io::Result<BTreeMap<String, Vec<u8>>> {
        let mut all = attributes(at::open_at(dir, name, OFlags::PATH)?.as_fd())?;
        let starts = |name: &str, with: &[&str]| with.iter().any(|start| name.starts_with(start));
        all.retain(|name, _| starts(name, &USER_SETTABLE) && !starts(name, &MARKS));
        Ok(all)
    };
    Ok(settable(upper_dir)? == settable(lower_dir)?)
}
