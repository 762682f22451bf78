//! Keeping changes of a run that nobody will take back: with the same care for each file, and without a
//! store. What was there is kept only until all is done.

use super::{Kept, UndoLimits, Vault, missing_dirs};
use crate::apply::{self, Failed};
use haft_core::CallError;
use haft_core::change::Change;
use haft_sandbox::layer::remove_all;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

/// Makes changes, all or none. `scratch` is a directory of the caller's own, best on the same file system.
pub fn carry_out(scratch: &Path, changes: &[Change], shown: &dyn Fn(&Path) -> String) -> Result<(), CallError> {
    apply::expect(changes, shown)?;
    let fail = |error: io::Error| CallError::internal(format!("{}: {error}; nothing was changed", scratch.display()));
    let dir = scratch.join("before");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(fail)?;
    let dir = dir.canonicalize().map_err(fail)?;
    let limits = UndoLimits { max_file_bytes: u64::MAX, max_total_bytes: u64::MAX, keep: Duration::ZERO };
    let vault = Vault { dir: dir.clone(), limits };
    let mut kept = Kept {
        dir: dir.clone(),
        vault: dir.clone(),
        steps: Vec::new(),
        excess: std::collections::BTreeSet::new(),
        made_dirs: missing_dirs(changes, &dir),
        undoes: None,
        gap: None,
    };
    for change in changes {
        vault.keep_one(&mut kept, change, 0).map_err(fail)?;
    }
    apply::settle(changes, &dir)?;
    match apply::apply(changes, &kept, shown) {
        Ok(()) => {
            let _ = remove_all(&dir);
            Ok(())
        }
        Err(Failed::Whole(error) | Failed::Half(error)) => Err(error),
    }
}
