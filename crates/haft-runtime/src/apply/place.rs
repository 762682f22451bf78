//! Putting things in place and taking them away by renaming, so that what was there becomes the
//! before-image itself: with its inode, mode, times and attributes, and without copying anything.
//!
//! A step is one exchange of two names: a reader or a crash sees the old or the new, never a part or
//! nothing. Where the vault is on another file system, things are copied first and renamed beside the
//! target.

use super::copy;
use crate::files::draft_name;
use haft_core::change::State;
use haft_sandbox::layer::{at, remove_all};
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where one step keeps what it takes away.
pub(crate) struct Slot<'a> {
    /// Of all calls.
    pub(crate) vault: &'a Path,
    /// Of this call.
    pub(crate) dir: &'a Path,
    /// Of this step.
    pub(crate) number: usize,
    /// Whether it is worth copying; renaming costs nothing.
    pub(crate) copy: bool,
}

impl Slot<'_> {
    fn shelf(&self) -> io::Result<OwnedFd> {
        at::open_dir(self.dir)
    }

    /// The name of what was there.
    fn image(&self) -> OsString {
        self.number.to_string().into()
    }

    /// The name of what comes, until it is exchanged for what was there.
    fn coming(&self) -> OsString {
        coming(&self.number.to_string()).into()
    }
}

/// The name under which an image's successor waits. If a process dies right after the exchange, the image
/// is found under this name.
pub(crate) fn coming(image: &str) -> String {
    format!("{image}.new")
}

/// A name in an open directory.
struct Spot {
    dir: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Spot {
    fn of(path: &Path) -> io::Result<Self> {
        let (dir, name) = at::reach(path)?;
        Ok(Self { dir, name: name.to_owned(), path: path.to_owned() })
    }

    fn beside(&self, name: impl Into<OsString>) -> io::Result<Self> {
        let name = name.into();
        Ok(Self { dir: self.dir.try_clone()?, path: self.path.with_file_name(&name), name })
    }

    fn rename(&self, to: &Self, flags: RenameFlags) -> Result<(), Errno> {
        rustix::fs::renameat_with(&self.dir, &self.name, &to.dir, &to.name, flags)
    }

    fn unlink(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::empty())?)
    }
}

