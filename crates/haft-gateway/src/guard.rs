//! Who may come in: the right host, the right origin, the right token, in this order.
//!
//! The host stops DNS rebinding (a page of somebody else's whose name leads here), the origin stops pages of other
//! sites, the token stops everybody else. There is no CORS and there are no cookies.

use crate::gateway::Shared;
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use haft_core::approval::{Decider, DeciderIdentity, DecisionScope};
use haft_core::call::AGENT_SESSIONS;
use haft_core::{CallId, Origin, SessionId};
use http::{HeaderMap, HeaderValue, Method, header};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// What the page may do: run what this program serves and talk to it, nothing else.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// Both ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) remote: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// What somebody may do who has come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everything.
    Full,
    /// Make calls and see what became of them; decide nothing.
    Calls,
    /// Look at this one approval and decide it.
    Only(String),
}

/// Who is behind a request, for the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visitor {
    /// The page, or any other program, as far as its headers can be believed.
    pub(crate) origin: Origin,
    /// Whose token was shown.
    pub(crate) holder: Holder,
}

/// Whose token was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// Nobody's: what is public needs none.
    Nobody,
    /// The owner's, on the page or in a program.
    Owner,
    /// That of the agents.
    Agent,
    /// One that a link was exchanged for.
    Link,
}

impl Visitor {
    /// The name under which what is done here is recorded: the token that was shown, because a header could say anything.
    pub(crate) fn name(self) -> &'static str {
        match self.holder {
            Holder::Nobody => "nobody",
            Holder::Owner => "owner token",
            Holder::Agent => "agent token",
            Holder::Link => "link",
        }
    }

    /// Who it is where something is decided. A link is for the one approval that its token says.
    pub(crate) fn decider(self) -> Decider {
        match self.holder {
            Holder::Owner => DeciderIdentity::OwnerToken,
            Holder::Agent => DeciderIdentity::AgentToken,
            Holder::Link | Holder::Nobody => DeciderIdentity::Unattended { door: "gateway" },
        }
        .into()
    }

    /// The session that this visitor means by a name.
    pub(crate) fn session(self, name: &str) -> Option<SessionId> {
        match self.holder {
            Holder::Agent if !name.is_empty() && !name.starts_with(AGENT_SESSIONS) => {
                SessionId::new(&format!("{AGENT_SESSIONS}{name}"))
            }
            _ => SessionId::new(name),
        }
    }

    /// Whether this visitor may see what belongs to a session, or to nobody in particular.
    pub(crate) fn sees(self, session: Option<&str>) -> bool {
        self.holder != Holder::Agent || session.is_some_and(|session| session.starts_with(AGENT_SESSIONS))
    }
}

