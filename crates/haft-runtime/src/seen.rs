//! Read-before-edit: a session may only change a file whose present content it has seen.

use crate::files;
use haft_core::change::State;
use haft_core::record::Digest;
use haft_core::{CallError, SessionId};
use haft_store::{SeenChange, SeenFile, Sighting, Store};
use std::path::Path;

/// The state of a file that is gone.
const GONE: &str = "gone";
/// The state of one that is again what was seen.
const AS_SEEN: &str = "as seen";

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

/// Which of these files are others now than their session knows. Must not be called from an async context.
pub(crate) fn changed(files: &[SeenFile], shown: &dyn Fn(&Path) -> String) -> Vec<SeenChange> {
    let mut changes = Vec::new();
    for file in files {
        let Some(state) = state(file).filter(|state| file.told.as_ref() != Some(state)) else { continue };
        let name = crate::agent::notes::quoted(&shown(&file.path));
        let text = match state.as_str() {
            AS_SEEN if file.told.is_none() => continue,
            AS_SEEN => format!("{name} is again as this conversation last saw it"),
            GONE => format!("{name} is gone"),
            _ => format!("{name} has been changed"),
        };
        changes.push(SeenChange { path: file.path.clone(), state, text: Some(text) });
    }
    changes
}

/// What a file is now, compared with what was seen. None if that cannot be found out.
fn state(SeenFile { path, seen, .. }: &SeenFile) -> Option<String> {
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(GONE.to_owned()),
        Err(_) => return None,
    };
    let (size, mtime_ns) = (i64::try_from(meta.len()).unwrap_or(i64::MAX), files::mtime_ns(&meta));
    if !meta.is_file() {
        return Some(GONE.to_owned());
    }
    if (size, mtime_ns) == (seen.size, seen.mtime_ns) {
        return Some(AS_SEEN.to_owned());
    }
    match seen.digest {
        Some(known) if meta.len() <= files::LOAD_MAX => match files::state(path).ok()? {
            State::File { digest, .. } if digest == known => Some(AS_SEEN.to_owned()),
            State::File { digest, .. } => Some(digest.to_string()),
            _ => Some(GONE.to_owned()),
        },
        _ => Some(format!("{size} bytes at {mtime_ns}")),
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
