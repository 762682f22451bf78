//! Whether a tool has written its secrets into files. The files stay as they are, so that they can be taken back
//! exactly; whoever called is told.

use super::Used;
use haft_core::change::Change;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How much is looked at, and in how many files. It is the tool's own doing: beyond that nobody looks.
const BYTES_MAX: u64 = 64 << 20;
const FILES_MAX: usize = 2_000;
/// How many files are named.
const NAMED_MAX: usize = 5;

impl Used {
    /// A warning that says which files now hold a secret; none if no file does. For worker threads.
    pub(crate) fn left_in(&self, changes: &[Change], shown: &dyn Fn(&Path) -> String) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let (mut room, mut files) = (BYTES_MAX, Vec::new());
        for change in changes {
            match change {
                Change::Write { path, content, .. } => files.extend(self.finds(content).then(|| path.clone())),
                Change::Place { path, staged, .. } => self.look(staged, path, &mut room, &mut files),
                Change::Move { .. } | Change::Remove { .. } | Change::Mode { .. } => {}
            }
        }
        let named: Vec<String> = files.iter().take(NAMED_MAX).map(|file| format!("`{}`", shown(file))).collect();
        let rest = files.len().saturating_sub(NAMED_MAX);
        let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
        let verb = if files.len() == 1 { "holds" } else { "hold" };
        (!files.is_empty()).then(|| format!("{}{rest} now {verb} a secret that the tool was given", named.join(", ")))
    }

    /// Looks into what stands ready at one place to be put at another.
    fn look(&self, staged: &Path, path: &Path, room: &mut u64, files: &mut Vec<PathBuf>) {
        let (mut left, mut seen) = (vec![(staged.to_owned(), path.to_owned())], 0);
        while let Some((staged, path)) = left.pop() {
            seen += 1;
            let Ok(meta) = std::fs::symlink_metadata(&staged) else { continue };
            if seen > FILES_MAX || *room == 0 {
                return;
            }
            if meta.is_dir() {
                let entries = std::fs::read_dir(&staged).into_iter().flatten().flatten();
                left.extend(entries.take(FILES_MAX).map(|entry| (entry.path(), path.join(entry.file_name()))));
            } else if meta.is_file() {
                let mut bytes = Vec::new();
                let read = std::fs::File::open(&staged).and_then(|file| file.take(*room).read_to_end(&mut bytes));
                *room = room.saturating_sub(bytes.len() as u64);
                files.extend((read.is_ok() && self.finds(&bytes)).then_some(path));
            }
        }
    }
}
