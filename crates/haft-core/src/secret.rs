//! Recognising secrets by name and by shape, so that they are not written down.

use aho_corasick::AhoCorasick;
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// What a secret is replaced by.
pub const MASK: &str = "[secret]";

/// Name parts that mean the value is a secret.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "authorization",
    "private_key",
    "credential",
];

/// The published shapes of keys and tokens that no other text has.
const SHAPES: &str = concat!(
    r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}",
    r#"|(?i-u:aws_?secret_?access_?key)["']?[\s=:]{1,4}["']?[A-Za-z0-9/+]{40}"#,
    r"|gh[pousr]_[A-Za-z0-9]{36,}",
    r"|github_pat_[A-Za-z0-9_]{60,}",
    r"|gl(?:pat|ptt|dt|rt|cbt|imt|ft|soat|agent|oas|ffct)-[A-Za-z0-9_-]{20,}",
    r"|xox[abeposr]-[A-Za-z0-9-]{10,}",
    r"|xapp-[0-9]-[A-Za-z0-9-]{20,}",
    r"|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{20,}",
    r"|AIza[0-9A-Za-z_-]{35}",
    r"|ya29\.[0-9A-Za-z_-]{20,}",
    r"|GOCSPX-[0-9A-Za-z_-]{20,}",
    r"|npm_[A-Za-z0-9]{36}",
    r"|pypi-[A-Za-z0-9_-]{50,}",
    r"|tvly-[A-Za-z0-9]{20,}",
    r"|(?-u:\b{start-half})[sr]k_(?:live|test|prod)_[A-Za-z0-9]{8,}",
    r"|whsec_[A-Za-z0-9+/]{16,}",
    r"|(?-u:\b{start-half})hf_[A-Za-z0-9]{16,}",
    r"|(?-u:\b{start-half})SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"|(?-u:\b{start-half})SK[0-9a-f]{32}(?-u:\b{end-half})",
    r"|(?-u:\b{start-half})key-[0-9a-f]{32}(?-u:\b{end-half})",
    r"|do[opr]_v1_[0-9a-f]{64}",
    r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"|(?-u:\b{start-half})dapi[0-9a-f]{32}",
    r"|lin_api_[A-Za-z0-9]{40}",
    r"|(?-u:\b{start-half})(?:ntn|secret)_[A-Za-z0-9]{40,}",
    r"|(?-u:\b{start-half})hv[sb]\.[A-Za-z0-9_-]{24,}",
    r"|(?-u:\b{start-half})[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
    r"|(?-u:\b{start-half})(?:gsk_|r8_|pplx-|xai-|PMAK-)[A-Za-z0-9-]{32,}",
    r"|AGE-SECRET-KEY-1[0-9A-Z]{40,}",
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"|-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?",
    r"|(?-u:\b{start-half})sk-(?:ant|proj)-[A-Za-z0-9_-]{20,}",
    r#"|(?i-u:authorization)["']?\s{0,4}[:=]\s{0,4}["']?(?i-u:bearer|basic) [A-Za-z0-9._~+/-]{16,}=*"#,
    // A path that was normalised has lost one of its slashes. The user may be left out.
    r"|:/{1,2}[^/\s:@]*:[^/\s@]+@",
    r"|://[A-Za-z0-9_.~-]{20,}@",
);

/// Shapes that slugs and prose have as well: whether it is a key is told by the value. A key may follow what an escape
/// leaves of a line end or of a sign, and no other letter or digit: `risk-` begins no key.
const LIKENESSES: &str = concat!(
    r"(?:(?-u:\b{start-half})|_|\\[nrt]|%[0-9A-Fa-f]{2}|\\u00[0-9A-Fa-f]{2})sk-([A-Za-z0-9_-]{20,})",
    r"|(?i-u:bearer|basic) ([A-Za-z0-9._~+/-]{16,}=*)",
);

/// So much of what was no secret is looked at again: the words that announce the next one are no longer than that, and
/// every likeness is longer.
const AGAIN: usize = 16;

