//! The hosts that a confined program may reach: how a rule is written, how a host is asked for, and
//! whether the one covers the other.
//!
//! A rule has one spelling and is refused in any other; a host that is asked for is read in every spelling
//! that some library would understand, so that an address never passes as a name.

mod address;

pub use address::{embedded_v4, is_public, literal};

use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The longest name that DNS can carry, written out.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// A host as a program asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name in lower case, without a final dot.
    Name(String),
    /// An address, however it was spelled.
    Address(IpAddr),
}

impl Host {
    /// Reads a host: an address if anything would take it for one, otherwise a name, otherwise nothing.
    pub fn read(spoken: &str) -> Option<Self> {
        if let Some(address) = literal(spoken) {
            return Some(Self::Address(address));
        }
        let name = lower(spoken);
        name_fault(&name).is_none().then_some(Self::Name(name))
    }

    /// Whether it is this machine's or its network's by its own words. A name may lead there all the same: where it
    /// leads is judged in the moment of connecting.
    pub fn is_private(&self) -> bool {
        match self {
            Self::Address(address) => !is_public(*address),
            Self::Name(name) => is_local(name),
        }
    }
}

/// Ends of names that mean this machine or its network wherever they are asked for. Nobody can have them on the internet,
/// so nobody needs to be asked where they lead.
const LOCAL: &[&str] =
    &["localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "home.arpa", "lan"];

fn is_local(name: &str) -> bool {
    !name.contains('.') || LOCAL.iter().any(|end| name == *end || is_under(name, end))
}

/// Whether a name lies below a domain, and is not the domain itself.
fn is_under(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|above| above.ends_with('.'))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(v4)) => v4.fmt(f),
            Self::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
        }
    }
}

/// Reads `host` or `host:port` as they stand in a URL; an IPv6 address has to wear its brackets.
pub fn authority(text: &str) -> Option<(Host, Option<u16>)> {
    let (host, port) = split_port(text)?;
    let port = port.map(|digits| read_port(digits).ok_or(())).transpose().ok()?;
    Some((Host::read(host)?, port))
}

/// One entry of a list of hosts: `example.com`, `*.example.com:443`, `192.0.2.7`, `[2001:db8::7]:443`.
///
/// Without a port it covers all ports. `*.example.com` covers every name below `example.com`, and not
/// `example.com` itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostRule {
    whom: Whom,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Whom {
    One(Host),
    /// All names below this one.
    Below(String),
}

impl HostRule {
    /// Whether it covers this host, in whatever spelling, at this port.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        Host::read(host).is_some_and(|host| self.covers(&host, port))
    }

    /// Whether it covers this host at this port.
    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && self.is_about(host)
    }

    /// Whether it covers this host at some port.
    pub fn is_about(&self, host: &Host) -> bool {
        match (&self.whom, host) {
            (Whom::One(own), host) => own == host,
            (Whom::Below(domain), Host::Name(name)) => is_under(name, domain),
            (Whom::Below(_), Host::Address(_)) => false,
        }
    }

    /// Whether everything that it covers is covered by another.
    pub fn is_below(&self, most: &Self) -> bool {
        let port = most.port.is_none() || most.port == self.port;
        port && match (&self.whom, &most.whom) {
            (Whom::One(host), _) => most.is_about(host),
            (Whom::Below(own), Whom::Below(other)) => own == other || is_under(own, other),
            (Whom::Below(_), Whom::One(_)) => false,
        }
    }

    /// Whether what it covers is this machine's or its network's by its own words.
    pub fn is_private(&self) -> bool {
        match &self.whom {
            Whom::One(host) => host.is_private(),
            Whom::Below(domain) => is_local(domain),
        }
    }

    /// The one host it names; a wildcard names none.
    pub fn host(&self) -> Option<&Host> {
        match &self.whom {
            Whom::One(host) => Some(host),
            Whom::Below(_) => None,
        }
    }

    /// The one port it covers; none is every port.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.whom {
            Whom::One(host) => host.fmt(f)?,
            Whom::Below(domain) => write!(f, "*.{domain}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> Self {
        rule.to_string()
    }
}

impl TryFrom<String> for HostRule {
    type Error = BadHost;
    fn try_from(text: String) -> Result<Self, BadHost> {
        text.parse()
    }
}

/// A list of rules. What no rule covers is refused, so the empty list refuses everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostRules(Vec<HostRule>);

impl HostRules {
    /// The first rule that covers this host at this port.
    pub fn rule_for(&self, host: &Host, port: u16) -> Option<&HostRule> {
        self.0.iter().find(|rule| rule.covers(host, port))
    }

    /// Whether some rule covers this host at some port.
    pub fn know(&self, host: &Host) -> bool {
        self.0.iter().any(|rule| rule.is_about(host))
    }

    /// The rules in the order they were written.
    pub fn iter(&self) -> impl Iterator<Item = &HostRule> {
        self.0.iter()
    }
}

impl From<Vec<HostRule>> for HostRules {
    fn from(rules: Vec<HostRule>) -> Self {
        Self(rules)
    }
}

impl fmt::Display for HostRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no host");
        }
        for (at, rule) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{rule}")?;
        }
        Ok(())
    }
}