/// Whether a failed rename says: not by renaming, here.
fn is_elsewhere(error: Errno) -> bool {
    matches!(error, Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

/// Puts what is staged at a path.
pub(crate) fn place(slot: &Slot<'_>, path: &Path, staged: &Path, before: &State, after: &State) -> io::Result<()> {
    let (from, to) = (Spot::of(staged)?, Spot::of(path)?);
    loosen(&from, after)?;
    if *before == State::Absent {
        fresh(slot, &from, &to)?;
    } else {
        loosen(&to, before)?;
        exchange(slot, from, &to, before, after)?;
    }
    fasten(&to.dir, &to.name, after)
}

/// Puts something where nothing is.
fn fresh(slot: &Slot<'_>, from: &Spot, to: &Spot) -> io::Result<()> {
    match from.rename(to, RenameFlags::NOREPLACE) {
        Err(error) if is_elsewhere(error) => {
            let draft = drafted(slot, from, to)?;
            draft.rename(to, RenameFlags::NOREPLACE).map_err(|error| abandon(&draft, error.into()))
        }
        done => Ok(done?),
    }
}

/// Puts something where something is.
fn exchange(slot: &Slot<'_>, from: Spot, to: &Spot, before: &State, after: &State) -> io::Result<()> {
    let shelf = slot.shelf()?;
    let device = |dir: &OwnedFd| rustix::fs::fstat(dir).map(|stat| stat.st_dev);
    if device(&shelf)? != device(&to.dir)? {
        return replace(slot, &from, to, before, after);
    }
    let image = Spot { dir: shelf.try_clone()?, path: slot.dir.join(slot.image()), name: slot.image() };
    let from = wait(slot, from, shelf)?;
    match from.rename(to, RenameFlags::EXCHANGE) {
        Err(error) if is_elsewhere(error) => return replace(slot, &from, to, before, after),
        done => done?,
    }
    crate::crash_point("exchanged");
    from.rename(&image, RenameFlags::empty())?;
    fasten(&image.dir, &image.name, before)
}

/// Brings what comes into the vault first: what is exchanged for it is then there already, whatever
/// happens next. What another call keeps is there, and stays until the exchange.
fn wait(slot: &Slot<'_>, from: Spot, shelf: OwnedFd) -> io::Result<Spot> {
    if from.path.starts_with(slot.vault) {
        return Ok(from);
    }
    let coming = Spot { dir: shelf, path: slot.dir.join(slot.coming()), name: slot.coming() };
    match from.rename(&coming, RenameFlags::NOREPLACE) {
        Err(error) if is_elsewhere(error) => copy::durably(&from.dir, &from.name, &coming.dir, &coming.name)?,
        done => done?,
    }
    Ok(coming)
}

/// Puts something where something is, without the vault's help: what was there is copied, and what comes
/// is renamed from beside it.
fn replace(slot: &Slot<'_>, from: &Spot, to: &Spot, before: &State, after: &State) -> io::Result<()> {
    save(slot, to)?;
    let draft = drafted(slot, from, to)?;
    crate::crash_point("drafted");
    let done = if before.is_tree() || after.is_tree() { swap(&draft, to) } else { over(&draft, to) };
    done.map_err(|error| abandon(&draft, error))
}

fn over(draft: &Spot, to: &Spot) -> io::Result<()> {
    Ok(rustix::fs::renameat(&draft.dir, &draft.name, &to.dir, &to.name)?)
}

/// Exchanges a draft and what it replaces, and removes that.
fn swap(draft: &Spot, to: &Spot) -> io::Result<()> {
    match draft.rename(to, RenameFlags::EXCHANGE) {
        Err(error) if is_elsewhere(error) => {
            // Under a name that is not swept: if the process dies here, this may be the only one.
            let aside = to.beside(format!("{}.old", draft_name()))?;
            to.rename(&aside, RenameFlags::empty())?;
            draft
                .rename(to, RenameFlags::empty())
                .or_else(|error| aside.rename(to, RenameFlags::empty()).and(Err(error)))?;
            remove_all(&aside.path)
        }
        done => {
            done?;
            crate::crash_point("exchanged");
            remove_all(&draft.path)
        }
    }
}

/// What comes, as a draft beside where it goes.
fn drafted(slot: &Slot<'_>, from: &Spot, to: &Spot) -> io::Result<Spot> {
    let draft = to.beside(draft_name())?;
    let ours = from.path.starts_with(slot.dir) || !from.path.starts_with(slot.vault);
    if ours && from.rename(&draft, RenameFlags::empty()).is_ok() {
        return Ok(draft);
    }
    match copy::durably(&from.dir, &from.name, &draft.dir, &draft.name) {
        Ok(()) => Ok(draft),
        Err(error) => Err(abandon(&draft, error)),
    }
}

/// Removes a draft that came to nothing.
fn abandon(draft: &Spot, error: io::Error) -> io::Error {
    let _ = remove_all(&draft.path);
    error
}

/// Copies what is about to go into the vault, durably, before it goes.
fn save(slot: &Slot<'_>, victim: &Spot) -> io::Result<()> {
    if !slot.copy {
        return Ok(());
    }
    let shelf = slot.shelf()?;
    let part: OsString = format!("{}.part", slot.number).into();
    copy::durably(&victim.dir, &victim.name, &shelf, &part)?;
    rustix::fs::renameat(&shelf, &part, &shelf, slot.image())?;
    Ok(rustix::fs::fsync(&shelf)?)
}

/// Takes away what is at a path.
pub(crate) fn remove(slot: &Slot<'_>, path: &Path, before: &State) -> io::Result<()> {
    let victim = Spot::of(path)?;
    let shelf = slot.shelf()?;
    loosen(&victim, before)?;
    let image = Spot { path: slot.dir.join(slot.image()), name: slot.image(), dir: shelf };
    match victim.rename(&image, RenameFlags::NOREPLACE) {
        Err(error) if is_elsewhere(error) => {}
        done => {
            done?;
            return fasten(&image.dir, &image.name, before);
        }
    }
    save(slot, &victim)?;
    if !before.is_tree() {
        return victim.unlink();
    }
    // Out of sight at once: a crash must not leave half of it.
    let aside = victim.beside(draft_name())?;
    victim.rename(&aside, RenameFlags::empty())?;
    remove_all(&aside.path)
}

/// A directory's permission bits.
pub(crate) fn mode(path: &Path, mode: u32) -> io::Result<()> {
    let (dir, name) = at::reach(path)?;
    at::chmod(&dir, name, mode)
}

/// Works in a directory that its owner may not change: a command in a namespace of its own could. If the
/// process dies meanwhile, the directory stays writable for its owner.
pub(crate) fn let_into(path: &Path, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let Some(parent) = path.parent().filter(|_| !rustix::process::geteuid().is_root()) else { return work() };
    let (dir, name) = at::reach(parent)?;
    match at::stat(&dir, name)?.map(|stat| at::mode(&stat)) {
        Some(mode) if mode & 0o700 != 0o700 => {
            at::chmod(&dir, name, mode | 0o700)?;
            let done = work();
            at::chmod(&dir, name, mode).and(done)
        }
        _ => work(),
    }
}

/// Lets a directory be moved: that changes its `..`, so the owner must be allowed to write to it.
fn loosen(spot: &Spot, state: &State) -> io::Result<()> {
    match state {
        State::Tree { mode, .. } if mode & 0o200 == 0 => at::chmod(&spot.dir, &spot.name, mode | 0o200),
        _ => Ok(()),
    }
}

/// Gives what was moved the mode it is to have, if it has another: a directory that was loosened, or an
/// image that was kept as a private copy.
fn fasten(dir: impl AsFd, name: &OsStr, state: &State) -> io::Result<()> {
    let (State::File { mode, .. } | State::Tree { mode, .. }) = state else { return Ok(()) };
    match at::stat(&dir, name)? {
        Some(stat) if at::mode(&stat) != *mode => at::chmod(&dir, name, *mode),
        _ => Ok(()),
    }
}
