//! What is kept of one call while it is carried out, and afterwards until it can no longer be undone.

use super::{KeptFile, UndoLimits, Vault};
use crate::apply::{self, Draft, ExchangedFrom, FileMetadata, Identity, Shelves, Slot, spot_in};
use crate::shared_data;
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use haft_core::{CallError, CallId, path_text};
use haft_sandbox::layer::{at, tree};
use haft_store::{Store, UndoCall, UndoStep};
use rustix::fs::{FileType, FlockOperation};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A write of a file that was not there, or, in what earlier versions stored, of any file, whose image is then a private copy.
pub(super) const WRITE: &str = "write";
/// Something takes a place; what was there is the image.
pub(super) const PLACE: &str = "place";
/// A file that somebody else was about to change; the image is a copy of it with all its metadata.
pub(super) const COPY: &str = "copy";

/// In a call's directory: what was taken out when its steps were taken back.
pub(super) const BACK: &str = "back";

/// How the before-images of a call come to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// haft moves away what it replaces.
    Moved,
    /// Somebody else will change the files, so they are copied.
    Copied,
}

/// The before-images of one call, kept on disk, and the steps that they undo.
pub(crate) struct Kept {
    /// The name of the call.
    call: String,
    /// Its directory in the vault.
    dir: PathBuf,
    vault: PathBuf,
    pub(super) steps: Vec<UndoStep>,
    /// The directory of each step's image.
    shelves: Vec<PathBuf>,
    /// The image of another call that a step brings back, by step.
    origins: BTreeMap<usize, PathBuf>,
    /// What replaced files had, by step.
    metadata: BTreeMap<usize, FileMetadata>,
    /// The directories whose modes are changed, by step.
    identities: BTreeMap<usize, Identity>,
    /// What files have that the call puts in their places, by step.
    made: BTreeMap<usize, FileMetadata>,
    /// The steps whose images are too large to stay once everything is done.
    excess: BTreeSet<usize>,
    bytes: u64,
    pub(super) made_dirs: Vec<PathBuf>,
    undoes: Option<CallId>,
    /// What could not be kept, and why.
    pub(crate) gap: Option<String>,
    /// Says to other processes that this call is being carried out.
    _lock: OwnedFd,
}

impl Kept {
    /// Plans the steps of changes and makes room for what they will take away.
    pub(super) fn plan(
        vault: &Path,
        limits: &UndoLimits,
        call: &str,
        undoes: Option<&CallId>,
        (changes, keeping): (&[Change], Keeping),
    ) -> io::Result<Self> {
        shared_data::make_directory(vault)?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(vault.join(call))?;
        let vault = vault.canonicalize()?;
        let dir = vault.join(call);
        let lock = hold(&dir)?.ok_or_else(|| io::Error::from(io::ErrorKind::ResourceBusy))?;
        let mut shelves = Shelves::new(&dir, call)?;
        let mut kept = Self {
            call: call.to_owned(),
            steps: Vec::new(),
            shelves: Vec::new(),
            origins: BTreeMap::new(),
            metadata: BTreeMap::new(),
            identities: BTreeMap::new(),
            made: BTreeMap::new(),
            excess: BTreeSet::new(),
            bytes: 0,
            made_dirs: missing_dirs(changes, &vault),
            undoes: undoes.cloned(),
            gap: None,
            _lock: lock,
            dir,
            vault,
        };
        for change in changes {
            let needs_shelf = keeping == Keeping::Moved
                && !matches!(change, Change::Mode { .. } | Change::Write { before: State::Absent, .. });
            kept.shelves.push(if needs_shelf { shelves.for_path(change.path())? } else { kept.dir.clone() });
            if let Change::Place { staged, .. } = change
                && apply::is_image(staged, &kept.vault)
            {
                kept.origins.insert(kept.steps.len(), staged.clone());
            }
            kept.plan_step(change, limits)?;
        }
        Ok(kept)
    }

    /// Plans one step: makes room for what the change will move away, if there is anything.
    fn plan_step(&mut self, change: &Change, limits: &UndoLimits) -> io::Result<()> {
        let mut step = step_of(change);
        let number = self.steps.len();
        let is_image = step.before != State::Absent && !matches!(change, Change::Mode { .. });
        if is_image {
            step.image = Some(self.image_name(number));
        }
        if is_image && !matches!(change, Change::Move { .. }) {
            let size = weight(&step.path)?;
            let limit = if step.before.is_tree() { u64::MAX } else { limits.max_file_bytes };
            if size <= limit && self.bytes.saturating_add(size) <= limits.max_total_bytes {
                self.bytes += size;
            } else {
                let limit = limit.min(limits.max_total_bytes);
                let path = path_text::show(step.path.as_os_str());
                self.gap = Some(format!("{path} ({size} bytes) is larger than the undo limit of {limit} bytes"));
                self.excess.insert(number);
            }
        }
        self.steps.push(step);
        Ok(())
    }

