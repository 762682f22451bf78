//! Pages that a session has fetched, so that reading on costs no second request.

/// The pages of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Pages {}
