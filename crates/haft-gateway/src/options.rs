//! What a gateway is told when it is made.

use crate::token::Token;
use haft_core::{Caller, Dialect, SessionId};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What becomes of a call whose caller has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenGone {
    /// It is cancelled.
    Cancel,
    /// It is carried to its end, and its outcome can be fetched.
    Finish,
}

/// A certificate chain and its private key, as PEM.
#[derive(Clone)]
pub struct Tls {
    /// The chain, the server's own certificate first.
    pub cert: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
}

/// Is told the id and the preview of a call that starts to wait.
pub type Herald = dyn Fn(&str, &str) + Send + Sync;

/// What a gateway is told.
#[derive(Clone)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Who shows this may do everything.
    pub token: Token,
    /// Who shows this may make calls and see what became of them, and decides nothing.
    pub agent_token: Token,
    /// Names under which others reach it, besides the address it listens on.
    pub hosts: Vec<String>,
    /// Whether links are given out that open one approval, once.
    pub links: bool,
    /// How long a call waits for somebody to decide about it, unless it says otherwise.
    pub patience: Duration,
    /// What becomes of a call whose caller has gone.
    pub when_gone: WhenGone,
    /// With this, HTTPS is spoken.
    pub tls: Option<Tls>,
    /// How many connections there may be at once.
    pub connections: usize,
    /// On whose behalf calls are made.
    pub caller: Caller,
    /// The session of calls that name none.
    pub session: SessionId,
    /// The vocabulary of calls that name none.
    pub dialect: Dialect,
    /// The configuration in force: `config`, `origins`, `sources`, `warnings`.
    pub config: Value,
    /// What the kernel enforces here.
    pub confinement: Value,
    /// The bridged servers and how they are.
    pub servers: Arc<dyn Fn() -> Value + Send + Sync>,
    /// Is told of every call that starts to wait for a person.
    pub waiting: Arc<Herald>,
    /// What answers below `/mcp`, behind the same guard as everything else.
    pub mcp: Option<McpServers>,
}

/// The MCP servers behind `/mcp`. The token decides which of them a client reaches, so that a session of one kind of client
/// does not exist for the other.
#[derive(Clone)]
pub struct McpServers {
    /// For clients that show the owner's token.
    pub owner: axum::Router,
    /// For clients that show the agents' token: no approval may be given here.
    pub agents: axum::Router,
}
