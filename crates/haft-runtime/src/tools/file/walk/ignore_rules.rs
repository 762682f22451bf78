//! What a walk leaves out because ignore files say so.
//!
//! A path is ignored as git and ripgrep see it: the `.ignore` file nearest to it that says anything decides, then the nearest
//! `.gitignore` up to the top of its repository, then the repository's `.git/info/exclude`, then the user's own file. A
//! directory that is ignored takes everything in it along.

use super::ignore_files::{self, IgnoreFiles};
use crate::halt::Halt;
use crate::tools::file::gitignore::{PatternList, Verdict};
use haft_core::CallError;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// As soon as this many directories are remembered, or ignore files of this many bytes, all are forgotten and read again
/// where they are met again.
const REMEMBERED_MAX: usize = 16_384;
const REMEMBERED_BYTES_MAX: usize = 2 << 20;
/// Where ignore files of more bytes than this would hold in a directory, that directory is left out.
const HELD_BYTES_MAX: usize = 1 << 20;
/// How much work is done between two looks at the halt, in patterns tried.
const COST_PER_LOOK: usize = 1 << 14;

/// The ignore files that hold in a directory, the nearest first.
#[derive(Debug)]
struct Level {
    above: Option<Arc<Self>>,
    /// How long the path of the directory is, with a slash.
    length: usize,
    files: IgnoreFiles,
    /// How much work one decision is.
    cost: usize,
    /// How many bytes all these files have.
    bytes: usize,
}

impl Level {
    fn new(dir: &Path, files: IgnoreFiles, above: Option<Arc<Self>>) -> Self {
        let length = dir.as_os_str().len();
        // Only the root ends with a slash.
        let length = if dir.parent().is_none() { length } else { length + 1 };
        let (cost, bytes) = above.as_ref().map_or((1, 0), |above| (above.cost, above.bytes));
        let cost = cost + files.lists().map(PatternList::cost).sum::<usize>();
        let bytes = bytes + files.lists().map(PatternList::length).sum::<usize>();
        Self { above, length, files, cost, bytes }
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.above.as_deref())
    }

    fn decide(&self, list: &PatternList, path: &[u8], is_dir: bool) -> Option<Verdict> {
        if list.is_empty() { None } else { list.decide(path.get(self.length..)?, is_dir) }
    }

    fn verdict(&self, path: &[u8], is_dir: bool, global: &PatternList) -> Option<Verdict> {
        let by_ignore = self.chain().find_map(|level| level.decide(&level.files.ignore, path, is_dir));
        if by_ignore.is_some() {
            return by_ignore;
        }
        let mut top = None;
        for level in self.chain() {
            top = Some(level);
            if let Some(verdict) = level.decide(&level.files.gitignore, path, is_dir) {
                return Some(verdict);
            }
            if let Some(exclude) = &level.files.repository {
                if let Some(verdict) = level.decide(exclude, path, is_dir) {
                    return Some(verdict);
                }
                break;
            }
        }
        top.and_then(|top| top.decide(global, path, is_dir))
    }
}

/// What a directory lets through.
#[derive(Debug, Clone)]
enum Held {
    /// What its ignore files, and those above, leave.
    By(Arc<Level>),
    /// Nothing: an ignore file cannot be read, or one above cannot.
    Nothing,
}

/// The rules of one walk. Threads share them.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    /// Tells this walk from others on the same thread.
    walk: u64,
    start: PathBuf,
    /// What holds at the start.
    outer: Held,
    global: PatternList,
    known: RwLock<Known>,
    halt: Option<Halt>,
    unsound: Unsound,
}

#[derive(Debug, Default)]
struct Known {
    dirs: HashMap<PathBuf, Held>,
    bytes: usize,
}

thread_local! {
    /// The directory that this thread looked into last: the entries of one come one after another.
    static LATEST: RefCell<Option<Latest>> = const { RefCell::new(None) };
}

struct Latest {
    walk: u64,
    dir: PathBuf,
    held: Held,
    /// Work done since the last look at the halt.
    cost: usize,
    halted: bool,
}

impl IgnoreRules {
    /// The rules for a walk that begins at `start`. What cannot be read at the start or above it leaves everything out.
    pub(super) fn new(start: &Path, unsound: Unsound, halt: Option<Halt>) -> Self {
        static WALKS: AtomicU64 = AtomicU64::new(0);
        let walk = WALKS.fetch_add(1, Ordering::Relaxed);
        let outer = above(start).map_or(Held::Nothing, Held::By);
        // The user's own file cannot be read: that is theirs to see, and git goes on as well.
        let global = ignore_files::global().unwrap_or_default();
        let known = RwLock::default();
        Self { walk, start: start.to_owned(), outer, global, known, halt, unsound }
    }

    /// Whether a walk passes over an entry below the start.
    pub(super) fn leave_out(&self, path: &Path, is_dir: bool) -> bool {
        let bytes = path.as_os_str().as_bytes();
        let dir = &bytes[..memchr::memrchr(b'/', bytes).map_or(0, |slash| slash.max(1))];
        LATEST.with_borrow_mut(|latest| {
            let fits = latest.as_ref().is_some_and(|it| it.walk == self.walk && it.dir.as_os_str().as_bytes() == dir);
            if !fits {
                let dir = Path::new(OsStr::from_bytes(dir)).to_owned();
                let (cost, halted) = match latest.take() {
                    Some(latest) if latest.walk == self.walk => (latest.cost, latest.halted),
                    _ => (0, false),
                };
                *latest = Some(Latest { walk: self.walk, held: self.held(&dir), dir, cost, halted });
            }
            latest.as_mut().is_none_or(|latest| self.leaves_out(latest, bytes, is_dir))
        })
    }

