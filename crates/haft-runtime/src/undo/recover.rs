//! Repairing what a process left when it died in the middle of a step: files that it had taken from their places.

use super::invert::{is_left, parked_file, same};
use super::keep::BACK;
use crate::apply::{Spot, StepError, coming, shelves_of};
use haft_core::change::State;
use haft_sandbox::layer::stands;
use haft_store::UndoStep;
use std::path::Path;

/// Repairs one step. A file that was being removed becomes the image, if it is the expected one; otherwise it goes back to its
/// path. A file that an exchange or a move in several steps had parked goes back to its path. Nothing is replaced: where a path
/// is taken, the file stays where undo finds it.
pub(super) fn recover(number: usize, step: &UndoStep, images: &Path) {
    for dir in shelves_of(images).into_iter().chain([images.to_owned()]) {
        let (image, back) = (dir.join(number.to_string()), dir.join(BACK).join(number.to_string()));
        // The rollback came later.
        if step.before == State::Absent {
            finish_removal(step, &back, |removed| is_left(removed, step));
        }
        put_back(step, &back);
        if step.after == State::Absent && step.target.is_none() {
            finish_removal(step, &image, |removed| same(removed, &step.before));
        }
        put_back(step, &image);
    }
}

/// Puts a file back that has no name any more, if its path is free.
fn put_back(step: &UndoStep, image: &Path) {
    // A move in two steps first gives the file the image's own name.
    let moved = step.target.as_ref().filter(|target| is_free(target)).map(|_| image.to_owned());
    let nameless = parked_file(image).into_iter().chain(moved).find(|file| !is_free(file));
    let Some(file) = nameless.filter(|_| is_free(&step.path)) else { return };
    if move_to_free(&file, &step.path).is_err() {
        let (path, kept) = (step.path.display(), file.display());
        tracing::warn!(%path, %kept, "a file cannot be put back, and the process died that was changing it");
    }
}

/// Gives a file that was being removed the name of the image; or its path back, if it is another version than the expected one.
fn finish_removal(step: &UndoStep, image: &Path, is_expected: impl Fn(&State) -> bool) {
    let pending = image.with_file_name(coming(&image.file_name().unwrap_or_default().to_string_lossy()));
    let is_expected = match stands(&pending) {
        Ok(State::Absent) | Err(_) => return,
        Ok(state) => is_expected(&state),
    };
    if !is_expected && is_free(&step.path) && move_to_free(&pending, &step.path).is_ok() {
        return;
    }
    // Under this name undo looks for an image only where the step has one.
    if is_free(image) && (is_expected || step.image.is_some()) {
        // If this fails, undo finds it under the name that it has.
        let _ = std::fs::rename(pending, image);
    }
}

fn is_free(path: &Path) -> bool {
    matches!(stands(path), Ok(State::Absent))
}

fn move_to_free(from: &Path, to: &Path) -> Result<(), StepError> {
    Spot::of(from)?.move_to(&Spot::of(to)?)
}
