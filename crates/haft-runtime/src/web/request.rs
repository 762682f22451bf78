//! A request before it is sent, and what is left of it when it is sent on to somewhere else.

use super::Way;
use super::credential::Credential;
use crate::secrets::Mask;
use crate::secrets::reference::Filling;
use bytes::Bytes;
use haft_core::host::{HostRule, HostRules};
use haft_core::preview::{cut, inert};
use haft_core::web::Target;
use haft_core::{CallError, ErrorKind};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use std::time::Duration;

/// Headers that say nothing about who asks, and so may be sent on to another origin.
const HARMLESS: &[&str] = &["accept", "accept-language", "user-agent"];
/// Headers that this side sets by itself, besides all that begin with `proxy-`.
const OWN: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Headers by which some servers take a request for one of another method.
const OVERRIDES: &[&str] = &["x-http-method", "x-http-method-override", "x-method-override"];
/// How many headers are sent, and how much they may say.
const HEADERS_MAX: usize = 64;
const HEADERS_BYTES: usize = 32 << 10;

/// Something to ask of the web.
#[derive(Debug, Clone)]
pub struct Request {
    pub(super) method: Method,
    pub(super) target: Target,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    pub(super) bytes: usize,
    pub(super) timeout: Duration,
    pub(super) credentials: Vec<Credential>,
    pub(super) filling: Option<Filling>,
    pub(super) named: Option<HostRule>,
}

impl Request {
    /// By this method, with the usual limits. The rules of `way` say how much and how long.
    pub fn new(way: &Way<'_>, method: &str, target: Target) -> Result<Self, CallError> {
        let bad = |_| CallError::invalid(format!("`{}` is not an HTTP method", cut(&inert(method), 40)));
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).map_err(bad)?;
        if matches!(method, Method::CONNECT | Method::TRACE) {
            return Err(CallError::invalid(format!("{method} requests are not sent")));
        }
        let settings = way.web.settings();
        let (bytes, timeout) = (settings.bytes, settings.timeout);
        Ok(Self {
            method,
            target,
            headers: HeaderMap::new(),
            body: None,
            bytes,
            timeout,
            credentials: Vec::new(),
            filling: None,
            named: None,
        })
    }

    /// Adds a header. What could be taken for the beginning of another one is refused.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, CallError> {
        let name = Self::header_name(name)?;
        let sent = HeaderValue::try_from(value).ok().filter(|_| value.is_ascii());
        self.headers.append(name.clone(), sent.ok_or_else(|| unsendable(name.as_str()))?);
        let size: usize = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if self.headers.len() > HEADERS_MAX || size > HEADERS_BYTES {
            let message =
                format!("there are more than {HEADERS_MAX} headers, or more than {HEADERS_BYTES} bytes of them");
            return Err(CallError::invalid(message));
        }
        Ok(self)
    }

    /// The name of a header that may be sent. Some are set by this side alone.
    pub fn header_name(name: &str) -> Result<HeaderName, CallError> {
        let name = HeaderName::try_from(name).map_err(|_| unsendable(name))?;
        if OWN.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            return Err(CallError::invalid(format!("the header `{name}` is set by haft itself")));
        }
        if OVERRIDES.contains(&name.as_str()) {
            let message =
                format!("the header `{name}` would make another method of it than the one that is decided upon");
            return Err(CallError::invalid(message).hint("name the method itself"));
        }
        Ok(name)
    }

    /// Where it goes.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Sends along what proves who asks, as long as it goes where that belongs.
    #[must_use]
    pub fn signed(mut self, credential: Credential) -> Self {
        self.credentials.extend(Some(credential).filter(|credential| credential.is_for(&self.target)));
        self
    }

    /// Puts secrets where their names are, in the moment of sending and for where it goes now alone.
    #[must_use]
    pub(crate) fn filled(mut self, filling: Filling) -> Self {
        self.filling = Some(filling).filter(|filling| filling.is_for(&self.target));
        self
    }

    /// Where it goes was named by the user's configuration, and may be reached even on this machine or its network.
    /// That is for this host and port alone: where it is sent on to is judged like everything else.
    #[must_use]
    pub fn named_by_the_user(mut self) -> Self {
        self.named = self.target.authority().parse().ok();
        self
    }

    /// What hides everything in it that is secret.
    pub(super) fn masks(&self) -> Vec<Mask> {
        let credentials = self.credentials.iter().map(Credential::mask);
        credentials.chain(self.filling.as_ref().map(Filling::mask)).cloned().collect()
    }

    /// Whether it goes where the user's configuration named.
    pub(super) fn goes_where_named(&self) -> bool {
        let named: HostRules = self.named.iter().cloned().collect::<Vec<_>>().into();
        named.rule_for(self.target.host(), self.target.port()).is_some()
    }

    /// Adds a body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(Bytes::from(body.into()));
        self
    }

    /// Reads at most so much.
    #[must_use]
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Takes at most so long.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What is sent to where an answer points, or why nothing is. Another origin learns nothing that was meant for this
    /// one: no body, and no header that says who asks.
    pub(super) fn onward(&self, status: StatusCode, location: &HeaderValue) -> Result<Self, CallError> {
        let refused =
            |why: String| CallError::new(ErrorKind::Denied, format!("it was sent on, and that is not followed: {why}"));
        let location = std::str::from_utf8(location.as_bytes());
        let location = location.map_err(|_| refused("where to is not readable".to_owned()))?;
        let target = self.target.join(location).map_err(|error| refused(error.kind().to_owned()))?;
        if self.target.is_secure() && !target.is_secure() {
            return Err(refused(format!("{} would be asked without encryption", target.origin())));
        }
        let target = self.credentials.iter().try_fold(target, |target, credential| {
            credential
                .taken_out_of(target)
                .ok_or_else(|| refused("what proves who asks would be in the URL".to_owned()))
        })?;
        if self.filling.as_ref().is_some_and(|filling| filling.mask().finds(target.url().as_str())) {
            return Err(refused("a secret would be in the URL".to_owned()));
        }
        let same = target.same_origin(&self.target);
        let credentials = self.credentials.iter().filter(|credential| credential.is_for(&target)).cloned().collect();
        let filling = self.filling.clone().filter(|filling| filling.is_for(&target)).map(Filling::onward);
        let mut next = Self { target, credentials, filling, ..self.clone() };
        if !same {
            next.keep_headers(|name| HARMLESS.contains(&name));
        }
        let kept = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if !same || !kept {
            next.body = None;
            next.keep_headers(|name| !name.starts_with("content-"));
            if next.method != Method::HEAD {
                next.method = Method::GET;
            }
        }
        Ok(next)
    }

    fn keep_headers(&mut self, keep: impl Fn(&str) -> bool) {
        let strange: Vec<HeaderName> = self.headers.keys().filter(|name| !keep(name.as_str())).cloned().collect();
        for name in strange {
            self.headers.remove(name);
        }
    }
}

