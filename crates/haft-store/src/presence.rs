//! The lock by which a process is known to live: a file in the data directory, locked (`flock`) as long as a store is open.
//!
//! The kernel releases the lock when the process ends, however it ends, and whoever may open the file sees whether it is held:
//! from another PID namespace, another container, and as another user. A process's number tells none of that, and is given
//! to others later. A lock's name is never used again.

use crate::db::{DbError, DbResult};
use crate::post::chance;
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
        match File::open(ground.locks.join(name)) {
            Ok(file) => state_of(&file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => LockState::Missing,
            Err(_) => LockState::Unknown,
        }
    }
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
        self.make_directory()?;
        self.remove_stale();
        let mut name = name;
        for _ in 0..TRIES {
            let name = name.take().unwrap_or_else(|| format!("{:016x}{:016x}", chance(), chance()));
            match self.create(&name) {
                Ok(Some(file)) => return Ok(HeldLock { path: self.locks.join(&name), name, file }),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Makes and locks a file; none if somebody else has locked it.
    fn create(&self, name: &str) -> io::Result<Option<File>> {
        let path = self.locks.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
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
            let _ = std::fs::remove_file(&path);
        }
        Ok(held?.then_some(file))
    }

    /// Makes the directory, open to those who may use the directory that it is in.
    fn make_directory(&self) -> io::Result<()> {
        if let Some(above) = self.locks.parent().filter(|above| !above.as_os_str().is_empty()) {
            // With a store on a server, nothing may have needed it yet.
            DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        match DirBuilder::new().mode(0o700).create(&self.locks) {
            Ok(()) => {
                let above = self.locks.parent().map(std::fs::metadata).transpose()?;
                above.map_or(Ok(()), |above| share(&File::open(&self.locks)?, &above, above.mode() & 0o7777))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes locks of processes that ended long ago. Best effort: one more file harms nobody.
    fn remove_stale(&self) {
        for entry in std::fs::read_dir(&self.locks).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|meta| meta.modified());
            let age = modified.ok().and_then(|at| at.elapsed().ok());
            // A lock that is just being made is not held yet, but it is not old.
            if age.is_some_and(|age| age > STALE)
                && File::open(entry.path()).is_ok_and(|file| state_of(&file) == LockState::Free)
            {
                let _ = std::fs::remove_file(entry.path());
            }
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
