//! From what stands in the upper layer to changes.

use super::attributes::{have_same_attributes, keep_access_list};
use super::clean::{self, OF_DIRECTORY, OF_STRANGERS, SPECIAL};
use super::tree::{DEPTH_MAX, each_at, stands_at};
use super::{Diffed, Layer, LayerError, at};
use haft_core::change::{Change, State};
use rustix::fs::{FileType, OFlags, Stat};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

const CLOSED: &str = "is not kept: the directory it is in may not be entered";

/// One directory in both layers.
struct Pair {
    upper: OwnedFd,
    lower: OwnedFd,
    /// Where it really is.
    path: PathBuf,
    /// Where its upper half is.
    staged: PathBuf,
    depth: usize,
}

struct Walk {
    started_ns: i128,
    found: Diffed,
}

/// Everything that changed. A directory that has become writable is changed before what is in it, and one
/// that has not is changed after it, so that an ordinary user can make and take back the changes in order.
pub(super) fn diff(layer: &Layer) -> Result<Diffed, LayerError> {
    let since = layer.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut walk = Walk { started_ns: i128::try_from(since).unwrap_or(i128::MAX), found: Diffed::default() };
    let fail = LayerError::at(&layer.lower);
    let (upper, name) = at::parent(&layer.upper).map_err(LayerError::at(&layer.upper))?;
    let lower = at::open(&layer.lower, OFlags::PATH | OFlags::DIRECTORY).map_err(&fail)?;
    let (Some(up), low) = (
        at::stat(&upper, name).map_err(LayerError::at(&layer.upper))?,
        rustix::fs::fstat(&lower).map_err(|error| fail(error.into()))?,
    ) else {
        return Ok(walk.found);
    };
    let opened = clean::enter(upper.as_fd(), name, &up).map_err(LayerError::at(&layer.upper))?;
    let pair = Pair { upper: opened, lower, path: layer.lower.clone(), staged: layer.upper.clone(), depth: 0 };
    walk.merged(&pair, &up, &low)?;
    Ok(walk.found)
}

impl Walk {
    /// A directory that shows through.
    fn merged(&mut self, pair: &Pair, up: &Stat, low: &Stat) -> Result<(), LayerError> {
        let (before, mode) = (State::Dir { mode: at::mode(low) }, at::mode(up));
        let change = (at::mode(low) != mode).then(|| Change::Mode { path: pair.path.clone(), before, mode });
        let (first, last) = if mode & 0o300 == 0o300 { (change, None) } else { (None, change) };
        self.found.changes.extend(first);
        for name in at::names(&pair.upper).map_err(LayerError::at(&pair.staged))? {
            self.entry(pair, &name)?;
        }
        self.found.changes.extend(last);
        Ok(())
    }

