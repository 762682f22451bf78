//! Errors inside: which step failed, and what the kernel said.

use std::io;

/// A step that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) step: String,
    pub(super) errno: i32,
}

/// Names the step that a result is of.
pub(super) trait Step<T> {
    fn step(self, name: impl FnOnce() -> String) -> Result<T, Failed>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, name: impl FnOnce() -> String) -> Result<T, Failed> {
        self.map_err(|error| Failed { step: name(), errno: error.into().raw_os_error().unwrap_or(libc::EIO) })
    }
}
