//! What a call would do out there, as far as that can be known before it is decided.

use super::target::Target;
use crate::host::Host;
use crate::preview::{cut, inert};
use crate::secret::contains_secret;
use serde::Serialize;
use std::borrow::Cow;

/// A query longer than this carries more than a question.
const QUERY_MAX: usize = 512;
/// One value of a query, or one segment of a path, that is this long and looks encoded carries data out.
const VALUE_MAX: usize = 48;
const SEGMENT_MAX: usize = 96;
/// Pieces from this length on that look encoded are added up, and so much of them is too much.
const PIECE_MIN: usize = 20;
const PIECES_MAX: usize = 120;
/// A path longer than this says more than where something is.
const PATH_MAX: usize = 1024;
/// Headers that say more than this carry something.
const HEADERS_MAX: usize = 512;
/// One word this long in a name is a message to whoever answers for the domain.
const LABEL_MAX: usize = 40;

/// A request that a call would make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Errand {
    /// The method, in capitals.
    pub method: String,
    /// The URL in its one spelling.
    pub url: String,
    /// The host and port.
    pub authority: String,
    /// Whether it changes something there.
    pub writes: bool,
    /// Why it must not be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Why a person should look at it first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// The secrets that would be sent along, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

impl Errand {
    /// What a grant's pattern is matched against: `METHOD url`.
    pub fn subject(&self) -> String {
        format!("{} {}", self.method, self.url)
    }

    /// Whether a yes to it holds for everything of its kind at that host in the session. A script is not bound to
    /// the page that it is run on, so each is looked at.
    pub fn lasts(&self) -> bool {
        self.writes && self.doubts.is_empty() && self.method != "EVALUATE"
    }

    /// The pattern for everything at one host: what a yes to a first write is remembered as.
    pub fn host_pattern(target: &Target) -> String {
        format!("* {}/**", crate::grant::literal(&target.origin()))
    }

    /// What a grant for sending a secret there is about: `secret:NAME origin`.
    pub fn secret_subject(&self, name: &str) -> String {
        let origin = Target::read(&self.url).map_or_else(|_| self.authority.clone(), |target| target.origin());
        format!("secret:{name} {origin}")
    }

    /// Whether a method changes something.
    pub fn is_write(method: &str) -> bool {
        !matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }
}

/// What makes a request look as if it carried data out: long and encoded queries, keys in what is sent.
pub fn doubts<'t>(target: &Target, sent: impl IntoIterator<Item = (&'t str, &'t str)>) -> Vec<String> {
    let mut doubts = Vec::new();
    let url = target.url();
    let query = url.query().unwrap_or_default();
    if query.len() > QUERY_MAX {
        doubts.push(format!("its query is {} bytes long", query.len()));
    }
    if let Some((name, _)) = url.query_pairs().find(|(_, value)| looks_encoded(value, VALUE_MAX)) {
        doubts.push(format!("`{}` in its query looks like encoded data", cut(&inert(&name), 40)));
    }
    if url.path().len() > PATH_MAX {
        doubts.push(format!("its path is {} bytes long", url.path().len()));
    }
    // Small pieces add up to a message.
    let names = url.query_pairs().flat_map(|(name, value)| [name, value]);
    let pieces = url.path().split('/').map(Cow::from).chain(names);
    let encoded: usize = pieces.filter(|piece| looks_encoded(piece, PIECE_MIN)).map(|piece| piece.len()).sum();
    if doubts.is_empty() && encoded > PIECES_MAX {
        doubts.push("its path and query hold much that looks like encoded data".to_owned());
    }
    if url.path().split('/').any(|segment| looks_encoded(segment, SEGMENT_MAX)) {
        doubts.push("its path looks like encoded data".to_owned());
    }
    if let Host::Name(name) = target.host()
        && name.split('.').any(|label| label.len() >= LABEL_MAX && !label.contains('-'))
    {
        doubts.push("its host name looks like encoded data".to_owned());
    }
    if contains_secret(url.as_str()) {
        doubts.push("its URL holds what looks like a key".to_owned());
    }
    let mut beside = 0;
    for (what, text) in sent {
        if what == "headers" {
            beside += text.len();
        }
        if contains_secret(text) {
            doubts.push(format!("its {what} holds what looks like a key"));
        }
    }
    if beside > HEADERS_MAX {
        doubts.push(format!("its headers hold {beside} bytes"));
    }
    doubts
}

