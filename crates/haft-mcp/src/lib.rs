//! MCP, both ways: haft as a server for any client, and any server's tools as tools of haft. The only crate that
//! knows the protocol.

pub mod client;
mod content;
pub mod server;