/// Checks host and origin of every request, and puts the headers on every answer.
pub(crate) async fn outer(State(gateway): State<Shared>, mut request: Request, next: Next) -> Response {
    let page = matches!(request.uri().path(), "/") || request.uri().path().starts_with("/static/");
    let mut response = match checked(&gateway, &request) {
        Ok(origin) => {
            request.extensions_mut().insert(Visitor { origin, holder: Holder::Nobody });
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    let cache = if page { "no-cache" } else { "no-store" };
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(cache));
    response
}

/// Checks the token, where agents may come, too.
pub(crate) async fn inner(State(gateway): State<Shared>, request: Request, next: Next) -> Response {
    admit(&gateway, true, request, next).await
}

/// Checks the token, where only the owner may come.
pub(crate) async fn owner(State(gateway): State<Shared>, request: Request, next: Next) -> Response {
    admit(&gateway, false, request, next).await
}

async fn admit(gateway: &Shared, agents: bool, mut request: Request, next: Next) -> Response {
    match authenticated(gateway, agents, &request) {
        Ok(access) => {
            if let Some(visitor) = request.extensions().get::<Visitor>().copied() {
                let visitor = match access {
                    Access::Full => Visitor { holder: Holder::Owner, ..visitor },
                    Access::Calls => Visitor { holder: Holder::Agent, origin: Origin::Gateway },
                    Access::Only(_) => Visitor { holder: Holder::Link, ..visitor },
                };
                let decider = match access {
                    Access::Only(approval) => DeciderIdentity::Link { approval }.into(),
                    Access::Full | Access::Calls => visitor.decider(),
                };
                request.extensions_mut().insert(visitor);
                request.extensions_mut().insert::<Decider>(decider);
            }
            next.run(request).await
        }
        Err(problem) => {
            if let Some(approval) = agents_decision(gateway, &request) {
                // It is refused either way; the log keeps that it was tried.
                let agent = DeciderIdentity::AgentToken.into();
                let _ = gateway.haft.store().authorize(approval.as_str(), &agent, DecisionScope::Once).await;
            }
            problem.into_response()
        }
    }
}

/// The approval that an agent tries to decide.
fn agents_decision(gateway: &Shared, request: &Request) -> Option<CallId> {
    let is_agent = said(request).is_ok_and(|token| gateway.access(&token) == Some(Access::Calls));
    let rest = request.uri().path().strip_prefix("/v1/approvals/").filter(|_| request.method() == Method::POST);
    rest.filter(|_| is_agent).and_then(|rest| rest.split('/').next()).and_then(CallId::parse)
}

fn checked(gateway: &Shared, request: &Request) -> Result<Origin, Problem> {
    let local = request.extensions().get::<Ends>().map(|ends| ends.local);
    let names = Names { hosts: &gateway.options.hosts, listen: gateway.options.listen, local };
    let headers = request.headers();
    // HTTP/1.1 requires exactly one; without it there is nothing to go by.
    let host = only(headers, &header::HOST).ok_or_else(|| Problem::invalid("the request names no host, or several"))?;
    if !names.hold(host) {
        let host = haft_core::preview::inert(host);
        return Err(Problem::denied(format!("this is not `{host}`"))
            .hint("use the address that `haft serve` prints, or enter the name under gateway.hosts"));
    }
    if !headers.contains_key(header::ORIGIN) {
        return Ok(Origin::Gateway);
    }
    let said = only(headers, &header::ORIGIN).unwrap_or_default();
    let authority = said.strip_prefix("http://").or_else(|| said.strip_prefix("https://"));
    if authority.is_some_and(|authority| names.hold(authority)) {
        return Ok(Origin::Page);
    }
    Err(Problem::denied(format!("a page of `{}` may not talk to haft", haft_core::preview::inert(said))))
}

/// The names of this gateway.
struct Names<'n> {
    hosts: &'n [String],
    listen: SocketAddr,
    local: Option<SocketAddr>,
}

impl Names<'_> {
    /// Whether this is one of them. Whoever comes by another name is not talking to us, whatever they think.
    fn hold(&self, authority: &str) -> bool {
        let Some((host, port)) = split(authority) else { return false };
        let mine = port.unwrap_or(0) == self.port() || port.is_none();
        let listed = self.hosts.iter().any(|known| match split(known) {
            Some((name, Some(said))) => name.eq_ignore_ascii_case(host) && port == Some(said),
            Some((name, None)) => name.eq_ignore_ascii_case(host) && mine,
            None => false,
        });
        listed || (mine && (self.is_here(host)))
    }

    fn port(&self) -> u16 {
        self.local.map_or(self.listen.port(), |local| local.port())
    }

    fn is_here(&self, host: &str) -> bool {
        if host.eq_ignore_ascii_case("localhost") {
            return self.local.is_none_or(|local| local.ip().to_canonical().is_loopback());
        }
        let Ok(address) = host.parse::<IpAddr>() else { return false };
        let same = |other: SocketAddr| other.ip().to_canonical() == address.to_canonical();
        // An address is no name that somebody could point elsewhere: the one that was connected to is us.
        self.local.is_some_and(same) || same(self.listen)
    }
}

/// Host and port of an authority; IPv6 stands in brackets.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':').or_else(|| after.is_empty().then_some(""))?)
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    let port = if port.is_empty() { None } else { Some(port.parse().ok()?) };
    (!host.is_empty() && !host.contains(['/', '@', '?', '#'])).then_some((host, port))
}

