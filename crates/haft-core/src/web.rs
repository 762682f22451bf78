//! The web as decisions see it: a URL read once, by one parser; who may be reached; and what speaks against a
//! request before anybody sends it.
//!
//! Data flows one way: text → [`Target`] (a URL that can be compared as bytes) → [`Rules`] (may it be reached?) →
//! [`Errand`] (what the chain of voices is told). Only addresses that stand in a URL are judged here; where a name leads
//! is judged in the moment of connecting, by whoever connects.

mod errand;
mod target;

pub use errand::{Errand, doubts};
pub use target::{BadUrl, Target};

use crate::host::{HostRules, is_public};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};

/// Which part of the network may be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// All public hosts.
    #[default]
    All,
    /// None.
    None,
    /// These, and no other.
    Only(HostRules),
}

/// Who may be reached by one call: what everybody with a say allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// The network as the configuration, the agent's rules and the tool's rules have it, in that order. All of them must
    /// allow a host.
    pub networks: Vec<Network>,
    /// Hosts on this machine or its network that may be reached all the same, by name or address and port.
    pub private: HostRules,
}

/// Why a host may not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no network.
    #[error("the configuration gives no network")]
    NoNetwork,
    /// There is none for this agent or tool.
    #[error("the configuration gives this agent or tool no network")]
    NoNetworkFor,
    /// A list does not hold it.
    #[error("`{0}` is not on the list of hosts that may be reached")]
    NotListed(String),
    /// An address of this machine, its network, or a network that is nobody's.
    #[error("`{0}` is not a public address")]
    Private(String),
    /// A service inside that is open to its own pages alone.
    #[error("`{0}` is a service of your own, and what asked for it was not opened from there")]
    Strange(String),
    /// A name that leads to such an address.
    #[error("`{name}` leads to {address}, which is not a public address")]
    LeadsInside {
        /// The name.
        name: String,
        /// Where it leads.
        address: IpAddr,
    },
    /// A name that only the proxy could look up.
    #[error("`{0}` has no address here, so that where the proxy would go cannot be checked")]
    OnlyTheProxyKnows(String),
}

impl Refusal {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoNetwork => "set `web.network` in the configuration",
            Self::NoNetworkFor => "`web.agents` or `web.tools` in the configuration says so",
            Self::NotListed(_) => "add the host to the `web.network` list in the configuration if it should be reached",
            Self::Strange(_) => {
                "browser.navigate opens it by itself; `browser.allow_private` in your configuration opens it to every page"
            }
            Self::Private(_) | Self::LeadsInside { .. } => {
                "a service of your own is reached by adding `host:port` to `web.allow_private` in your configuration; an \
                 address that NAT64 made is judged by the IPv4 address inside it if its prefix is 64:ff9b::/96 or \
                 64:ff9b:1::/48, because a network's own prefix cannot be told from a private network"
            }
            Self::OnlyTheProxyKnows(_) => {
                "check the spelling of the name; `web.proxy: trust` in your configuration leaves such names to the proxy"
            }
        }
    }
}

impl Rules {
    /// Whether a target may be asked for at all. Names are judged again by where they lead.
    pub fn admits(&self, target: &Target) -> Result<(), Refusal> {
        let (host, port) = (target.host(), target.port());
        let private = self.admits_inside(target);
        for (at, network) in self.networks.iter().enumerate() {
            match network {
                Network::All => {}
                // What everybody has comes first.
                Network::None if at == 0 => return Err(Refusal::NoNetwork),
                Network::None => return Err(Refusal::NoNetworkFor),
                Network::Only(rules) if rules.rule_for(host, port).is_some() => {}
                Network::Only(_) => return Err(Refusal::NotListed(target.authority())),
            }
        }
        match host {
            _ if private => Ok(()),
            host if host.is_private() => Err(Refusal::Private(target.authority())),
            _ => Ok(()),
        }
    }

    /// Whether a target may be reached wherever it lies.
    pub fn admits_inside(&self, target: &Target) -> bool {
        self.private.rule_for(target.host(), target.port()).is_some()
    }

    /// Whether the address that a name leads to may be connected to. `own` says that it belongs to this machine.
    pub fn admits_address(&self, target: &Target, address: IpAddr, own: bool) -> Result<(), Refusal> {
        let address = address.to_canonical();
        if (is_public(address) && !own) || self.admits_inside(target) {
            return Ok(());
        }
        Err(Refusal::LeadsInside { name: target.host().to_string(), address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::read(url).unwrap()
    }

    fn list(hosts: &[&str]) -> HostRules {
        hosts.iter().map(|host| host.parse().unwrap()).collect::<Vec<_>>().into()
    }

    #[test]
    fn nat64_address_is_judged_by_the_ipv4_address_inside() {
        let rules = Rules { networks: vec![Network::All], ..Rules::default() };
        let public = target("https://api.example.com/");
        let admits = |address: &str| rules.admits_address(&public, address.parse().unwrap(), false);
        assert_eq!(admits("64:ff9b::140.82.121.4"), Ok(()));
        for inside in ["64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "fd00:64::140.82.121.4"] {
            let refusal = admits(inside).unwrap_err();
            assert!(refusal.to_string().contains("not a public address"), "{inside}: {refusal}");
            assert!(refusal.hint().contains("a network's own prefix cannot be told"), "{}", refusal.hint());
        }
    }

    #[test]
    fn everybody_with_a_say_must_allow_it() {
        let rules =
            Rules { networks: vec![Network::All, Network::Only(list(&["*.example.com:443"]))], ..Rules::default() };
        assert_eq!(rules.admits(&target("https://www.example.com/")), Ok(()));
        assert!(matches!(rules.admits(&target("http://www.example.com/")), Err(Refusal::NotListed(_))));
        let none = Rules { networks: vec![Network::None, Network::All], ..Rules::default() };
        assert_eq!(none.admits(&target("https://www.example.com/")), Err(Refusal::NoNetwork));
        let none = Rules { networks: vec![Network::All, Network::None], ..Rules::default() };
        assert_eq!(none.admits(&target("https://www.example.com/")), Err(Refusal::NoNetworkFor));
    }

    #[test]
    fn inside_is_closed_but_for_what_is_named_with_its_port() {
        let rules = Rules { private: list(&["127.0.0.1:8080", "db.test:5432"]), ..Rules::default() };
        assert_eq!(rules.admits(&target("http://127.0.0.1:8080/")), Ok(()));
        assert_eq!(rules.admits(&target("http://0x7f.1:8080/")), Ok(()), "another spelling of the same");
        assert!(rules.admits(&target("http://127.0.0.1:8081/")).is_err());
        assert!(rules.admits(&target("http://localhost:8080/")).is_err(), "a name has to be named itself");
        assert!(
            rules.admits(&target("http://db.test:5432/")).is_ok()
                && rules.admits_inside(&target("http://db.test:5432/"))
        );
        assert!(!rules.admits_inside(&target("http://db.test/")), "the port is part of what is named");
    }
}
