//! Who may be reached through a gate: a list of hosts, or the web by the rules that web tools go by.

use super::dial::{NoWay, is_own};
use haft_core::host::{Host, HostRule, HostRules, is_public};
use haft_core::web::{Network, Refusal, Rules, Target};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Who may be reached.
#[derive(Debug, Clone)]
pub enum Allowed {
    /// These hosts, and no other.
    Listed(HostRules),
    /// Whatever the rules of the web admit; and services inside only while somebody says so, if anybody is asked.
    Web(Rules, Option<Inside>),
}

/// Whoever says whether a service inside may be reached at this moment. The answer must not wait for anything.
#[derive(Clone)]
pub struct Inside(Arc<dyn Fn(&Target) -> bool + Send + Sync>);

impl Inside {
    /// By this function.
    pub fn new(open: impl Fn(&Target) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    fn is_closed(&self, target: &Target) -> bool {
        !(self.0)(target)
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

impl Allowed {
    /// Whether a host may be asked for at all. Names are judged again by where they lead.
    pub(super) fn admits(&self, host: &Host, port: u16) -> Result<(), NoWay> {
        match self {
            Self::Listed(rules) if rules.rule_for(host, port).is_some() => Ok(()),
            Self::Listed(_) => Err(NoWay::NotListed(format!("{host}:{port}"))),
            Self::Web(rules, inside) => {
                let target = target(host, port)?;
                rules.admits(&target)?;
                match inside {
                    Some(inside) if rules.admits_inside(&target) && inside.is_closed(&target) => {
                        Err(Refusal::Strange(target.authority()).into())
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Lets the answers pass only all together: a name with one address inside is a name that somebody points
    /// inside, whichever address comes first this time.
    pub(super) fn checked(&self, (host, port): (&Host, u16), found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, NoWay> {
        match self {
            Self::Listed(rules) => {
                let fine = |answer: &&SocketAddr| {
                    let address = answer.ip().to_canonical();
                    let listed = rules.rule_for(&Host::Address(address), answer.port()).is_some();
                    listed || (is_public(address) && !is_own(address))
                };
                if let Some(answer) = found.iter().find(|answer| !fine(answer)) {
                    return Err(NoWay::Private { name: host.to_string(), address: answer.ip() });
                }
            }
            Self::Web(rules, _) => {
                let target = target(host, port)?;
                for answer in &found {
                    let address = answer.ip().to_canonical();
                    rules.admits_address(&target, address, is_own(address))?;
                }
            }
        }
        Ok(found)
    }

    /// Whether a host may be reached at some usual port.
    pub(super) fn know(&self, host: &Host) -> bool {
        match self {
            Self::Listed(rules) => rules.know(host),
            Self::Web(rules, _) => {
                let named = |network: &Network| matches!(network, Network::Only(hosts) if hosts.know(host));
                let listed = rules.networks.iter().any(named) && rules.private.know(host);
                listed || [443, 80].iter().any(|port| self.admits(host, *port).is_ok())
            }
        }
    }
}

/// A host and port as rules see them. What no URL could name is on no list.
fn target(host: &Host, port: u16) -> Result<Target, NoWay> {
    let unlisted = || NoWay::Refused(Refusal::NotListed(format!("{host}:{port}")));
    Target::read(&format!("http://{host}:{port}/")).map_err(|_| unlisted())
}

impl From<HostRules> for Allowed {
    fn from(rules: HostRules) -> Self {
        Self::Listed(rules)
    }
}

impl From<Vec<HostRule>> for Allowed {
    fn from(rules: Vec<HostRule>) -> Self {
        Self::Listed(rules.into())
    }
}

impl From<Rules> for Allowed {
    fn from(rules: Rules) -> Self {
        Self::Web(rules, None)
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed(rules) => write!(f, "The list: {rules}"),
            Self::Web(..) => f.write_str("`web.network` and `web.allow_private` in the configuration say who is"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::web::Network;

    fn rules(list: &[&str]) -> HostRules {
        list.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>().into()
    }

    fn answers(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn checked(allowed: &Allowed, name: &str, list: &[&str]) -> Result<Vec<SocketAddr>, NoWay> {
        let found = answers(list);
        allowed.checked((&Host::read(name).unwrap(), found[0].port()), found)
    }

    #[test]
    fn one_address_inside_refuses_the_name() {
        let listed = Allowed::Listed(rules(&["a.test"]));
        let web = Allowed::from(Rules { networks: vec![Network::All], ..Rules::default() });
        for allowed in [listed, web] {
            let public = ["1.1.1.1:443", "[2606:4700::1111]:443"];
            assert_eq!(checked(&allowed, "a.test", &public).unwrap(), answers(&public));
            for inside in ["10.0.0.1:443", "127.0.0.1:443", "169.254.169.254:443", "[::1]:443", "[::ffff:10.0.0.1]:443"]
            {
                let refused = checked(&allowed, "a.test", &["1.1.1.1:443", inside]).unwrap_err();
                assert!(refused.is_refusal(), "{inside}: {refused}");
            }
        }
    }

    #[test]
    fn an_address_inside_passes_when_it_is_listed_itself_with_its_port() {
        let allowed = Allowed::Listed(rules(&["db.test", "10.0.0.1:5432"]));
        assert!(checked(&allowed, "db.test", &["10.0.0.1:5432", "1.1.1.1:5432"]).is_ok());
        assert!(checked(&allowed, "db.test", &["[::ffff:10.0.0.1]:5432"]).is_ok());
        assert!(checked(&allowed, "db.test", &["10.0.0.1:22"]).is_err());
        assert!(checked(&allowed, "db.test", &["10.0.0.2:5432"]).is_err());
    }

    #[test]
    fn the_web_is_every_public_host_and_what_is_private_by_name_and_port() {
        let web =
            Allowed::from(Rules { networks: vec![Network::All], private: rules(&["127.0.0.1:8080", "db.test:5432"]) });
        let admits = |host: &str, port: u16| web.admits(&Host::read(host).unwrap(), port).is_ok();
        assert!(admits("example.com", 443) && admits("1.1.1.1", 80));
        assert!(admits("127.0.0.1", 8080) && admits("0x7f.1", 8080), "however it is spelled");
        for (host, port) in [
            ("127.0.0.1", 8081),
            ("169.254.169.254", 80),
            ("[::1]", 8080),
            ("[::ffff:7f00:1]", 81),
            ("localhost", 8080),
        ] {
            assert!(!admits(host, port), "{host}:{port}");
        }
        assert!(checked(&web, "db.test", &["10.0.0.1:5432"]).is_ok(), "whoever names it has said so");
        assert!(checked(&web, "db.test", &["10.0.0.1:22"]).is_err());
        let none = Allowed::from(Rules { networks: vec![Network::None], ..Rules::default() });
        assert!(none.admits(&Host::read("example.com").unwrap(), 443).unwrap_err().is_refusal());
        let narrow = Network::Only(rules(&["*.example.com:443"]));
        let narrow = Allowed::from(Rules { networks: vec![Network::All, narrow], ..Rules::default() });
        assert!(narrow.admits(&Host::read("www.example.com").unwrap(), 443).is_ok());
        assert!(narrow.admits(&Host::read("www.example.com").unwrap(), 80).is_err());
    }

    #[test]
    fn what_is_inside_is_closed_while_somebody_says_so() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let open = Arc::new(AtomicBool::new(false));
        let said = Arc::clone(&open);
        let rules = Rules { networks: vec![Network::All], private: rules(&["127.0.0.1:8080", "db.test:5432"]) };
        let web = Allowed::Web(rules, Some(Inside::new(move |_| said.load(Ordering::SeqCst))));
        let admits = |host: &str, port: u16| web.admits(&Host::read(host).unwrap(), port);
        for (host, port) in [("127.0.0.1", 8080), ("0x7f.1", 8080), ("db.test", 5432)] {
            assert!(admits(host, port).unwrap_err().is_refusal(), "{host}");
        }
        assert!(admits("example.com", 443).is_ok(), "what is outside is not asked about");
        open.store(true, Ordering::SeqCst);
        assert!(admits("127.0.0.1", 8080).is_ok() && admits("db.test", 5432).is_ok());
        assert!(admits("127.0.0.1", 8081).is_err(), "a yes opens nothing that the rules refuse");
    }
}
