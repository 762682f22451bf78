//! Walking a tree: what glob, grep and list share.
//!
//! Which directories are left out, when a walk looks up to see whether it should stop, and what becomes
//! of places that cannot be read is decided here, so that all of them see the same tree. Links are never
//! followed: a walk stays below where it started and cannot run in a circle.

mod guard;
mod ignore_files;
mod ignore_rules;
mod troubles;

pub(super) use ignore_files::exclude_file_of;
pub(super) use ignore_rules::{Unsound, require_sound};
pub(super) use troubles::Troubles;

use crate::files;
use crate::halt::Halt;
use crate::scene::Scene;
use guard::Guard;
use haft_core::CallError;
use haft_core::place::Place;
use ignore::{DirEntry, WalkBuilder, WalkState};
use ignore_rules::IgnoreRules;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// More threads than this wait for each other in the kernel.
const MAX_THREADS: usize = 8;
/// How many entries a thread takes between two looks at the clock and the halt.
const ENTRIES_PER_LOOK: usize = 128;
/// How long the listener waits between two messages.
const BETWEEN_MESSAGES: Duration = Duration::from_secs(1);

/// Where version control keeps its own things.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".svn"];
/// Directories that tools fill and people do not read.
const MADE_DIRS: &[&str] = &["node_modules", "__pycache__", "vendor", "dist", "build"];

/// What a walk leaves out beside version control directories, which it always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    /// Nothing more.
    Nothing,
    /// What `.gitignore` and `.ignore` files name, whether or not there is a repository.
    Ignored,
    /// That, and what machines make: dependencies, build results, caches.
    IgnoredAndMade,
}

/// The part of the file system that a walk covers.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    /// Where it starts. What is named as the start is walked even if it is ignored.
    pub start: &'a Path,
    /// What it leaves out.
    pub skip: Skip,
    /// Names that the first levels must have, so that `src/**` reads nothing but `src`.
    pub within: Vec<OsString>,
    /// How many levels it goes down.
    pub depth: Option<usize>,
}

impl<'a> Tree<'a> {
    /// Everything below a directory, except what is left out.
    pub(super) fn new(start: &'a Path, skip: Skip) -> Self {
        Self { start, skip, within: Vec::new(), depth: None }
    }

    /// The walk itself, not yet begun, and what it will have had to leave out.
    pub(super) fn walker(&self) -> (WalkBuilder, Unsound) {
        self.walker_until(None)
    }

    fn walker_until(&self, halt: Option<Halt>) -> (WalkBuilder, Unsound) {
        let (skip, within, unsound) = (self.skip, self.within.clone(), Unsound::default());
        let rules = (skip != Skip::Nothing).then(|| IgnoreRules::new(self.start, unsound.clone(), halt));
        let mut builder = WalkBuilder::new(self.start);
        builder
            // The library reads ignore files without bound, and not as git does.
            .standard_filters(false)
            .follow_links(false)
            .max_depth(self.depth)
            .threads(std::thread::available_parallelism().map_or(1, |n| n.get().min(MAX_THREADS)))
            .filter_entry(move |entry| {
                let is_ignored = |rules: &IgnoreRules| rules.leave_out(entry.path(), is_dir(entry));
                entry.depth() == 0
                    || on_the_way(&within, entry) && !left_out(skip, entry) && !rules.as_ref().is_some_and(is_ignored)
            });
        (builder, unsound)
    }
}

fn is_dir(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

fn on_the_way(within: &[OsString], entry: &DirEntry) -> bool {
    let required = entry.depth().checked_sub(1).and_then(|level| within.get(level));
    required.is_none_or(|name| name == entry.file_name())
}

fn left_out(skip: Skip, entry: &DirEntry) -> bool {
    let name = entry.file_name();
    if VERSION_CONTROL.iter().any(|known| name == *known) {
        return true;
    }
    if skip != Skip::IgnoredAndMade {
        return false;
    }
    if is_dir(entry) {
        return MADE_DIRS.iter().any(|known| name == *known);
    }
    is_made_file(name)
}

fn is_made_file(name: &OsStr) -> bool {
    name == ".DS_Store" || name.as_bytes().ends_with(b".pyc")
}

/// Whether machines make a file: what lies in a directory that tools fill, and what tools leave elsewhere.
pub(crate) fn is_generated(path: &Path) -> bool {
    let is_made = |dir: &OsStr| MADE_DIRS.iter().any(|known| dir == *known);
    path.parent().is_some_and(|dirs| dirs.iter().any(is_made)) || path.file_name().is_some_and(is_made_file)
}

/// Errs unless a directory is there and can be read. A walk would only warn.
pub(super) fn require_dir(place: &Place, otherwise: &str) -> Result<(), CallError> {
    match std::fs::read_dir(&place.real) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Err(CallError::failed(format!("{} is not a directory", place.shown)).hint(otherwise))
        }
        Err(error) => Err(files::explain(&place.shown, &error)),
    }
}

