//! The acting half of haft: it carries a call through every stage that `haft-core` decides about.

mod admit;
pub mod agent;
mod apply;
pub mod approver;
pub mod back;
mod blocking;
pub mod browser;
pub mod budget;
pub mod confined;
mod dry;
pub mod events;
mod file_stamp;
pub mod files;
mod finding;
mod forms;
pub mod halt;
pub mod hooked;
pub mod http;
mod hygiene;
mod idempotency;
mod inbox;
mod journal;
pub mod judge;
mod kept;
mod lasting_approval;
mod maker;
pub mod making;
pub mod media;
pub mod memory;
mod observed;
mod orchestrate;
pub mod output;
mod own_state;
pub mod page_address;
mod panics;
pub mod pipeline;
pub mod promised;
pub mod provider_tools;
mod ranked_changes;
mod recall;
mod redaction;
pub mod registry;
mod run;
pub mod scene;
pub mod script;
pub mod secrets;
pub mod seen;
mod shared_data;
pub mod shelf;
mod shown_questions;
pub mod skills;
pub mod task;
#[cfg(test)]
mod testing;
mod text_encoding;
pub mod tool;
pub mod tools;
mod trace;
mod trial;
pub mod undo;
pub mod web;
pub mod work;
pub mod workspace;

pub use admit::Explained;
pub use approver::{Approver, Nobody, Question, RefusingApprover, Said, Yes};
pub use back::{Back, CallerOffer, Form, SamplingConsent, Written};
pub use events::{Event, Events};
pub use haft_core::approval::{Decider, DeciderIdentity};
pub use halt::Halt;
pub use hygiene::Looked;
pub use idempotency::is_refused_repeat;
pub use kept::KeptLimits;
pub use observed::{AskVia, HookRuling, InboxWait, NativeToolCall, NativeToolOutcome, NativeToolReport};
pub use orchestrate::Asked;
pub use pipeline::{Haft, Settings};
pub use ranked_changes::{
    ChangeRank, ChangeView, CommitSummary, FoldReason, FoldedFile, FoldedTree, PathChange, RankedChanges, RankedPath,
    ReferenceMove,
};
pub use recall::{Resolution, reason_now};
pub use redaction::{LogRedaction, RedactionRequest};
pub use registry::{Registry, Scope, Source};
pub use scene::Scene;
pub use task::Keeper;
pub use tool::{Blocking, BoxFuture, Reply, Tool};
pub use undo::UndoLimits;
pub use undo::extent::{
    CallUndone, ChangeEntry, LastUndoable, PartlyUndone, PassedOver, SelectionUndone, selection as undo_selection,
};
pub use undo::selection::Changed;
pub use workspace::Workspace;

use haft_core::{CallError, CallId};

/// A number nobody can guess.
pub(crate) fn chance() -> u64 {
    // Without a source of chance there is still the clock; ids only have to differ.
    getrandom::u64().unwrap_or_else(|_| now_ns())
}

/// A mark for the wrapper around a text, which its author cannot know.
pub fn new_mark() -> String {
    format!("{:016x}", chance())
}

fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// How to work in another project: for a path that is not UTF-8 no shell can be told to go there.
fn go_to(root: &std::path::Path) -> String {
    match root.to_str() {
        Some(root) => format!("cd {root}"),
        None => format!("haft --root '{}' …", haft_core::path_text::show(root.as_os_str())),
    }
}

/// Milliseconds of the Unix epoch.
pub fn now_ms() -> i64 {
    i64::try_from(now_ns() / 1_000_000).unwrap_or(i64::MAX)
}

/// A fresh name for a call.
pub fn new_call_id() -> CallId {
    CallId::new(now_ns() / 1_000_000, chance())
}

/// Changes that belong to no project: their names in order, then unified diffs with modes and links, as `git diff` would show
/// them.
pub fn diff(changes: &[haft_core::change::Change], shown: &dyn Fn(&std::path::Path) -> String) -> String {
    apply::view(changes, apply::Viewer { project: None, shown, under: None }, &[]).diff
}

/// A store's failure as the caller hears it.
pub fn store_error(error: haft_store::StoreError) -> CallError {
    if let haft_store::StoreError::MayNotDecide(refused) = error {
        return refused.into_error();
    }
    let hint = error.hint();
    CallError::internal(error.to_string()).hint(hint)
}

/// A place where a test may kill the process, to show that nothing is lost there. Absent from release
/// builds.
#[cfg(debug_assertions)]
pub(crate) fn crash_point(stage: &str) {
    if std::env::var_os("HAFT_CRASH_AT").is_some_and(|wanted| wanted == stage) {
        std::process::abort();
    }
    #[cfg(test)]
    undo::interference::at(stage);
}

#[cfg(not(debug_assertions))]
pub(crate) fn crash_point(_: &str) {}
