//! What a change does not keep, said before it is made.

use super::spot::Spot;
use super::{FileMetadata, Viewer, view};
use crate::ranked_changes::ChangeView;
use crate::undo::Vault;
use haft_core::change::{Change, State};
use haft_sandbox::layer::at;
use rustix::fs::FileType;
use std::io;
use std::path::Path;

/// How many files are named; a change of thousands would drown the question in them.
const NAMED_MAX: usize = 20;

/// The changes as they are shown before they are made: what is changed, what that does not keep, whether it can be undone, and
/// the diffs.
pub(crate) fn shown_before(changes: &[Change], vault: &Vault, viewer: Viewer<'_>) -> ChangeView {
    let mut notes = notes(changes, viewer.shown);
    // Whoever turned undo off knows.
    if let Some(gap) = vault.gap(changes).filter(|_| !vault.is_off()) {
        notes.push(format!("this cannot be undone: {gap}"));
    }
    view(changes, viewer, &notes)
}

/// What these changes do not keep of the files that they replace, a line each.
pub(crate) fn notes(changes: &[Change], shown: &dyn Fn(&Path) -> String) -> Vec<String> {
    let mut notes = Vec::new();
    let mut more = 0_usize;
    for change in changes {
        // What cannot be looked at cannot be changed either, and says so then.
        for note in of_change(change).unwrap_or_default() {
            if notes.len() < NAMED_MAX {
                notes.push(format!("{} {note}", shown(change.path())));
            } else {
                more += 1;
            }
        }
    }
    if more > 0 {
        notes.push(format!("and {more} more notes of this kind"));
    }
    notes
}

fn of_change(change: &Change) -> io::Result<Vec<&'static str>> {
    let mut notes = Vec::new();
    let (path, is_written) = match change {
        Change::Write { path, before: State::File { .. }, .. } => (path, true),
        Change::Place { path, before: State::File { .. }, .. } => (path, false),
        _ => return Ok(notes),
    };
    let spot = Spot::of(path)?;
    let Some(stat) = spot.stat()? else { return Ok(notes) };
    if at::kind(&stat) != FileType::RegularFile {
        return Ok(notes);
    }
    if stat.st_nlink > 1 {
        notes.push("has other hard links; they keep the old content");
    }
    if is_written {
        notes.extend(FileMetadata::read(&spot.dir, &spot.name)?.losses());
    }
    Ok(notes)
}
