//! Taking calls back: what was there before is kept before anything is changed, and restored exactly
//! (content, mode, absence) if nobody has changed it since.
//!
//! The vault is a directory with one directory for each call, and in it one image for each step, named by
//! the step's number. The images of written files are copies; everything else is moved there as it was.

#[cfg(test)]
mod bench;
mod changes;
#[cfg(test)]
mod dying;
mod invert;
#[cfg(test)]
mod laws;
pub mod loose;
#[cfg(test)]
mod tests;

pub(crate) use changes::changes;
pub(crate) use invert::{alike, same, take_back};

use crate::apply::{self, Failed, Slot};
use crate::files;
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use haft_core::{CallError, CallId};
use haft_sandbox::layer::{at, remove_all, tree};
use haft_store::{Store, UndoCall, UndoStep};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoLimits {
    /// A larger file is changed without a before-image, and the reply says so. For a directory with
    /// everything in it, only the limit below counts.
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

/// The before-images of one call, kept on disk, and the steps that they undo.
pub(crate) struct Kept {
    dir: PathBuf,
    vault: PathBuf,
    steps: Vec<UndoStep>,
    /// The steps whose images are too large to stay once everything is done.
    excess: BTreeSet<usize>,
    made_dirs: Vec<PathBuf>,
    undoes: Option<CallId>,
    /// What could not be kept, and why.
    pub(crate) gap: Option<String>,
}

impl Kept {
    /// Where a step keeps what it takes away.
    pub(crate) fn slot(&self, number: usize) -> Slot<'_> {
        Slot { vault: &self.vault, dir: &self.dir, number, copy: !self.excess.contains(&number) }
    }

    /// Whether these are steps that take another call back.
    pub(crate) fn is_undo(&self) -> bool {
        self.undoes.is_some()
    }

    /// The steps as they are stored: nothing will be found where nothing stays.
    fn rows(&self) -> Vec<UndoStep> {
        let mut steps = self.steps.clone();
        self.excess.iter().for_each(|number| steps[*number].image = None);
        steps
    }

    /// Removes what is too large to stay.
    fn let_go(&self) {
        for number in &self.excess {
            let _ = remove_all(&self.dir.join(number.to_string()));
        }
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
}

impl Vault {
    pub(crate) fn new(data_dir: &Path, limits: UndoLimits) -> Self {
        Self { dir: data_dir.join("undo"), limits }
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
        let (kept, settled) = self.keep_and_settle(store, (call, undoes), root, changes);
        let kept = kept?;
        if let Err(error) = settled {
            self.drop(store, call);
            return Err(error);
        }
        crate::crash_point("kept");
        match apply::apply(changes, &kept, shown) {
            Ok(()) => {
                kept.let_go();
                Ok(kept)
            }
            Err(Failed::Whole(error)) => {
                self.drop(store, call);
                Err(error)
            }
            Err(Failed::Half(error)) => Err(error),
        }
    }

    /// Writes the undo data, and meanwhile brings what is staged onto the disk.
    fn keep_and_settle(
        &self,
        store: &Store,
        (call, undoes): (&CallId, Option<&CallId>),
        root: &Path,
        changes: &[Change],
    ) -> (Result<Kept, CallError>, Result<(), CallError>) {
        if !changes.iter().any(|change| matches!(change, Change::Place { .. })) {
            return (self.keep(store, call, root, changes, undoes), Ok(()));
        }
        let vault = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        std::thread::scope(|scope| {
            let settling = scope.spawn(|| apply::settle(changes, &vault));
            let kept = self.keep(store, call, root, changes, undoes);
            let crashed = |_| Err(CallError::internal("nothing was changed: syncing crashed"));
            (kept, settling.join().unwrap_or_else(crashed))
        })
    }

    /// What of these changes could not be taken back, and why.
    pub(crate) fn gap(&self, changes: &[Change]) -> Option<String> {
        let mut total = 0_u64;
        changes.iter().find_map(|change| {
            let step = plan(change);
            if step.before == State::Absent || matches!(change, Change::Move { .. } | Change::Mode { .. }) {
                return None;
            }
            let size = weight(&step.path).unwrap_or(u64::MAX);
            total = total.saturating_add(size);
            let limit = if step.before.is_tree() { u64::MAX } else { self.limits.max_file_bytes };
            let fits = size <= limit && total <= self.limits.max_total_bytes;
            (!fits).then(|| format!("{} ({size} bytes) is beyond what undo keeps", step.path.display()))
        })
    }

    /// Keeps what it takes to undo `changes`, durably, before they are made.
    fn keep(
        &self,
        store: &Store,
        call: &CallId,
        root: &Path,
        changes: &[Change],
        undoes: Option<&CallId>,
    ) -> Result<Kept, CallError> {
        let fail = |error: io::Error| {
            CallError::internal(format!("the undo store {} cannot be written: {error}", self.dir.display()))
                .hint("nothing was changed; check the disk, or turn undo off with undo.max_total_bytes: 0")
        };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(self.dir.join(call.as_str())).map_err(fail)?;
        let vault = self.dir.canonicalize().map_err(fail)?;
        let mut kept = Kept {
            dir: self.of(call),
            steps: Vec::new(),
            excess: BTreeSet::new(),
            made_dirs: missing_dirs(changes, &vault),
            vault,
            undoes: undoes.cloned(),
            gap: None,
        };
        let mut bytes = 0;
        for change in changes {
            bytes += self.keep_one(&mut kept, change, bytes).map_err(fail)?;
        }
        File::open(&kept.dir).and_then(|dir| dir.sync_all()).map_err(fail)?;
        let undo = UndoCall {
            call_id: call.clone(),
            at_ms: 0,
            root: root.to_string_lossy().into_owned(),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            dirs: kept.made_dirs.clone(),
            gap: kept.gap.clone(),
            undoes: undoes.map(ToString::to_string),
            undone_by: None,
            host: None,
        };
        store.keep_undo_blocking(undo, kept.rows()).map_err(crate::store_error)?;
        Ok(kept)
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
        let fail = |error: io::Error| {
            CallError::internal(format!("the undo store {} cannot be written: {error}", self.dir.display()))
                .hint("check the disk, or turn undo off with undo.max_total_bytes: 0")
        };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(self.dir.join(call.as_str())).map_err(fail)?;
        let vault = self.dir.canonicalize().map_err(fail)?;
        let changes: Vec<Change> = files.iter().map(KeptFile::as_write).collect();
        let mut kept = Kept {
            dir: self.of(call),
            steps: Vec::new(),
            excess: BTreeSet::new(),
            made_dirs: missing_dirs(&changes, &vault),
            vault,
            undoes: None,
            gap: None,
        };
        let mut bytes = 0;
        for change in &changes {
            bytes += self.keep_one(&mut kept, change, bytes).map_err(fail)?;
        }
        for (step, file) in kept.steps.iter_mut().zip(files) {
            step.after = file.after.clone();
        }
        File::open(&kept.dir).and_then(|dir| dir.sync_all()).map_err(fail)?;
        let undo = UndoCall {
            call_id: call.clone(),
            at_ms: 0,
            root: root.to_string_lossy().into_owned(),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            dirs: kept.made_dirs.clone(),
            gap: kept.gap.clone(),
            undoes: None,
            undone_by: None,
            host: None,
        };
        store.keep_undo_blocking(undo, kept.rows()).map_err(crate::store_error)
    }

    /// Keeps one change's before-image, or makes room for what the change itself will move there, and
    /// returns its size.
    fn keep_one(&self, kept: &mut Kept, change: &Change, so_far: u64) -> io::Result<u64> {
        let mut step = plan(change);
        let nothing = step.before == State::Absent || matches!(change, Change::Move { .. } | Change::Mode { .. });
        let mut bytes = 0;
        if !nothing {
            let (number, size) = (kept.steps.len(), weight(&step.path)?);
            let limit = if step.before.is_tree() { u64::MAX } else { self.limits.max_file_bytes };
            let fits = size <= limit && so_far + size <= self.limits.max_total_bytes;
            let copied = matches!(change, Change::Write { .. });
            if fits {
                bytes = size;
            } else {
                let limit = limit.min(self.limits.max_total_bytes);
                let path = step.path.display();
                kept.gap = Some(format!("{path} ({size} bytes) is larger than the undo limit of {limit} bytes"));
                kept.excess.insert(number);
            }
            if copied && fits {
                copy(&step.path, &kept.dir.join(number.to_string()))?;
            }
            step.image = (fits || !copied).then(|| number.to_string());
        }
        kept.steps.push(step);
        Ok(bytes)
    }

    /// Drops what was kept for a call that failed and was taken back, or changed nothing.
    pub(crate) fn drop(&self, store: &Store, call: &CallId) {
        if store.drop_undo_blocking(call).is_ok() {
            let _ = remove_all(&self.of(call));
        }
    }

    /// Forgets what is too old or too much. Best effort: undo data that stays longer harms nobody. Only
    /// after changes are made: what is too old may be what they bring back.
    pub(crate) fn forget(&self, store: &Store) {
        let keep = i64::try_from(self.limits.keep.as_millis()).unwrap_or(i64::MAX);
        let max = i64::try_from(self.limits.max_total_bytes).unwrap_or(i64::MAX);
        for call in store.forget_undo_blocking(crate::now_ms().saturating_sub(keep), max).unwrap_or_default() {
            let _ = remove_all(&self.of(&call));
        }
    }

    /// Drops the images of a call that was taken back: they are where they came from. Best effort, too.
    pub(crate) fn release(&self, store: &Store, call: &CallId, steps: &[UndoStep]) {
        let dir = self.of(call);
        let mut left = 0;
        for (step, image) in steps.iter().filter_map(|step| Some((step, step.image.as_ref()?))) {
            if step.action == "write" {
                left += weight(&dir.join(image)).unwrap_or(0);
                continue;
            }
            for name in [image.clone(), apply::coming(image)] {
                let _ = remove_all(&dir.join(name));
            }
        }
        let _ = store.shrink_undo_blocking(call, i64::try_from(left).unwrap_or(i64::MAX));
        self.forget(store);
    }

    /// The changes that take a call back, if everything still stands as the call left it.
    pub(crate) fn inverse(
        &self,
        call: &UndoCall,
        steps: &[UndoStep],
        shown: &dyn Fn(&Path) -> String,
    ) -> Result<Vec<Change>, CallError> {
        if let Some(by) = &call.undone_by {
            return Err(CallError::conflict(format!("{} was undone already, by {by}", call.call_id)));
        }
        if let Some(gap) = &call.gap {
            return Err(CallError::conflict(format!("{} cannot be undone: {gap}", call.call_id)));
        }
        let (changes, touched) = invert::all(steps, &self.of(&call.call_id))
            .map_err(|why| CallError::internal(format!("{} cannot be undone: {why}", call.call_id)))?;
        if touched.is_empty() {
            return Ok(changes);
        }
        let list = touched.iter().map(|path| shown(path)).collect::<Vec<_>>().join(", ");
        Err(CallError::conflict(format!("{} cannot be undone: changed since: {list}", call.call_id))
            .hint(format!("`haft changes {}` shows what the call did", call.call_id)))
    }
}

/// How much what stands at a path takes: of a directory, everything in it.
fn weight(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    tree::each(path, &mut |entry| {
        if at::kind(entry.stat) == FileType::RegularFile {
            bytes += at::size(entry.stat);
        }
        Ok(())
    })?;
    Ok(bytes)
}

fn plan(change: &Change) -> UndoStep {
    let (action, target, after) = match change {
        Change::Write { content, before, mode, .. } => {
            let kept = if let State::File { mode, .. } = before { Some(*mode) } else { None };
            // For a new file the mode follows from the umask; the digest alone then says what is there.
            let mode = mode.or(kept).unwrap_or(0);
            ("write", None, State::File { digest: Digest::of(content), mode })
        }
        Change::Move { to, .. } => ("move", Some(to.clone()), State::Absent),
        Change::Remove { .. } => ("remove", None, State::Absent),
        Change::Place { after, .. } => ("place", None, after.clone()),
        Change::Mode { mode, .. } => ("mode", None, State::Dir { mode: *mode }),
    };
    let (path, before) = (change.path().clone(), change.before().clone());
    UndoStep { action: action.to_owned(), path, target, before, after, image: None }
}

/// Removes directories that a call made, innermost first, as long as they are empty.
pub(crate) fn remove_dirs(dirs: &[PathBuf]) {
    for dir in dirs.iter().rev() {
        if std::fs::remove_dir(dir).is_err() {
            break;
        }
    }
}

/// The directories that have to be made for these changes, outermost first.
fn missing_dirs(changes: &[Change], vault: &Path) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Write { path, .. } => Some(path),
            Change::Move { to, .. } => Some(to),
            Change::Place { path, staged, .. } => staged.starts_with(vault).then_some(path),
            Change::Remove { .. } | Change::Mode { .. } => None,
        })
        .flat_map(|path| {
            path.ancestors().skip(1).take_while(|dir| !dir.exists()).map(Path::to_owned).collect::<Vec<_>>()
        })
        .collect();
    dirs.sort();
    dirs.dedup();
    dirs
}

/// Copies a file's content to a private, durable one.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = files::open(from)?;
    let mut image = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut source, &mut image)?;
    image.sync_all()
}