    fn leaves_out(&self, latest: &mut Latest, path: &[u8], is_dir: bool) -> bool {
        let Held::By(level) = &latest.held else { return true };
        latest.cost += level.cost;
        if latest.cost >= COST_PER_LOOK {
            latest.cost = 0;
            latest.halted |= self.halt.as_ref().is_some_and(|halt| halt.check().is_err());
        }
        // What is found does not matter any more.
        latest.halted || level.verdict(path, is_dir, &self.global).is_some_and(|verdict| verdict.ignored)
    }

    /// What holds in a directory.
    fn held(&self, dir: &Path) -> Held {
        let mut unknown = Vec::new();
        let mut held = self.outer.clone();
        for level in dir.ancestors().take_while(|level| *level != self.start) {
            if let Some(known) = self.known(level) {
                held = known;
                break;
            }
            unknown.push(level);
        }
        for level in unknown.into_iter().rev() {
            held = self.enter(level, held);
        }
        held
    }

    fn known(&self, dir: &Path) -> Option<Held> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).dirs.get(dir).cloned()
    }

    fn enter(&self, dir: &Path, above: Held) -> Held {
        let (held, bytes) = match above {
            Held::Nothing => (Held::Nothing, 0),
            Held::By(above) => match self.read(dir, &above) {
                Some(level) => (Held::By(Arc::clone(&level)), level.bytes - above.bytes),
                None => (Held::Nothing, 0),
            },
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.dirs.len() >= REMEMBERED_MAX || known.bytes + bytes > REMEMBERED_BYTES_MAX {
            *known = Known::default();
        }
        known.bytes += bytes;
        known.dirs.insert(dir.to_owned(), held.clone());
        held
    }

    fn read(&self, dir: &Path, above: &Arc<Level>) -> Option<Arc<Level>> {
        let level = IgnoreFiles::of(dir).ok().map(|files| {
            if files.is_linked {
                self.unsound.note(dir, Why::Linked);
            }
            if files.is_empty() { Arc::clone(above) } else { Arc::new(Level::new(dir, files, Some(Arc::clone(above)))) }
        });
        let level = level.filter(|level| level.bytes <= HELD_BYTES_MAX);
        if level.is_none() {
            self.unsound.note(dir, Why::Unreadable);
        }
        level
    }
}

/// What holds at the start of a walk, or the directory whose ignore file cannot be read.
fn above(start: &Path) -> Result<Arc<Level>, PathBuf> {
    let (mut dirs, mut is_inside) = (Vec::new(), true);
    for dir in start.ancestors() {
        let files = if is_inside { IgnoreFiles::of(dir) } else { IgnoreFiles::above_repository(dir) };
        let files = files.map_err(|_| dir.to_owned())?;
        is_inside &= files.repository.is_none();
        dirs.push((dir, files));
    }
    let mut level = None;
    for (dir, files) in dirs.into_iter().rev() {
        if level.is_none() || !files.is_empty() {
            level = Some(Arc::new(Level::new(dir, files, level)));
        }
    }
    level.filter(|level| level.bytes <= HELD_BYTES_MAX).ok_or_else(|| start.to_owned())
}

/// Errs if an ignore file cannot be read where a walk starts or above.
pub(in crate::tools::file) fn require_sound(start: &Path, shown: &str) -> Result<(), CallError> {
    above(start).map(drop).map_err(|dir| {
        CallError::failed(format!(
            "an ignore file in {} is not a regular file, too large or cannot be read, so {shown} cannot be walked",
            dir.display()
        ))
        .hint("look at its .gitignore and .ignore, and at .git/info/exclude")
    })
}

/// The directories whose ignore files a walk could not honour.
#[derive(Debug, Clone, Default)]
pub(in crate::tools::file) struct Unsound(Arc<Mutex<Vec<(PathBuf, Why)>>>);

/// Why an ignore file was not honoured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tools::file) enum Why {
    /// It cannot be read, so what is in the directory was left out.
    Unreadable,
    /// It is a link.
    Linked,
}

impl Unsound {
    fn note(&self, dir: &Path, why: Why) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((dir.to_owned(), why));
    }

    /// The directories that were left out, in order.
    pub(in crate::tools::file) fn take(&self) -> Vec<PathBuf> {
        self.take_those(Why::Unreadable)
    }

    /// The directories whose `.gitignore` did not count, in order.
    pub(in crate::tools::file) fn take_linked(&self) -> Vec<PathBuf> {
        self.take_those(Why::Linked)
    }

    fn take_those(&self, wanted: Why) -> Vec<PathBuf> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dirs: Vec<PathBuf> = noted.extract_if(.., |(_, why)| *why == wanted).map(|(dir, _)| dir).collect();
        dirs.sort();
        // A directory that was forgotten was met again.
        dirs.dedup();
        dirs
    }
}

#[cfg(test)]
mod tests;
