//! The lock under which changes of a project are made: a `flock` on its root directory, so that it is the same one for every
//! process and every user, in every container, and the kernel releases it when its process ends.
//!
//! Nothing rests on it: every change is checked when it is made, whoever else makes some. Two hafts that take turns are told of a
//! conflict before they touch anything, instead of having to sort out versions that crossed.

use haft_sandbox::layer::at;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long one waits. Making changes takes milliseconds; whoever holds the lock for longer is no haft, or is stopped.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(1);

/// Held while changes are made.
pub(crate) struct ProjectLock(Option<OwnedFd>);

impl ProjectLock {
    /// Waits for the lock of the project at `root`. Where there can be none, or somebody keeps it, changes are made without.
    pub(crate) fn wait(root: &Path) -> Self {
        let Ok(dir) = at::open_dir(root) else { return Self(None) };
        let until = Instant::now() + PATIENCE;
        loop {
            match rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Self(Some(dir)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => std::thread::sleep(POLL),
                Err(error) => {
                    tracing::debug!(%error, "changes are made without the lock of the project");
                    return Self(None);
                }
            }
        }
    }

    /// No lock: nobody else makes changes, or it has to work without.
    pub(crate) fn none() -> Self {
        Self(None)
    }
}

impl Drop for ProjectLock {
    fn drop(&mut self) {
        // A program that was started meanwhile may have the descriptor, too, until it runs: closing alone would not release it.
        if let Some(dir) = &self.0 {
            let _ = rustix::fs::flock(dir, FlockOperation::Unlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_one_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = ProjectLock::wait(dir.path());
        assert!(first.0.is_some());
        let root = dir.path().to_owned();
        let second = std::thread::spawn(move || {
            let begun = Instant::now();
            (ProjectLock::wait(&root).0.is_some(), begun.elapsed())
        });
        std::thread::sleep(Duration::from_millis(100));
        drop(first);
        let (is_held, waited) = second.join().unwrap();
        assert!(is_held && waited >= Duration::from_millis(50), "{waited:?}");
    }

    #[test]
    fn whoever_keeps_it_stops_nobody_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let _kept = ProjectLock::wait(dir.path());
        assert!(ProjectLock::wait(dir.path()).0.is_none());
        assert!(ProjectLock::wait(&dir.path().join("gone")).0.is_none());
    }
}
