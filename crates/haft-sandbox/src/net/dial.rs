//! From a host that was asked for to an open connection: match, resolve once, check every answer, connect
//! to what was checked.

use super::allowed::Allowed;
use haft_core::host::{Host, embedded_v4};
use haft_core::web::Refusal;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// How many addresses of one name are tried.
const ADDRESSES: usize = 8;

/// Why a host was not reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoWay {
    /// No rule covers it.
    #[error("`{0}` is not on the list of hosts that this program may reach")]
    NotListed(String),
    /// A rule covers the name, but the name leads inside.
    #[error("`{name}` leads to {address}, which is not a public address and not on the list itself")]
    Private { name: String, address: IpAddr },
    /// The rules of the web say no.
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("no address was found for `{name}`: {why}")]
    Unresolved { name: String, why: io::Error },
    #[error("`{host}` did not answer: {why}")]
    Unreachable { host: String, why: io::Error },
    #[error("the program ended first")]
    Closing,
}

impl NoWay {
    /// Whether a rule stood in the way, rather than the network.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::NotListed(_) | Self::Private { .. } | Self::Refused(_))
    }
}

/// Connects to a host that the rules cover. `wanted` is asked before each attempt: resolving takes its time,
/// and nobody may be waiting any more.
pub(super) fn dial(
    allowed: &Allowed,
    (host, port): (&Host, u16),
    patience: Duration,
    wanted: impl Fn() -> bool,
) -> Result<TcpStream, NoWay> {
    allowed.admits(host, port)?;
    let found = match host {
        Host::Address(address) => vec![SocketAddr::new(*address, port)],
        Host::Name(name) => resolve(name, port)?,
    };
    let addresses = allowed.checked((host, port), found)?;
    let mut why = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses.into_iter().take(ADDRESSES) {
        if !wanted() {
            return Err(NoWay::Closing);
        }
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error,
        }
    }
    Err(NoWay::Unreachable { host: format!("{host}:{port}"), why })
}

fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, NoWay> {
    let answers = (name, port).to_socket_addrs().map(Vec::from_iter);
    let answers = answers.and_then(|list| if list.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(list) });
    answers.map_err(|why| NoWay::Unresolved { name: name.to_owned(), why })
}

/// Whether an address belongs to this machine, or holds an IPv4 address that does, to which a translator (NAT64) or
/// tunnel leads back.
pub fn is_own(address: IpAddr) -> bool {
    let embedded = match address {
        IpAddr::V4(_) => Vec::new(),
        IpAddr::V6(v6) => embedded_v4(v6),
    };
    is_assigned_here(address) || embedded.into_iter().any(|v4| is_assigned_here(v4.into()))
}

/// Whether an address is one of this machine's: only then would the kernel send from it to itself. Nothing is sent; where
/// it cannot be told (no route), it is not ours.
fn is_assigned_here(address: IpAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(list: &[&str]) -> Allowed {
        list.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>().into()
    }

    #[test]
    fn an_address_needs_a_rule_that_is_the_address() {
        let refused = |list: &[&str], host: &str| {
            let host = Host::read(host).unwrap();
            dial(&rules(list), (&host, 9), Duration::from_millis(50), || false).unwrap_err().is_refusal()
        };
        assert!(refused(&["*.example.com", "localhost"], "127.0.0.1"));
        assert!(refused(&["localhost"], "localhost"));
        assert!(!refused(&["127.0.0.1"], "0x7f.1"), "not wanted any more, but not refused");
    }

    #[test]
    fn own_addresses_are_known() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1).into()));
        let over_nat64 = |text: &str| is_own(text.parse().unwrap());
        assert!(over_nat64("64:ff9b::127.0.0.1") && !over_nat64("64:ff9b::192.0.2.1"));
    }
}
