//! From a step that was made, or was about to be, to the change that takes it back.

use super::keep::{BACK, COPY, PLACE, WRITE, image_path};
use super::{Kept, remove_dirs};
use crate::apply::{self, Conflict, PARKED, StepError, THEIRS, coming, look, shelves_of};
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use haft_sandbox::layer::stands;
use haft_store::UndoStep;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why a step cannot be taken back whose file is no longer as the call left it.
pub(super) const CHANGED: &str = "changed since";

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
        (State::File { digest: a, .. }, State::File { digest: b, mode: 0 })
            if [WRITE, COPY].contains(&step.action.as_str()) =>
        {
            a == b
        }
        (now, after) => same(now, after),
    }
}

/// A step that cannot be taken back.
#[derive(Debug)]
pub(crate) struct StuckStep {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// What takes a step back.
pub(super) enum StepInverse {
    Change(Change),
    /// The step was never made, or is taken back already.
    Nothing,
    Stuck(StuckStep),
}

/// What takes each of the steps back, in their order.
pub(super) fn all(steps: &[UndoStep], images: &Path) -> Vec<StepInverse> {
    let mut strays = strays(steps, images);
    let one = |(number, step): (usize, &UndoStep)| match (strays.remove(&number), invert(number, step, images)) {
        // Taking the step back would let go of what is kept for it.
        (Some(stray), _) => StepInverse::Stuck(Stuck::Lost(of_others(&stray)).of(step)),
        (None, Ok(Some(change))) => StepInverse::Change(change),
        (None, Ok(None)) => StepInverse::Nothing,
        (None, Err(stuck)) => StepInverse::Stuck(stuck.of(step)),
    };
    steps.iter().enumerate().map(one).collect()
}

fn of_others(version: &Path) -> String {
    format!(
        "it was changed while the call was carried out, and that version is {}: take from it what is needed, then remove it",
        version.display()
    )
}

/// Versions of files that others wrote and that lie beside the before-images, by step: a process died before it could put them
/// back, or could not.
fn strays(steps: &[UndoStep], images: &Path) -> BTreeMap<usize, PathBuf> {
    let mut found = BTreeMap::new();
    for dir in shelves_of(images).into_iter().chain([images.to_owned()]) {
        for (dir, is_back) in [(dir.join(BACK), true), (dir, false)] {
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let Some((number, suffix)) = name.to_str().and_then(parted) else { continue };
                // An image under its own name is looked at where it is needed.
                let is_image = suffix.is_empty() && !is_back;
                let Some(step) = steps.get(number).filter(|_| !is_image) else { continue };
                if suffix == THEIRS || is_of_others(&entry.path(), step, same) {
                    found.insert(number, entry.path());
                }
            }
        }
    }
    found
}

/// A step's number and what is behind it.
fn parted(name: &str) -> Option<(usize, &str)> {
    let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    let (number, suffix) = name.split_at(digits);
    Some((number.parse().ok()?, suffix))
}

/// Whether a file is neither the version before a step nor the one after it. For an image under its own name pass `alike`, because
/// haft may have changed its mode; for a file under any other name pass `same`.
fn is_of_others(path: &Path, step: &UndoStep, matches_before: fn(&State, &State) -> bool) -> bool {
    match stands(path) {
        Ok(State::Absent) => false,
        Ok(state) => !matches_before(&state, &step.before) && !alike(&state, &step.after),
        // What cannot be looked at is not let go of.
        Err(_) => true,
    }
}

impl Stuck {
    fn of(self, step: &UndoStep) -> StuckStep {
        match self {
            Self::Changed(path) => StuckStep { path, why: CHANGED.to_owned() },
            Self::Lost(why) => StuckStep { path: step.path.clone(), why },
        }
    }
}

