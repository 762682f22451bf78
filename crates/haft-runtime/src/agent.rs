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

pub mod chat;
pub mod model;
pub mod purse;
pub mod roles;
pub mod settings;
pub mod told;

pub use chat::{Chat, Door, Who};
pub use model::{Facts, Model, ModelRef, Prompt};
pub use purse::{Purse, Reserved};
pub use settings::{AgentSettings, Role};
pub use told::{Ended, Told, Watch};
