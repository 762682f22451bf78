//! Links that open one approval on another device, once; and the tokens that they are exchanged for.

use crate::options::Options;
use crate::token::{digest, random};
use haft_runtime::now_ms;
use qrcodegen::{QrCode, QrCodeEcc};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// How long a link can be opened.
const LINK_MS: i64 = 10 * 60_000;
/// How long what it was exchanged for is good.
const TOKEN_MS: i64 = 15 * 60_000;
/// How many of each there are at once; the oldest give way.
const AT_ONCE: usize = 64;
/// 128 bits: a link lives for minutes and is good for one thing.
const BYTES: usize = 16;

/// Secrets, by their hash, and what they are for until when.
#[derive(Default)]
struct Kept {
    held: HashMap<[u8; 32], Held>,
    /// How many there have been: of two that end in the same moment, one was first.
    made: u64,
}

struct Held {
    approval: String,
    until: i64,
    number: u64,
}

impl Kept {
    fn add(&mut self, secret: &str, approval: &str, until: i64) {
        self.held.retain(|_, held| held.until > now_ms());
        if self.held.len() >= AT_ONCE
            && let Some(oldest) = self.held.iter().min_by_key(|(_, held)| held.number).map(|(hash, _)| *hash)
        {
            self.held.remove(&oldest);
        }
        self.made += 1;
        self.held.insert(digest(secret), Held { approval: approval.to_owned(), until, number: self.made });
    }
}

/// The links and tokens that are good now. Kept in memory only: they end with the process.
#[derive(Default)]
pub(crate) struct Links {
    codes: Mutex<Kept>,
    tokens: Mutex<Kept>,
}

/// A link.
pub(crate) struct Link {
    pub(crate) code: String,
    pub(crate) expires_ms: i64,
}

impl Links {
    /// A new link to an approval.
    pub(crate) fn make(&self, approval: &str) -> Option<Link> {
        let (code, expires_ms) = (random(BYTES)?, now_ms() + LINK_MS);
        self.codes.lock().unwrap_or_else(PoisonError::into_inner).add(&code, approval, expires_ms);
        Some(Link { code, expires_ms })
    }

    /// Exchanges a link for a token, once. Returns the token and the approval that it is for.
    pub(crate) fn open(&self, code: &str) -> Option<(String, String)> {
        let found = self.codes.lock().unwrap_or_else(PoisonError::into_inner).held.remove(&digest(code));
        let Held { approval, .. } = found.filter(|held| held.until > now_ms())?;
        let token = random(BYTES * 2)?;
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).add(&token, &approval, now_ms() + TOKEN_MS);
        Some((token, approval))
    }

    /// Ends the tokens for an approval: it has been decided with one.
    pub(crate) fn end(&self, approval: &str) {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).held.retain(|_, held| held.approval != approval);
    }

    /// The approval that a token is for.
    pub(crate) fn approval_of(&self, token: &str) -> Option<String> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.held.get(&digest(token)).filter(|held| held.until > now_ms()).map(|held| held.approval.clone())
    }
}

/// The address under which another device reaches this one: a name that was given, else the address listened on.
pub(crate) fn reachable(options: &Options, listen: SocketAddr) -> String {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let port = listen.port();
    if let Some(host) = options.hosts.first() {
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        return if has_port { format!("{scheme}://{host}/") } else { format!("{scheme}://{host}:{port}/") };
    }
    let ip = if listen.ip().is_unspecified() { outward().unwrap_or(listen.ip()) } else { listen.ip() };
    format!("{scheme}://{}/", SocketAddr::new(ip, port))
}

/// The address that this machine has towards others. Nothing is sent to find out.
fn outward() -> Option<IpAddr> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    socket.connect(("192.0.2.1", 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// A text as a QR code, drawn as one path.
pub(crate) fn qr(text: &str) -> Option<String> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
    let (modules, quiet) = (code.size(), 4);
    let dark = (0..modules).flat_map(|y| (0..modules).map(move |x| (x, y))).filter(|(x, y)| code.get_module(*x, *y));
    let path: String = dark.map(|(x, y)| format!("M{},{}h1v1h-1z", x + quiet, y + quiet)).collect();
    let side = modules + 2 * quiet;
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\">\
         <rect width=\"{side}\" height=\"{side}\" fill=\"#fff\"/><path d=\"{path}\" fill=\"#000\"/></svg>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_once_and_its_token_is_for_its_approval() {
        let links = Links::default();
        let link = links.make("abc").unwrap();
        let (token, approval) = links.open(&link.code).unwrap();
        assert_eq!(approval, "abc");
        assert!(links.open(&link.code).is_none(), "once");
        assert_eq!(links.approval_of(&token).as_deref(), Some("abc"));
        assert_eq!(links.approval_of(&link.code), None, "a link is no token");
        links.end("other");
        assert!(links.approval_of(&token).is_some());
        links.end("abc");
        assert_eq!(links.approval_of(&token), None, "it has done what it was for");
    }

    #[test]
    fn there_are_never_many() {
        let links = Links::default();
        let first = links.make("first").unwrap();
        for _ in 0..AT_ONCE {
            links.make("other").unwrap();
        }
        assert_eq!(links.codes.lock().unwrap().held.len(), AT_ONCE);
        assert_eq!(links.open(&first.code), None, "the oldest goes first");
    }

    #[test]
    fn a_code_is_drawn() {
        let svg = qr("http://127.0.0.1:4747/#link=abc").unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>") && svg.contains("h1v1h-1z"));
    }
}
