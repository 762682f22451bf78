//! Repairing what a process left when it died in the middle of a step: files that it had taken from their places.

use super::invert::{is_left, parked_file, same};
use super::keep::{BACK, image_path};
use crate::apply::{Spot, StepError, coming};
use haft_core::change::State;
use haft_sandbox::layer::stands;
use haft_store::UndoStep;
use std::path::Path;

/// Repairs one step. A file that was being removed becomes the image, if it is the expected one; otherwise it goes back to its
/// path. A file that an exchange or a move in several steps had parked goes back to its path. Nothing is replaced: where a path
/// is taken, the file stays where undo finds it.
pub(super) fn recover(step: &UndoStep, images: &Path) {
    let Some(image) = step.image.as_ref().map(|image| image_path(images, image)) else { return };
    let back = image.parent().unwrap_or(images).join(BACK).join(image.file_name().unwrap_or_default());
    if step.before == State::Absent {
        finish_removal(&step.path, &back, |removed| is_left(removed, step));
    }
    if step.after == State::Absent && step.target.is_none() {
        finish_removal(&step.path, &image, |removed| same(removed, &step.before));
    }
    // A move in two steps first gives the file the image's own name.
    let is_moved = step.target.as_ref().is_some_and(|target| is_free(target));
    let moved = [&back, &image].into_iter().filter(|_| is_moved).cloned();
    let parked = [parked_file(&back), parked_file(&image)].into_iter().flatten();
    let nameless = parked.chain(moved).find(|file| !is_free(file));
    let Some(file) = nameless.filter(|_| is_free(&step.path)) else { return };
    if move_to_free(&file, &step.path).is_err() {
        let (path, kept) = (step.path.display(), file.display());
        tracing::warn!(%path, %kept, "a file cannot be put back, and the process died that was changing it");
    }
}

/// Gives a file that was being removed the name of the image; or its path back, if it is another version than the expected one.
fn finish_removal(path: &Path, image: &Path, is_expected: impl Fn(&State) -> bool) {
    let pending = image.with_file_name(coming(&image.file_name().unwrap_or_default().to_string_lossy()));
    let state = match stands(&pending) {
        Ok(State::Absent) | Err(_) => return,
        Ok(state) => state,
    };
    if !is_expected(&state) && is_free(path) && move_to_free(&pending, path).is_ok() {
        return;
    }
    if is_free(image) {
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
