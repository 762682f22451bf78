//! `secret:NAME` in a request: the words that an agent may say for a secret that it never sees. They stay words until
//! the request is sent, and stand for the secret only there.

use super::{Mask, Secret};
use haft_core::CallError;
use haft_core::web::Target;
use regex::{Captures, Regex};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

/// So many different secrets go with one request.
pub(crate) const MOST: usize = 8;

static REFERENCE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?-u:\b)secret:([A-Z_]{0,127}[A-Z][A-Z0-9_]{0,127})(?-u:\b)").ok());

/// The secrets that a text names.
fn named(text: &str, names: &mut BTreeSet<String>) {
    let found = REFERENCE.as_ref().map(|pattern| pattern.captures_iter(text));
    names.extend(found.into_iter().flatten().map(|found| found[1].to_owned()));
}

/// The secrets that a request names: in its query, its headers and its body.
pub(crate) fn in_request(args: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let query = args["url"].as_str().and_then(|url| Url::parse(url).ok());
    for (name, value) in query.iter().flat_map(Url::query_pairs) {
        named(&name, &mut names);
        named(&value, &mut names);
    }
    for part in ["headers", "body"] {
        let mut left = vec![&args[part]];
        while let Some(value) = left.pop() {
            match value {
                Value::String(text) => named(text, &mut names),
                Value::Array(items) => left.extend(items),
                // Names of headers and of fields stay words.
                Value::Object(map) => left.extend(map.values()),
                _ => {}
            }
        }
    }
    names
}

/// Secrets by the names that a request says, for one origin.
#[derive(Clone)]
pub(crate) struct Filling {
    base: Target,
    values: BTreeMap<String, String>,
    mask: Mask,
    /// Where a request was sent on to, the query is somebody else's words.
    query: bool,
}

impl fmt::Debug for Filling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filling({})", self.base.origin())
    }
}

impl Filling {
    pub(crate) fn new(target: &Target, secrets: &[Secret]) -> Self {
        let values = secrets.iter().map(|secret| (secret.name().to_owned(), secret.value().to_owned())).collect();
        Self { base: target.clone(), values, mask: Mask::of(secrets.iter().map(Secret::value)), query: true }
    }

    /// Whether it is for this target.
    pub(crate) fn is_for(&self, target: &Target) -> bool {
        self.base.same_origin(target)
    }

    /// The same for where a request was sent on to.
    pub(crate) fn onward(mut self) -> Self {
        self.query = false;
        self
    }

    pub(crate) fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Puts the secrets where their names are.
    pub(crate) fn fill(&self, url: &mut Url, headers: &mut HeaderMap) -> Result<(), CallError> {
        if self.query && url.query().is_some_and(|query| query.contains("secret")) {
            let filled: Vec<(String, String)> = url
                .query_pairs()
                .map(|(name, value)| (self.text(&name).into_owned(), self.text(&value).into_owned()))
                .collect();
            url.query_pairs_mut().clear().extend_pairs(filled);
        }
        for (name, value) in headers.iter_mut() {
            let Ok(text) = value.to_str() else { continue };
            if let Cow::Owned(filled) = self.text(text) {
                let header = HeaderValue::try_from(filled).ok().filter(|header| header.to_str().is_ok());
                let mut header = header.ok_or_else(|| {
                    CallError::invalid(format!("a secret that `{name}` names cannot be sent in a header"))
                        .hint("a header is one line of plain ASCII")
                })?;
                header.set_sensitive(true);
                *value = header;
            }
        }
        Ok(())
    }

    /// The same for a body: as text, or inside the texts of JSON.
    pub(crate) fn body(&self, body: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(body).ok()?;
        if let Ok(mut value) = serde_json::from_str::<Value>(text)
            && (value.is_object() || value.is_array())
        {
            self.value(&mut value);
            return Some(value.to_string().into_bytes());
        }
        match self.text(text) {
            Cow::Owned(filled) => Some(filled.into_bytes()),
            Cow::Borrowed(_) => None,
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(filled) = self.text(text) {
                    *text = filled;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.value(item)),
            _ => {}
        }
    }

    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(pattern) = REFERENCE.as_ref() else { return Cow::Borrowed(text) };
        pattern.replace_all(text, |found: &Captures<'_>| {
            self.values.get(&found[1]).map_or_else(|| found[0].to_owned(), Clone::clone)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filling(pairs: &[(&str, &str)]) -> Filling {
        let values: BTreeMap<String, String> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mask = Mask::of(values.values().map(String::as_str));
        Filling { base: Target::read("https://api.test/a").unwrap(), values, mask, query: true }
    }

    #[test]
    fn a_reference_is_a_name_in_capitals_after_the_word() {
        let names =
            |text: &str| in_request(&json!({"url": "https://a.test/", "body": text})).into_iter().collect::<Vec<_>>();
        assert_eq!(names("Bearer secret:API_KEY, secret:_X1."), ["API_KEY", "_X1"]);
        for text in ["secret: KEY", "secret:key", "the secret:ingredient", "mysecret:KEY", "secret:KEYs", "SECRET:KEY"]
        {
            assert!(names(text).is_empty(), "{text}");
        }
        let args = json!({
            "url": "https://a.test/secret:PATH_STAYS?k=secret:QUERY&x=%73ecret%3ATWO", "headers": {"A": "Bearer secret:HEADER", "secret:NOT": "x"},
            "body": {"deep": [{"er": "secret:BODY"}]}, "method": "secret:NO"
        });
        assert_eq!(in_request(&args).into_iter().collect::<Vec<_>>(), ["BODY", "HEADER", "QUERY", "TWO"]);
    }

    #[test]
    fn it_is_put_where_its_name_is_and_cannot_break_out_of_there() {
        let filling = filling(&[("KEY", r#"a&b=c"d\e"#)]);
        let mut url = Url::parse("https://api.test/secret:KEY?k=secret:KEY&o=secret:OTHER").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("x-key", HeaderValue::from_static("Bearer secret:KEY"));
        filling.fill(&mut url, &mut headers).unwrap();
        assert_eq!(url.as_str(), "https://api.test/secret:KEY?k=a%26b%3Dc%22d%5Ce&o=secret%3AOTHER");
        assert_eq!(headers["x-key"].to_str().unwrap(), r#"Bearer a&b=c"d\e"#);
        assert!(headers["x-key"].is_sensitive());
        let body = filling.body(br#"{"k": "secret:KEY", "secret:KEY": 1}"#).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), json!({"k": r#"a&b=c"d\e"#, "secret:KEY": 1}));
        assert_eq!(filling.body(b"k=secret:KEY").unwrap(), br#"k=a&b=c"d\e"#);
        assert_eq!(filling.body(b"nothing"), None);
        let mut later = Url::parse("https://api.test/?k=secret:KEY").unwrap();
        filling.clone().onward().fill(&mut later, &mut HeaderMap::new()).unwrap();
        assert_eq!(later.as_str(), "https://api.test/?k=secret:KEY", "what a server says names no secret");
        assert!(!format!("{filling:?}").contains("a&b"));
    }

    #[test]
    fn a_secret_that_would_end_a_header_is_refused() {
        let filling = filling(&[("KEY", "line\r\nX-Evil: end-of-secret")]);
        let mut headers = HeaderMap::new();
        headers.insert("x-key", HeaderValue::from_static("secret:KEY"));
        let error = filling.fill(&mut Url::parse("https://api.test/").unwrap(), &mut headers).unwrap_err();
        assert!(!error.message.contains("Evil"), "{}", error.message);
    }
}
