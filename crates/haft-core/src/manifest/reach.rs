//! The one host that a request goes to, as `permissions.network` names it.

use super::Http;
use super::template::{Piece, pieces};
use crate::host::Host;
use url::Url;

/// A host in the form that lets a request through, and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// `example.com`, or with its port where that is not the usual one or where the host is private.
    pub rule: String,
    /// Whether it is this machine's, or a network's of its own: such a host is reached only if it is named with its port.
    pub private: bool,
}

/// The host of a URL. None if it has none that could be named.
pub fn own(url: &Url) -> Option<Own> {
    let host = Host::read(url.host_str()?)?;
    let port = url.port_or_known_default()?;
    let private = host.is_private();
    let rule = if private || url.port().is_some() { format!("{host}:{port}") } else { host.to_string() };
    Some(Own { rule, private })
}

/// The host that a request goes to, whatever its inputs are. None if it cannot be told.
pub fn of(http: &Http) -> Option<Own> {
    let pieces = pieces(&http.url).ok()?;
    let Piece::Text(begin) = pieces.first()? else { return None };
    let ends = begin.split_once("://")?.1.contains(['/', '?', '#']);
    if ends || pieces.len() == 1 { own(&Url::parse(begin).ok()?) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostRule;

    #[test]
    fn a_private_host_has_its_port() {
        for (url, rule, private) in [
            ("https://api.example.com/v1", "api.example.com", false),
            ("https://api.example.com:8443/v1", "api.example.com:8443", false),
            ("http://127.0.0.1:18971/v1", "127.0.0.1:18971", true),
            ("http://localhost/", "localhost:80", true),
            ("https://db.internal/", "db.internal:443", true),
            ("https://wiki.corp/", "wiki.corp:443", true),
            ("http://[::1]:80/", "[::1]:80", true),
            ("http://192.168.0.7/", "192.168.0.7:80", true),
        ] {
            let own = own(&Url::parse(url).unwrap()).unwrap();
            assert_eq!((own.rule.as_str(), own.private), (rule, private), "{url}");
            assert!(own.rule.parse::<HostRule>().is_ok(), "{rule}");
        }
        assert_eq!(own(&Url::parse("mailto:a@b.test").unwrap()), None);
    }

    #[test]
    fn a_host_that_inputs_could_change_is_none() {
        let of = |url: &str| {
            let http = serde_json::json!({"method": "GET", "url": url});
            super::of(&serde_json::from_value(http).unwrap()).map(|own| own.rule)
        };
        assert_eq!(of("https://a.test/${q}?x=${y}").as_deref(), Some("a.test"));
        assert_eq!(of("https://me:pw@a.test").as_deref(), Some("a.test"));
        for url in ["https://${q}/", "https://a.test${q}", "${q}", "https://a.${q}.test/", "https://a.test:${p}/"] {
            assert_eq!(of(url), None, "{url}");
        }
    }
}
