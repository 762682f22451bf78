//! What calls leave for people beside the store: attachments, downloads and whole outputs. They share one quota and one
//! age, so that no agent fills the disk; the oldest go first.

use haft_core::CallError;
use haft_core::preview::size;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where they lie, below the data directory.
const PLACES: [&str; 3] = [ATTACHMENTS, "downloads", "outputs"];
/// Where calls leave attachments, each in a directory of its own.
pub(crate) const ATTACHMENTS: &str = "attachments";
/// How many files there may be.
const FILES_MAX: usize = 5000;
/// What is younger is never removed: somebody may be about to look at it.
const FRESH: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLimits {
    /// For how long.
    pub age: Duration,
    /// How much of all of it together, in bytes.
    pub bytes: u64,
    /// For how long the audit log keeps what records say; always, if nothing is set.
    #[serde(default)]
    pub log: Option<Duration>,
}

impl Default for KeptLimits {
    fn default() -> Self {
        Self { age: DAY * 30, bytes: 2 << 30, log: None }
    }
}

/// One file that is kept.
struct File {
    made: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl KeptLimits {
    /// Makes room for so many bytes more in a data directory, or says why there is none.
    pub(crate) fn make_room(&self, data_dir: &Path, coming: u64) -> Result<(), CallError> {
        self.make_room_at(data_dir, coming, SystemTime::now())
    }

    fn make_room_at(&self, data_dir: &Path, coming: u64, now: SystemTime) -> Result<(), CallError> {
        let mut files: Vec<File> = PLACES.iter().flat_map(|place| below(&data_dir.join(place))).collect();
        files.sort_by_key(|file| file.made);
        let mut total = files.iter().map(|file| file.bytes).sum::<u64>().saturating_add(coming);
        let mut left = files.len();
        for file in files {
            let age = now.duration_since(file.made).unwrap_or_default();
            let wanted = age <= self.age && total <= self.bytes && left < FILES_MAX;
            if wanted || age < FRESH {
                break;
            }
            if std::fs::remove_file(&file.path).is_ok() {
                (total, left) = (total.saturating_sub(file.bytes), left - 1);
                // The directory of a call or session goes with its last file; where there are others, this fails.
                file.path.parent().map(std::fs::remove_dir);
            }
        }
        if total <= self.bytes && left < FILES_MAX {
            return Ok(());
        }
        let (held, most) = (readable(total.saturating_sub(coming)), readable(self.bytes));
        Err(CallError::failed(format!("{} holds {held} in {left} files, and may hold {most}", data_dir.display()))
            .hint("what is older than an hour was removed; remove more by hand, or raise `kept.max_total_bytes`"))
    }
}

fn readable(bytes: u64) -> String {
    size(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// The files in a directory and in those in it. Links are nobody's: nothing of ours is one.
fn below(dir: &Path) -> Vec<File> {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let kind = |entry: &std::fs::DirEntry| entry.file_type().ok();
    let deeper = |entry: std::fs::DirEntry| -> Vec<std::fs::DirEntry> {
        if kind(&entry).is_some_and(|kind| kind.is_dir()) { entries(&entry.path()).collect() } else { vec![entry] }
    };
    let files = entries(dir).flat_map(deeper).filter(|entry| kind(entry).is_some_and(|kind| kind.is_file()));
    let file = |entry: std::fs::DirEntry| {
        let meta = entry.metadata().ok()?;
        Some(File { made: meta.modified().ok()?, bytes: meta.len(), path: entry.path() })
    };
    files.filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data directory with files of an age in hours and a size.
    fn holding(files: &[(&str, u64, usize)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, hours, bytes) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, vec![0; *bytes]).unwrap();
            let made = SystemTime::now() - Duration::from_hours(*hours);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(made).unwrap();
        }
        dir
    }

    #[test]
    fn the_oldest_go_first_wherever_they_lie_and_what_is_fresh_stays() {
        let files = [
            ("attachments/c1/a.png", 5, 40),
            ("downloads/s/b.zip", 4, 40),
            ("outputs/c2.txt", 3, 40),
            ("outputs/c3.txt", 0, 40),
            ("undo/precious", 99, 400),
        ];
        let dir = holding(&files);
        let there = |path: &str| dir.path().join(path).exists();
        let limits = KeptLimits { age: DAY, bytes: 160, log: None };
        limits.make_room(dir.path(), 0).unwrap();
        assert!(files.iter().all(|(path, ..)| there(path)), "it fits");
        limits.make_room(dir.path(), 60).unwrap();
        assert!(!there("attachments/c1") && !there("downloads/s/b.zip") && there("outputs/c2.txt"));
        let error = limits.make_room(dir.path(), 150).unwrap_err();
        assert!(error.message.contains("may hold 160B"), "{}", error.message);
        assert!(!there("outputs/c2.txt") && there("outputs/c3.txt") && there("undo/precious"));
    }

    #[test]
    fn what_is_too_old_goes_even_where_there_is_room() {
        let dir = holding(&[("outputs/old.txt", 50, 1), ("outputs/new.txt", 40, 1)]);
        KeptLimits { age: Duration::from_hours(48), bytes: 1000, log: None }.make_room(dir.path(), 0).unwrap();
        assert!(!dir.path().join("outputs/old.txt").exists() && dir.path().join("outputs/new.txt").exists());
    }

    #[test]
    fn a_link_leads_nowhere() {
        let dir = holding(&[("elsewhere/mine.txt", 50, 10), ("outputs/x.txt", 50, 10)]);
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), dir.path().join("outputs/link")).unwrap();
        KeptLimits { age: DAY, bytes: 0, log: None }.make_room(dir.path(), 0).unwrap();
        assert!(dir.path().join("elsewhere/mine.txt").exists() && !dir.path().join("outputs/x.txt").exists());
    }
}