/// Substrings of which every secret shape contains one, in any case: a cheap look before the expensive
/// one.
const TELLTALES: &[&str] = &[
    "AKIA",
    "ASIA",
    "ABIA",
    "ACCA",
    "secret",
    "gh",
    "glpat-",
    "glptt-",
    "gldt-",
    "glrt-",
    "glcbt-",
    "glimt-",
    "glft-",
    "glsoat-",
    "glagent-",
    "gloas-",
    "glffct-",
    "sk-",
    "xox",
    "xapp-",
    "hooks.slack",
    "AIza",
    "ya29.",
    "GOCSPX-",
    "npm_",
    "pypi-",
    "tvly-",
    "k_live_",
    "k_test_",
    "k_prod_",
    "whsec_",
    "hf_",
    "SG.",
    "SK0",
    "SK1",
    "SK2",
    "SK3",
    "SK4",
    "SK5",
    "SK6",
    "SK7",
    "SK8",
    "SK9",
    "SKa",
    "SKb",
    "SKc",
    "SKd",
    "SKe",
    "SKf",
    "key-",
    "_v1_",
    "shpat_",
    "shpca_",
    "shppa_",
    "shpss_",
    "dapi",
    "lin_api_",
    "ntn_",
    "hvs.",
    "hvb.",
    ":AA",
    "gsk_",
    "r8_",
    "pplx-",
    "xai-",
    "PMAK-",
    "eyJ",
    "PRIVATE KEY",
    "bearer ",
    "basic ",
    "@",
];

static SIGNS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(TELLTALES).ok());
static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SHAPES).ok());
static LIKENESS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LIKENESSES).ok());

/// Whether a parameter's name says that its value is secret.
pub fn is_secret_name(name: &str) -> bool {
    let lower = name.to_lowercase().replace('-', "_");
    SECRET_NAMES.iter().any(|part| lower.contains(part))
}

/// Whether a schema says that a value is secret.
pub(crate) fn is_secret_property(schema: &serde_json::Value) -> bool {
    let marked = |name: &str| schema.get(name).and_then(serde_json::Value::as_bool).unwrap_or(false);
    schema.get("format").is_some_and(|format| format == "password")
        || ["writeOnly", "x-secret", "x-sensitive"].into_iter().any(marked)
}

/// Whether a header's name says that its value is secret: more names do than among parameters.
pub fn is_secret_header(name: &str) -> bool {
    let lower = name.to_lowercase().replace('-', "_");
    is_secret_name(name)
        || ["cookie", "auth", "signature"].iter().any(|part| lower.contains(part))
        || lower.ends_with("_key")
}

/// Whether a parameter of a query is secret by its name: short names are common there.
fn is_secret_parameter(name: &str) -> bool {
    let decoded = url::form_urlencoded::parse(name.as_bytes()).next().map_or_else(String::new, |(name, _)| name.into());
    let plain = decoded.to_lowercase();
    let short = ["sig", "key", "pwd", "pass", "code", "otp", "pin", "sid", "session", "jwt"];
    is_secret_header(&plain) || short.contains(&plain.as_str())
}

/// The text with everything masked that looks like a secret, and in its URLs what stands for one by its name:
/// `?token=…`.
pub fn mask_urls(text: &str) -> Cow<'_, str> {
    let masked = mask(text);
    // What is masked may have been the beginning of a URL: its user and password.
    if !text.contains("://") || !masked.contains('=') {
        return masked;
    }
    let (mut out, mut done) = (String::new(), 0);
    for (at, _) in masked.match_indices(['?', '&', ';', '#']) {
        // What a value held is no parameter.
        let Some(rest) = masked.get(at + 1..).filter(|_| at >= done) else { continue };
        let outside = |c: char| c.is_whitespace() || "?&;#/=\"'<>`".contains(c);
        let Some((name, after)) = rest.find(outside).map(|end| rest.split_at(end)) else { continue };
        let Some(value) = after.strip_prefix('=').filter(|_| is_secret_parameter(name)) else { continue };
        let length = value.find(|c: char| c.is_whitespace() || "&#\"'<>`".contains(c)).unwrap_or(value.len());
        let begin = at + 1 + name.len() + 1;
        out.push_str(&masked[done..begin]);
        out.push_str(MASK);
        done = begin + length;
    }
    if done == 0 {
        return masked;
    }
    out.push_str(&masked[done..]);
    Cow::Owned(out)
}

