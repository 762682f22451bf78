//! The only crate that listens: HTTP and WebSocket, events, MCP over HTTP, and the page where a person decides.
//!
//! A request passes the guard (`guard.rs`: who may come in), is turned into a `Call` (`rest/`, `rpc.rs`), and goes the
//! path of every call. Nothing is decided here. Everything that comes from outside is bounded in size, number and
//! time; the bounds are constants beside the code that keeps them.

mod accept;
mod agent;
mod body;
mod failures;
mod gateway;
mod guard;
mod hub;
mod lines;
mod links;
mod mcp;
mod meters;
mod options;
mod page;
mod patient;
mod problem;
mod rest;
mod routes;
mod rpc;
mod run;
mod socket;
mod sse;
mod tail;
mod tls;
mod token;
mod waiting;

pub use accept::{ServeError, bind, serve};
pub use haft_core::call::AGENT_SESSIONS;
pub use options::{Herald, McpServers, Options, Tls, WhenGone};
pub use token::{Token, TokenError};
