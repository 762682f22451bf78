//! Taking calls back: what was there before is kept before anything is changed, and restored exactly
//! (content, mode, absence) if nobody has changed it since.

use crate::{apply, files};
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use haft_core::{CallError, CallId};
use haft_store::{Store, UndoCall, UndoStep};
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoLimits {
    /// A larger file is changed without a before-image, and the reply says so.
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
    steps: Vec<UndoStep>,
    made_dirs: Vec<PathBuf>,
    /// What could not be kept, and why.
    pub(crate) gap: Option<String>,
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

    fn of(&self, call: &CallId) -> PathBuf {
        self.dir.join(call.as_str())
    }

    /// Keeps what it takes to undo `changes`, durably, before they are made.
    pub(crate) fn keep(
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
        let dir = self.of(call);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(fail)?;
        let mut kept = Kept { dir, steps: Vec::new(), made_dirs: missing_dirs(changes), gap: None };
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
        };
        store.keep_undo_blocking(undo, kept.steps.clone()).map_err(crate::store_error)?;
        self.forget(store);
        Ok(kept)
    }

    /// Keeps one change's before-image and returns its size.
    fn keep_one(&self, kept: &mut Kept, change: &Change, so_far: u64) -> io::Result<u64> {
        let mut step = plan(change);
        let mut bytes = 0;
        if let (true, State::File { .. }) = (step.action != "move", &step.before) {
            let size = std::fs::metadata(&step.path)?.len();
            if size > self.limits.max_file_bytes || so_far + size > self.limits.max_total_bytes {
                let limit = self.limits.max_file_bytes.min(self.limits.max_total_bytes);
                kept.gap = Some(format!(
                    "{} ({size} bytes) is larger than the undo limit of {limit} bytes",
                    step.path.display()
                ));
            } else {
                let image = kept.steps.len().to_string();
                copy(&step.path, &kept.dir.join(&image))?;
                step.image = Some(image);
                bytes = size;
            }
        }
        kept.steps.push(step);
        Ok(bytes)
    }

    /// Drops what was kept for a call that failed and was taken back.
    pub(crate) fn drop(&self, store: &Store, call: &CallId) {
        if store.drop_undo_blocking(call).is_ok() {
            let _ = std::fs::remove_dir_all(self.of(call));
        }
    }

    /// Forgets what is too old or too much. Best effort: undo data that stays longer harms nobody.
    fn forget(&self, store: &Store) {
        let keep = i64::try_from(self.limits.keep.as_millis()).unwrap_or(i64::MAX);
        let max = i64::try_from(self.limits.max_total_bytes).unwrap_or(i64::MAX);
        for call in store.forget_undo_blocking(crate::now_ms().saturating_sub(keep), max).unwrap_or_default() {
            let _ = std::fs::remove_dir_all(self.of(&call));
        }
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
        let dir = self.of(&call.call_id);
        let mut changes = Vec::new();
        let mut touched = Vec::new();
        for step in steps.iter().rev() {
            match invert(step, &dir) {
                Ok(change) => changes.extend(change),
                Err(Stuck::Changed(path)) => touched.push(shown(&path)),
                Err(Stuck::Lost(why)) => {
                    return Err(CallError::internal(format!("{} cannot be undone: {why}", call.call_id)));
                }
            }
        }
        if touched.is_empty() {
            return Ok(changes);
        }
        let list = touched.join(", ");
        Err(CallError::conflict(format!("{} cannot be undone: changed since: {list}", call.call_id))
            .hint(format!("`haft changes {}` shows what the call did", call.call_id)))
    }

    /// The content that a step's before-image keeps.
    pub(crate) fn image(&self, call: &CallId, step: &UndoStep) -> Option<Vec<u8>> {
        std::fs::read(self.of(call).join(step.image.as_ref()?)).ok()
    }
}

/// Why a step cannot be inverted.
enum Stuck {
    /// Somebody changed the file since.
    Changed(PathBuf),
    /// The before-image is gone or damaged.
    Lost(String),
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
    };
    let before = match change {
        Change::Write { before, .. } | Change::Move { before, .. } | Change::Remove { before, .. } => before.clone(),
    };
    UndoStep { action: action.to_owned(), path: change.path().clone(), target, before, after, image: None }
}

