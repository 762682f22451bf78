//! From a step that was made, or was about to be, to the change that takes it back.

use super::{Kept, remove_dirs};
use crate::apply::{self, Slot, coming, look};
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use haft_sandbox::layer::stands;
use haft_store::UndoStep;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Why a step cannot be inverted.
enum Stuck {
    /// Somebody changed the file since.
    Changed(PathBuf),
    /// The before-image is gone or damaged.
    Lost(String),
}

/// Whether what stands somewhere is what is expected there. A directory that is being moved may be
/// writable for a moment, and stays so if the process dies.
pub(crate) fn same(now: &State, expected: &State) -> bool {
    match (now, expected) {
        (State::Tree { digest: a, mode: now }, State::Tree { digest: b, mode }) => {
            a == b && now | 0o200 == mode | 0o200
        }
        _ => now == expected,
    }
}

/// The same, whatever the modes: those are set when something is placed.
pub(crate) fn alike(now: &State, expected: &State) -> bool {
    match (now, expected) {
        (State::File { digest: a, .. }, State::File { digest: b, .. })
        | (State::Tree { digest: a, .. }, State::Tree { digest: b, .. }) => a == b,
        _ => now == expected,
    }
}

/// Whether what stands somewhere is what a step left there. The mode of a new file was not known
/// beforehand, and was stored as zero.
pub(super) fn is_left(now: &State, step: &UndoStep) -> bool {
    match (now, &step.after) {
        (State::File { digest: a, .. }, State::File { digest: b, mode: 0 }) if step.action == "write" => a == b,
        (now, after) => same(now, after),
    }
}

/// The changes that take steps back, and the paths that somebody changed since.
pub(super) fn all(steps: &[UndoStep], images: &Path) -> Result<(Vec<Change>, Vec<PathBuf>), String> {
    let (mut changes, mut touched) = (Vec::new(), Vec::new());
    for step in steps.iter().rev() {
        match invert(step, images) {
            Ok(change) => changes.extend(change),
            Err(Stuck::Changed(path)) => touched.push(path),
            Err(Stuck::Lost(why)) => return Err(why),
        }
    }
    Ok((changes, touched))
}

/// The change that takes a step back; none if it was never made.
fn invert(step: &UndoStep, images: &Path) -> Result<Option<Change>, Stuck> {
    let changed = || Stuck::Changed(step.path.clone());
    let now = look(&step.path, &step.before).map_err(|_| changed())?;
    if let Some(target) = &step.target {
        return invert_move(step, now, target);
    }
    let (made, unmade) = (is_left(&now, step), same(&now, &step.before));
    let image = step.image.as_ref().map(|image| images.join(image));
    // A file whose times alone were changed: whether that was done shows in whether its image is there.
    if unmade && (!made || step.action != "place" || !image.as_ref().is_some_and(|image| image.exists())) {
        return Ok(None);
    }
    if !made {
        return Err(changed());
    }
    let path = step.path.clone();
    Ok(Some(match &step.before {
        State::Absent => Change::Remove { path, before: now },
        State::Dir { mode } => Change::Mode { path, before: now, mode: *mode },
        State::File { digest, mode } if step.action == "write" => {
            Change::Write { path, content: load(image, digest)?, before: now, mode: Some(*mode) }
        }
        before => Change::Place { path, staged: found(step, images)?, before: now, after: before.clone() },
    }))
}

fn invert_move(step: &UndoStep, now: State, target: &Path) -> Result<Option<Change>, Stuck> {
    let changed = || Stuck::Changed(step.path.clone());
    match (now, stands(target).map_err(|_| changed())?) {
        (State::Absent, there) if there == step.before => {
            Ok(Some(Change::Move { from: target.to_owned(), to: step.path.clone(), before: there }))
        }
        (now, State::Absent) if now == step.before => Ok(None),
        _ => Err(changed()),
    }
}

/// Where a step's before-image is, if it is whole.
fn found(step: &UndoStep, images: &Path) -> Result<PathBuf, Stuck> {
    let lost = |why: &str| Stuck::Lost(why.to_owned());
    let image = step.image.as_ref().ok_or_else(|| lost("its before-image was not kept"))?;
    let mut why = lost("its before-image is gone");
    for name in [image.clone(), coming(image)] {
        let path = images.join(name);
        match stands(&path) {
            Ok(State::Absent) => {}
            Ok(state) if alike(&state, &step.before) => return Ok(path),
            Ok(_) => why = lost("its before-image is damaged"),
            Err(error) => why = Stuck::Lost(error.to_string()),
        }
    }
    Err(why)
}

/// The content of a written file's before-image.
fn load(image: Option<PathBuf>, digest: &Digest) -> Result<Vec<u8>, Stuck> {
    let image = image.ok_or_else(|| Stuck::Lost("its before-image was not kept".to_owned()))?;
    let content = std::fs::read(image).map_err(|error| Stuck::Lost(error.to_string()))?;
    if Digest::of(&content) == *digest {
        Ok(content)
    } else {
        Err(Stuck::Lost("its before-image is damaged".to_owned()))
    }
}

/// Takes back a call that failed at step `last`, which may be half made.
pub(crate) fn take_back(kept: &Kept, last: usize) -> Result<(), String> {
    let back = kept.dir.join("back");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&back);
    made.map_err(|error| error.to_string())?;
    for (number, step) in kept.steps[..=last].iter().enumerate().rev() {
        let change = invert(step, &kept.dir).map_err(|stuck| match stuck {
            Stuck::Changed(path) => format!("{} changed", path.display()),
            Stuck::Lost(why) => why,
        })?;
        let slot = Slot { vault: &kept.vault, dir: &back, number, copy: false };
        change.map_or(Ok(()), |change| apply::step(&change, &slot)).map_err(|error| error.to_string())?;
    }
    remove_dirs(&kept.made_dirs);
    Ok(())
}
