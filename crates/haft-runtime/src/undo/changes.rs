//! Showing what a call changed.

use super::Vault;
use super::invert::{is_left, same};
use super::keep::{PLACE, image_path};
use crate::apply::{Drawing, Side, look};
use haft_core::change::State;
use haft_sandbox::layer::stands;
use haft_store::{UndoCall, UndoStep};
use std::path::Path;

/// What a call changed, as a diff from before to now.
pub(crate) fn changes(vault: &Vault, call: &UndoCall, steps: &[UndoStep], shown: &dyn Fn(&Path) -> String) -> String {
    let mut drawing = Drawing::new(shown);
    let images = vault.of(&call.call_id);
    for step in steps {
        draw(&mut drawing, step, &images, shown);
    }
    drawing.finish()
}

fn draw(drawing: &mut Drawing<'_>, step: &UndoStep, images: &Path, shown: &dyn Fn(&Path) -> String) {
    let name = shown(&step.path);
    if let Some(target) = &step.target {
        return drawing.line(&format!("rename {name} -> {}", shown(target)));
    }
    let now = look(&step.path, &step.before).unwrap_or(State::Absent);
    let image = step
        .image
        .as_ref()
        .map(|image| image_path(images, image))
        .filter(|image| stands(image).is_ok_and(|at| at != State::Absent));
    let touched = step.action == PLACE && step.before == step.after && image.is_some();
    if same(&now, &step.before) && !touched {
        return drawing.line(&format!("# {name} is as it was before the call"));
    }
    if !is_left(&now, step) {
        drawing.line(&format!("# {name} has changed since; this is the difference to what is there now"));
    }
    if image.is_none() && !matches!(step.before, State::Absent | State::Dir { .. } | State::Link { .. }) {
        drawing.line(&format!("# {name}: what was there before was not kept"));
    }
    drawing.thing(
        &step.path,
        Side { state: &step.before, at: image.as_deref() },
        Side { state: &now, at: Some(&step.path) },
    );
}