/// The text with everything that looks like a secret masked.
pub fn mask(text: &str) -> Cow<'_, str> {
    if SIGNS.as_ref().is_some_and(|signs| !signs.is_match(text)) {
        return Cow::Borrowed(text);
    }
    match (SHAPE.as_ref(), LIKENESS.as_ref()) {
        (Some(shape), Some(likeness)) => masked(text, shape, likeness),
        // Without the patterns nothing can be cleared, so nothing is.
        _ => Cow::Borrowed(MASK),
    }
}

/// Masks what is found first, by whichever pattern, and goes on behind it. A place that was found ahead is kept until it
/// is passed, so that all of it is one walk.
fn masked<'t>(text: &'t str, shape: &Regex, likeness: &Regex) -> Cow<'t, str> {
    let sure = |from| shape.find_at(text, from).map(|found| found.range());
    let (mut one, mut other) = (sure(0), alike(text, likeness, 0));
    let (mut out, mut done) = (String::new(), 0);
    while let Some(place) = first(one.clone(), other.clone()) {
        out.push_str(&text[done..place.start]);
        out.push_str(MASK);
        done = place.end;
        if one.as_ref().is_some_and(|place| place.start < done) {
            one = sure(done);
        }
        if other.as_ref().is_some_and(|place| place.start < done) {
            other = alike(text, likeness, done);
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Which begins first; of two that begin together the longer.
fn first(one: Option<Range<usize>>, other: Option<Range<usize>>) -> Option<Range<usize>> {
    one.into_iter().chain(other).min_by_key(|place| (place.start, std::cmp::Reverse(place.end)))
}

/// The next likeness with a value as keys have them.
fn alike(text: &str, likeness: &Regex, mut from: usize) -> Option<Range<usize>> {
    loop {
        let found = likeness.captures_at(text, from)?;
        let place = found.get(0)?.range();
        if value(&found).is_none_or(is_random) {
            return Some(place);
        }
        from = text.floor_char_boundary((place.end - AGAIN).max(place.start + 1));
    }
}

fn value<'t>(found: &Captures<'t>) -> Option<&'t str> {
    found.get(1).or_else(|| found.get(2)).map(|value| value.as_str())
}

