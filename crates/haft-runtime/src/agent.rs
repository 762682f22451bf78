//! Agents: a model is asked, its calls go the path of every call, and it is told what came of them.
//!
//! ```text
//! haft run, haft tui, agent.send, agent.spawn, a prompt in a pipeline
//!        │  Chat::say
//!        ▼
//!   Chat ── events ──► haft_core::agent::Turns ── effects ──► Chat
//!        │ ask                │ call                │ told
//!        ▼                    ▼                     ▼
//!      Model             Haft::call            store, Told
//! ```
//!
//! A [`Chat`] is one conversation: it belongs to a session of the store, where every message is a row that is written before
//! anybody is told of it. What it does is decided by the state machine; this module only does it.

pub mod active;
pub(crate) mod again;
pub mod agents;
pub mod chat;
mod child;
mod drive;
pub mod facts;
pub(crate) mod git;
pub mod model;
pub mod models;
pub(crate) mod notes;
mod offer;
pub mod providers;
pub mod purse;
pub mod remote;
mod result;
pub mod roles;
pub mod settings;
mod shorten;
pub(crate) mod spawn;
pub mod told;
pub(crate) mod tree;
pub mod worktrees;

pub use active::Active;
pub use agents::{Agents, tend};
pub use chat::{Chat, Child, Door, Who};
pub use model::{Counted, Facts, Model, ModelRef, Prompt};
pub use models::Models;
pub(crate) use offer::Like;
pub use purse::{Purse, Reserved};
pub use settings::{AgentSettings, Role};
pub use spawn::worded;
pub use told::{Ended, Told, Watch};