/// The change that takes a step back; none if it was never made.
fn invert(number: usize, step: &UndoStep, images: &Path) -> Result<Option<Change>, Stuck> {
    let changed = || Stuck::Changed(step.path.clone());
    let now = look(&step.path, &step.before).map_err(|_| changed())?;
    let image = step.image.as_ref().map(|image| image_path(images, image));
    if let Some(target) = &step.target {
        return invert_move(step, now, target, image.as_deref());
    }
    let (made, unmade) = (is_left(&now, step), same(&now, &step.before));
    // Where a step changes only times, attributes or an access control list, both states are equal: it was made if its image exists.
    if unmade && (!made || step.action != PLACE || !image.as_ref().is_some_and(|image| image.exists())) {
        let others = image.as_ref().filter(|image| is_of_others(image, step, alike));
        // Where both states are equal, nobody knows which version it is.
        let other = image.as_ref().filter(|_| made && step.action == PLACE).and_then(|image| pending_file(image));
        return match (others, other) {
            (Some(image), _) => Err(Stuck::Lost(of_others(image))),
            (None, Some(other)) => Err(Stuck::Lost(format!(
                "haft died while it changed the file, and the other version is {}",
                other.display()
            ))),
            (None, None) => Ok(None),
        };
    }
    // Without the flags of `renameat2` nothing has the name for a moment, and whoever dies then leaves it so.
    let parked = if made { None } else { parked_file_of(number, images) };
    if !made && (parked.is_none() || image.is_none() || now != State::Absent) {
        return Err(match (image.filter(|image| is_of_others(image, step, alike)), parked) {
            (Some(image), _) => Stuck::Lost(format!("{CHANGED}, and {}", of_others(&image))),
            (None, Some(parked)) => {
                Stuck::Lost(format!("{CHANGED}, and what was there before is {}", parked.display()))
            }
            (None, None) => changed(),
        });
    }
    let path = step.path.clone();
    Ok(Some(match &step.before {
        State::Absent => Change::Remove { path, before: now },
        State::Dir { mode } => Change::Mode { path, before: now, mode: *mode },
        State::File { digest, mode } if step.action == WRITE => {
            Change::Write { path, content: load(image, digest)?, before: now, mode: Some(*mode) }
        }
        before => Change::Place { path, staged: found(step, images)?, before: now, after: before.clone() },
    }))
}

fn invert_move(step: &UndoStep, now: State, target: &Path, image: Option<&Path>) -> Result<Option<Change>, Stuck> {
    let changed = || Stuck::Changed(step.path.clone());
    match (now, stands(target).map_err(|_| changed())?) {
        (State::Absent, there) if there == step.before => {
            Ok(Some(Change::Move { from: target.to_owned(), to: step.path.clone(), before: there }))
        }
        (now, State::Absent) if now == step.before => Ok(None),
        // It was on its way.
        (now @ State::Absent, State::Absent) => {
            match image.filter(|image| stands(image).is_ok_and(|at| at == step.before)) {
                Some(image) => Ok(Some(Change::Place {
                    path: step.path.clone(),
                    staged: image.to_owned(),
                    before: now,
                    after: step.before.clone(),
                })),
                None => Err(image
                    .filter(|image| is_of_others(image, step, alike))
                    .map_or_else(changed, |image| Stuck::Lost(of_others(image)))),
            }
        }
        _ => Err(changed()),
    }
}

/// The names under which an image may be found, the first one first.
pub(super) fn names_of(image: &Path) -> [PathBuf; 4] {
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    let coming = coming(&name);
    [
        image.to_owned(),
        image.with_file_name(&coming),
        image.with_file_name(format!("{coming}{PARKED}")),
        image.with_file_name(format!("{name}{PARKED}")),
    ]
}

/// What lies beside an image that is not there: what was to be exchanged, or what came out.
fn pending_file(image: &Path) -> Option<PathBuf> {
    let [_, names @ ..] = names_of(image);
    names.into_iter().find(|path| path.symlink_metadata().is_ok())
}

/// The file that an exchange in more steps has parked, if the process died before it was done.
pub(super) fn parked_file(image: &Path) -> Option<PathBuf> {
    let [_, _, coming, image] = names_of(image);
    [coming, image].into_iter().find(|path| path.symlink_metadata().is_ok())
}

