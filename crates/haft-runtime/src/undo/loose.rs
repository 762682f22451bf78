//! Keeping changes of a run that nobody will take back: with the same care for each file, and without a
//! store. What was there is kept only until all is done.

use super::keep::Keeping;
use super::{Kept, UndoLimits, letting_go};
use crate::apply::{self, Failed};
use haft_core::CallError;
use haft_core::change::Change;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Makes changes, all or none. `scratch` is a directory of the caller's own, best on the same file system.
pub fn carry_out(scratch: &Path, changes: &[Change], shown: &dyn Fn(&Path) -> String) -> Result<(), CallError> {
    apply::expect(changes, shown)?;
    let fail = |error: io::Error| CallError::internal(format!("{}: {error}; nothing was changed", scratch.display()));
    let limits = UndoLimits { max_file_bytes: u64::MAX, max_total_bytes: u64::MAX, keep: Duration::ZERO };
    let call = crate::new_call_id();
    let kept = Kept::plan(&scratch.join("before"), &limits, call.as_str(), None, (changes, Keeping::Moved));
    let mut kept = kept.map_err(fail)?;
    let made = match make(changes, &mut kept, shown) {
        Err(Failed::Half(error)) => return Err(moved_out(scratch, call.as_str(), error)),
        Err(Failed::Whole(error)) => Err(error),
        Ok(()) => Ok(()),
    };
    let late = kept.late_versions();
    if late.is_empty() {
        kept.remove();
        return made;
    }
    let error = made.err().unwrap_or_else(|| CallError::conflict("all changes were made"));
    Err(moved_out(scratch, call.as_str(), letting_go::after(error, &late, shown)))
}

/// What must not get lost leaves the caller's directory, which goes when the caller is done.
fn moved_out(scratch: &Path, call: &str, mut error: CallError) -> CallError {
    let (from, to) = (scratch.join("before"), scratch.with_file_name(format!("kept-{call}")));
    let named = from.canonicalize().unwrap_or_else(|_| from.clone());
    if std::fs::rename(&from, &to).is_ok() {
        error.message = error.message.replace(&named.display().to_string(), &to.display().to_string());
    }
    error
}

fn make(changes: &[Change], kept: &mut Kept, shown: &dyn Fn(&Path) -> String) -> Result<(), Failed> {
    let prepared = apply::prepare(changes, kept, shown)
        .and_then(|drafts| apply::settle(changes, &drafts, kept.vault()))
        .and_then(|()| apply::prepare_new(changes, kept, shown))
        .and_then(|drafts| apply::settle(&[], &drafts, kept.vault()));
    if let Err(error) = prepared {
        apply::remove_drafts(kept);
        super::remove_dirs(&kept.made_dirs);
        return Err(Failed::Whole(error));
    }
    apply::apply(changes, kept, shown)
}