    /// An image's name as it is stored: in the vault by its number, elsewhere by its path.
    fn image_name(&self, number: usize) -> String {
        let dir = &self.shelves[number];
        if *dir == self.dir { number.to_string() } else { path_text::store(&dir.join(number.to_string())) }
    }

    /// Where a step keeps what it takes away.
    pub(crate) fn slot(&self, number: usize) -> Slot<'_> {
        Slot {
            call: &self.call,
            vault: &self.vault,
            dir: &self.shelves[number],
            number,
            draft: self.metadata.get(&number).map(|metadata| Draft { after: &self.steps[number].after, metadata }),
            identity: self.identity(number),
            exchanged_from: ExchangedFrom::Image,
        }
    }

    /// Where a step that is taken back keeps what it takes away: an image of another call where it came from, so that the
    /// other call can still be undone.
    pub(super) fn back(&self, number: usize) -> io::Result<BackSlot<'_>> {
        let identity = self.identity(number);
        let (call, vault) = (self.call.as_str(), self.vault.as_path());
        let made = self.made.get(&number).map(|metadata| Draft { after: &self.steps[number].after, metadata });
        if let Some(origin) = self.origins.get(&number).filter(|origin| origin.symlink_metadata().is_err())
            && let (Some(dir), Some(name)) = (origin.parent(), origin.file_name())
            && let Some(number) = name.to_str().and_then(|name| name.parse().ok())
        {
            let exchanged_from = ExchangedFrom::Slot;
            return Ok(BackSlot { call, vault, dir: dir.to_owned(), number, identity, made, exchanged_from });
        }
        let dir = match &self.shelves[number] {
            // A new file has no image, but is taken out within its mount all the same.
            dir if *dir == self.dir && self.steps[number].before == State::Absent => {
                Shelves::new(&self.dir, &self.call)?.for_path(&self.steps[number].path)?
            }
            dir => dir.clone(),
        };
        let dir = dir.join(BACK);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        Ok(BackSlot { call, vault, dir, number, identity, made, exchanged_from: ExchangedFrom::Image })
    }

    /// Notes which directory it is whose mode a step changes: another one under its name is left alone.
    pub(crate) fn identified(&mut self, number: usize, identity: Identity) {
        self.identities.insert(number, identity);
    }

    fn identity(&self, number: usize) -> Option<Identity> {
        self.identities.get(&number).copied()
    }

    pub(super) fn vault(&self) -> &Path {
        &self.vault
    }

    /// The images' directory in the vault.
    pub(super) fn images(&self) -> &Path {
        &self.dir
    }

    /// Notes what stands ready to replace a file, and what the file must still have when it is replaced.
    pub(crate) fn prepared(&mut self, number: usize, after: State, metadata: FileMetadata) {
        self.steps[number].after = after;
        self.metadata.insert(number, metadata);
    }

    /// Notes what a file has that the call puts in its place: taken back, it must still have that.
    pub(crate) fn made(&mut self, number: usize, metadata: FileMetadata) {
        self.made.insert(number, metadata);
    }

    /// The files that are new, by step.
    pub(crate) fn new_files(&self) -> impl Iterator<Item = (usize, &Path)> {
        let is_new = |step: &UndoStep| step.action == WRITE && step.before == State::Absent;
        self.steps
            .iter()
            .enumerate()
            .filter(move |(_, step)| is_new(step))
            .map(|(number, step)| (number, step.path.as_path()))
    }

    /// Whether these are steps that take another call back.
    pub(crate) fn is_undo(&self) -> bool {
        self.undoes.is_some()
    }

    /// Says in the store what is about to happen, durably.
    pub(super) fn write_down(&self, store: &Store, call: &CallId, root: &Path) -> Result<(), CallError> {
        let undo = UndoCall {
            call_id: call.clone(),
            at_ms: 0,
            root: path_text::store(root),
            bytes: i64::try_from(self.bytes).unwrap_or(i64::MAX),
            dirs: self.made_dirs.clone(),
            gap: self.gap.clone(),
            undoes: self.undoes.as_ref().map(ToString::to_string),
            undone_by: None,
            host: None,
        };
        // Nothing will be found where nothing stays.
        let mut steps = self.steps.clone();
        self.excess.iter().for_each(|number| steps[*number].image = None);
        store.keep_undo_blocking(undo, steps).map_err(crate::store_error)
    }

    /// The steps whose images are too large to stay.
    pub(super) fn excess(&self) -> impl Iterator<Item = usize> {
        self.excess.iter().copied()
    }

    /// Removes all that is kept.
    pub(super) fn remove(&self) {
        let _ = apply::remove_kept(&self.dir);
    }

    /// Copies what somebody else is about to change: all of it, or nothing stays.
    pub(super) fn copy_images(&mut self, files: &[KeptFile]) -> io::Result<()> {
        let mut copies = Vec::new();
        let done = self
            .copy_each(files, &mut copies)
            .and_then(|()| apply::settle(&[], &copies, &self.vault).map_err(|error| io::Error::other(error.message)));
        done.inspect_err(|_| {
            for copy in &copies {
                let _ = std::fs::remove_file(copy);
            }
            let _ = std::fs::remove_dir(&self.dir);
        })
    }

    fn copy_each(&mut self, files: &[KeptFile], copies: &mut Vec<PathBuf>) -> io::Result<()> {
        let mut copying = apply::Copying::default();
        for (number, file) in files.iter().enumerate() {
            let step = &mut self.steps[number];
            COPY.clone_into(&mut step.action);
            step.after = file.after.clone();
            // It is not moved away, so it need not be near.
            if step.before == State::Absent || self.excess.contains(&number) {
                continue;
            }
            step.image = Some(number.to_string());
            let image = spot_in(&self.dir, number.to_string())?;
            copying.copy(&apply::Spot::of(&step.path)?, &image)?;
            copies.push(image.path);
        }
        Ok(())
    }
}

