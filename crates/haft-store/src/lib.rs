//! What haft remembers: the journal, sessions, approvals, grants, trust, undo, memory and work, in one embedded
//! `SQLite` file, or on a PostgreSQL server that many share.
//!
//! All access goes through one thread that owns the connection and commits what has queued up together
//! (or, in a process that makes one call, through whoever comes).
//! A caller chooses per write whether to wait until it is on disk ([`Store::run`] with
//! [`Mode::Durable`]) or to go on at once ([`Store::later`]); nothing is acknowledged before its commit.

mod approvals;
mod base;
mod calls;
mod check;
mod copy;
mod db;
mod error;
mod forms;
mod grants;
mod heard;
mod host;
mod idempotency;
mod job;
mod journal;
mod listen;
mod lite;
mod memory;
mod migrate;
mod network_files;
mod notes;
mod observed;
mod pending;
mod pins;
mod post;
mod presence;
mod proposals;
mod prune;
mod pulse;
mod redact;
mod requests;
mod schema;
mod sessions;
pub mod talks;
pub mod tasks;
mod tls;
mod topic;
mod trust;
mod undo;
pub mod waits;
pub mod work;
mod worker;

pub use approvals::{Approval, ApprovalState};
pub use calls::{News, Traced, Wanted};
pub use check::{About, Checked, bring_up_to_date, format_of};
pub use copy::{Copied, CopyError, Progress, copy};
pub use db::{Cell, Db, DbError, DbResult, Held, Kind, Param, Row};
pub use error::StoreError;
pub use forms::{FORM_PREFIX, Filled};
pub use heard::HOLDS_MS;
pub use host::{host_name, may_live};
pub use idempotency::{Claim, ClaimedCall};
pub use journal::{Broken, Entry, Head, Record, Unclosed, Verified, myself, process_birth};
pub use memory::{Added, By, Document, Edit, HeldPiece, MemoryNews, Remembered, Restored, ShownPiece};
pub use network_files::network_file_system;
pub use notes::{Note, NoteKind, SeenChange, SeenFile};
pub use observed::{AgentProcess, ObservedCall};
pub use pins::{Pin, PinsAsOf};
pub use proposals::{Caps, Proposal, Room};
pub use prune::Pruned;
pub use redact::{Redacted, Redaction, RedactionScope};
pub use requests::{Asked, Portion, Wish};
pub use sessions::{Session, Sighting};
pub use topic::Topic;
pub use undo::{ChangingCall, StandingCalls, UndoCall, UndoLinks, UndoSelection, UndoStep};
pub use worker::{Mode, Store, shown};

/// Milliseconds of the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
