//! The one place where an HTTP client is made: whoever speaks to the world speaks by these rules.

use haft_core::CallError;
pub use reqwest::Client;
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long one that is not used is kept.
const IDLE: Duration = Duration::from_mins(1);

/// A client that follows no redirect by itself: a server must not choose whom haft talks to. How long an answer may
/// take is for the caller to say.
pub fn client() -> Result<Client, CallError> {
    ready();
    Client::builder()
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .build()
        .map_err(|error| CallError::internal(format!("no HTTP client could be made: {error}")))
}

/// Makes TLS ready. Whoever has a library build a client of its own calls this first.
pub fn ready() {
    // Whoever was first has made the same choice; an error only says that there was somebody.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
