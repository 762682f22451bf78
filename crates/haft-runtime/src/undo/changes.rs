//! Showing what a call changed.

use super::Vault;
use super::invert::{is_left, same};
use super::keep::{COPY, PLACE, WRITE, image_path};
use crate::apply::{ChangedPath, Side, Viewer, look, take_apart, view_paths};
use crate::ranked_changes::ChangeView;
use haft_core::change::State;
use haft_sandbox::layer::stands;
use haft_store::{UndoCall, UndoStep};
use std::path::Path;

/// What a call changed, from before to now.
pub(crate) fn changes(vault: &Vault, call: &UndoCall, steps: &[UndoStep], viewer: Viewer<'_>) -> ChangeView {
    let images = vault.of(&call.call_id);
    let paths: Vec<ChangedPath<'_>> = steps.iter().flat_map(|step| of_step(step, &images, viewer.shown)).collect();
    view_paths(&paths, viewer, &[])
}

fn of_step(step: &UndoStep, images: &Path, shown: &dyn Fn(&Path) -> String) -> Vec<ChangedPath<'static>> {
    let name = shown(&step.path);
    let image = step
        .image
        .as_ref()
        .map(|image| image_path(images, image))
        .filter(|image| stands(image).is_ok_and(|at| at != State::Absent));
    let now = look(&step.path, &step.before).unwrap_or(State::Absent);
    let here = |state: &State| Side::new(state.clone(), Some(step.path.clone()));
    if let Some(target) = &step.target {
        let renamed = ChangedPath::new(step.path.clone(), here(&step.before), here(&step.before));
        return vec![ChangedPath { to: Some(target.clone()), is_named: true, ..renamed }];
    }
    let touched = step.action == PLACE && step.before == step.after && image.is_some();
    // A call names what it writes itself; a program's changes are placed.
    let is_named = [WRITE, COPY].contains(&step.action.as_str());
    if same(&now, &step.before) && !touched {
        let unchanged = ChangedPath::new(step.path.clone(), here(&now), here(&now));
        let remarks = vec![format!("{name} is as it was before the call")];
        return vec![ChangedPath { is_named, is_changed: false, remarks, ..unchanged }];
    }
    let mut remarks = Vec::new();
    if !is_left(&now, step) {
        remarks.push(format!("{name} has changed since; this is the difference to what is there now"));
    }
    if image.is_none() && !matches!(step.before, State::Absent | State::Dir { .. } | State::Link { .. }) {
        remarks.push(format!("{name}: what was there before was not kept"));
    }
    let mut paths = take_apart(&step.path, Side::new(step.before.clone(), image), here(&now));
    match paths.first_mut() {
        Some(first) => first.remarks = remarks,
        None if remarks.is_empty() => {}
        None => {
            let unchanged = ChangedPath::new(step.path.clone(), here(&now), here(&now));
            paths.push(ChangedPath { is_changed: false, remarks, ..unchanged });
        }
    }
    paths.into_iter().map(|path| ChangedPath { is_named, ..path }).collect()
}
