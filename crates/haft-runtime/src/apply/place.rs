//! One step of a change. Whatever leaves its place is taken first and looked at then: only what has been taken can no longer be
//! exchanged for something else. If it is not what was expected, it goes back, and the step is a conflict.

use super::metadata::FileMetadata;
use super::shelf::is_image;
use super::spot::{Spot, spot_in};
use super::{Conflict, Copying, StepError};
use crate::files;
use haft_core::change::State;
use haft_sandbox::layer::at;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// How often a file is put back that others keep replacing.
const PUT_BACK_MAX: usize = 16;
/// Behind a step's number: a version of the file that somebody else wrote and somebody else replaced.
pub(crate) const THEIRS: &str = ".theirs";

/// Where one step keeps what it takes away.
pub(crate) struct Slot<'a> {
    /// The call, as part of the names of its drafts.
    pub(crate) call: &'a str,
    /// Of all calls.
    pub(crate) vault: &'a Path,
    /// Of this call, on the mount of what the step is about.
    pub(crate) dir: &'a Path,
    /// Of this step.
    pub(crate) number: usize,
    /// What stands ready to replace a file, if this step writes one; what a step made, if this takes it back.
    pub(crate) draft: Option<Draft<'a>>,
    /// Which directory it is whose mode this step changes, if it does.
    pub(crate) identity: Option<Identity>,
    pub(crate) exchanged_from: ExchangedFrom,
}

/// From where an image is exchanged for what is at its path: what comes out is there at once, whatever happens next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExchangedFrom {
    /// From where it is kept.
    Image,
    /// From this slot, because what comes out is the image of the call whose slot it is.
    Slot,
}

/// Which file or directory something is, whatever its name: its device and its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    fn of(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }
}

/// What stands at a path.
pub(crate) fn identity_of(path: &Path) -> io::Result<Identity> {
    let stat = Spot::of(path)?.stat()?.ok_or(io::ErrorKind::NotFound)?;
    Ok(Identity::of(&stat))
}

/// A file that stands ready to replace another.
#[derive(Clone, Copy)]
pub(crate) struct Draft<'a> {
    /// What it is.
    pub(crate) after: &'a State,
    /// What is taken away must have: what the other had when this was given the same, or what the step gave it.
    pub(crate) metadata: &'a FileMetadata,
}

impl Slot<'_> {
    /// The place of what was there.
    fn image(&self) -> io::Result<Spot> {
        spot_in(self.dir, self.number.to_string())
    }

    /// The place of what comes, until it is exchanged for what was there.
    fn coming(&self) -> io::Result<Spot> {
        spot_in(self.dir, coming(&self.number.to_string()))
    }

    /// Keeps a version that must not get lost, and says where.
    fn keep_theirs(&self, spot: &Spot) -> StepError {
        let kept = spot_in(self.dir, format!("{}{THEIRS}", self.number));
        let kept = kept.and_then(|kept| spot.take_to(&kept).map(|()| kept.path));
        StepError::Conflict(Conflict { kept: Some(kept.unwrap_or_else(|_| spot.path.clone())) })
    }
}

/// The name under which an image's successor waits. If a process dies right after the exchange, the image
/// is found under this name.
pub(crate) fn coming(image: &str) -> String {
    format!("{image}.new")
}

/// What a step expects where it takes something away.
struct Expected<'a> {
    state: &'a State,
    metadata: Option<&'a FileMetadata>,
}

impl Expected<'_> {
    fn is_at(&self, spot: &Spot) -> bool {
        // What cannot be looked at is not known to be what was expected.
        let is_state = spot.state().is_ok_and(|state| crate::undo::same(&state, self.state));
        let has_metadata = |expected: &FileMetadata| {
            FileMetadata::read(&spot.dir, &spot.name).is_ok_and(|found| found.is_alike(expected))
        };
        is_state && self.metadata.is_none_or(has_metadata)
    }
}

