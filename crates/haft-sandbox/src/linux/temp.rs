//! A temporary directory for a program that shares the root with everybody: it must not see, or be seen
//! by, what others keep in `/tmp`.

use super::layout::{Kind, Layout, Spot};
use crate::backend::{Program, SandboxError};
use crate::layer::remove_all;
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// The directory, which goes with the run.
pub(super) struct Temp(PathBuf);

static MADE: AtomicU64 = AtomicU64::new(0);

impl Temp {
    pub(super) fn make() -> Result<Self, SandboxError> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("haft-{}-{number}", std::process::id()));
        // A directory that is there already is somebody else's.
        let made = std::fs::DirBuilder::new().mode(0o700).create(&dir).and_then(|()| dir.canonicalize());
        made.map(Self).map_err(SandboxError::step(format!("make {}", dir.display())))
    }

    /// Makes it the program's temporary directory and home.
    pub(super) fn settle_in(&self, layout: &mut Layout, program: &mut Program) {
        layout.spots.push(Spot { path: self.0.clone().into(), kind: Kind::Write });
        for name in ["TMPDIR", "HOME"] {
            program.env.retain(|(known, _)| known != name);
            program.env.push((name.into(), OsString::from(&self.0)));
        }
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = remove_all(&self.0);
    }
}
