//! Taking calls back: what was there before is kept before anything is changed, and restored exactly
//! (content, mode, absence) if nobody has changed it since.
//!
//! The vault is a directory with one directory for each call, and in it one image for each step, named by
//! the step's number: what was there, moved away as it was. Of what is on another mount, the image is in a directory of haft's
//! own on that mount, and the undo log names it.
//!
//! Taking back obeys the law of making (`apply.rs`): what is no longer as the call left it is not replaced. One file of that kind
//! does not keep the others from being restored; `Inverse` (`standing.rs`) has both.

#[cfg(test)]
mod bench;
mod calls;
mod changes;
#[cfg(test)]
mod dying;
pub mod extent;
#[cfg(test)]
pub(crate) mod interference;
#[cfg(test)]
mod interrupted;
mod invert;
mod keep;
#[cfg(test)]
mod late_writes;
#[cfg(test)]
mod laws;
mod letting_go;
#[cfg(test)]
mod lockstep;
pub mod loose;
mod memory;
#[cfg(test)]
mod metadata;
#[cfg(test)]
mod overlay;
mod recover;
pub mod selection;
mod standing;
#[cfg(test)]
mod tests;

pub(crate) use changes::changes;
pub(crate) use invert::{alike, is_begun, same, take_back};
pub(crate) use keep::Kept;
pub(crate) use letting_go::told;
pub(crate) use standing::{ChangedFiles, InversePart, Standing};

use crate::apply::{self, Failed, ProjectLock};
use crate::files;
use haft_core::change::{Change, State};
use haft_core::{CallError, CallId};
use haft_store::{Store, UndoStep};
use keep::Keeping;
use letting_go::LateVersion;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoLimits {
    /// A larger file has no before-image: a person is told so before it is changed, and unasked it is not changed. For a
    /// directory with everything in it, only the limit below counts.
    pub max_file_bytes: u64,
    /// All before-images together; the oldest go first.
    pub max_total_bytes: u64,
    /// Older ones go.
    pub keep: Duration,
}

impl Default for UndoLimits {
    fn default() -> Self {
        Self { max_file_bytes: 64 << 20, max_total_bytes: 1 << 30, keep: Duration::from_hours(30 * 24) }
    }
}

/// A file that somebody else is about to change.
pub(crate) struct KeptFile {
    /// Where.
    pub(crate) path: PathBuf,
    /// What is there.
    pub(crate) before: State,
    /// What will probably be there.
    pub(crate) after: State,
}

impl KeptFile {
    /// The change whose before-image is the same. Its content is never written.
    fn as_write(&self) -> Change {
        Change::Write { path: self.path.clone(), content: Vec::new(), before: self.before.clone(), mode: None }
    }
}

/// Where before-images are kept, and by which rules.
#[derive(Debug, Clone)]
pub(crate) struct Vault {
    dir: PathBuf,
    limits: UndoLimits,
    /// Whether changes are made under the lock of the project. Tests of what happens without it do without.
    locks_project: bool,
}

impl Vault {
    pub(crate) fn new(data_dir: &Path, limits: UndoLimits) -> Self {
        Self { dir: data_dir.join("undo"), limits, locks_project: true }
    }

    /// A vault for places where no lock can be had.
    #[cfg(test)]
    pub(crate) fn without_project_lock(self) -> Self {
        Self { locks_project: false, ..self }
    }

    /// Where a call's images are, free of links if it is there.
    pub(crate) fn of(&self, call: &CallId) -> PathBuf {
        let dir = self.dir.join(call.as_str());
        dir.canonicalize().unwrap_or(dir)
    }

    /// Makes changes: what is there is kept, durably, before anything happens, and all changes are made or
    /// none. `undoes` is the call that they take back.
    pub(crate) fn carry_out(
        &self,
        store: &Store,
        (call, undoes): (&CallId, Option<&CallId>),
        root: &Path,
        changes: &[Change],
        shown: &dyn Fn(&Path) -> String,
    ) -> Result<Kept, CallError> {
        apply::expect(changes, shown)?;
        let kept = Kept::plan(&self.dir, &self.limits, call.as_str(), undoes, (changes, Keeping::Moved));
        let mut kept = kept.map_err(|error| self.unwritable(&error))?;
        if let Err(error) = Self::write_down_and_prepare(store, call, root, changes, &mut kept, shown) {
            apply::remove_drafts(&kept);
            remove_dirs(&kept.made_dirs);
            self.drop(store, call);
            return Err(error);
        }
        crate::crash_point("kept");
        let lock = if self.locks_project { ProjectLock::wait(root) } else { ProjectLock::none() };
        let made = apply::apply(changes, &kept, shown);
        drop(lock);
        match made {
            Ok(()) => {
                let late = kept.let_go();
                kept.gap = told(kept.gap.take(), &late, shown);
                Ok(kept)
            }
            Err(Failed::Whole(error)) => {
                let late = kept.late_versions();
                if late.is_empty() {
                    self.drop(store, call);
                }
                Err(letting_go::after(error, &late, shown))
            }
            Err(Failed::Half(error)) => Err(error),
        }
    }