/// Puts what is staged at a path.
pub(crate) fn place(
    slot: &Slot<'_>,
    path: &Path,
    staged: &Path,
    before: &State,
    after: &State,
) -> Result<(), StepError> {
    let to = Spot::of(path)?;
    let from = ready(slot, staged, *before != State::Absent)?;
    let inode = from.stat()?.ok_or(io::ErrorKind::NotFound)?.st_ino;
    fasten(&from, after)?;
    loosen(&from, after)?;
    crate::crash_point("drafted");
    if *before == State::Absent {
        from.move_to(&to)?;
    } else {
        let loosened = loosen(&to, before)?;
        exchange(slot, &from, &to, before, after).inspect_err(|_| loosened.iter().for_each(Loosened::fasten))?;
    }
    crate::crash_point("placed");
    match after {
        State::Tree { mode, .. } => Ok(to.chmod_same(inode, *mode)?),
        _ => Ok(()),
    }
}

/// Puts a file that stands ready in place of another.
pub(crate) fn replace(slot: &Slot<'_>, path: &Path, before: &State) -> Result<(), StepError> {
    let draft = slot.draft.ok_or(io::ErrorKind::NotFound)?;
    let (to, from) = (Spot::of(path)?, slot.coming()?);
    crate::crash_point("drafted");
    exchange(slot, &from, &to, before, draft.after)?;
    crate::crash_point("placed");
    Ok(())
}

/// Where what comes stands ready: copied before, an image on the same mount, or brought beside the image. What is exchanged
/// for it is then with the images at once, whatever happens next.
fn ready(slot: &Slot<'_>, staged: &Path, is_exchanged: bool) -> Result<Spot, StepError> {
    let coming = slot.coming()?;
    // In the slot of another call, this name is not for what this step brings.
    if slot.exchanged_from == ExchangedFrom::Image && coming.stat()?.is_some() {
        return Ok(coming);
    }
    let from = Spot::of(staged)?;
    if is_exchanged && (slot.exchanged_from == ExchangedFrom::Slot || !is_image(staged, slot.vault)) {
        from.move_to(&coming)?;
        return Ok(coming);
    }
    Ok(from)
}

/// Copies what is staged on another mount than where it goes, so that it can be moved there. The copy's path, if one is needed.
pub(crate) fn bring_near(slot: &Slot<'_>, staged: &Path, copying: &mut Copying) -> io::Result<Option<PathBuf>> {
    let (from, coming) = (Spot::of(staged)?, slot.coming()?);
    if at::mount(&from.dir)? == at::mount(&coming.dir)? {
        return Ok(None);
    }
    copying.copy(&from, &coming)?;
    Ok(Some(coming.path))
}

/// Exchanges what comes and what is there, which is then the image.
fn exchange(slot: &Slot<'_>, from: &Spot, to: &Spot, before: &State, after: &State) -> Result<(), StepError> {
    let expected = Expected { state: before, metadata: slot.draft.map(|draft| draft.metadata) };
    from.exchange(to, &slot.image()?)?;
    crate::crash_point("exchanged");
    if !expected.is_at(from) {
        return Err(put_back(slot, from, to, after));
    }
    let is_beside = from.path.parent() == Some(slot.dir);
    let image = if is_beside { from.beside(slot.number.to_string())? } else { slot.image()? };
    from.take_to(&image)?;
    crate::crash_point("imaged");
    // A file has the mode that was expected; a directory was loosened.
    if before.is_tree() { Ok(fasten(&image, before)?) } else { Ok(()) }
}

