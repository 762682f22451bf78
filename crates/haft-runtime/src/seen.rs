//! Read-before-edit: a session may only change a file whose present content it has seen.

use haft_core::record::Digest;
use haft_core::{CallError, SessionId};
use haft_store::{Sighting, Store};
use std::path::Path;

/// What one session has read.
pub struct Seen<'s> {
    store: &'s Store,
    session: &'s SessionId,
}

/// How much of a file has to have been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Required {
    /// Any part: an edit names the text it replaces.
    Part,
    /// All of it: an overwrite loses what it does not know.
    Whole,
}

impl<'s> Seen<'s> {
    pub(crate) fn new(store: &'s Store, session: &'s SessionId) -> Self {
        Self { store, session }
    }

    /// Notes that the session knows this file.
    pub fn note(&self, path: &Path, sighting: Sighting) {
        self.store.note_sighting(self.session.clone(), path.to_owned(), sighting);
    }

    /// Refuses a change to a file that the session has not read as it stands. Must not be called from an
    /// async context.
    pub fn require(&self, path: &Path, shown: &str, now: &Sighting, required: Required) -> Result<(), CallError> {
        let known = self.store.sighting_blocking(self.session, path).map_err(crate::store_error)?;
        let Some(known) = known else {
            return Err(CallError::conflict(format!("{shown} has not been read in this session"))
                .hint("read it with file.read first, so that nothing unseen is overwritten"));
        };
        if required == Required::Whole && !known.whole {
            return Err(CallError::conflict(format!("only a part of {shown} has been read in this session"))
                .hint("read the whole file first, or change it with file.edit"));
        }
        if !unchanged(&known, now) {
            return Err(CallError::conflict(format!("{shown} has changed since it was read"))
                .hint("read it again with file.read"));
        }
        Ok(())
    }
}

/// The content decides where it is known; size and time stand in where a file was too large to hash.
fn unchanged(known: &Sighting, now: &Sighting) -> bool {
    match (known.digest, now.digest) {
        (Some(then), Some(now)) => then == now,
        _ => known.size == now.size && known.mtime_ns == now.mtime_ns,
    }
}

/// A sighting of content that was read or written whole.
pub fn whole(content: &[u8], mtime_ns: i64) -> Sighting {
    Sighting {
        digest: Some(Digest::of(content)),
        size: i64::try_from(content.len()).unwrap_or(i64::MAX),
        mtime_ns,
        whole: true,
    }
}
