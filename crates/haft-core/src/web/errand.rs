//! What a call would do out there, as far as that can be known before it is decided.

use super::target::Target;
use crate::host::Host;
use crate::secret::contains_secret;
use serde::Serialize;

/// A query longer than this carries more than a question.
const QUERY_MAX: usize = 512;
/// One value of a query, or one segment of a path, that is this long and looks encoded carries data out.
const VALUE_MAX: usize = 48;
const SEGMENT_MAX: usize = 96;
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
}

impl Errand {
    /// What a grant's pattern is matched against: `METHOD url`.
    pub fn subject(&self) -> String {
        format!("{} {}", self.method, self.url)
    }

    /// The pattern for everything at one host: what a yes to a first write is remembered as.
    pub fn host_pattern(target: &Target) -> String {
        format!("* {}/**", crate::grant::literal(&target.origin()))
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
        doubts.push(format!("`{}` in its query looks like encoded data", crate::preview::inert(&name)));
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
    for (what, text) in sent {
        if contains_secret(text) {
            doubts.push(format!("its {what} holds what looks like a key"));
        }
    }
    doubts
}

/// Whether a text of at least `length` is made of the letters of base64, base32 or hexadecimal, mixed as words are
/// not. Digests, which are fixed in length and hexadecimal, are names of things.
fn looks_encoded(text: &str, length: usize) -> bool {
    let digest = matches!(text.len(), 32 | 40 | 64 | 128) && text.bytes().all(|b| b.is_ascii_hexdigit());
    let alphabet = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'_' | b'-' | b'%');
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
        let target = Target::read("https://e.example/").unwrap();
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
