//! What was asked for at the gate, and what came of it.

use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// How many different contacts are kept of each kind. Refused and allowed ones are counted apart, so that a
/// flood of refusals cannot wash away what went through.
const KEPT: usize = 500;

/// By which way a program asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// It spoke to the proxy.
    Proxy,
    /// It connected as if the host were there.
    Direct,
    /// It asked for an address, and got none.
    Name,
}

/// All that happened between a program and one host and port, in one way, with one end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contact {
    /// The name as it was asked for, in lower case, or the address. `…` in the entry that counts the rest.
    pub host: String,
    /// The port; zero where only the name was asked for.
    pub port: u16,
    /// Whether the rules let it through. A host that was allowed and did not answer was still allowed.
    pub allowed: bool,
    /// Why nothing came of it.
    pub reason: Option<String>,
    /// Bytes from the program to the host, over all times.
    pub sent: u64,
    /// Bytes from the host to the program, over all times.
    pub received: u64,
    /// By which way it asked.
    pub how: Via,
    /// How often.
    pub times: u64,
}

/// Somebody who hears of each contact when it ends. What is told must not wait for anything: the gate does.
#[derive(Clone)]
pub struct Told(Arc<dyn Fn(&Contact) + Send + Sync>);

impl Told {
    /// By this function.
    pub fn new(tell: impl Fn(&Contact) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(super) fn tell(&self, contact: &Contact) {
        (self.0)(contact);
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Told")
    }
}

impl Contact {
    fn is_like(&self, other: &Self) -> bool {
        (&self.host, self.port, self.how, &self.reason) == (&other.host, other.port, other.how, &other.reason)
    }
}

/// Contacts in the order of their first time, as many as are kept.
#[derive(Debug, Default)]
pub(super) struct Report {
    allowed: Vec<Contact>,
    refused: Vec<Contact>,
    more: u64,
}

impl Report {
    pub(super) fn note(&mut self, contact: Contact) {
        let kept = if contact.allowed { &mut self.allowed } else { &mut self.refused };
        if let Some(same) = kept.iter_mut().find(|known| known.is_like(&contact)) {
            same.times += contact.times;
            same.sent += contact.sent;
            same.received += contact.received;
        } else if kept.len() < KEPT {
            kept.push(contact);
        } else {
            self.more += contact.times;
        }
    }

    /// First what was allowed, then what was refused, then how much was not kept.
    pub(super) fn contacts(&self) -> Vec<Contact> {
        let rest = (self.more > 0).then(|| Contact {
            host: "…".to_owned(),
            port: 0,
            allowed: false,
            reason: Some(format!("{} more contacts were not kept one by one", self.more)),
            sent: 0,
            received: 0,
            how: Via::Proxy,
            times: self.more,
        });
        self.allowed.iter().chain(&self.refused).cloned().chain(rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(host: &str, allowed: bool) -> Contact {
        let reason = (!allowed).then(|| "no".to_owned());
        Contact { host: host.into(), port: 443, allowed, reason, sent: 1, received: 2, how: Via::Proxy, times: 1 }
    }

    #[test]
    fn the_same_is_counted_and_a_flood_hides_nothing() {
        let mut report = Report::default();
        for at in 0..KEPT + 20 {
            report.note(contact(&format!("h{at}.test"), false));
            report.note(contact("h0.test", false));
        }
        report.note(contact("good.test", true));
        report.note(contact("good.test", true));
        let contacts = report.contacts();
        assert_eq!(contacts.len(), KEPT + 2);
        assert_eq!((contacts[0].host.as_str(), contacts[0].times, contacts[0].received), ("good.test", 2, 4));
        assert_eq!((contacts[1].host.as_str(), contacts[1].times), ("h0.test", 521));
        assert_eq!(contacts[KEPT + 1].reason.as_deref(), Some("20 more contacts were not kept one by one"));
    }
}
