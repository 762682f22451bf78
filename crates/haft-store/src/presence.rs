//! The lock by which a process is known to live: a file in the data directory, locked (`flock`) as long as a store is open.
//!
//! The kernel releases the lock when the process ends, however it ends, and whoever may open the file sees whether it is held:
//! from another PID namespace, another container, and as another user. A process's number tells none of that, and is given
//! to others later. A lock's name is never used again.
//!
//! Whoever may write to a shared data directory may put anything in place of a lock or of the directory. So no symlink is
//! followed here (TOCTOU), everything is opened below a directory that is open already, and what is not a regular file is no
//! lock: it is not waited for and not removed, and its process counts as alive.

use crate::db::{DbError, DbResult};
use crate::post::chance;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The directory of the locks, in the data directory.
const LOCKS: &str = "locks";
/// How old a lock that nobody holds becomes before it is removed.
const STALE: Duration = Duration::from_hours(24);
/// How often another name is tried.
const TRIES: usize = 8;

/// What can be seen of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockState {
    /// Its process lives.
    Held,
    /// Its process ended and could not clear up.
    Free,
    /// There is no lock of this name here: its process has cleared up, or has another data directory.
    Missing,
    /// It is there and may not be looked at.
    Unknown,
}

/// The lock of an open store. It is taken when it is first needed: a process that only looks needs none.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    ground: OnceLock<Ground>,
    held: Mutex<Option<HeldLock>>,
}

/// Where locks are, and whose they are.
#[derive(Debug)]
struct Ground {
    locks: PathBuf,
    /// Whoever may use this may look at the locks.
    model: PathBuf,
}

impl Presence {
    /// Of a store in a file: beside the file, where everybody finds it who opens the store.
    pub(crate) fn beside(database: &Path) -> Self {
        let dir = database.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let ground = Ground { locks: dir.join(LOCKS), model: database.to_owned() };
        Self { ground: OnceLock::from(ground), held: Mutex::default() }
    }

    /// Of a store on a server: in the directory of what this process leaves on its machine.
    pub(crate) fn settle_in(&self, data_dir: &Path) {
        self.ground.get_or_init(|| Ground { locks: data_dir.join(LOCKS), model: data_dir.to_owned() });
    }

    /// The name of the lock, which is held from now on. Empty where there is no place for one.
    pub(crate) fn name(&self) -> DbResult<String> {
        let Some(ground) = self.ground.get() else { return Ok(String::new()) };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = held.as_ref().filter(|lock| lock.is_in_place()) {
            return Ok(lock.name.clone());
        }
        // Somebody removed the file: calls that were opened under its name are still this process's.
        let lost = held.as_ref().map(|lock| lock.name.clone());
        let lock = ground.take(lost).map_err(|error| {
            DbError::Odd(format!(
                "no lock can be taken in {}, by which others see that this process lives: {error}; nothing was run",
                ground.locks.display()
            ))
        })?;
        let name = lock.name.clone();
        *held = Some(lock);
        Ok(name)
    }

