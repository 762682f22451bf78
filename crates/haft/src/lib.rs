//! haft: the handle that AI agents hold the world by.
//!
//! Every call is validated, decided, recorded and undoable. An embedder needs four things: a
//! [`Workspace`] (the project), a [`Store`] (what is remembered), [`Settings`] (who may do what) and an
//! [`Approver`] (who is asked).
//!
//! ```
//! use haft::{Call, Haft, Halt, Keeper, Nobody, Settings, Store, Workspace, new_call_id};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let store = Store::open(&dir.path().join("haft.db"))?;
//! let haft = Haft::new(Workspace::new(dir.path())?, store, Settings::new(dir.path().join("data")));
//! let call = Call::new(new_call_id(), "calc.eval", serde_json::json!({"expression": "6 * 7"}));
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! let outcome = runtime.block_on(haft.call(call, &Nobody, &Halt::new()));
//! assert_eq!(outcome.output, "42");
//! # Ok(())
//! # }
//! ```
//!
//! An embedder that does not know whether a call was made sends the same [`Call`] again, after a restart as well: a call of
//! a tool that may have an effect is made once for its [`CallId`], and sent again it gives the first outcome. A call under an
//! id of the embedder's own ([`CallId::chosen`]) is kept even if it only reads.

pub mod app;
pub mod cli;
pub mod commands;
pub mod config;
mod input;
mod live;
mod openapi;
mod operational_log;
mod size;
mod started_by;
mod style;
mod talks;
mod telemetry;
mod terminal;
mod time;
mod tui;

pub use haft_core as core;
pub use haft_core::approval::{Chain, Decision, Question as ChainQuestion, Resolver, ResolverError, Verdict, Vote};
pub use haft_core::{
    Call, CallError, CallId, Caller, Dialect, ErrorKind, Origin, Outcome, Policy, SessionId, ToolSpec,
};
pub use haft_runtime::confined::{Require, Shell, Terms};
pub use haft_runtime::output::Order;
pub use haft_runtime::{
    Approver, Blocking, BoxFuture, Decider, DeciderIdentity, Event, Events, Explained, Haft, Halt, Keeper, Nobody,
    Question, Registry, Reply, Said, Scene, Scope, Settings, Source, Tool, UndoLimits, Workspace, Yes, new_call_id,
};
pub use haft_sandbox as sandbox;
pub use haft_store::{Record, Store, StoreError};
