//! The one place where an HTTP client is made: whoever speaks to the world speaks by these rules.
//!
//! A client resolves names by itself and connects only to addresses that were checked: what was checked is what is
//! connected to. Addresses that stand in a URL do not pass here; whoever sends a request judges those first.

use haft_core::CallError;
use haft_core::host::{Host, is_public};
use haft_core::preview::inert;
use haft_core::web::{Network, Refusal, Rules, Target};
pub(crate) use reqwest::Error;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
pub(crate) use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Client, Response as Answer};
use reqwest::{ClientBuilder, NoProxy, Proxy, Url};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take to be made.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);
/// How long one that is not used is kept.
const IDLE: Duration = Duration::from_mins(1);
/// How many of those are kept for one host.
const IDLE_MAX: usize = 8;
/// How many answers of one name are tried.
const ADDRESSES: usize = 8;

/// Where names may lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leads {
    /// To public addresses only: one that leads inside refuses the name.
    Outside,
    /// The same, but for this name: whoever named the host has said so.
    OutsideBut(String),
    /// Anywhere: every host that is asked for has been named by somebody who may.
    Anywhere,
}

/// Who carries requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Carrier {
    /// haft itself.
    #[default]
    Own,
    /// The proxies that `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY` name, but for the hosts in `NO_PROXY`. They look names
    /// up themselves; a name is only given to them if it leads outside from here as well.
    Environment,
    /// The same, and names that have no address here are left to them, wherever those may lead.
    Trusted,
}

/// A name that has no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` has no address: {why}")]
pub(crate) struct Unknown {
    name: String,
    why: String,
}

/// A client that follows no redirect by itself: a server must not choose whom haft talks to. It keeps no cookies. How
/// long an answer may take is for the caller to say.
pub fn client(leads: Leads, carrier: Carrier) -> Result<Client, CallError> {
    ready();
    let proxies = match carrier {
        Carrier::Own => Vec::new(),
        Carrier::Environment | Carrier::Trusted => proxies(|name| std::env::var(name).ok())?,
    };
    let resolver = Resolver { leads, free: proxies.iter().filter_map(|(_, url)| host_of(url)).collect() };
    let builder = Client::builder()
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_MAX)
        .no_proxy()
        .dns_resolver(Arc::new(resolver));
    let builder = proxies.into_iter().try_fold(builder, |builder, (kind, url)| carried(builder, kind, url))?;
    builder.build().map_err(|error| CallError::internal(format!("no HTTP client could be made: {error}")))
}

/// Makes TLS ready. Whoever has a library build a client of its own calls this first.
pub fn ready() {
    // Whoever was first has made the same choice; an error only says that there was somebody.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Which URLs a proxy carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carries {
    Plain,
    Secure,
}

