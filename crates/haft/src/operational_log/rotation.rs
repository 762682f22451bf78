//! A log file of bounded size that several processes write to.
//!
//! A process that finds the file full renames it to `….1`, that one to `….2`, and so on, under a lock; the others notice that
//! the name leads to another file and open that. Each line is one write at the end of the file, so lines do not mix.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How large a file may be.
pub(super) const FILE_MAX: u64 = 4 << 20;
/// How many there may be.
pub(super) const FILES: usize = 4;

/// The file that is written to.
pub(super) struct RotatingFile {
    path: PathBuf,
    file_max: u64,
    open: Option<File>,
    /// Whether somebody was told that it cannot be written.
    failed: bool,
}

impl RotatingFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file_max: FILE_MAX, open: None, failed: false }
    }

    /// Writes a line. Only the first failure in a row is an error: nobody is to be told with every line.
    pub(super) fn write(&mut self, line: &str) -> io::Result<()> {
        let written = self.try_write(line);
        let told = std::mem::replace(&mut self.failed, written.is_err());
        if told { Ok(()) } else { written }
    }

    fn try_write(&mut self, line: &str) -> io::Result<()> {
        let file = match self.open.take() {
            Some(file) if is_at(&file, &self.path)? => file,
            _ => open(&self.path)?,
        };
        let size = file.metadata()?.len();
        let file = if size >= self.file_max { self.rotated(file)? } else { file };
        // If rotation is stuck, lines are dropped at twice the limit rather than filling the disk.
        if file.metadata()?.len() < self.file_max * 2 {
            (&file).write_all(line.as_bytes())?;
        }
        self.open = Some(file);
        Ok(())
    }

    /// The next file, after this one is full. While another process rotates, this one goes on where it is.
    fn rotated(&self, full: File) -> io::Result<File> {
        let lock = options().open(numbered(&self.path, "lock"))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(full),
            // A file system without locks: two processes may then rotate at once, and lose old lines.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        if is_at(&full, &self.path)? {
            for number in (1..FILES - 1).rev() {
                let from = numbered(&self.path, &number.to_string());
                if from.exists() {
                    std::fs::rename(from, numbered(&self.path, &(number + 1).to_string()))?;
                }
            }
            std::fs::rename(&self.path, numbered(&self.path, "1"))?;
        }
        open(&self.path)
    }
}

fn numbered(path: &Path, number: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(number);
    name.into()
}

/// For the owner alone, and never through a link.
fn options() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    let no_follow = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK).bits();
    options.append(true).create(true).mode(0o600).custom_flags(no_follow.cast_signed());
    options
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let file = options().open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other(format!("{} is not a file", path.display())));
    }
    if about.permissions().mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Whether this is still the file of that name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "0123456789012345678901234567890123456789012345678\n";

    fn small(path: &Path) -> RotatingFile {
        RotatingFile { file_max: 1000, ..RotatingFile::new(path.to_owned()) }
    }

    fn sizes(dir: &Path) -> Vec<(String, u64)> {
        let mut sizes: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())
            })
            .collect();
        sizes.sort();
        sizes
    }

    #[test]
    fn the_log_is_private_and_bounded_however_many_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log/haft.log");
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut file = small(&path);
                std::thread::spawn(move || (0..500).for_each(|_| file.write(LINE).unwrap()))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let sizes = sizes(&dir.path().join("log"));
        let names: Vec<&str> = sizes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["haft.log", "haft.log.1", "haft.log.2", "haft.log.3", "haft.log.lock"]);
        assert!(sizes.iter().all(|(_, size)| *size <= 2000 + 4 * LINE.len() as u64), "{sizes:?}");
        for name in names {
            let file = dir.path().join("log").join(name);
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
            let text = std::fs::read_to_string(file).unwrap();
            assert!(text.split_inclusive('\n').all(|line| line == LINE), "{name}");
        }
    }

    #[test]
    fn a_link_in_place_of_the_log_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("haft.log"), dir.path().join("other"));
        std::fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let mut file = small(&path);
        assert!(file.write(LINE).is_err());
        assert!(file.write(LINE).is_ok(), "said once");
        assert_eq!(std::fs::read_to_string(other).unwrap(), "mine");
    }

    #[test]
    fn a_log_that_was_removed_or_opened_to_others_is_made_anew_and_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("haft.log");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mut file = small(&path);
        file.write(LINE).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
        file.write(LINE).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), LINE);
    }
}
