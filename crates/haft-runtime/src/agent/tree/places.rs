//! Where copies are kept, by the ids of their agents.

use super::failed;
use haft_core::CallError;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where a child's directory is.
pub(crate) fn place(data_dir: &Path, id: &str) -> PathBuf {
    let mut dir = data_dir.as_os_str().to_owned();
    dir.push("-worktrees");
    PathBuf::from(dir).join(id)
}

/// Where what is known of one is kept: among haft's own files, where no child can write.
pub(super) fn note_file(data_dir: &Path, id: &str) -> PathBuf {
    data_dir.join("worktrees").join(format!("{id}.json"))
}

/// An id that names nothing but one directory.
pub(super) fn plain_id(id: &str) -> Option<&str> {
    let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain.then_some(id)
}

pub(super) fn missing(id: &str) -> CallError {
    let shown = haft_core::preview::inert(id);
    CallError::not_found(format!("there is no worktree of an agent `{shown}`")).hint("agent.control lists agents")
}

/// The ids of all that are kept, with whatever is left of them.
pub(crate) fn ids(data_dir: &Path) -> BTreeSet<String> {
    let named = |dir: PathBuf| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.path().file_stem().and_then(OsStr::to_str).map(str::to_owned))
    };
    let all = named(place(data_dir, "")).chain(named(data_dir.join("worktrees")));
    all.filter(|id| plain_id(id).is_some()).collect()
}

/// Whether anything is left of one.
pub(crate) fn is_kept(data_dir: &Path, id: &str) -> bool {
    [place(data_dir, id), note_file(data_dir, id)].iter().any(|path| path.symlink_metadata().is_ok())
}

/// Throws away whatever is left of one, with or without a note. False if there was nothing.
pub(crate) fn remove(data_dir: &Path, id: &str) -> Result<bool, CallError> {
    let id = plain_id(id).ok_or_else(|| missing(id))?;
    take_away(&place(data_dir, id), &note_file(data_dir, id))
}

/// Takes a copy and its note away. False if there was neither.
pub(super) fn take_away(dir: &Path, file: &Path) -> Result<bool, CallError> {
    let there = |result: std::io::Result<()>, path: &Path| match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        result => result.map(|()| true).map_err(|error| failed(path, &error)),
    };
    // The note goes last: what is left after a failure is still known.
    let tree = there(std::fs::remove_dir_all(dir), dir)?;
    Ok(there(std::fs::remove_file(file), file)? || tree)
}
