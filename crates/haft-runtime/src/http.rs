//! The one place where an HTTP client is made: whoever speaks to the world speaks by these rules.
//!
//! A client resolves names by itself and connects only to addresses that were checked: what was checked is what is
//! connected to. Addresses that stand in a URL do not pass here; whoever sends a request judges those first.

use haft_core::CallError;
use haft_core::host::is_public;
use haft_core::web::Refusal;
pub use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long one that is not used is kept.
const IDLE: Duration = Duration::from_mins(1);
/// How many answers of one name are tried.
const ADDRESSES: usize = 8;

/// Where names may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leads {
    /// To public addresses only: one that leads inside refuses the name.
    Outside,
    /// Anywhere: whoever names the host has said so.
    Anywhere,
}

/// A client that follows no redirect by itself: a server must not choose whom haft talks to. How long an answer may
/// take is for the caller to say. No proxy is used unless `proxy` says that the environment's is.
pub fn client_that(leads: Leads, proxy: bool) -> Result<Client, CallError> {
    ready();
    let builder = Client::builder()
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .dns_resolver(Arc::new(Resolver(leads)));
    let builder = if proxy { builder } else { builder.no_proxy() };
    builder.build().map_err(|error| CallError::internal(format!("no HTTP client could be made: {error}")))
}

/// A client for a host that the configuration names, wherever it is.
pub fn client() -> Result<Client, CallError> {
    client_that(Leads::Anywhere, true)
}

/// Makes TLS ready. Whoever has a library build a client of its own calls this first.
pub fn ready() {
    // Whoever was first has made the same choice; an error only says that there was somebody.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Resolves a name once and checks every answer.
struct Resolver(Leads);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let leads = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?.collect::<Vec<_>>();
            let checked = checked(name.as_str(), found, leads)?;
            Ok(Box::new(checked.into_iter().take(ADDRESSES)) as Addrs)
        })
    }
}

/// Lets the answers pass only all together: a name with one address inside is a name that somebody points inside,
/// whichever address comes first this time.
fn checked(name: &str, found: Vec<SocketAddr>, leads: Leads) -> Result<Vec<SocketAddr>, Refusal> {
    let inside = |found: &&SocketAddr| {
        let address = found.ip().to_canonical();
        !is_public(address) || haft_sandbox::net::is_own(address)
    };
    match found.iter().find(inside).filter(|_| leads == Leads::Outside) {
        Some(inside) => Err(Refusal::LeadsInside { name: name.to_owned(), address: inside.ip() }),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_inside_refuses_the_name() {
        let found = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let public = found(&["1.1.1.1:0", "[2606:4700::1111]:0"]);
        assert_eq!(checked("a.test", public.clone(), Leads::Outside).unwrap(), public);
        for inside in ["10.0.0.1:0", "127.0.0.1:0", "169.254.169.254:0", "[::1]:0", "[::ffff:10.0.0.1]:0"] {
            let mixed = found(&["1.1.1.1:0", inside]);
            let refused = checked("a.test", mixed.clone(), Leads::Outside).unwrap_err();
            assert!(matches!(refused, Refusal::LeadsInside { .. }), "{inside}");
            assert_eq!(checked("a.test", mixed.clone(), Leads::Anywhere).unwrap(), mixed);
        }
    }
}
