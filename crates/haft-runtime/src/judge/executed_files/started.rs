//! The files that a command runs, from its start to its end: whoever writes one meanwhile, or swaps it, is noticed.

use super::CHANGED;
use crate::file_stamp::FileStamp;
use haft_core::executed::{ChangedFile, described};
use haft_core::{CallError, path_text};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// More symbolic links than this are not followed on the way to one file.
const LINKS_MAX: usize = 40;

/// A file that a command runs, or a directory or symbolic link on the way to one, as it was when the command started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartedFile {
    /// Where it really is, as text that can be read back.
    pub(super) path: String,
    pub(super) stamp: FileStamp,
    /// The state of the directory that holds it. Only a directory has this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holder: Option<FileStamp>,
}

impl StartedFile {
    pub(super) fn file(path: &Path, stamp: FileStamp) -> Self {
        Self { path: path_text::store(path), stamp, holder: None }
    }

    /// A directory or symbolic link on the way to a file.
    fn on_the_way(path: &Path, meta: &Metadata) -> Self {
        let holder = path.parent().filter(|_| meta.is_dir()).and_then(FileStamp::of);
        Self { path: path_text::store(path), stamp: FileStamp::from(meta), holder }
    }

    /// Whether it still stands there, and no program has written or moved it since.
    ///
    /// A new entry changes the times of a directory as a rename does. Only a rename also changes the directory that holds
    /// it, so a changed directory in an unchanged one was not moved. What the command itself writes changes neither: it
    /// goes to the view.
    fn is_untouched(&self) -> bool {
        let path = path_text::load(&self.path);
        let Some(now) = FileStamp::of(&path) else { return false };
        let was_held = || path.parent().and_then(FileStamp::of) == self.holder;
        now == self.stamp || (self.holder.is_some() && now.is_same_file(&self.stamp) && was_held())
    }
}

/// The directories and symbolic links that lead to a file and lie below one of the roots (guards against TOCTOU: whoever
/// swaps one of them swaps the file, which itself stays as it was).
pub(super) fn way_to(path: &Path, roots: &[PathBuf]) -> Vec<StartedFile> {
    let mut parts: Vec<OsString> = path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let (mut way, mut at, mut links) = (Vec::new(), PathBuf::from("/"), 0);
    while let Some(part) = parts.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let Ok(meta) = std::fs::symlink_metadata(&next) else { break };
        let is_below = roots.iter().any(|root| next.starts_with(root) && next != *root);
        if is_below && (meta.is_dir() || meta.is_symlink()) {
            way.push(StartedFile::on_the_way(&next, &meta));
        }
        if !meta.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        let Some(to) = std::fs::read_link(&next).ok().filter(|_| links <= LINKS_MAX) else { break };
        parts.extend(to.components().rev().map(|part| part.as_os_str().to_owned()));
    }
    way
}

/// Refuses to keep what a command did if one of the files that it runs was written while it ran.
pub(crate) fn verify_untouched(started: &[StartedFile]) -> Result<(), CallError> {
    let touched = started.iter().filter(|file| !file.is_untouched());
    let changed: Vec<ChangedFile> = touched.map(written_again).collect();
    if changed.is_empty() { Ok(()) } else { Err(touched_error(&changed)) }
}

fn written_again(file: &StartedFile) -> ChangedFile {
    let now = if file.holder.is_some() { "moved, or another one in its place" } else { "written again" };
    ChangedFile { path: file.path.clone(), before: "as approved".to_owned(), now: now.to_owned() }
}

pub(super) fn touched_error(changed: &[ChangedFile]) -> CallError {
    let message = format!("what it runs was changed while it ran, so nothing of it is kept: {}", described(changed));
    CallError::conflict(message)
        .details(json!({ CHANGED: changed }))
        .hint("call again, while nobody writes these files")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was touched, told from the root, after something was done to a project with `sc/x.sh` and `cur -> sc`.
    fn touched_by(path: &str, deed: impl Fn(&Path)) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["sc", "sc.evil"] {
            std::fs::create_dir(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("x.sh"), name).unwrap();
        }
        std::os::unix::fs::symlink("sc", root.join("cur")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let way = way_to(&root.join(path), std::slice::from_ref(&root));
        deed(&root);
        let touched = way.iter().filter(|one| !one.is_untouched()).map(|one| path_text::load(&one.path));
        touched.map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn directory_or_link_swapped_and_swapped_back_is_touched() {
        let mv = |root: &Path, from: &str, to: &str| std::fs::rename(root.join(from), root.join(to)).unwrap();
        let swap = |root: &Path| {
            for (from, to) in [("sc", "sc.ok"), ("sc.evil", "sc"), ("sc", "sc.evil"), ("sc.ok", "sc")] {
                mv(root, from, to);
            }
        };
        let relink = |root: &Path| {
            for to in ["sc.evil", "sc"] {
                std::os::unix::fs::symlink(to, root.join("new")).unwrap();
                mv(root, "new", "cur");
            }
        };
        let write = |root: &Path| std::fs::write(root.join("sc/out.txt"), "").unwrap();
        assert_eq!(touched_by("sc/x.sh", swap), ["sc"]);
        assert_eq!(touched_by("cur/x.sh", swap), ["sc"]);
        assert_eq!(touched_by("sc/../cur/x.sh", relink), ["cur"]);
        assert_eq!(touched_by("cur/none.sh", swap), ["sc"], "what is not there is led to as well");
        assert_eq!(touched_by("sc/x.sh", write), [""; 0]);
        assert_eq!(touched_by("sc/x.sh", |root| std::fs::write(root.join("out.txt"), "").unwrap()), [""; 0]);
    }
}
