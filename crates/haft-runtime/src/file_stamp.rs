//! What tells one state of a file from another without reading the file.

use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device, inode, size and times of a file. A file that is swapped and swapped back has another stamp. A program that writes
/// through a shared mapping, or may set the clock, can give two contents the same stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
}

impl From<&Metadata> for FileStamp {
    fn from(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

impl FileStamp {
    /// The stamp of what stands at a path. Links are not followed.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        std::fs::symlink_metadata(path).ok().map(|meta| Self::from(&meta))
    }

    /// Whether both are states of one file.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether the file has been left alone for a while: clocks of file systems are coarse, and a file may change twice
    /// between two of their ticks.
    pub(crate) fn is_settled(self) -> bool {
        self.changed.0 + 1 < crate::now_ms() / 1000
    }
}