/// Puts back what was taken and was not expected. What comes out again must be what was put there: if it is not, somebody has
/// replaced it meanwhile, and theirs is the newer version, which has the place.
fn put_back(slot: &Slot<'_>, taken: &Spot, place: &Spot, ours: &State) -> StepError {
    let (mut put, mut is_ours) = (ours.clone(), true);
    for _ in 0..PUT_BACK_MAX {
        // What cannot be looked at compares with nothing.
        let Ok(out) = taken.state() else { return slot.keep_theirs(taken) };
        let exchanged = slot.image().map_err(StepError::from).and_then(|image| taken.exchange(place, &image));
        match exchanged {
            Ok(()) => {}
            // Somebody removed what was put there.
            Err(StepError::Io(error)) if error.kind() == io::ErrorKind::NotFound => match taken.move_to(place) {
                Ok(()) => return StepError::Conflict(Conflict { kept: None }),
                Err(_) => continue,
            },
            Err(StepError::Io(_)) => return slot.keep_theirs(taken),
            Err(conflict) => return conflict,
        }
        crate::crash_point("put-back");
        match taken.state() {
            Ok(state) if crate::undo::same(&state, &put) => {
                return if is_ours { StepError::Conflict(Conflict { kept: None }) } else { slot.keep_theirs(taken) };
            }
            _ => (put, is_ours) = (out, false),
        }
    }
    slot.keep_theirs(taken)
}

/// Puts a new file, which stands ready beside its place, where nothing is.
pub(crate) fn reveal(slot: &Slot<'_>, path: &Path) -> Result<(), StepError> {
    let to = Spot::of(path)?;
    let draft = to.beside(files::draft_name_of(slot.call, slot.number))?;
    crate::crash_point("drafted");
    draft.move_to(&to)
}

/// Moves something to where nothing is.
pub(crate) fn rename(slot: &Slot<'_>, from: &Path, to: &Path, before: &State) -> Result<(), StepError> {
    let (from, to) = (Spot::of(from)?, Spot::of(to)?);
    let expected = Expected { state: before, metadata: None };
    if from.move_at_once(&to)? {
        crate::crash_point("moved");
        return if expected.is_at(&to) { Ok(()) } else { Err(take_back(&to, &from)) };
    }
    // A name that others see is taken before it is looked at, and what was taken is moved on.
    let image = slot.image()?;
    from.take_to(&image)?;
    crate::crash_point("moved");
    if !expected.is_at(&image) {
        return Err(give_back(slot, &image, &from));
    }
    image.move_to(&to).map_err(|error| match give_back(slot, &image, &from) {
        StepError::Conflict(Conflict { kept: None }) => error,
        conflict => conflict,
    })
}

/// Moves what was moved and was not expected back in one step.
fn take_back(moved: &Spot, from: &Spot) -> StepError {
    let is_back = moved.move_at_once(from).unwrap_or(false);
    StepError::Conflict(Conflict { kept: (!is_back).then(|| moved.path.clone()) })
}

/// Gives what was taken and was not expected its place back, if that is still free.
fn give_back(slot: &Slot<'_>, taken: &Spot, place: &Spot) -> StepError {
    match taken.move_to(place) {
        Ok(()) => StepError::Conflict(Conflict { kept: None }),
        Err(_) => slot.keep_theirs(taken),
    }
}

/// Takes away what is at a path. It gets the name of an image when it is known to be what was expected.
pub(crate) fn remove(slot: &Slot<'_>, path: &Path, before: &State) -> Result<(), StepError> {
    let (victim, taken, image) = (Spot::of(path)?, slot.coming()?, slot.image()?);
    let loosened = loosen(&victim, before)?;
    victim.take_to(&taken)?;
    crate::crash_point("removed");
    if !(Expected { state: before, metadata: slot.draft.map(|draft| draft.metadata) }).is_at(&taken) {
        let conflict = give_back(slot, &taken, &victim);
        loosened.iter().for_each(Loosened::fasten);
        return Err(conflict);
    }
    taken.take_to(&image)?;
    Ok(fasten(&image, before)?)
}