/// The rest of a path below the start of the walk that found it. Cheaper than `strip_prefix`, which
/// compares name by name.
pub(super) fn below<'p>(start: &Path, path: &'p Path) -> &'p Path {
    let rest = path.as_os_str().as_bytes().get(start.as_os_str().len()..).unwrap_or_default();
    Path::new(OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest)))
}

/// One thread's share of a walk: what it wants, and what it has found.
pub(super) trait Share: Send {
    /// Whether symbolic links are of interest beside regular files. They are not followed.
    const LINKS: bool = false;

    /// Whether a file is of interest, by its path alone.
    fn wants(&self, path: &Path) -> bool;

    /// Takes a file that it wanted.
    fn take(&mut self, entry: DirEntry, troubles: &mut Troubles);
}

/// Walks a tree on several threads and returns every thread's share. Files that hold credentials or
/// haft's own state are passed over, unless the place itself was decided upon as such.
pub(super) fn share_out<S: Share>(
    scene: &Scene,
    place: &Place,
    tree: &Tree<'_>,
    share: impl Fn() -> S,
) -> Result<(Vec<S>, Troubles), CallError> {
    if tree.skip != Skip::Nothing {
        require_sound(tree.start, &place.shown)?;
    }
    let pulse = Pulse::new(scene);
    let done = Mutex::new((Vec::new(), Troubles::default()));
    let (walker, unsound) = tree.walker_until(Some(scene.halt().clone()));
    walker.build_parallel().run(|| {
        let mut worker = Worker {
            share: Some(share()),
            troubles: Troubles::default(),
            guard: place.sensitive.is_none().then(|| Guard::new(scene.workspace())),
            entries: 0,
            pulse: &pulse,
            done: &done,
        };
        Box::new(move |entry| worker.visit(entry))
    });
    scene.halt().check()?;
    let (shares, mut troubles) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    troubles.unsound(scene, &unsound);
    Ok((shares, troubles))
}

/// One thread of a walk. Its findings are its own until it ends, so that threads do not wait for each
/// other at every file.
struct Worker<'w, S: Share> {
    /// None only once it has been handed over.
    share: Option<S>,
    troubles: Troubles,
    guard: Option<Guard<'w>>,
    entries: usize,
    pulse: &'w Pulse<'w>,
    done: &'w Mutex<(Vec<S>, Troubles)>,
}

impl<S: Share> Worker<'_, S> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        self.entries += 1;
        if self.entries % ENTRIES_PER_LOOK == 1 && self.pulse.look().is_err() {
            return WalkState::Quit;
        }
        match entry {
            Ok(entry) => self.entry(entry),
            Err(error) => self.troubles.walk(self.pulse.scene, &error),
        }
        WalkState::Continue
    }

    fn entry(&mut self, entry: DirEntry) {
        if let Some(error) = entry.error() {
            self.troubles.walk(self.pulse.scene, error);
        }
        let Some(share) = &mut self.share else { return };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file() || S::LINKS && kind.is_symlink());
        if !is_file || !share.wants(entry.path()) {
            return;
        }
        if self.guard.as_mut().is_some_and(|guard| guard.holds_back(entry.path())) {
            self.troubles.hold_back();
        } else {
            share.take(entry, &mut self.troubles);
        }
    }
}

impl<S: Share> Drop for Worker<'_, S> {
    fn drop(&mut self) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0.extend(self.share.take());
        done.1.merge(std::mem::take(&mut self.troubles));
    }
}

/// What the threads of a walk have in common with the outside: being stopped, and saying how far it is.
struct Pulse<'s> {
    scene: &'s Scene,
    looks: AtomicUsize,
    spoken: Mutex<Instant>,
}

impl<'s> Pulse<'s> {
    fn new(scene: &'s Scene) -> Self {
        Self { scene, looks: AtomicUsize::new(0), spoken: Mutex::new(Instant::now()) }
    }

    fn look(&self) -> Result<(), CallError> {
        self.scene.halt().check()?;
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        // Whoever finds the lock taken has nothing to add.
        if let Ok(mut spoken) = self.spoken.try_lock()
            && spoken.elapsed() >= BETWEEN_MESSAGES
        {
            *spoken = Instant::now();
            self.scene.progress(format!("about {} entries looked at", looks * ENTRIES_PER_LOOK));
        }
        Ok(())
    }
}