/// Why a text is not a host rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` is not a host rule: {fault}")]
pub struct BadHost {
    /// The text, made inert.
    pub rule: String,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a host rule, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is no host.
    #[error("it names no host; write one as in `example.com` or `example.com:443`")]
    Empty,
    /// Spaces, tabs, line ends, control characters.
    #[error("it has spaces or control characters; write one host and nothing else")]
    Blank,
    /// An internationalised name that was not encoded.
    #[error("it has letters outside ASCII; write the name in punycode, as in `xn--bcher-kva.example`")]
    NotAscii,
    /// A URL, or a piece of one.
    #[error("it has parts of a URL; write only the host, as in `{0}`")]
    Url(String),
    /// `user@host`.
    #[error("it has a user name; write only the host, as in `{0}`")]
    UserInfo(String),
    /// A port outside 1 to 65535.
    #[error("its port is not a number from 1 to 65535; write `{0}:443`, or no port for every port")]
    Port(String),
    /// `*`.
    #[error("it would allow every host; if that is meant, say `network: true`")]
    Everything,
    /// `*.com`.
    #[error("it would allow all of `.{0}`; write a domain below it, as in `*.example.{0}`")]
    TopLevel(String),
    /// A wildcard that is not the whole first label.
    #[error("`*` can only stand for the whole first label; write `*.example.com`")]
    Wildcard,
    /// An address that some programs read otherwise than others.
    #[error("it is an odd spelling of an address; write `{0}`")]
    Spelling(Host),
    /// An IPv6 address whose end cannot be told from a port.
    #[error("an IPv6 address stands in brackets; write `[2001:db8::7]` or `[2001:db8::7]:443`")]
    Brackets,
    /// `fe80::1%eth0`.
    #[error("a zone id means something on one machine only; write the address without `%`")]
    Zone,
    /// A name that ends in a number is an address to some programs, and nothing to the others.
    #[error("a name cannot end in a number; write a whole address, as in `192.0.2.7`")]
    Number,
    /// Not a name that DNS could carry.
    #[error("a name is labels of 1 to 63 letters, digits, `-` and `_`, joined by dots, at most 253 in all")]
    Name,
}

impl FromStr for HostRule {
    type Err = BadHost;
    fn from_str(text: &str) -> Result<Self, BadHost> {
        read_rule(text).map_err(|fault| BadHost { rule: crate::preview::cut(&crate::preview::inert(text), 80), fault })
    }
}

fn read_rule(text: &str) -> Result<HostRule, Fault> {
    no_strangers(text)?;
    let (host, port) = split_port(text).ok_or(Fault::Brackets)?;
    let port = port.map(|digits| read_port(digits).ok_or_else(|| Fault::Port(host.to_owned()))).transpose()?;
    let whom = if host.contains('*') { Whom::Below(read_wildcard(host)?) } else { Whom::One(read_host(host)?) };
    Ok(HostRule { whom, port })
}

/// Refuses what belongs in no host, so that the rest of the reading need not think of it.
fn no_strangers(text: &str) -> Result<(), Fault> {
    let bare = || {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        if host.is_empty() { "example.com".to_owned() } else { host.to_owned() }
    };
    if text.is_empty() {
        Err(Fault::Empty)
    } else if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        Err(Fault::Blank)
    } else if !text.is_ascii() {
        Err(Fault::NotAscii)
    } else if text.contains(['/', '?', '#', '\\']) {
        Err(Fault::Url(bare()))
    } else if text.contains('@') {
        Err(Fault::UserInfo(bare()))
    } else if text.contains('%') && text.contains(':') {
        Err(Fault::Zone)
    } else {
        Ok(())
    }
}

fn read_host(host: &str) -> Result<Host, Fault> {
    if host.is_empty() {
        return Err(Fault::Empty);
    }
    if host.starts_with('[') {
        return read_bracketed(host);
    }
    let name = lower(host);
    match literal(&name) {
        Some(address) if address.to_string() == name => Ok(Host::Address(address)),
        Some(address) => Err(Fault::Spelling(Host::Address(address))),
        None => name_fault(&name).map_or(Ok(Host::Name(name)), Err),
    }
}

/// An IPv6 address; one that is only an IPv4 address in other clothes has to come without them.
fn read_bracketed(host: &str) -> Result<Host, Fault> {
    match literal(host).ok_or(Fault::Brackets)? {
        IpAddr::V6(v6) => match address::dressed(v6).filter(|_| !v6.is_loopback() && !v6.is_unspecified()) {
            Some(v4) => Err(Fault::Spelling(Host::Address(v4.into()))),
            None => Ok(Host::Address(v6.into())),
        },
        v4 @ IpAddr::V4(_) => Err(Fault::Spelling(Host::Address(v4))),
    }
}

fn read_wildcard(host: &str) -> Result<String, Fault> {
    let host = lower(host);
    if host == "*" {
        return Err(Fault::Everything);
    }
    let domain = host.strip_prefix("*.").filter(|domain| !domain.contains('*')).ok_or(Fault::Wildcard)?;
    match name_fault(domain) {
        Some(fault) => Err(fault),
        None if !domain.contains('.') => Err(Fault::TopLevel(domain.to_owned())),
        None => Ok(domain.to_owned()),
    }
}

/// Lower case, without the dot that says "and no search list".
fn lower(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn name_fault(name: &str) -> Option<Fault> {
    let fits = |label: &str| {
        (1..=LABEL_MAX).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if name.len() > NAME_MAX || !name.split('.').all(fits) {
        Some(Fault::Name)
    } else if name.rsplit('.').next().is_some_and(address::is_number) {
        Some(Fault::Number)
    } else {
        None
    }
}

/// Cuts the port off. None: brackets that do not match, or colons outside of them.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    let host_end = if text.starts_with('[') { text.find(']')? + 1 } else { text.find(':').unwrap_or(text.len()) };
    let (host, rest) = text.split_at(host_end);
    if rest.is_empty() {
        return Some((host, None));
    }
    rest.strip_prefix(':').filter(|port| !port.contains(':')).map(|port| (host, Some(port)))
}

fn read_port(digits: &str) -> Option<u16> {
    // `parse` would take a sign.
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests;