    fn entry(&mut self, pair: &Pair, name: &OsStr) -> Result<(), LayerError> {
        let path = pair.path.join(name);
        let Some(up) = at::stat(&pair.upper, name).map_err(LayerError::at(&pair.staged))? else { return Ok(()) };
        let low = match at::stat(&pair.lower, name) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                self.found.refused.push((path, CLOSED));
                return Ok(());
            }
            low => low.map_err(LayerError::at(&path))?,
        };
        let special =
            |stat: &Stat| !matches!(at::kind(stat), FileType::RegularFile | FileType::Symlink | FileType::Directory);
        if low.as_ref().is_some_and(special) || (special(&up) && !clean::is_whiteout(&up)) {
            self.found.refused.push((path, SPECIAL));
            return Ok(());
        }
        match (at::kind(&up), low) {
            (FileType::CharacterDevice, None) => Ok(()),
            (FileType::CharacterDevice, Some(_)) => self.removed(pair, name, path),
            (FileType::Directory, low) => self.directory(pair, name, path, &up, low),
            (_, low) => self.leaf(pair, name, path, &up, low),
        }
    }

    fn removed(&mut self, pair: &Pair, name: &OsStr, path: PathBuf) -> Result<(), LayerError> {
        self.notice(pair, name, &path)?;
        let before = stands_at(pair.lower.as_fd(), name).map_err(LayerError::at(&path))?;
        self.found.changes.push(Change::Remove { path, before });
        Ok(())
    }

    /// Notices what is to be replaced or removed, and was changed below since the view was made.
    fn notice(&mut self, pair: &Pair, name: &OsStr, path: &Path) -> Result<(), LayerError> {
        let (since, conflicts) = (self.started_ns, &mut self.found.conflicts);
        let walked = each_at(pair.lower.as_fd(), name, &mut |entry| {
            if at::ctime_ns(entry.stat) > since {
                conflicts.push(path.join(entry.inner).components().collect());
            }
            Ok(())
        });
        walked.map_err(LayerError::at(path))
    }

    fn directory(
        &mut self,
        pair: &Pair,
        name: &OsStr,
        path: PathBuf,
        up: &Stat,
        low: Option<Stat>,
    ) -> Result<(), LayerError> {
        let staged = pair.staged.join(name);
        if pair.depth >= DEPTH_MAX {
            return Err(LayerError::TooDeep { path });
        }
        let upper = clean::enter(pair.upper.as_fd(), name, up).map_err(LayerError::at(&staged))?;
        let opaque = clean::is_opaque(pair.upper.as_fd(), name).map_err(LayerError::at(&staged))?;
        match low {
            Some(low) if at::kind(&low) == FileType::Directory && !opaque => {
                let lower = at::open_at(&pair.lower, name, OFlags::PATH | OFlags::DIRECTORY);
                let lower = lower.map_err(LayerError::at(&path))?;
                if !have_same_attributes(name, pair.upper.as_fd(), pair.lower.as_fd()).map_err(LayerError::at(&path))? {
                    self.found.refused.push((path.clone(), OF_DIRECTORY));
                }
                self.merged(&Pair { upper, lower, path, staged, depth: pair.depth + 1 }, up, &low)
            }
            low => {
                if low.is_some() {
                    self.notice(pair, name, &path)?;
                }
                // It was opened for reading above; what moves is to have the mode that the command gave it.
                at::chmod(&pair.upper, name, at::mode(up)).map_err(LayerError::at(&staged))?;
                self.place(pair, name, path)
            }
        }
    }

    /// A file or a link, perhaps only opened for writing and never written.
    fn leaf(
        &mut self,
        pair: &Pair,
        name: &OsStr,
        path: PathBuf,
        up: &Stat,
        low: Option<Stat>,
    ) -> Result<(), LayerError> {
        if let Some(low) = low {
            let state = |dir: BorrowedFd<'_>| stands_at(dir, name).map_err(LayerError::at(&path));
            let link = at::kind(up) == FileType::Symlink;
            if at::kind(up) == at::kind(&low)
                && (link || (at::size(up) == at::size(&low) && at::mtime_ns(up) == at::mtime_ns(&low)))
                && state(pair.upper.as_fd())? == state(pair.lower.as_fd())?
                && have_same_attributes(name, pair.upper.as_fd(), pair.lower.as_fd()).map_err(LayerError::at(&path))?
            {
                return Ok(());
            }
            self.notice(pair, name, &path)?;
            if (at::kind(up), at::kind(&low)) == (FileType::RegularFile, FileType::RegularFile)
                && keep_access_list(name, pair.upper.as_fd(), pair.lower.as_fd()).map_err(LayerError::at(&path))?
            {
                self.found.refused.push((path.clone(), OF_STRANGERS));
            }
            if at::kind(&low) == FileType::RegularFile && low.st_nlink > 1 {
                self.found.hard_links.push(path.clone());
            }
        }
        self.place(pair, name, path)
    }

    fn place(&mut self, pair: &Pair, name: &OsStr, path: PathBuf) -> Result<(), LayerError> {
        clean::clean(pair.upper.as_fd(), name, &path, &mut self.found.refused)?;
        let staged = pair.staged.join(name);
        let before = stands_at(pair.lower.as_fd(), name).map_err(LayerError::at(&path))?;
        let after = stands_at(pair.upper.as_fd(), name).map_err(LayerError::at(&staged))?;
        self.found.changes.push(Change::Place { path, staged, before, after });
        Ok(())
    }
}