/// Whether a value is made of more than words: there is a digit in it, or a capital letter in the middle of a word.
fn is_random(value: &str) -> bool {
    let mixed = |word: &str| {
        let capital = word.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
        capital && word.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    value.bytes().any(|byte| byte.is_ascii_digit())
        || value.ends_with('=')
        || value.split(|c: char| !c.is_ascii_alphabetic()).any(mixed)
}

/// Whether the text holds something that looks like a secret.
pub fn contains_secret(text: &str) -> bool {
    match mask(text) {
        Cow::Owned(_) => true,
        Cow::Borrowed(shown) => shown == MASK,
    }
}

/// The same for a text that is to be kept for long: a value that is named as a secret counts as well, `password: …`.
pub fn tells_secret(text: &str) -> bool {
    contains_secret(text) || text.match_indices([':', '=']).any(|(at, _)| is_named_secret(&text[..at], &text[at + 1..]))
}

/// Whether what comes before a sign names a secret, and what comes after it could be one.
fn is_named_secret(before: &str, after: &str) -> bool {
    let quote = ['"', '\'', '`'];
    let before = before.trim_end_matches(quote);
    let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').next().unwrap_or_default();
    let value = after.trim_start_matches([' ', '\t']).trim_start_matches(quote);
    let value = value.split(|c: char| c.is_whitespace() || quote.contains(&c) || c == ',').next().unwrap_or_default();
    let stands_for_one = ["secret:", "$", "{{", "<", "*", "env:"].iter().any(|sign| value.starts_with(sign));
    let mixed = value.bytes().any(|byte| byte.is_ascii_digit()) && value.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_secret_name(name) && value.len() >= 8 && mixed && !stands_for_one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_named_as_a_secret_is_one_where_it_would_be_kept() {
        for told in [
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
            "api_key: 9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c",
            "my password: hunter2hunter2",
            r#"{"token": "abcd1234efgh"}"#,
        ] {
            assert!(tells_secret(told), "{told}");
        }
        for benign in [
            "password: see the vault",
            "token: secret:GITHUB1",
            "api_key: {{key123456}}",
            "max_tokens: 100000000",
            "the password is reset on 2026-11-16",
            "password=$DB_PASS1234",
        ] {
            assert!(!tells_secret(benign), "{benign}");
        }
    }

    #[test]
    fn known_shapes_are_masked_and_prose_is_not() {
        for secret in [
            "AKIAIOSFODNN7EXAMPLE",
            &format!("sk-ant-{}", "a1".repeat(15)),
            "Authorization: Bearer abcdefghijklmnop123456",
            "postgres://user:hunter2@db/x",
            "-----BEGIN RSA PRIVATE KEY-----",
        ] {
            assert!(contains_secret(secret), "{secret}");
        }
        for prose in ["a basic idea", "mail me @ home", "skip", "high-risk", "src/main.rs", "user@example.com"] {
            assert_eq!(mask(prose), prose);
        }
    }

    #[test]
    fn slugs_and_prose_are_no_keys() {
        for benign in [
            "https://example.com/risk-assessment-and-management",
            "https://example.com/task-management-software-for-teams-2024",
            "/blog/disk-encryption-for-beginners-in-10-steps",
            "/docs/sk-learn-pipelines-and-transformers",
            "the basic responsibilities of managers",
            "Basic Responsibilities of Managers",
            "Bearer bonds-and-securities-law",
            "BASIC TELECOMMUNICATIONS",
            "basic internationalization, basic /usr/share/documentation",
            "Authorization is a basic responsibility.",
        ] {
            assert_eq!(mask(benign), benign);
            assert!(!contains_secret(benign), "{benign}");
        }
    }

    #[test]
    fn keys_are_masked_wherever_they_stand() {
        let tail = "Ab3dEf6hIj9lMn2pQr5tUv8x";
        for (text, shown) in [
            (format!("sk-{tail}"), "[secret]"),
            (format!("key=sk-ant-api03-{tail}"), "key=[secret]"),
            (format!("\"sk-proj-{tail}\""), "\"[secret]\""),
            (format!("sk-or-v1-{}", "0af1".repeat(16)), "[secret]"),
            (format!("sk-{}", "abCDef".repeat(8)), "[secret]"),
            (format!("sk-ant-{}", "a".repeat(30)), "[secret]"),
            (format!("?key%3Dsk-{tail}&b"), "?key[secret]&b"),
            (format!("KEY_sk-{tail}"), "KEY[secret]"),
            (format!("\\nsk-{tail}"), "[secret]"),
            (format!("ключ-sk-{tail} ж"), "ключ-[secret] ж"),
            (format!("sk_live_{tail}"), "[secret]"),
            (format!("STRIPE=rk_test_{tail}"), "STRIPE=[secret]"),
            (format!("hf_{tail}"), "[secret]"),
            ("ASIAIOSFODNN7EXAMPLE".to_owned(), "[secret]"),
            ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(), "[secret]"),
            (format!("SG.{tail}.{tail}"), "[secret]"),
            (format!("SK{}", "0a1b".repeat(8)), "[secret]"),
            (format!("pypi-AgEIcHlwaS5vcmc{}", tail.repeat(2)), "[secret]"),
            (format!("glptt-{tail}"), "[secret]"),
            (format!("xoxe-{tail}"), "[secret]"),
            (format!("ya29.{tail}"), "[secret]"),
            ("redis://:hunter2@cache/0".to_owned(), "redis[secret]cache/0"),
            (format!("https://{tail}@example.com/x"), "https[secret]example.com/x"),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n-----END OPENSSH PRIVATE KEY-----\nend".to_owned(),
                "[secret]\nend",
            ),
            ("Authorization: Basic dXNlcjpwYXNzd29yZA==".to_owned(), "[secret]"),
            ("-H 'authorization: basic abcdefghijklmnopqr'".to_owned(), "-H '[secret]'"),
            ("Basic dXNlcjpwYXNzd29yZA==".to_owned(), "[secret]"),
            ("bEaReR abcdefghijklmnop123456".to_owned(), "[secret]"),
            (format!("Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{tail}."), "[secret]"),
            // What is no key does not hide the one that follows.
            (format!("basic responsibilities-basic {tail}"), "basic responsibilities-[secret]"),
            (format!("risk-assessment-and-management-sk-{tail}"), "risk-assessment-and-management-[secret]"),
            ("/sk-learn-and-other-tools/glpat-abcdefghijklmnopqrstuv".to_owned(), "/sk-learn-and-other-tools/[secret]"),
            ("sk-learn-and-other-tools-glpat-abcdefghijklmnopqrstuv".to_owned(), "sk-learn-and-other-tools-[secret]"),
            (format!("AKIAIOSFODNN7EXAMPLE sk-{tail} npm_{}", "a".repeat(36)), "[secret] [secret] [secret]"),
        ] {
            assert_eq!(mask(&text), shown, "{text}");
            assert!(contains_secret(&text));
        }
    }

    #[test]
    fn what_a_url_calls_a_secret_is_masked() {
        for (text, shown) in [
            ("https://a.test/x?token=abc&n=1", "https://a.test/x?token=[secret]&n=1"),
            ("https://a.test/x?n=1&sig=a%2Fb==#top", "https://a.test/x?n=1&sig=[secret]#top"),
            ("https://a.test/?to%6ben=abc", "https://a.test/?to%6ben=[secret]"),
            ("https://a.test/#access_token=abc&state=1", "https://a.test/#access_token=[secret]&state=1"),
            ("curl 'https://a.test/?password=a?token=b' -o x", "curl 'https://a.test/?password=[secret]' -o x"),
            ("https://a.test/?q=token&key=", "https://a.test/?q=token&key=[secret]"),
            ("https://a.test/?keyword=x&passage=2", "https://a.test/?keyword=x&passage=2"),
            ("a ? token=b : c", "a ? token=b : c"),
            ("x?token=abc", "x?token=abc"),
            ("https://me:pw@a.test/?token=abc", "https[secret]a.test/?token=[secret]"),
        ] {
            assert_eq!(mask_urls(text), shown);
        }
    }

    #[test]
    fn a_flood_of_likenesses_is_walked_once() {
        for piece in ["sk-", "-sk-learn-and-other-tools", "basic responsibilities-", "basic ", "@:/", "eyJaaaaaaaaaaa."]
        {
            let text = format!("{} sk-ant-{}", piece.repeat((1 << 19) / piece.len()), "a1".repeat(15));
            assert!(mask(&text).ends_with(MASK), "{piece}");
        }
    }

    #[test]
    fn names_give_secrets_away() {
        assert!(is_secret_name("API-Key") && is_secret_name("dbPassword") && !is_secret_name("path"));
        for name in ["Cookie", "set-cookie", "X-Auth", "Ocp-Apim-Subscription-Key", "Authorization", "X-CSRF-Token"] {
            assert!(is_secret_header(name), "{name}");
        }
        assert!(!is_secret_header("Content-Type") && !is_secret_header("ETag") && !is_secret_header("X-Keyboard"));
    }
}
