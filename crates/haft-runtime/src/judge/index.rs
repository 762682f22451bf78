//! The part of a git index that matters here: which files it tracks, and which of its entries are repositories of their own.

use std::path::{Path, PathBuf};

/// The largest index that is read.
const SIZE_MAX: u64 = 64 << 20;
/// The mode of an entry that is a repository.
const REPOSITORY: u32 = 0o160_000;

/// An entry of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Where it is in the work tree.
    pub(crate) path: PathBuf,
    /// What it is.
    mode: u32,
    /// When the file had been changed when git last looked: seconds and nanoseconds, cut as git cuts them.
    changed: (u32, u32),
    /// How long it was then, cut the same way.
    length: u32,
}

impl IndexEntry {
    /// Whether the file may hold something else than the index knows, going by time and length as git does.
    pub(crate) fn has_changed_in(&self, tree: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let Ok(meta) = std::fs::symlink_metadata(tree.join(&self.path)) else { return false };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "git stores the low 32 bits")]
        let now = ((meta.mtime() as u32, meta.mtime_nsec() as u32), meta.size() as u32);
        now != (self.changed, self.length)
    }
}

/// The entries that are repositories; none if the index is not understood. No index has no entries.
pub(crate) fn nested(index: &Path) -> Option<Vec<PathBuf>> {
    let repositories = files(index)?.into_iter().filter(|entry| entry.mode == REPOSITORY);
    Some(repositories.map(|entry| entry.path).collect())
}

/// All entries; none if the index is not understood. No index has no entries.
pub(crate) fn files(index: &Path) -> Option<Vec<IndexEntry>> {
    match std::fs::metadata(index) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(Vec::new()),
        Ok(meta) if meta.len() <= SIZE_MAX => {}
        _ => return None,
    }
    let bytes = std::fs::read(index).ok()?;
    // The checksum at the end tells how long hashes are; both lengths are tried.
    entries(&bytes, 20).or_else(|| entries(&bytes, 32))
}

fn entries(bytes: &[u8], hash: usize) -> Option<Vec<IndexEntry>> {
    use std::os::unix::ffi::OsStrExt;
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if bytes.get(..4)? != b"DIRC" || !matches!(version, 2 | 3) {
        return None;
    }
    let (mut found, mut at) = (Vec::new(), 12);
    for _ in 0..number(8)? {
        let mode = number(at + 24)?;
        // Only these kinds of entries exist: anything else means that the length is wrong.
        if !matches!(mode, 0o100_644 | 0o100_755 | 0o100_664 | 0o120_000 | 0o040_000 | REPOSITORY) {
            return None;
        }
        let flags = at + 40 + hash;
        let extended = bytes.get(flags)? & 0x40 != 0;
        let name = flags + if extended { 4 } else { 2 };
        let length = bytes.get(name..)?.iter().position(|byte| *byte == 0)?;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(bytes.get(name..name + length)?));
        let changed = (number(at + 8)?, number(at + 12)?);
        found.push(IndexEntry { path, mode, changed, length: number(at + 36)? });
        // Entries are filled up to a multiple of eight, with at least one NUL.
        at += (name - at + length + 8) & !7;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn repositories_in_a_repository_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let git = |at: &str, args: &[&str]| {
            let done = Command::new("git").arg("-C").arg(dir.path().join(at)).args(args).output().unwrap();
            assert!(done.status.success(), "{args:?} {}", String::from_utf8_lossy(&done.stderr));
        };
        git(".", &["init", "-q"]);
        assert_eq!(nested(&dir.path().join(".git/index")), Some(Vec::new()));
        for name in ["a", "much/deeper/than/that"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("file"), "x").unwrap();
        }
        git(".", &["init", "-q", "sub"]);
        git("sub", &["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"]);
        git(".", &["-c", "advice.addEmbeddedRepo=false", "add", "."]);
        assert_eq!(nested(&dir.path().join(".git/index")), Some(vec![PathBuf::from("sub")]));
        std::fs::write(dir.path().join("broken"), b"DIRC\0\0\0\x09xxxx").unwrap();
        assert_eq!(nested(&dir.path().join("broken")), None);
    }
}