/// The proxies that variables name. A proxy that cannot be used is an error: without it, requests would go another way
/// than somebody meant them to.
fn proxies(variable: impl Fn(&str) -> Option<String>) -> Result<Vec<(Carries, Url)>, CallError> {
    let mut found = Vec::new();
    for (carries, names) in [
        (Carries::Plain, ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
        (Carries::Secure, ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
    ] {
        let set = |name| variable(name).filter(|value| !value.trim().is_empty()).map(|value| (name, value));
        let Some((name, value)) = names.into_iter().find_map(set) else { continue };
        let whole = if value.contains("://") { value } else { format!("http://{value}") };
        let url = Url::parse(whole.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let bad = || CallError::invalid(format!("{name} does not name a proxy that can be used"));
        let hint = "it is a URL like `http://proxy.example:3128`; set `web.proxy` to false to use none";
        found.push((carries, url.filter(Url::has_host).ok_or_else(|| bad().hint(hint))?));
    }
    Ok(found)
}

fn carried(builder: ClientBuilder, carries: Carries, url: Url) -> Result<ClientBuilder, CallError> {
    let proxy = match carries {
        Carries::Plain => Proxy::http(url),
        Carries::Secure => Proxy::https(url),
    };
    let bad = |error: reqwest::Error| CallError::invalid(format!("the proxy cannot be used: {}", error.without_url()));
    Ok(builder.proxy(proxy.map_err(bad)?.no_proxy(NoProxy::from_env())))
}

fn host_of(url: &Url) -> Option<String> {
    url.host_str().map(str::to_owned)
}

/// Resolves a name once and checks every answer.
struct Resolver {
    leads: Leads,
    /// The proxies, which are wherever they are.
    free: Vec<String>,
}

impl Resolver {
    fn leads_out(&self, name: &str) -> bool {
        let free = self.free.iter().any(|free| free == name);
        match &self.leads {
            Leads::Anywhere => false,
            Leads::OutsideBut(named) => !free && named != name,
            Leads::Outside => !free,
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let outside = self.leads_out(name.as_str());
        Box::pin(async move {
            let found = look_up(name.as_str()).await?;
            if outside {
                outside_only(name.as_str(), &found)?;
            }
            Ok(Box::new(found.into_iter().take(ADDRESSES)) as Addrs)
        })
    }
}

/// What the system says about a name.
async fn look_up(name: &str) -> Result<Vec<SocketAddr>, Unknown> {
    let unknown = |why: &str| Unknown { name: inert(name), why: inert(why) };
    let found = tokio::net::lookup_host((name, 0)).await.map_err(|error| {
        let why = error.to_string();
        unknown(why.strip_prefix("failed to lookup address information: ").unwrap_or(&why))
    })?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(unknown("nobody knows one")) } else { Ok(found) }
}

/// Lets the answers pass only all together: a name with one address inside is a name that somebody points inside,
/// whichever address comes first this time.
fn outside_only(name: &str, found: &[SocketAddr]) -> Result<(), Refusal> {
    match found.iter().map(SocketAddr::ip).find(|address| is_inside(*address)) {
        Some(address) => Err(Refusal::LeadsInside { name: name.to_owned(), address }),
        None => Ok(()),
    }
}

/// Whether an address is not on the public internet, or is but belongs to this machine.
pub(crate) fn is_inside(address: IpAddr) -> bool {
    let address = address.to_canonical();
    !is_public(address) || haft_sandbox::net::is_own(address)
}

/// Somebody who is not reached for a server that named them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; only the server's own host may be there")]
pub struct Stranger(#[from] Refusal);

/// Whether somebody may be asked for a server whose own place is `own`: its own host wherever that is, at any port,
/// because who signs in for a server on this machine is often beside it; anybody else only outside. Where a name leads is for the client to judge, in the moment of
/// connecting, or judged here if a proxy connects.
pub async fn judge(target: &Target, own: &Target, carrier: Carrier) -> Result<(), Stranger> {
    if target.host() == own.host() {
        return Ok(());
    }
    Rules { networks: vec![Network::All], ..Rules::default() }.admits(target)?;
    match target.host() {
        Host::Address(address) if is_inside(*address) => Err(Refusal::Private(target.authority()).into()),
        Host::Address(_) => Ok(()),
        Host::Name(name) => Ok(leads_outside_from_here(name, carrier).await?),
    }
}

/// Where a proxy carries requests, it also looks names up. What they lead to from here is checked all the same. A name
/// that has no address here is not sent there unless the proxy is trusted with that: it may be one inside.
pub(crate) async fn leads_outside_from_here(name: &str, carrier: Carrier) -> Result<(), Refusal> {
    if carrier == Carrier::Own {
        return Ok(());
    }
    match look_up(name).await {
        Ok(found) => outside_only(name, &found),
        Err(_) if carrier == Carrier::Trusted => Ok(()),
        Err(_) => Err(Refusal::OnlyTheProxyKnows(inert(name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_inside_refuses_the_name() {
        let found = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let public = found(&["1.1.1.1:0", "[2606:4700::1111]:0"]);
        assert_eq!(outside_only("a.test", &public), Ok(()));
        for inside in ["10.0.0.1:0", "127.0.0.1:0", "169.254.169.254:0", "[::1]:0", "[::ffff:10.0.0.1]:0"] {
            let refused = outside_only("a.test", &found(&["1.1.1.1:0", inside])).unwrap_err();
            assert!(matches!(refused, Refusal::LeadsInside { .. }), "{inside}");
        }
    }

    #[test]
    fn only_what_was_named_may_lead_inside() {
        let resolver = |leads| Resolver { leads, free: vec!["proxy.corp".to_owned()] };
        for (leads, named, other) in [
            (Leads::Outside, true, true),
            (Leads::OutsideBut("mcp.corp".to_owned()), false, true),
            (Leads::Anywhere, false, false),
        ] {
            let resolver = resolver(leads);
            assert_eq!((resolver.leads_out("mcp.corp"), resolver.leads_out("sub.mcp.corp")), (named, other));
            assert!(!resolver.leads_out("proxy.corp"), "a proxy is wherever it is");
        }
    }

    #[tokio::test]
    async fn a_server_names_nobody_inside_but_itself() {
        let target = |url: &str| Target::read(url).unwrap();
        let (here, there) = (target("http://127.0.0.1:9000/mcp"), target("https://mcp.example/"));
        for (url, own, allowed) in [
            ("http://127.0.0.1:9000/token", &here, true),
            ("http://127.1:9000/", &here, true),
            ("http://127.0.0.1:9001/token", &here, true),
            ("http://127.0.0.2:9000/", &here, false),
            ("http://localhost:9000/", &here, false),
            ("http://169.254.169.254/", &here, false),
            ("https://mcp.example/", &there, true),
            ("https://login.example/", &there, true),
            ("http://127.0.0.1/", &there, false),
            ("http://[::1]/", &there, false),
            ("http://metadata.google.internal/", &there, false),
        ] {
            assert_eq!(judge(&target(url), own, Carrier::Own).await.is_ok(), allowed, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_that_only_a_proxy_knows_needs_one_that_is_trusted() {
        let (name, own) = ("only-the-proxy-knows.invalid", Target::read("https://mcp.example/").unwrap());
        let target = Target::read(&format!("https://{name}/token")).unwrap();
        for (carrier, allowed) in [(Carrier::Own, true), (Carrier::Environment, false), (Carrier::Trusted, true)] {
            assert_eq!(leads_outside_from_here(name, carrier).await.is_ok(), allowed, "{carrier:?}");
            assert_eq!(judge(&target, &own, carrier).await.is_ok(), allowed, "{carrier:?}");
        }
        assert!(judge(&own, &own, Carrier::Environment).await.is_ok(), "the server itself is wherever it is");
        let inside = leads_outside_from_here("localhost", Carrier::Trusted).await;
        assert!(matches!(inside, Err(Refusal::LeadsInside { .. })), "what leads inside from here never is");
    }

    #[test]
    fn proxies_come_from_the_usual_variables() {
        let from = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> = set.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            proxies(move |name| set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))
        };
        assert_eq!(from(&[]).unwrap(), []);
        let url = |text: &str| Url::parse(text).unwrap();
        let both = from(&[("HTTPS_PROXY", "http://a.example:1"), ("ALL_PROXY", "b.example:2")]).unwrap();
        assert_eq!(both, [(Carries::Plain, url("http://b.example:2")), (Carries::Secure, url("http://a.example:1"))]);
        for bad in ["socks5://a.example:1", "http://", "nonsense with spaces"] {
            let error = from(&[("http_proxy", bad)]).unwrap_err();
            assert!(error.message.contains("http_proxy does not name a proxy"), "{error:?}");
        }
    }
}
