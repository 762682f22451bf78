//! The deciding half of haft: what a call is, whether it is well formed, whether it may run, and how
//! its result is cut to size.
//!
//! Nothing here does I/O, reads a clock or awaits: every function is a value in, a value out, so the
//! rules that keep a machine safe can be tested exhaustively and read in one sitting. What acts on
//! these decisions lives in `haft-runtime`.

pub mod admit;
pub mod agent;
pub mod approval;
pub mod call;
pub mod change;
pub mod content;
pub mod dialect;
pub mod error;
pub mod executed;
pub mod finding;
pub mod form;
pub mod git_control;
pub mod grant;
pub mod hook;
pub mod host;
pub mod manifest;
pub mod memory;
pub mod name;
pub mod observed;
pub mod orchestrate;
pub mod outcome;
pub mod path_text;
pub mod pattern;
pub mod place;
pub mod policy;
pub mod preview;
pub mod provider;
pub mod record;
pub mod scan;
pub mod schedule;
pub mod schema;
pub mod secret;
pub mod shape;
pub mod shell;
pub mod skill;
pub mod suggest;
pub mod tokens;
pub mod tool;
pub mod web;
pub mod work;

pub use admit::{Admitted, Answer, Checked, Facts, Hold, Pending, Refused, Ruling, Shell};
pub use call::{Call, CallId, CallName, Caller, Origin, SessionId};
pub use content::{ContentBlock, ContentBody, ResultContent};
pub use dialect::Dialect;
pub use error::{CallError, ErrorKind};
pub use name::ToolName;
pub use outcome::Outcome;
pub use policy::Policy;
pub use schema::Schema;
pub use tool::ToolSpec;
