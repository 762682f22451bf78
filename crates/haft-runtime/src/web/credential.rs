//! What proves who asks: sent to one place, and shown nowhere.
//!
//! A credential is no part of a request's URL and headers until the moment of sending, so that nothing that shows or
//! records a request can show it. It is bound to an origin and a path: where an answer points elsewhere, it stays
//! behind. What comes back is searched for it, because some servers repeat what they were sent.

use crate::secrets::Mask;
use haft_core::CallError;
use haft_core::web::Target;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;

/// A credential for everything below one URL.
#[derive(Clone)]
pub struct Credential {
    base: Target,
    sign: Sign,
    /// Every way in which it may be written in an answer.
    mask: Mask,
}

#[derive(Clone)]
enum Sign {
    Header(HeaderName, HeaderValue),
    Query(String, String),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({})", self.base.origin())
    }
}

impl Credential {
    /// One that is sent as a header. `secret` is the part of the value that must not be seen.
    pub fn header(base: &Target, name: &str, value: &str, secret: &str) -> Result<Self, CallError> {
        let bad = || CallError::invalid(format!("what is to be sent as `{name}` to {} is no header", base.origin()));
        let header = HeaderName::try_from(name).map_err(|_| bad())?;
        let mut sent = HeaderValue::try_from(value).map_err(|_| bad())?;
        sent.set_sensitive(true);
        let last = value.rsplit(' ').next().unwrap_or_default();
        let mask = Mask::of([value, last, secret]);
        Ok(Self { base: base.clone(), sign: Sign::Header(header, sent), mask })
    }

    /// One that is sent in the query.
    pub fn query(base: &Target, name: &str, value: &str) -> Self {
        Self { base: base.clone(), sign: Sign::Query(name.to_owned(), value.to_owned()), mask: Mask::of([value]) }
    }

    /// Whether it is for this target: of the same origin, and below its path.
    pub(super) fn is_for(&self, target: &Target) -> bool {
        covers(&self.base, target)
    }

    /// Puts it on a request.
    pub(super) fn sign(&self, url: &mut Url, headers: &mut HeaderMap) {
        match &self.sign {
            Sign::Header(name, value) => {
                headers.insert(name.clone(), value.clone());
            }
            Sign::Query(name, value) => {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
    }

    /// Where an answer points, without what it repeats of the credential. None if it cannot be taken out.
    pub(super) fn taken_out_of(&self, next: Target) -> Option<Target> {
        let next = match &self.sign {
            Sign::Query(name, value) if next.url().query().is_some() => {
                let mut url = next.url().clone();
                let kept: Vec<(String, String)> = next
                    .url()
                    .query_pairs()
                    .filter(|(known, given)| (known.as_ref(), given.as_ref()) != (name.as_str(), value.as_str()))
                    .map(|(known, given)| (known.into_owned(), given.into_owned()))
                    .collect();
                url.set_query(None);
                if !kept.is_empty() {
                    url.query_pairs_mut().extend_pairs(&kept);
                }
                Target::read(url.as_str()).ok()?
            }
            _ => next,
        };
        (!self.mask.finds(next.url().as_str())).then_some(next)
    }

    /// What hides it in what came back.
    pub(crate) fn mask(&self) -> &Mask {
        &self.mask
    }
}

/// Whether a target is of the origin of `base` and below its path.
pub(super) fn covers(base: &Target, target: &Target) -> bool {
    let (above, path) = (base.url().path().trim_end_matches('/'), target.url().path());
    let below = path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    base.same_origin(target) && below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::{Cut, bytes_by};

    fn target(url: &str) -> Target {
        Target::read(url).unwrap()
    }

    #[test]
    fn it_is_for_one_origin_below_one_path() {
        let credential = Credential::query(&target("https://api.test/v1/"), "key", "hunter2hunter2");
        for (url, expected) in [
            ("https://api.test/v1", true),
            ("https://api.test/v1/things?a=b", true),
            ("https://api.test/v10/things", false),
            ("https://api.test/v1/../admin", false),
            ("https://api.test/v1/%2e%2e/admin", false),
            ("http://api.test/v1/things", false),
            ("https://api.test:8443/v1/things", false),
            ("https://api.test.evil.test/v1/things", false),
        ] {
            assert_eq!(credential.is_for(&target(url)), expected, "{url}");
        }
        assert!(!format!("{credential:?}").contains("hunter2"));
    }

    #[test]
    fn what_repeats_it_does_not_show_it() {
        let base = target("https://api.test/");
        let basic = Credential::header(&base, "authorization", "Basic dTpwYXNzd29yZCE=", "password!").unwrap();
        let mut body = b"you sent Basic dTpwYXNzd29yZCE= and password! or password%21".to_vec();
        bytes_by([basic.mask()], &mut body, Cut::NOWHERE);
        assert_eq!(String::from_utf8(body).unwrap(), "you sent [secret] and [secret] or [secret]");
        let mut cut = b"you sent Basic dTpwYX".to_vec();
        bytes_by([basic.mask()], &mut cut, Cut::back(true));
        assert_eq!(String::from_utf8(cut).unwrap(), "you sent [secret]");
        let mut text = "dTpwYXNzd29yZCE=".to_owned();
        basic.mask().text(&mut text);
        assert_eq!(text, "[secret]");

        let key = Credential::query(&base, "key", "a b/c d/e");
        assert_eq!(
            key.taken_out_of(target("https://api.test/x?key=a+b%2Fc+d%2Fe&q=1")).unwrap().to_string(),
            "https://api.test/x?q=1"
        );
        assert_eq!(key.taken_out_of(target("https://api.test/x?key=other")).unwrap().url().query(), Some("key=other"));
        assert!(key.taken_out_of(target("https://api.test/x?again=a+b%2Fc+d%2Fe")).is_none());
    }

    #[test]
    fn a_header_that_is_none_is_refused_without_being_shown() {
        let error = Credential::header(&target("https://api.test/"), "x-key", "line\r\nend-of-secret", "").unwrap_err();
        assert!(error.message.contains("x-key") && !error.message.contains("secret"), "{}", error.message);
    }
}
