//! Names that can be moved: exchanging two, and moving one to where nothing is. Neither ever replaces anything.
//!
//! Both are one `renameat2` where the file system has its flags. Network file systems, 9p and some FUSE drivers lack them;
//! there the same is done in more steps, in which the only name that others see is for a moment the name of nothing.

use super::{Conflict, StepError};
use haft_core::change::State;
use haft_sandbox::faults;
use haft_sandbox::layer::{at, stands_at};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Behind the name of an image: the file that an exchange in more steps has parked for a moment.
pub(crate) const PARKED: &str = ".out";

/// A name in an open directory. Whatever becomes of the path to it, the directory stays the one that was opened.
#[derive(Debug)]
pub(crate) struct Spot {
    pub(crate) dir: OwnedFd,
    pub(crate) name: OsString,
    pub(crate) path: PathBuf,
}

/// Whether a rename failed because the file system, or the kernel, lacks the flag.
fn lacks_flag(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

impl Spot {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (dir, name) = at::reach(path)?;
        Ok(Self { dir, name: name.to_owned(), path: path.to_owned() })
    }

    pub(crate) fn beside(&self, name: impl Into<OsString>) -> io::Result<Self> {
        let name = name.into();
        Ok(Self { dir: self.dir.try_clone()?, path: self.path.with_file_name(&name), name })
    }

    /// The same name with something behind it.
    pub(crate) fn suffixed(&self, suffix: &str) -> io::Result<Self> {
        let mut name = self.name.clone();
        name.push(suffix);
        self.beside(name)
    }

    pub(crate) fn stat(&self) -> io::Result<Option<Stat>> {
        at::stat(&self.dir, &self.name)
    }

    /// What stands there.
    pub(crate) fn state(&self) -> io::Result<State> {
        stands_at(self.dir.as_fd(), &self.name)
    }

    fn rename_with(&self, to: &Self, flags: RenameFlags) -> Result<(), Errno> {
        if faults::is_refused("renameat2") {
            return Err(Errno::INVAL);
        }
        rustix::fs::renameat_with(&self.dir, &self.name, &to.dir, &to.name, flags)
    }

    /// Takes what stands here to a private name that nothing else has.
    pub(crate) fn take_to(&self, private: &Self) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.dir, &self.name, &private.dir, &private.name)?)
    }

    /// Moves what stands at this private name to where nothing is. If something is there, it stays, and so does this.
    pub(crate) fn move_to(&self, to: &Self) -> Result<(), StepError> {
        match self.rename_with(to, RenameFlags::NOREPLACE) {
            Err(error) if lacks_flag(error) => self.move_in_steps(to),
            done => Ok(done?),
        }
    }

    /// Moves what stands here to where nothing is, in one step; false where that cannot be had.
    pub(crate) fn move_at_once(&self, to: &Self) -> io::Result<bool> {
        match self.rename_with(to, RenameFlags::NOREPLACE) {
            Err(error) if lacks_flag(error) => Ok(false),
            done => done.map(|()| true).map_err(io::Error::from),
        }
    }

    /// Exchanges what stands at this private name and what stands at another. Where that takes more than one step, what
    /// is there is parked beside the image for a moment.
    pub(crate) fn exchange(&self, with: &Self, image: &Self) -> Result<(), StepError> {
        match self.rename_with(with, RenameFlags::EXCHANGE) {
            Err(error) if lacks_flag(error) => self.exchange_in_steps(with, &image.suffixed(PARKED)?),
            done => Ok(done?),
        }
    }

    fn exchange_in_steps(&self, with: &Self, parked: &Self) -> Result<(), StepError> {
        with.take_to(parked)?;
        crate::crash_point("taken");
        match self.move_to(with) {
            Ok(()) => Ok(parked.take_to(self)?),
            // Somebody was quicker, or it cannot be there: what was parked goes back, if its place is free.
            Err(error) => match parked.move_to(with) {
                Ok(()) => Err(error),
                Err(_) => Err(StepError::Conflict(Conflict { kept: Some(parked.path.clone()) })),
            },
        }
    }

    fn move_in_steps(&self, to: &Self) -> Result<(), StepError> {
        let stat = self.stat()?.ok_or(io::ErrorKind::NotFound)?;
        if at::kind(&stat) == FileType::Directory {
            // A directory replaces nothing but an empty directory.
            if to.stat()?.is_some() {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
            }
            return Ok(self.take_to(to)?);
        }
        let linked = if faults::is_refused("linkat") {
            Err(Errno::PERM)
        } else {
            rustix::fs::linkat(&self.dir, &self.name, &to.dir, &to.name, AtFlags::empty())
        };
        match linked {
            Ok(()) => Ok(self.unlink()?),
            Err(Errno::EXIST) => Err(io::Error::from(io::ErrorKind::AlreadyExists).into()),
            Err(Errno::XDEV) => Err(io::Error::from(Errno::XDEV).into()),
            // Where there are no hard links, or none to this file.
            Err(_) => self.move_by_copy(to),
        }
    }

    /// Copies what stands here to where nothing is: to create a file, and to fail if there is one, is a step of its own
    /// everywhere. Readers may see a part of it.
    fn move_by_copy(&self, to: &Self) -> Result<(), StepError> {
        super::copy(self, to)?;
        Ok(self.unlink()?)
    }

    fn unlink(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::empty())?)
    }

    /// Gives exactly this thing a mode, if it still stands here.
    pub(crate) fn chmod_same(&self, inode: u64, mode: u32) -> io::Result<()> {
        let held = match at::open_at(&self.dir, &self.name, OFlags::PATH) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            held => held?,
        };
        let stat = rustix::fs::fstat(&held)?;
        if stat.st_ino != inode || at::mode(&stat) == mode {
            return Ok(());
        }
        Ok(rustix::fs::chmod(at::held_path(held.as_fd()), Mode::from_raw_mode(mode))?)
    }
}

/// A spot in a directory that is named by its path.
pub(crate) fn spot_in(dir: &Path, name: impl AsRef<OsStr>) -> io::Result<Spot> {
    let name = name.as_ref();
    Ok(Spot { dir: at::open_dir(dir)?, name: name.to_owned(), path: dir.join(name) })
}