/// A directory's permission bits. Only the directory that was expected gets them: it is held, so whatever takes its name
/// meanwhile is neither widened nor changed.
pub(crate) fn mode(slot: &Slot<'_>, path: &Path, before: &State, to: u32) -> Result<(), StepError> {
    let place = Spot::of(path)?;
    crate::crash_point("drafted");
    let held = at::open_at(&place.dir, &place.name, OFlags::PATH)?;
    let stat = rustix::fs::fstat(&held)?;
    let identity = Identity::of(&stat);
    let is_expected = at::kind(&stat) == FileType::Directory && *before == State::Dir { mode: at::mode(&stat) };
    if !is_expected || slot.identity.is_some_and(|expected| expected != identity) {
        return Err(StepError::Conflict(Conflict { kept: None }));
    }
    crate::crash_point("held");
    chmod_held(&held, to)?;
    crate::crash_point("moded");
    if place.stat()?.is_some_and(|now| Identity::of(&now) == identity) {
        return Ok(());
    }
    // It has another name now, and nobody asked for another mode there.
    chmod_held(&held, at::mode(&stat))?;
    Err(StepError::Conflict(Conflict { kept: None }))
}

/// Gives what is held a mode, whatever its name is by now.
pub(super) fn chmod_held(held: &OwnedFd, mode: u32) -> io::Result<()> {
    Ok(rustix::fs::chmod(at::held_path(held.as_fd()), Mode::from_raw_mode(mode))?)
}

/// Works in a directory that its owner may not change: a command in a namespace of its own could. If the
/// process dies meanwhile, the directory stays writable for its owner.
pub(crate) fn let_into(path: &Path, work: impl FnOnce() -> Result<(), StepError>) -> Result<(), StepError> {
    let Some(parent) = path.parent().filter(|_| !rustix::process::geteuid().is_root()) else { return work() };
    let Some((held, stat)) = hold(&Spot::of(parent)?)? else { return work() };
    let mode = at::mode(&stat);
    if mode & 0o700 == 0o700 {
        return work();
    }
    chmod_held(&held, mode | 0o700)?;
    let done = work();
    // Whether the step is made does not depend on this.
    let _ = chmod_held(&held, mode);
    done
}

/// Holds what has a name, if anything has.
fn hold(spot: &Spot) -> io::Result<Option<(OwnedFd, Stat)>> {
    match at::open_at(&spot.dir, &spot.name, OFlags::PATH) {
        Ok(held) => {
            let stat = rustix::fs::fstat(&held)?;
            Ok(Some((held, stat)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A directory that its owner may write to for a moment, and the mode that it had.
struct Loosened {
    held: OwnedFd,
    mode: u32,
}

impl Loosened {
    /// Takes that back, wherever the directory is now: it was not the one that was expected. Best effort: the step has failed.
    fn fasten(&self) {
        let _ = chmod_held(&self.held, self.mode);
    }
}

/// Lets a directory be moved: that changes its `..`, so the owner must be allowed to write to it.
fn loosen(spot: &Spot, state: &State) -> io::Result<Option<Loosened>> {
    let State::Tree { mode: expected, .. } = state else { return Ok(None) };
    let Some((held, stat)) = hold(spot)? else { return Ok(None) };
    let mode = at::mode(&stat);
    if expected & 0o200 != 0 || mode & 0o200 != 0 || at::kind(&stat) != FileType::Directory {
        return Ok(None);
    }
    chmod_held(&held, mode | 0o200)?;
    Ok(Some(Loosened { held, mode }))
}

/// Gives what is in haft's own directory the mode it is to have, if it has another: a directory that was loosened, or an image
/// that was kept as a private copy.
fn fasten(spot: &Spot, state: &State) -> io::Result<()> {
    let (State::File { mode, .. } | State::Tree { mode, .. }) = state else { return Ok(()) };
    match spot.stat()? {
        Some(stat) => spot.chmod_same(stat.st_ino, *mode),
        None => Ok(()),
    }
}
