//! From a host that was asked for to an open connection: match, resolve once, check every answer, connect
//! to what was checked.

use haft_core::host::{Host, HostRules, is_public};
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
        matches!(self, Self::NotListed(_) | Self::Private { .. })
    }
}

/// Connects to a host that the rules cover. `wanted` is asked before each attempt: resolving takes its time,
/// and nobody may be waiting any more.
pub(super) fn dial(
    rules: &HostRules,
    (host, port): (&Host, u16),
    patience: Duration,
    wanted: impl Fn() -> bool,
) -> Result<TcpStream, NoWay> {
    if rules.rule_for(host, port).is_none() {
        return Err(NoWay::NotListed(format!("{host}:{port}")));
    }
    let addresses = match host {
        // Covered means that a rule is this very address.
        Host::Address(address) => vec![SocketAddr::new(*address, port)],
        Host::Name(name) => checked(rules, name, resolve(name, port)?)?,
    };
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

/// Lets the answers pass only all together: a name with one address inside is a name that somebody points
/// inside, whichever address comes first this time.
fn checked(rules: &HostRules, name: &str, answers: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, NoWay> {
    let fine = |answer: &SocketAddr| {
        let address = answer.ip().to_canonical();
        rules.rule_for(&Host::Address(address), answer.port()).is_some() || (is_public(address) && !is_own(address))
    };
    match answers.iter().find(|answer| !fine(answer)) {
        Some(answer) => Err(NoWay::Private { name: name.to_owned(), address: answer.ip() }),
        None => Ok(answers),
    }
}

/// Whether an address belongs to this machine: only then would the kernel send from it to itself. Nothing is
/// sent; where it cannot be told (no route), it is not ours.
pub fn is_own(address: IpAddr) -> bool {
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

    fn rules(list: &[&str]) -> HostRules {
        list.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>().into()
    }

    fn answers(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn one_address_inside_refuses_the_name() {
        let rules = rules(&["a.test"]);
        let public = answers(&["1.1.1.1:443", "[2606:4700::1111]:443"]);
        assert_eq!(checked(&rules, "a.test", public.clone()).unwrap(), public);
        for inside in ["10.0.0.1:443", "127.0.0.1:443", "169.254.169.254:443", "[::1]:443", "[::ffff:10.0.0.1]:443"] {
            let mixed = answers(&["1.1.1.1:443", inside]);
            let refused = checked(&rules, "a.test", mixed).unwrap_err();
            assert!(refused.is_refusal() && matches!(refused, NoWay::Private { .. }), "{inside}");
        }
    }

    #[test]
    fn an_address_inside_passes_when_it_is_listed_itself_with_its_port() {
        let rules = rules(&["db.test", "10.0.0.1:5432"]);
        assert!(checked(&rules, "db.test", answers(&["10.0.0.1:5432", "1.1.1.1:5432"])).is_ok());
        assert!(checked(&rules, "db.test", answers(&["[::ffff:10.0.0.1]:5432"])).is_ok());
        assert!(checked(&rules, "db.test", answers(&["10.0.0.1:22"])).is_err());
        assert!(checked(&rules, "db.test", answers(&["10.0.0.2:5432"])).is_err());
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
    }
}