/// The slot of a step that is taken back.
pub(super) struct BackSlot<'a> {
    call: &'a str,
    vault: &'a Path,
    dir: PathBuf,
    number: usize,
    identity: Option<Identity>,
    /// What the step made.
    made: Option<Draft<'a>>,
    exchanged_from: ExchangedFrom,
}

impl BackSlot<'_> {
    pub(super) fn slot(&self) -> Slot<'_> {
        Slot {
            call: self.call,
            vault: self.vault,
            dir: &self.dir,
            number: self.number,
            draft: self.made,
            identity: self.identity,
            exchanged_from: self.exchanged_from,
        }
    }
}

/// Holds a call: none if somebody else does. It ends with the process, whatever becomes of it, and is seen from every
/// namespace.
pub(crate) fn hold(dir: &Path) -> io::Result<Option<OwnedFd>> {
    let held = at::open_dir(dir)?;
    match rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(None),
        // Some network file systems have no locks: then nobody can be asked.
        Ok(()) | Err(Errno::NOSYS | Errno::NOTSUP | Errno::NOLCK) => Ok(Some(held)),
        Err(error) => Err(error.into()),
    }
}

/// What of these changes could not be taken back, and why.
pub(super) fn gap(changes: &[Change], limits: &UndoLimits) -> Option<String> {
    let mut total = 0_u64;
    changes.iter().find_map(|change| {
        let step = step_of(change);
        if step.before == State::Absent || matches!(change, Change::Move { .. } | Change::Mode { .. }) {
            return None;
        }
        let size = weight(&step.path).unwrap_or(u64::MAX);
        total = total.saturating_add(size);
        let limit = if step.before.is_tree() { u64::MAX } else { limits.max_file_bytes };
        let fits = size <= limit && total <= limits.max_total_bytes;
        let path = path_text::show(step.path.as_os_str());
        (!fits).then(|| format!("{path} ({size} bytes) is beyond what undo keeps"))
    })
}

/// How much what stands at a path takes: of a directory, everything in it.
pub(super) fn weight(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    tree::each(path, &mut |entry| {
        if at::kind(entry.stat) == FileType::RegularFile {
            bytes += at::size(entry.stat);
        }
        Ok(())
    })?;
    Ok(bytes)
}

fn step_of(change: &Change) -> UndoStep {
    let (action, target, after) = match change {
        Change::Write { content, before, mode, .. } => {
            let kept = if let State::File { mode, .. } = before { Some(*mode) } else { None };
            // The mode of a new file is not known yet.
            let mode = mode.or(kept).unwrap_or(0);
            let action = if *before == State::Absent { WRITE } else { PLACE };
            (action, None, State::File { digest: Digest::of(content), mode })
        }
        Change::Move { to, .. } => ("move", Some(to.clone()), State::Absent),
        Change::Remove { .. } => ("remove", None, State::Absent),
        Change::Place { after, .. } => (PLACE, None, after.clone()),
        Change::Mode { mode, .. } => ("mode", None, State::Dir { mode: *mode }),
    };
    let (path, before) = (change.path().clone(), change.before().clone());
    UndoStep { action: action.to_owned(), path, target, before, after, image: None }
}

/// The directories that have to be made for these changes, outermost first.
fn missing_dirs(changes: &[Change], vault: &Path) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Write { path, .. } => Some(path),
            Change::Move { to, .. } => Some(to),
            Change::Place { path, staged, .. } => apply::is_image(staged, vault).then_some(path),
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

impl Vault {
    /// Where a stored image is.
    pub(super) fn image(&self, call: &CallId, image: &str) -> PathBuf {
        image_path(&self.of(call), image)
    }
}

/// Where a stored image is, of a call whose images are in a directory.
pub(super) fn image_path(images: &Path, image: &str) -> PathBuf {
    images.join(path_text::load(image))
}