    /// What can be seen of a lock. Nobody who only looks is in the way of another.
    pub(crate) fn look(&self, name: &str) -> LockState {
        let Some(ground) = self.ground.get().filter(|_| is_lock_name(name)) else { return LockState::Missing };
        match open_directory(&ground.locks).and_then(|locks| open_lock(&locks, name)) {
            Ok(file) => state_of(&file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => LockState::Missing,
            Err(_) => LockState::Unknown,
        }
    }
}

/// Opens a directory itself, and not what a symlink in its place points to.
fn open_directory(path: &Path) -> io::Result<File> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Opens a lock to look at it. A FIFO is not waited for.
fn open_lock(locks: &File, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(locks, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

fn state_of(file: &File) -> LockState {
    loop {
        match file.try_lock_shared() {
            Ok(()) => return LockState::Free,
            Err(TryLockError::WouldBlock) => return LockState::Held,
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(_)) => return LockState::Unknown,
        }
    }
}

/// Names are made here; a row that somebody altered leads nowhere else.
fn is_lock_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Ground {
    fn take(&self, name: Option<String>) -> io::Result<HeldLock> {
        let locks = self.make_directory()?;
        remove_stale(&locks);
        let mut name = name;
        for _ in 0..TRIES {
            let name = name.take().unwrap_or_else(|| format!("{:016x}{:016x}", chance(), chance()));
            match self.create(&locks, &name) {
                Ok(Some(file)) => return Ok(HeldLock { path: self.locks.join(&name), name, file }),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Makes and locks a file; none if somebody else has locked it.
    fn create(&self, locks: &File, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(locks, name, flags, Mode::RUSR | Mode::WUSR)?);
        let held = || {
            let model = std::fs::metadata(&self.model)?;
            share(&file, &model, model.mode() & 0o666)?;
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(true),
                    Err(TryLockError::WouldBlock) => return Ok(false),
                    Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
        };
        let held: io::Result<bool> = held();
        if !matches!(held, Ok(true)) {
            let _ = unlinkat(locks, name, AtFlags::empty());
        }
        Ok(held?.then_some(file))
    }

    /// Makes the directory, open to those who may use the directory that it is in, and opens it.
    fn make_directory(&self) -> io::Result<File> {
        if let Some(above) = self.locks.parent().filter(|above| !above.as_os_str().is_empty()) {
            // With a store on a server, nothing may have needed it yet.
            DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        let is_new = match DirBuilder::new().mode(0o700).create(&self.locks) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        let locks = open_directory(&self.locks).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOTDIR | Errno::LOOP) => {
                io::Error::new(error.kind(), "it is a link, or no directory; remove it")
            }
            _ => error,
        })?;
        if is_new && let Some(above) = self.locks.parent() {
            let above = std::fs::metadata(above)?;
            share_directory(&locks, &above)?;
        }
        Ok(locks)
    }
}

/// Shares a directory that was just made. What does not belong to this process's user was put in its place by another, who
/// would have root give away a directory of theirs.
fn share_directory(made: &File, above: &Metadata) -> io::Result<()> {
    if made.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        let words = "it was replaced by a directory of another user while it was made; remove it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
    }
    share(made, above, above.mode() & 0o7777)
}

/// Removes locks of processes that ended long ago. Best effort: one more file harms nobody.
fn remove_stale(locks: &File) {
    let is_stale = |name: &str| -> io::Result<bool> {
        let file = open_lock(locks, name)?;
        let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
        // A lock that is just being made is not held yet, but it is not old.
        Ok(age > STALE && state_of(&file) == LockState::Free)
    };
    for entry in Dir::read_from(locks).into_iter().flatten().flatten() {
        let Some(name) = entry.file_name().to_str().ok().filter(|name| is_lock_name(name)) else { continue };
        if is_stale(name).unwrap_or(false) {
            let _ = unlinkat(locks, name, AtFlags::empty());
        }
    }
}

/// Lets those have a file who have its model: with the model's permissions and, where haft may give files away, its owner.
fn share(file: &File, model: &Metadata, mode: u32) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (model.uid(), model.gid()) {
        // Only root may do that. Whoever may not look at a lock takes its process for alive.
        let _ = std::os::unix::fs::fchown(file, Some(model.uid()), Some(model.gid()));
    }
    file.set_permissions(Permissions::from_mode(mode))
}

/// A lock that this process holds.
#[derive(Debug)]
struct HeldLock {
    name: String,
    path: PathBuf,
    file: File,
}

impl HeldLock {
    fn is_in_place(&self) -> bool {
        let identity = |meta: &Metadata| (meta.dev(), meta.ino());
        let there = std::fs::symlink_metadata(&self.path).ok().as_ref().map(identity);
        there.is_some() && there == self.file.metadata().ok().as_ref().map(identity)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if self.is_in_place() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground(dir: &Path) -> PathBuf {
        let database = dir.join("haft.db");
        std::fs::write(&database, "").unwrap();
        database
    }

    #[test]
    fn lock_is_seen_by_others_and_gone_with_its_store() {
        let dir = tempfile::tempdir().unwrap();
        let database = ground(dir.path());
        let (one, other) = (Presence::beside(&database), Presence::beside(&database));
        let name = one.name().unwrap();
        assert_eq!((other.look(&name), one.look(&name)), (LockState::Held, LockState::Held));
        assert_eq!(one.name().unwrap(), name, "one store has one lock");
        assert_ne!(other.name().unwrap(), name);
        drop(one);
        assert_eq!(other.look(&name), LockState::Missing);
    }

    #[test]
    fn lock_that_its_process_left_is_free_and_goes_when_it_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let database = ground(dir.path());
        let presence = Presence::beside(&database);
        let own = presence.name().unwrap();
        let left = dir.path().join(LOCKS).join("00aa");
        let file = File::create(&left).unwrap();
        let long_ago = std::time::SystemTime::now() - STALE * 2;
        file.set_modified(long_ago).unwrap();
        File::open(dir.path().join(LOCKS).join(&own)).unwrap().set_modified(long_ago).unwrap();
        file.lock().unwrap();
        assert_eq!(presence.look("00aa"), LockState::Held);
        drop(Presence::beside(&database).name().unwrap());
        assert!(left.exists(), "a lock that is held stays, however old it is");
        drop(file);
        assert_eq!(presence.look("00aa"), LockState::Free);
        drop(Presence::beside(&database).name().unwrap());
        assert!(!left.exists());
        assert_eq!(presence.look(&own), LockState::Held);
    }

