//! Where downloads land, and how they come out: a browser writes into a layer of its own; what it has finished is
//! copied to the session's directory, bounded and under a plain name.

use crate::kept::KeptLimits;
use crate::tool::Staging;
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many files a session's directory may hold.
const FILES_MAX: usize = 200;
/// The longest name that a file gets.
const NAME_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct Stash {
    staging: Arc<Staging>,
    seen: PathBuf,
    upper: PathBuf,
    dir: PathBuf,
    most: u64,
    room: Room,
}

/// Where what is kept lies, and how much of it may.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) data_dir: PathBuf,
    pub(super) limits: KeptLimits,
}

impl Stash {
    pub(super) fn new(
        staging: Arc<Staging>,
        seen: PathBuf,
        upper: PathBuf,
        room: Room,
        session: &str,
        most: u64,
    ) -> Self {
        let dir = room.data_dir.join("downloads").join(plain(session));
        Self { staging, seen, upper, dir, most, room }
    }

    /// What has to live as long as the browser.
    pub(super) fn staging(&self) -> Arc<Staging> {
        Arc::clone(&self.staging)
    }

    /// The directory as the browser knows it.
    pub(super) fn seen(&self) -> &Path {
        &self.seen
    }

    /// Takes a finished download out. Returns where it is and how large.
    pub(super) fn take(&self, guid: &str, name: &str) -> Result<(PathBuf, u64), CallError> {
        let failed = |what: &str, error: std::io::Error| CallError::failed(format!("{what}: {error}"));
        if !guid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(CallError::failed("the browser names a file that it cannot have written"));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let from = rustix::fs::open(self.upper.join(guid), flags, Mode::empty());
        let from = File::from(from.map_err(|error| failed("the download cannot be read", error.into()))?);
        let size = from.metadata().ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len());
        let Some(size) = size.filter(|size| *size <= self.most) else {
            return Err(CallError::failed("the download is not a file of an allowed size"));
        };
        self.room.limits.make_room(&self.room.data_dir, size)?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(|e| failed("downloads", e))?;
        let there = std::fs::read_dir(&self.dir).map_err(|error| failed("downloads", error))?.take(FILES_MAX).count();
        if there >= FILES_MAX {
            return Err(CallError::failed(format!("{} holds {FILES_MAX} files already", self.dir.display()))
                .hint("remove those that are not needed"));
        }
        let (mut to, path) = self.fresh(name).map_err(|error| failed("the download cannot be kept", error))?;
        let copied = std::io::copy(&mut from.take(self.most), &mut to).and_then(|bytes| to.flush().map(|()| bytes));
        match copied {
            Ok(bytes) => Ok((path, bytes)),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(failed("the download cannot be kept", error))
            }
        }
    }

    /// A file that was not there before, as near to this name as can be.
    fn fresh(&self, name: &str) -> std::io::Result<(File, PathBuf)> {
        let name = plain(name);
        let (stem, end) =
            name.rsplit_once('.').map_or((name.as_str(), String::new()), |(stem, end)| (stem, format!(".{end}")));
        let mut taken = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        for number in 0..=FILES_MAX {
            let name = if number == 0 { name.clone() } else { format!("{stem}-{number}{end}") };
            let path = self.dir.join(name);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((file, path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => taken = error,
                Err(error) => return Err(error),
            }
        }
        Err(taken)
    }
}

/// A name that is a name and nothing else: no directory, no dot at its start, no odd letters. What had to be changed
/// gets a mark by which it stays apart from others.
fn plain(name: &str) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let kept: String = cut(&inert(name), NAME_MAX).chars().map(|c| if fine(c) { c } else { '_' }).collect();
    let kept = kept.trim_start_matches('.');
    if kept == name && !kept.is_empty() {
        return kept.to_owned();
    }
    let mark: String = Sha256::digest(name.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let (stem, end) = kept.rsplit_once('.').map_or((kept, String::new()), |(stem, end)| (stem, format!(".{end}")));
    format!("{stem}-{mark}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_only_a_name() {
        assert_eq!(plain("report.pdf"), "report.pdf");
        assert_eq!(plain("default"), "default");
        for odd in ["../../etc/passwd", ".bashrc", "", "a b.txt", "x\u{202e}fdp.exe", "/abs", "..", &"n".repeat(300)] {
            let name = plain(odd);
            assert!(
                !name.is_empty() && !name.starts_with('.') && !name.contains('/') && name.len() < 130,
                "{odd}: {name}"
            );
            assert_ne!(name, odd);
        }
        assert_ne!(plain("a/b"), plain("a_b"), "two sessions never share a directory");
    }

    #[test]
    fn a_download_comes_out_once_per_name_and_only_if_it_is_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let staging = Staging::create(dir.path(), &crate::new_call_id()).unwrap();
        let upper = dir.path().join("upper");
        std::fs::create_dir(&upper).unwrap();
        let stash = Stash::new(
            staging,
            dir.path().join("seen"),
            upper.clone(),
            Room { data_dir: dir.path().join("out"), limits: KeptLimits::default() },
            "s",
            10,
        );
        std::fs::write(upper.join("a-1"), "hello").unwrap();
        std::fs::write(upper.join("a-2"), "much too large").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", upper.join("a-3")).unwrap();
        let (first, bytes) = stash.take("a-1", "x.txt").unwrap();
        let (second, _) = stash.take("a-1", "x.txt").unwrap();
        assert_eq!((first, bytes), (dir.path().join("out/downloads/s/x.txt"), 5));
        assert_eq!(second, dir.path().join("out/downloads/s/x-1.txt"));
        for bad in ["a-2", "a-3", "a-4", "../upper/a-1"] {
            assert!(stash.take(bad, "y.txt").is_err(), "{bad}");
        }
    }
}