    /// Makes ready what the changes bring, and writes down what is about to happen before anything of it can be seen.
    fn write_down_and_prepare(
        store: &Store,
        call: &CallId,
        root: &Path,
        changes: &[Change],
        kept: &mut Kept,
        shown: &dyn Fn(&Path) -> String,
    ) -> Result<(), CallError> {
        let drafts = apply::prepare(changes, kept, shown)?;
        let vault = kept.vault().to_owned();
        // The disk is waited for once.
        let (written, settled) = std::thread::scope(|scope| {
            let settling = scope.spawn(|| apply::settle(changes, &drafts, &vault));
            let written = kept.write_down(store, call, root);
            let crashed = |_| Err(CallError::internal("nothing was changed: syncing crashed"));
            (written, settling.join().unwrap_or_else(crashed))
        });
        written.and(settled)?;
        let drafts = apply::prepare_new(changes, kept, shown)?;
        apply::settle(&[], &drafts, &vault)
    }

    fn unwritable(&self, error: &io::Error) -> CallError {
        CallError::internal(format!("the undo store {} cannot be written: {error}", self.dir.display()))
            .hint("nothing was changed; check the disk, or turn undo off with undo.max_total_bytes: 0")
    }

    /// What of these changes could not be taken back, and why.
    pub(crate) fn gap(&self, changes: &[Change]) -> Option<String> {
        keep::gap(changes, &self.limits)
    }

    /// Whether anything is kept at all.
    pub(crate) fn is_off(&self) -> bool {
        self.limits.max_total_bytes == 0
    }

    /// Keeps what is there of files that somebody else is about to change, durably. What they leave is noted when it is
    /// known.
    pub(crate) fn keep_files(
        &self,
        store: &Store,
        call: &CallId,
        root: &Path,
        files: &[KeptFile],
    ) -> Result<(), CallError> {
        let changes: Vec<Change> = files.iter().map(KeptFile::as_write).collect();
        let kept = Kept::plan(&self.dir, &self.limits, call.as_str(), None, (&changes, Keeping::Copied));
        let mut kept = kept.map_err(|error| self.unwritable(&error))?;
        kept.copy_images(files).map_err(|error| self.unwritable(&error))?;
        kept.write_down(store, call, root)
    }

    /// Drops what was kept for a call that failed and was taken back, or changed nothing.
    pub(crate) fn drop(&self, store: &Store, call: &CallId) {
        if store.drop_undo_blocking(call).is_ok() {
            let _ = apply::remove_kept(&self.of(call));
        }
    }

    /// Forgets what is too old or too much. Best effort: undo data that stays longer harms nobody. Only
    /// after changes are made: what is too old may be what they bring back.
    pub(crate) fn forget(&self, store: &Store) {
        let keep = i64::try_from(self.limits.keep.as_millis()).unwrap_or(i64::MAX);
        let max = i64::try_from(self.limits.max_total_bytes).unwrap_or(i64::MAX);
        for call in store.forget_undo_blocking(crate::now_ms().saturating_sub(keep), max).unwrap_or_default() {
            let _ = apply::remove_kept(&self.of(&call));
        }
    }

    /// Drops the images of steps that were taken back: they are where they came from. Best effort, too. What somebody wrote
    /// into one of them meanwhile stays, and so does what an undo that died has left in their places: what the call had made
    /// is nowhere else.
    pub(crate) fn release(&self, store: &Store, call: &CallId, steps: &[UndoStep]) -> Vec<LateVersion> {
        crate::crash_point("releasing");
        let (mut left, mut late) = (0, Vec::new());
        for (step, image) in steps.iter().filter_map(|step| Some((step, step.image.as_ref()?))) {
            let image = self.image(call, image);
            if step.action == keep::WRITE {
                left += keep::weight(&image).unwrap_or(0);
                continue;
            }
            late.extend(letting_go::release_image(&image, step));
            left += invert::names_of(&image).iter().filter_map(|name| keep::weight(name).ok()).sum::<u64>();
        }
        let _ = store.shrink_undo_blocking(call, i64::try_from(left).unwrap_or(i64::MAX));
        self.forget(store);
        late
    }

    /// Repairs what a process left half-made when it died in this call: drafts are removed, and files that have no name get theirs
    /// back. Nothing, if the call is still being carried out.
    pub(crate) fn sweep(&self, call: &CallId, steps: &[UndoStep]) {
        let Ok(Some(_held)) = keep::hold(&self.of(call)) else { return };
        for (number, step) in steps.iter().enumerate() {
            files::remove_draft(call.as_str(), number, &step.path);
            recover::recover(number, step, &self.of(call));
        }
    }

    /// Holds a call, so that no other process takes it back meanwhile. It is held until the value is dropped.
    pub(crate) fn hold(&self, call: &CallId) -> Result<Option<std::os::fd::OwnedFd>, CallError> {
        match keep::hold(&self.of(call)) {
            Ok(None) => Err(CallError::conflict(format!("{call} is being carried out or taken back right now"))
                .hint("wait until that has ended, then look at `haft changes`")),
            Ok(held) => Ok(held),
            // Nothing is kept, so nothing can be taken.
            Err(_) => Ok(None),
        }
    }
}

/// Removes directories that a call made, innermost first, as long as they are empty.
pub(crate) fn remove_dirs(dirs: &[PathBuf]) {
    for dir in dirs.iter().rev() {
        if std::fs::remove_dir(dir).is_err() {
            break;
        }
    }
}
