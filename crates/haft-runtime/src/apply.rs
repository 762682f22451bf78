//! Applying file changes: all of them or none, and never over something that was not expected.

use crate::files;
use crate::undo::{self, Kept};
use haft_core::CallError;
use haft_core::change::{Change, State};
use haft_store::Sighting;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Checks that everything stands as each change expects it.
pub(crate) fn expect(changes: &[Change], shown: &dyn Fn(&Path) -> String) -> Result<(), CallError> {
    for change in changes {
        let (path, before) = match change {
            Change::Write { path, before, .. } | Change::Remove { path, before } => (path, before),
            Change::Move { from, to, before } => {
                expect_state(to, &State::Absent, shown)?;
                (from, before)
            }
        };
        expect_state(path, before, shown)?;
    }
    Ok(())
}

fn expect_state(path: &Path, expected: &State, shown: &dyn Fn(&Path) -> String) -> Result<(), CallError> {
    let now = files::state(path).map_err(|error| files::explain(&shown(path), &error))?;
    if now == *expected {
        return Ok(());
    }
    let what = match (expected, now) {
        (State::Absent, State::File { .. }) => "appeared",
        (State::File { .. }, State::Absent) => "disappeared",
        _ => "changed",
    };
    Err(CallError::conflict(format!("{} {what} in the meantime; nothing was changed", shown(path)))
        .hint("look again, then call again"))
}

/// Applies changes whose undo is kept. If one fails, those before it are taken back.
pub(crate) fn apply(changes: &[Change], kept: &Kept, shown: &dyn Fn(&Path) -> String) -> Result<(), CallError> {
    expect(changes, shown)?;
    for (done, change) in changes.iter().enumerate() {
        if let Err(error) = step(change) {
            let failed = files::explain(&shown(change.path()), &error);
            return Err(match undo::take_back(kept, done) {
                Ok(()) => failed,
                Err(why) => {
                    CallError::internal(format!("{failed}; and what was done before could not be taken back: {why}"))
                }
            });
        }
        crate::crash_point("applied");
    }
    Ok(())
}

/// One change. The runtime's last look at the file was a moment ago, in [`expect`].
fn step(change: &Change) -> std::io::Result<()> {
    match change {
        Change::Write { path, content, mode, .. } => {
            files::make_parents(path)?;
            files::replace(path, content, *mode)
        }
        Change::Move { from, to, .. } => {
            files::make_parents(to)?;
            files::rename(from, to)
        }
        Change::Remove { path, .. } => files::remove(path),
    }
}

/// A warning for each file that has other names: an atomic replacement gives this name the new content, and
/// the others keep the old.
pub(crate) fn hard_linked(changes: &[Change], shown: &dyn Fn(&Path) -> String) -> Vec<String> {
    let written =
        changes.iter().filter_map(|change| if let Change::Write { path, .. } = change { Some(path) } else { None });
    let linked = written.filter(|path| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.nlink() > 1));
    linked.map(|path| format!("{} had other hard links; they keep the old content", shown(path))).collect()
}

/// What the session now knows of each changed file.
pub(crate) fn sightings(changes: &[Change]) -> Vec<(PathBuf, Sighting)> {
    let known = |path: &Path, content: &[u8]| {
        let meta = std::fs::metadata(path).ok()?;
        Some((path.to_owned(), crate::seen::whole(content, files::mtime_ns(&meta))))
    };
    changes
        .iter()
        .filter_map(|change| match change {
            Change::Write { path, content, .. } => known(path, content),
            Change::Move { .. } | Change::Remove { .. } => None,
        })
        .collect()
}

/// The changes as a unified diff, as `git diff` would show them.
pub(crate) fn diff(changes: &[Change], shown: &dyn Fn(&Path) -> String) -> String {
    changes.iter().map(|change| one_diff(change, shown)).collect()
}

fn one_diff(change: &Change, shown: &dyn Fn(&Path) -> String) -> String {
    let old = |path: &Path, before: &State| match before {
        State::Absent => Vec::new(),
        State::File { .. } => files::load(path, "", files::LOAD_MAX).map(|(content, _)| content).unwrap_or_default(),
    };
    match change {
        Change::Write { path, content, before, mode } => {
            let name = shown(path);
            let mut text = text_diff(&old(path, before), content, &name, *before == State::Absent, false);
            if let (State::File { mode: was, .. }, Some(mode)) = (before, mode)
                && was != mode
            {
                text.push_str(&format!("mode of {name}: {was:o} -> {mode:o}\n"));
            }
            text
        }
        Change::Move { from, to, .. } => format!("rename {} -> {}\n", shown(from), shown(to)),
        Change::Remove { path, before } => text_diff(&old(path, before), b"", &shown(path), false, true),
    }
}

/// How long two texts are compared for the smallest diff; after that, a larger one will do.
const DIFF_TIME: Duration = Duration::from_millis(200);
/// Larger texts are not compared.
const DIFF_MAX: usize = 4 << 20;

/// A unified diff of two contents.
pub(crate) fn text_diff(old: &[u8], new: &[u8], name: &str, created: bool, removed: bool) -> String {
    let (from, to) = (
        if created { "/dev/null".to_owned() } else { format!("a/{name}") },
        if removed { "/dev/null".to_owned() } else { format!("b/{name}") },
    );
    match (std::str::from_utf8(old), std::str::from_utf8(new)) {
        (Ok(old), Ok(new)) if old.len().max(new.len()) > DIFF_MAX => {
            format!(
                "{from} and {to} differ ({} -> {} bytes; too large to compare line by line)\n",
                old.len(),
                new.len()
            )
        }
        (Ok(old), Ok(new)) => {
            let diff = similar::TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
            diff.unified_diff().context_radius(3).header(&from, &to).to_string()
        }
        _ => format!("binary files {from} and {to} differ ({} -> {} bytes)\n", old.len(), new.len()),
    }
}