/// The same of a step, wherever its image is or would be.
fn parked_file_of(number: usize, images: &Path) -> Option<PathBuf> {
    let dirs = shelves_of(images).into_iter().chain([images.to_owned()]);
    dirs.map(|dir| dir.join(number.to_string())).find_map(|image| parked_file(&image))
}

/// Where a step's before-image is, if it is whole.
fn found(step: &UndoStep, images: &Path) -> Result<PathBuf, Stuck> {
    let image = step.image.as_ref().ok_or_else(|| Stuck::Lost("its before-image was not kept".to_owned()))?;
    let image = image_path(images, image);
    let mut why = Stuck::Lost("its before-image is gone".to_owned());
    for path in names_of(&image) {
        match stands(&path) {
            Ok(State::Absent) => {}
            Ok(state) if path != image && same(&state, &step.before) => return Ok(path),
            Ok(_) if path != image => {}
            Ok(state) if alike(&state, &step.before) => return Ok(path),
            Ok(_) => {
                let place = path.display();
                why = Stuck::Lost(format!("its before-image is damaged: {place} was changed after it was kept"));
            }
            Err(error) => why = Stuck::Lost(error.to_string()),
        }
    }
    Err(why)
}

/// The content of a before-image that is a copy.
fn load(image: Option<PathBuf>, digest: &Digest) -> Result<Vec<u8>, Stuck> {
    let image = image.ok_or_else(|| Stuck::Lost("its before-image was not kept".to_owned()))?;
    let content = std::fs::read(&image).map_err(|error| Stuck::Lost(format!("its before-image is gone: {error}")))?;
    if Digest::of(&content) == *digest {
        Ok(content)
    } else {
        Err(Stuck::Lost(format!("its before-image is damaged: {} was changed after it was kept", image.display())))
    }
}

/// Takes back the first steps of a call that failed; the last of them may be half made. What cannot be taken back, because
/// somebody changed it meanwhile, stays as they left it.
pub(crate) fn take_back(kept: &Kept, steps: usize) -> Vec<StuckStep> {
    let mut left = Vec::new();
    for (number, step) in kept.steps[..steps].iter().enumerate().rev() {
        if let Err(why) = take_back_step(kept, number) {
            let before = match &step.before {
                State::Absent => "; before the call, nothing was there".to_owned(),
                _ => found(step, kept.images())
                    .map(|image| format!("; what was there before the call is {}", image.display()))
                    .unwrap_or_default(),
            };
            left.push(StuckStep { path: step.path.clone(), why: format!("{why}{before}") });
        }
    }
    if left.is_empty() {
        remove_dirs(&kept.made_dirs);
    }
    left
}

/// Whether what stood at the path of a step has been taken from it, and is kept.
pub(crate) fn is_begun(kept: &Kept, number: usize) -> bool {
    found(&kept.steps[number], kept.images()).is_ok()
}

/// What is said of a file that somebody changed after the call had.
const STAYS: &str = "somebody changed it again, and their version stays in its place";

fn take_back_step(kept: &Kept, number: usize) -> Result<(), String> {
    let change = match invert(number, &kept.steps[number], kept.images()) {
        Ok(None) => return Ok(()),
        Ok(Some(change)) => change,
        Err(Stuck::Changed(_)) => return Err(STAYS.to_owned()),
        Err(Stuck::Lost(why)) => return Err(why),
    };
    let back = kept.back(number).map_err(|error| error.to_string())?;
    apply::step(&change, &back.slot()).map_err(|error| match error {
        StepError::Io(error) => error.to_string(),
        StepError::Conflict(Conflict { kept: None }) => STAYS.to_owned(),
        StepError::Conflict(Conflict { kept: Some(kept) }) => {
            format!("{STAYS}; an older version that somebody wrote is {}", kept.display())
        }
    })
}
