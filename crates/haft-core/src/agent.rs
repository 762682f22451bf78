//! An agent: a model that speaks, the calls it makes, and what it is told of them.
//!
//! ```text
//!            Event                     Effect
//! driver ───────────► [`turns::Turns`] ───────► driver
//!   │  the model said a word              ask the model
//!   │  a call ended                       make these calls
//!   │  somebody wants it to stop          tell whoever watches
//! ```
//!
//! Nothing here speaks to anybody: the loop is a state machine, a model's wire format is a pair of functions between bytes and
//! words, and a history is a value that can be checked. What does the speaking is the driver in `haft-runtime`.

pub mod compact;
pub mod file;
pub mod gather;
pub mod pairs;
pub mod sse;
pub mod talk;
pub mod turns;
pub mod wire;

pub use talk::{Block, Delta, Message, Role, Stop, Usage};