/// Whether what stands somewhere is what was left there. A mode of zero was not known beforehand.
fn same(now: &State, left: &State) -> bool {
    match (now, left) {
        (State::File { digest: a, .. }, State::File { digest: b, mode: 0 }) => a == b,
        _ => now == left,
    }
}

/// The change that takes a step back; none if it was never made.
fn invert(step: &UndoStep, images: &Path) -> Result<Option<Change>, Stuck> {
    let changed = || Stuck::Changed(step.path.clone());
    let now = files::state(&step.path).map_err(|_| changed())?;
    if let Some(target) = &step.target {
        let there = files::state(target).map_err(|_| changed())?;
        return match (now, there) {
            (State::Absent, there) if there == step.before => {
                Ok(Some(Change::Move { from: target.clone(), to: step.path.clone(), before: there }))
            }
            (now, State::Absent) if now == step.before => Ok(None),
            _ => Err(changed()),
        };
    }
    if !same(&now, &step.after) {
        return if now == step.before { Ok(None) } else { Err(changed()) };
    }
    match &step.before {
        State::Absent => Ok(Some(Change::Remove { path: step.path.clone(), before: now })),
        State::File { digest, mode } => {
            let image = step.image.as_ref().ok_or_else(|| Stuck::Lost("its before-image was not kept".to_owned()))?;
            let content = std::fs::read(images.join(image)).map_err(|error| Stuck::Lost(error.to_string()))?;
            if Digest::of(&content) != *digest {
                return Err(Stuck::Lost("its before-image is damaged".to_owned()));
            }
            Ok(Some(Change::Write { path: step.path.clone(), content, before: now, mode: Some(*mode) }))
        }
    }
}

/// Takes back the first `done` steps of a call that failed half-way.
pub(crate) fn take_back(kept: &Kept, done: usize) -> Result<(), String> {
    for step in kept.steps[..done].iter().rev() {
        let change = invert(step, &kept.dir).map_err(|stuck| match stuck {
            Stuck::Changed(path) => format!("{} changed", path.display()),
            Stuck::Lost(why) => why,
        })?;
        let undone = match change {
            Some(Change::Write { path, content, mode, .. }) => files::replace(&path, &content, mode),
            Some(Change::Move { from, to, .. }) => files::rename(&from, &to),
            Some(Change::Remove { path, .. }) => files::remove(&path),
            None => Ok(()),
        };
        undone.map_err(|error| error.to_string())?;
    }
    remove_dirs(&kept.made_dirs);
    Ok(())
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
fn missing_dirs(changes: &[Change]) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Write { path, .. } => Some(path),
            Change::Move { to, .. } => Some(to),
            Change::Remove { .. } => None,
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

/// What a call changed, as a diff from before to now.
pub(crate) fn changes(vault: &Vault, call: &UndoCall, steps: &[UndoStep], shown: &dyn Fn(&Path) -> String) -> String {
    let mut text = String::new();
    for step in steps {
        let name = shown(&step.path);
        if let Some(target) = &step.target {
            text.push_str(&format!("rename {name} -> {}\n", shown(target)));
            continue;
        }
        let now = files::state(&step.path).unwrap_or(State::Absent);
        if now == step.before {
            text.push_str(&format!("# {name} is as it was before the call\n"));
            continue;
        }
        if !same(&now, &step.after) {
            text.push_str(&format!("# {name} has changed since; this is the difference to what is there now\n"));
        }
        let old = vault.image(&call.call_id, step);
        if old.is_none() && step.before != State::Absent {
            text.push_str(&format!("# {name}: what was there before was not kept\n"));
        }
        let new = files::load(&step.path, &name, files::LOAD_MAX).map(|(content, _)| content).unwrap_or_default();
        let (created, removed) = (step.before == State::Absent, now == State::Absent);
        text.push_str(&apply::text_diff(&old.unwrap_or_default(), &new, &name, created, removed));
    }
    text
}