fn unsendable(name: &str) -> CallError {
    let shown = cut(&inert(name), 60);
    CallError::invalid(format!(
        "the header `{shown}` cannot be sent: a name is a word, and a value is one line of plain ASCII"
    ))
    .hint("line ends and control characters do not belong into headers; encode what is not ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(url: &str) -> Request {
        let headers = ["accept", "authorization", "cookie", "x-api-key", "content-type", "content-language"];
        let value = |name: &str| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_static("x"));
        Request {
            method: Method::POST,
            target: Target::read(url).unwrap(),
            headers: headers.into_iter().map(value).collect(),
            body: Some(Bytes::from_static(b"secret")),
            bytes: 1000,
            timeout: Duration::from_secs(1),
            credentials: Vec::new(),
            filling: None,
            named: None,
        }
    }

    fn sent_on(status: u16, location: &str) -> Result<(Method, Vec<String>, bool), String> {
        let next = post("https://a.example/x")
            .onward(StatusCode::from_u16(status).unwrap(), &HeaderValue::from_bytes(location.as_bytes()).unwrap());
        let next = next.map_err(|error| error.message)?;
        let mut names: Vec<String> = next.headers.keys().map(ToString::to_string).collect();
        names.sort();
        Ok((next.method, names, next.body.is_some()))
    }

    #[test]
    fn another_origin_learns_nothing() {
        let bare = (Method::GET, vec!["accept".to_owned()], false);
        for elsewhere in
            ["https://b.example/", "https://a.example:8443/", "//a.b.example/", "https://a.example.b.example/"]
        {
            for status in [301, 302, 303, 307, 308] {
                assert_eq!(sent_on(status, elsewhere).unwrap(), bare, "{status} {elsewhere}");
            }
        }
    }

    #[test]
    fn the_same_origin_keeps_what_the_status_keeps() {
        let all = ["accept", "authorization", "content-language", "content-type", "cookie", "x-api-key"];
        let without = ["accept", "authorization", "cookie", "x-api-key"];
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(sent_on(308, "/y").unwrap(), (Method::POST, owned(&all), true));
        assert_eq!(sent_on(302, "https://a.example:443/y").unwrap(), (Method::GET, owned(&without), false));
    }

    #[test]
    fn what_is_not_followed_says_why() {
        for (location, why) in [
            ("http://a.example/", "without encryption"),
            ("file:///etc/passwd", "neither http nor https"),
            ("https://user:pw@a.example/", "a user name or password"),
            ("https://a.example:0/", "its port is 0"),
            ("https://[fe80::1%25eth0]/", "it is not a URL"),
            ("https://a..b/", "its host is none"),
        ] {
            let error = sent_on(302, location).unwrap_err();
            assert!(error.contains("is not followed") && error.contains(why), "{location}: {error}");
        }
    }
}
