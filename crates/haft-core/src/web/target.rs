//! A URL that haft may ask for: read by one parser, so that what is checked is what is sent.

use crate::host::Host;
use crate::preview::{cut, inert};
use std::fmt;
use url::Url;

/// The longest URL that is read.
const URL_MAX: usize = 8192;

/// An `http` or `https` URL without user, password and fragment, whose host is an address or a plain name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: Host,
    port: u16,
}

/// Why a text is not a URL that haft asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// Longer than anybody means.
    #[error("the URL is longer than {URL_MAX} bytes")]
    TooLong,
    /// Spaces, tabs, line ends, control and invisible characters, backslashes.
    #[error("the URL has spaces, backslashes, control or invisible characters; percent-encode what belongs there")]
    Characters,
    /// Not a URL.
    #[error("`{url}` is not a URL: {why}")]
    Malformed {
        /// The text, made inert.
        url: String,
        /// The parser's complaint.
        why: String,
    },
    /// No scheme.
    #[error("`{0}` is not a whole URL; write `https://{0}`")]
    Bare(String),
    /// Neither `http` nor `https`.
    #[error("`{0}` URLs are not asked for; only http and https are")]
    Scheme(String),
    /// `https://user:password@host/`.
    #[error(
        "the URL has a user name or password in it; a host must not look like something else, and secrets do not belong into URLs"
    )]
    UserInfo,
    /// Not a name that DNS could carry, and not an address.
    #[error("`{0}` is not a host")]
    Host(String),
    /// Port 0.
    #[error("port 0 cannot be connected to")]
    Port,
}

impl BadUrl {
    /// What is wrong, without a word of the text itself: whoever wrote it may not be the one who reads this.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::TooLong => "it is too long",
            Self::Characters => "it has spaces, backslashes, control or invisible characters",
            Self::Malformed { .. } => "it is not a URL",
            Self::Bare(_) => "it has no scheme",
            Self::Scheme(_) => "it is neither http nor https",
            Self::UserInfo => "it has a user name or password in it",
            Self::Host(_) => "its host is none",
            Self::Port => "its port is 0",
        }
    }
}

impl Target {
    /// Reads a URL. What browsers quietly mend (tabs, backslashes, spaces) is refused: whoever looked at it may have
    /// read something else.
    pub fn read(text: &str) -> Result<Self, BadUrl> {
        if text.len() > URL_MAX {
            return Err(BadUrl::TooLong);
        }
        let strange = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
        if text.contains(strange) || inert(text) != text {
            return Err(BadUrl::Characters);
        }
        let malformed = |why: url::ParseError| BadUrl::Malformed { url: cut(&inert(text), 120), why: why.to_string() };
        match Url::parse(text) {
            Err(url::ParseError::RelativeUrlWithoutBase) if !text.starts_with('/') => {
                Err(BadUrl::Bare(cut(&inert(text), 120)))
            }
            // `example.com:8080` reads as a scheme of that name.
            Ok(url) if url.scheme().contains('.') || url.scheme() == "localhost" => {
                Err(BadUrl::Bare(cut(&inert(text), 120)))
            }
            read => Self::checked(read.map_err(malformed)?),
        }
    }

    /// The URL that a `Location` header names, seen from here.
    pub fn join(&self, location: &str) -> Result<Self, BadUrl> {
        let malformed =
            |why: url::ParseError| BadUrl::Malformed { url: cut(&inert(location), 120), why: why.to_string() };
        if location.len() > URL_MAX {
            return Err(BadUrl::TooLong);
        }
        if location.contains(|c: char| c.is_control()) {
            return Err(BadUrl::Characters);
        }
        Self::checked(self.url.join(location).map_err(malformed)?)
    }

    fn checked(mut url: Url) -> Result<Self, BadUrl> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUrl::Scheme(cut(&inert(url.scheme()), 40)));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadUrl::UserInfo);
        }
        let spoken = url.host_str().unwrap_or_default().to_owned();
        let bad = || BadUrl::Host(cut(&inert(&spoken), 80));
        let host = Host::read(&spoken).ok_or_else(bad)?;
        let port = url.port_or_known_default().filter(|port| *port > 0).ok_or(BadUrl::Port)?;
        // One spelling: what is compared is what is sent.
        url.set_host(Some(&host.to_string())).map_err(|_| bad())?;
        url.set_fragment(None);
        Ok(Self { url, host, port })
    }

    /// Its host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its port, also where the URL leaves it out.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// `host:port`.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// `https://host` or `https://host:port`: what a server may speak for.
    pub fn origin(&self) -> String {
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", self.url.scheme(), self.host)
    }

    /// Whether both are of one origin.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.url.scheme() == other.url.scheme() && self.host == other.host && self.port == other.port
    }

    /// Whether what is sent is encrypted.
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The same with another query.
    #[must_use]
    pub fn with_query(&self, pairs: &[(&str, &str)]) -> Self {
        let mut url = self.url.clone();
        url.query_pairs_mut().extend_pairs(pairs);
        Self { url, host: self.host.clone(), port: self.port }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_for_one_place() {
        let one = Target::read("https://example.com/a?b=c").unwrap();
        for same in ["https://EXAMPLE.com:443/a?b=c", "https://example.com./a?b=c#top", "https://ex%61mple.com/a?b=c"] {
            assert_eq!(Target::read(same).unwrap(), one, "{same}");
        }
        assert_eq!((one.authority().as_str(), one.origin().as_str()), ("example.com:443", "https://example.com"));
        assert_eq!(Target::read("http://bücher.example/").unwrap().host().to_string(), "xn--bcher-kva.example");
        assert_eq!(Target::read("http://0x7f.1/").unwrap().to_string(), "http://127.0.0.1/");
        assert_eq!(Target::read("http://[::ffff:127.0.0.1]:80/").unwrap().to_string(), "http://127.0.0.1/");
    }

    #[test]
    fn what_only_looks_like_a_url_is_refused() {
        for (text, why) in [
            ("ftp://example.com/", "only http and https"),
            ("file:///etc/passwd", "only http and https"),
            ("https://user@example.com/", "user name or password"),
            ("https://good.example\\@evil.example/", "backslashes"),
            ("https://exam\tple.com/", "spaces"),
            (" https://example.com/", "spaces"),
            ("https://example.com/\u{202e}gpj", "invisible"),
            ("https:///", "is not a URL"),
            ("https://example.com:0/", "port 0"),
            ("https://[fe80::1%25eth0]/", "is not a URL"),
            ("https://a..b/", "is not a host"),
            ("nonsense", "write `https://nonsense`"),
        ] {
            let error = Target::read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(Target::read(&format!("https://e.example/{}", "a".repeat(9000))), Err(BadUrl::TooLong));
    }

    #[test]
    fn a_location_is_read_from_where_it_was_found() {
        let here = Target::read("https://example.com/a/b").unwrap();
        assert_eq!(here.join("../c").unwrap().to_string(), "https://example.com/c");
        assert_eq!(here.join("//other.example/x").unwrap().origin(), "https://other.example");
        assert_eq!(here.join("javascript:alert(1)"), Err(BadUrl::Scheme("javascript".to_owned())));
        assert_eq!(here.join("http://a@169.254.169.254/"), Err(BadUrl::UserInfo));
    }
}