/// The one value of a header.
fn only<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}

fn authenticated(gateway: &Shared, agents: bool, request: &Request) -> Result<Access, Problem> {
    let said = said(request);
    let access = said.as_ref().ok().and_then(|token| gateway.access(token));
    match access {
        Some(Access::Only(approval)) if !may(&approval, request) => {
            Err(Problem::denied("this token is for one approval only"))
        }
        Some(Access::Calls) if !agents => Err(Problem::denied("the agents' token makes calls and decides nothing")
            .hint("this is for the owner, on the page or with the token in `gateway-token`")),
        Some(access) => Ok(access),
        None => Err(refuse(gateway, request, said.err().unwrap_or("the token is wrong"))),
    }
}

/// Notes a failure, and says no.
pub(crate) fn refuse(gateway: &Shared, request: &Request, why: &str) -> Problem {
    gateway.meters.refused.inc();
    let peer = request.extensions().get::<Ends>().map_or(IpAddr::from([0, 0, 0, 0]), |ends| ends.remote.ip());
    match gateway.failures.note(peer, Instant::now()) {
        Some(seconds) => Problem::busy("too many wrong tokens from this address", seconds),
        None => Problem::unauthorized(why),
    }
}

/// What a token for one approval is good for.
fn may(approval: &str, request: &Request) -> bool {
    let rest = request.uri().path().strip_prefix("/v1/approvals/").and_then(|rest| rest.strip_prefix(approval));
    match rest {
        Some("") => [Method::GET, Method::POST].contains(request.method()),
        Some("/changes") => request.method() == Method::GET,
        _ => false,
    }
}

/// The token that was shown. A header that is there counts, even if it is malformed: whoever sends one means it.
fn said(request: &Request) -> Result<String, &'static str> {
    if request.headers().contains_key(header::AUTHORIZATION) {
        let value = only(request.headers(), &header::AUTHORIZATION).ok_or("the Authorization header is malformed")?;
        let (scheme, token) = value.split_once(' ').ok_or("the Authorization header is malformed")?;
        let well_formed = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(' ');
        return if well_formed { Ok(token.to_owned()) } else { Err("the Authorization header is malformed") };
    }
    let query = request.uri().query().unwrap_or_default();
    let mut tokens = query.split('&').filter_map(|pair| pair.strip_prefix("token="));
    match (tokens.next(), tokens.next()) {
        (Some(token), None) => Ok(token.to_owned()),
        (None, _) => Err("a token is needed"),
        (Some(_), Some(_)) => Err("there are several tokens"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_hold() {
        let hosts = ["haft.example".to_owned(), "proxy.example:8443".to_owned()];
        let here = |text: &str| text.parse::<SocketAddr>().unwrap();
        let names = Names { hosts: &hosts, listen: here("127.0.0.1:4747"), local: Some(here("127.0.0.1:4747")) };
        for good in [
            "127.0.0.1:4747",
            "localhost:4747",
            "LOCALHOST:4747",
            "localhost",
            "haft.example",
            "haft.example:4747",
            "proxy.example:8443",
        ] {
            assert!(names.hold(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:4747",
            "127.0.0.1:4748",
            "localhost:80",
            "10.0.0.1:4747",
            "haft.example:1",
            "proxy.example",
            "localhost:4747@evil.example",
            "localhost.evil.example:4747",
            "127.0.0.1.evil.example:4747",
            "[::1]:4747",
            "[::1",
            "localhost:x",
            "null",
        ] {
            assert!(!names.hold(bad), "{bad}");
        }
        let wide = Names { hosts: &[], listen: here("0.0.0.0:4747"), local: Some(here("192.168.1.5:4747")) };
        assert!(wide.hold("192.168.1.5:4747") && !wide.hold("192.168.1.6:4747") && !wide.hold("localhost:4747"));
        let six = Names { hosts: &[], listen: here("[::]:4747"), local: Some(here("[::ffff:127.0.0.1]:4747")) };
        assert!(six.hold("127.0.0.1:4747") && six.hold("localhost:4747"));
    }
}