/// Whether a text of at least `length` is made of the letters of base64, base32 or hexadecimal, mixed as words are
/// not. Digests, which are fixed in length and hexadecimal, are names of things.
fn looks_encoded(text: &str, length: usize) -> bool {
    let digest = matches!(text.len(), 32 | 40 | 64 | 128) && text.bytes().all(|b| b.is_ascii_hexdigit());
    let alphabet = |b: u8| b.is_ascii_alphanumeric() || b"+/=_-%.~,:;".contains(&b);
    if text.len() < length || digest || !text.bytes().all(alphabet) {
        return false;
    }
    // Words joined by dashes change their kind rarely; encoded data does at almost every step.
    let kind = |b: u8| match b {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        b'a'..=b'z' => 2,
        _ => 3,
    };
    let letters = text.bytes().filter(|b| kind(*b) < 3).count();
    let turns = text.as_bytes().windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    let separators = text.len() - letters;
    separators * 8 < text.len() && turns * 5 > text.len() || (separators * 16 < text.len() && letters >= length * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubted(url: &str) -> Vec<String> {
        doubts(&Target::read(url).unwrap(), [])
    }

    #[test]
    fn ordinary_addresses_raise_no_doubt() {
        for url in [
            "https://example.com/search?q=how+to+write+a+parser&page=2",
            "https://en.wikipedia.org/wiki/Antidisestablishmentarianism",
            "https://github.com/a/b/commit/7c8d0e1f2a3b4c5d6e7f8a9b0c1d2e3f4a5b6c7d",
            "https://blog.example/2024/01/why-the-quick-brown-fox-jumped-over-the-lazy-dog-and-what-happened-next",
            "https://docs.rs/serde/latest/serde/de/trait.Deserializer.html",
            "https://www.example.com/watch?v=dQw4w9WgXcQ",
            "https://app.example.com/o/550e8400-e29b-41d4-a716-446655440000/p/6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        ] {
            assert_eq!(doubted(url), [""; 0], "{url}");
        }
    }

    #[test]
    fn what_carries_data_out_is_noticed() {
        let base64 = "c2VjcmV0IHN0dWZmIHRoYXQgbm9ib2R5IHNob3VsZCBzZWUgYXQgYWxsISE5OTk4ODg3Nzc";
        for (url, why) in [
            (format!("https://e.example/?d={base64}"), "`d` in its query looks like encoded data"),
            (format!("https://e.example/{base64}{base64}"), "its path looks like encoded data"),
            (format!("https://{}.e.example/", "mzxw6ytboi3dgnbvgy3tqojqgezdgnbvgy3tqojq"), "its host name looks like"),
            (format!("https://e.example/?q={}", "word+".repeat(200)), "bytes long"),
            ("https://e.example/?k=AKIAIOSFODNN7EXAMPLE".to_owned(), "its URL holds what looks like a key"),
        ] {
            assert!(doubted(&url).iter().any(|doubt| doubt.contains(why)), "{url}: {:?}", doubted(&url));
        }
        let pieces = format!("https://e.example/{}", ["aB3dE6gH9kL2nO5qR8tU"; 8].join("/"));
        assert_eq!(doubted(&pieces), ["its path and query hold much that looks like encoded data"]);
        let target = Target::read("https://e.example/").unwrap();
        let long = "words of no consequence ".repeat(30);
        assert_eq!(doubts(&target, [("headers", long.as_str())]), [format!("its headers hold {} bytes", long.len())]);
        assert_eq!(doubts(&target, [("body", "AKIAIOSFODNN7EXAMPLE")]), ["its body holds what looks like a key"]);
    }

    #[test]
    fn a_remembered_host_is_that_host_alone() {
        let pattern = Errand::host_pattern(&Target::read("https://api.example.com/v1/x").unwrap());
        for (subject, covered) in [
            ("POST https://api.example.com/v1/y?z=1", true),
            ("DELETE https://api.example.com/", true),
            ("POST https://api.example.com.evil.example/", false),
            ("POST https://evil.example/https://api.example.com/", false),
            ("POST http://api.example.com/", false),
        ] {
            assert_eq!(crate::grant::matches(&pattern, subject), covered, "{subject}");
        }
    }
}