    #[test]
    fn fifo_or_link_in_place_of_a_lock_is_not_waited_for_and_its_process_counts_as_alive() {
        use rustix::fs::{CWD, Timespec, Timestamps, utimensat};
        let dir = tempfile::tempdir().unwrap();
        let database = ground(dir.path());
        let presence = Presence::beside(&database);
        presence.name().unwrap();
        let locks = dir.path().join(LOCKS);
        rustix::fs::mkfifoat(CWD, locks.join("00aa"), Mode::from_raw_mode(0o666)).unwrap();
        std::os::unix::fs::symlink(&database, locks.join("00bb")).unwrap();
        std::fs::create_dir(locks.join("00cc")).unwrap();
        let long_ago = Timespec { tv_sec: 1_000_000, tv_nsec: 0 };
        let times = Timestamps { last_access: long_ago, last_modification: long_ago };
        for name in ["00aa", "00bb", "00cc"] {
            utimensat(CWD, locks.join(name), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
            assert_eq!(presence.look(name), LockState::Unknown, "{name}");
        }
        utimensat(CWD, &database, &times, AtFlags::empty()).unwrap();
        drop(Presence::beside(&database).name().unwrap());
        for name in ["00aa", "00bb", "00cc"] {
            assert!(locks.join(name).symlink_metadata().is_ok(), "{name} is no lock, and stays");
        }
    }

    #[test]
    fn symlink_in_place_of_the_directory_is_refused_and_its_target_stays() {
        let dir = tempfile::tempdir().unwrap();
        let database = ground(dir.path());
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o2777)).unwrap();
        let victim = dir.path().join("victim");
        std::fs::create_dir(&victim).unwrap();
        std::fs::set_permissions(&victim, Permissions::from_mode(0o700)).unwrap();
        let old = File::create(victim.join("00aa")).unwrap();
        old.set_modified(std::time::SystemTime::now() - STALE * 2).unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join(LOCKS)).unwrap();
        let presence = Presence::beside(&database);
        let refused = presence.name().unwrap_err().to_string();
        assert!(refused.contains("it is a link"), "{refused}");
        assert_eq!(presence.look("00aa"), LockState::Unknown);
        assert_eq!(std::fs::metadata(&victim).unwrap().mode() & 0o7777, 0o700);
        let files: Vec<_> = std::fs::read_dir(&victim).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(files, ["00aa"], "nothing is swept or made there");
    }

    #[test]
    fn directory_of_another_user_is_not_shared() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give a directory away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("made");
        std::fs::create_dir(&made).unwrap();
        std::fs::set_permissions(&made, Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&made, Some(12345), Some(12345)).unwrap();
        let above = std::fs::metadata(dir.path()).unwrap();
        let refused = share_directory(&open_directory(&made).unwrap(), &above).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        let left = std::fs::metadata(&made).unwrap();
        assert_eq!((left.uid(), left.mode() & 0o7777), (12345, 0o700));
    }

    #[test]
    fn lock_that_somebody_removed_is_taken_again_under_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let database = ground(dir.path());
        let (one, other) = (Presence::beside(&database), Presence::beside(&database));
        let name = one.name().unwrap();
        std::fs::remove_dir_all(dir.path().join(LOCKS)).unwrap();
        assert_eq!(other.look(&name), LockState::Missing);
        assert_eq!(one.name().unwrap(), name);
        assert_eq!(other.look(&name), LockState::Held);
    }

    #[test]
    fn lock_is_open_to_those_who_may_use_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let database = ground(dir.path());
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o2770)).unwrap();
        std::fs::set_permissions(&database, Permissions::from_mode(0o660)).unwrap();
        let presence = Presence::beside(&database);
        let name = presence.name().unwrap();
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().mode() & 0o7777;
        let locks = dir.path().join(LOCKS);
        assert_eq!((mode(locks.clone()), mode(locks.join(name))), (0o2770, 0o660));
    }

    #[test]
    fn data_directory_that_is_not_there_yet_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let presence = Presence::default();
        assert_eq!(presence.name().unwrap(), "", "there is no place for a lock");
        presence.settle_in(&dir.path().join("not/there/yet"));
        let name = presence.name().unwrap();
        assert_eq!(presence.look(&name), LockState::Held);
    }

    #[test]
    fn name_that_is_no_locks_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let presence = Presence::beside(&ground(dir.path()));
        for name in ["", "../haft.db", "/etc/passwd", ".", "lock"] {
            assert_eq!(presence.look(name), LockState::Missing, "{name}");
        }
    }
}
