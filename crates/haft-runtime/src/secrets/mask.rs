//! Hiding what was sent: one way for credentials and for secrets, in every form in which somebody may write them back.

use crate::web::written::masked as disguised;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use haft_core::secret::MASK;
use memchr::memmem::Finder;
use serde_json::Value;

/// What is shorter than this is not looked for: it would be found everywhere.
pub const FORM_MIN: usize = 4;
/// The same for what is looked for behind escapes.
const WHOLE_MIN: usize = 6;
/// The same for what may also stand in the middle of something else.
const PIECE_MIN: usize = 10;
/// A line of a longer secret that is worth hiding by itself.
const LINE_MIN: usize = 16;

/// The forms of some secrets. It is shown nowhere.
#[derive(Clone, Default)]
pub(crate) struct Mask {
    /// The longest first, so that no part of one is left behind.
    forms: Vec<String>,
    /// Themselves, to be found in text whatever it escapes.
    secrets: Vec<String>,
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

impl Mask {
    /// For these.
    pub(crate) fn of<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let (mut forms, mut whole) = (Vec::new(), Vec::new());
        for secret in secrets {
            whole.extend((secret.len() >= WHOLE_MIN).then(|| secret.to_owned()));
            let lines = secret.lines().map(str::trim).filter(|line| line.len() >= LINE_MIN && *line != secret);
            for text in std::iter::once(secret).chain(lines) {
                forms.extend(written(text).into_iter().filter(|form| form.len() >= FORM_MIN));
            }
            forms.extend(encoded(secret).into_iter().filter(|form| form.len() >= PIECE_MIN));
        }
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        whole.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { forms, secrets: whole }
    }

    /// Whether a text holds one of them.
    pub(crate) fn finds(&self, text: &str) -> bool {
        self.forms.iter().any(|form| text.contains(form.as_str())) || disguised(text, &self.secrets).is_some()
    }

    /// Whether bytes hold one of them, as it is or encoded.
    pub(crate) fn finds_in(&self, bytes: &[u8]) -> bool {
        self.forms.iter().any(|form| Finder::new(form.as_bytes()).find(bytes).is_some())
    }

    /// Hides them in a text.
    pub(crate) fn text(&self, text: &mut String) {
        for form in &self.forms {
            if text.contains(form.as_str()) {
                *text = text.replace(form.as_str(), MASK);
            }
        }
        if let Some(masked) = disguised(text, &self.secrets) {
            *text = masked;
        }
    }

    /// Hides them in bytes. Of what was cut, the end may be the beginning of one.
    pub(crate) fn bytes(&self, bytes: &mut Vec<u8>, cut: bool) {
        for form in &self.forms {
            let found: Vec<usize> = Finder::new(form.as_bytes()).find_iter(bytes).collect();
            if found.is_empty() {
                continue;
            }
            let mut masked = Vec::with_capacity(bytes.len());
            let mut from = 0;
            for at in found {
                masked.extend_from_slice(&bytes[from..at]);
                masked.extend_from_slice(MASK.as_bytes());
                from = at + form.len();
            }
            masked.extend_from_slice(&bytes[from..]);
            *bytes = masked;
        }
        let ends = |form: &String| {
            let longest = form.len().saturating_sub(1);
            (FORM_MIN..=longest).rev().find(|length| bytes.ends_with(&form.as_bytes()[..*length]))
        };
        if let Some(part) = self.forms.iter().filter(|_| cut).filter_map(ends).max() {
            bytes.truncate(bytes.len() - part);
            bytes.extend_from_slice(MASK.as_bytes());
        }
    }

    /// Hides them in a value, in names as well.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                for (mut key, mut value) in std::mem::take(map) {
                    self.text(&mut key);
                    self.value(&mut value);
                    map.insert(key, value);
                }
            }
            // A secret of digits may come back as a number.
            Value::Number(number) if self.finds(&number.to_string()) => *value = Value::from(MASK),
            _ => {}
        }
    }
}

/// As it is, and as URLs, JSON and HTML have it.
fn written(secret: &str) -> Vec<String> {
    let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let percent = form.replace('+', "%20");
    let quoted = Value::from(secret).to_string();
    let quoted = quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned();
    // Some writers of JSON escape more than they have to, and some of URLs less.
    let slashed = quoted.replace('/', "\\/");
    let shy = slashed.replace('+', "\\u002b").replace('=', "\\u003d");
    let html = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let loose = percent.replace("%21", "!").replace("%7E", "~").replace("%27", "'").replace("%28", "(");
    let loose = loose.replace("%29", ")");
    let path = loose.replace("%3A", ":").replace("%40", "@").replace("%24", "$").replace("%2C", ",");
    let small = [&form, &percent, &loose, &path].map(|text| lower_escapes(text));
    let plain = [secret.to_owned(), form, percent, loose, path, quoted, slashed, shy, html];
    plain.into_iter().chain(small).collect()
}

/// Percent escapes in small letters.
fn lower_escapes(text: &str) -> String {
    let mut left = 0;
    let lower = |c: char| {
        if c == '%' {
            left = 3;
        }
        left = i32::max(left - 1, -1);
        if left >= 0 { c.to_ascii_lowercase() } else { c }
    };
    text.chars().map(lower).collect()
}

/// In hexadecimal and in base64, wherever in a longer text it begins: `Basic` signs in with a name before it.
fn encoded(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![hex.to_uppercase(), hex];
    for before in 0..3_usize {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.bytes()).collect();
        // Only letters that say nothing of what stands before and after.
        let (from, to) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded);
            forms.extend(text.get(from..to).map(str::to_owned));
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(secret: &str, text: &str) -> String {
        let mut text = text.to_owned();
        Mask::of([secret]).text(&mut text);
        text
    }

    #[test]
    fn it_is_found_however_it_is_written() {
        let secret = r#"a+b/c "d"=é&~"#;
        let signed = base64::engine::general_purpose::STANDARD.encode(format!("user:{secret}:more"));
        for text in [
            secret.to_owned(),
            serde_json::json!({ "x": secret }).to_string(),
            url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
            "a%2bb%2fc%20%22d%22%3d%c3%a9%26~".to_owned(),
            r#"a\u002bb\/c \"d\"\u003dé&~"#.to_owned(),
            "a+b/c &quot;d&quot;=é&amp;~".to_owned(),
            secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
            signed,
        ] {
            let shown = masked(secret, &text);
            assert!(shown.contains(MASK), "{text} became {shown}");
        }
        assert_eq!(format!("{:?}", Mask::of([secret])), "Mask");
    }

    #[test]
    fn numbers_names_and_lines_count_as_well() {
        let mut value = serde_json::json!({"12345678": [12_345_678], "ok": 1});
        Mask::of(["12345678"]).value(&mut value);
        assert_eq!(value, serde_json::json!({"[secret]": ["[secret]"], "ok": 1}));
        let pem = "-----BEGIN-----\nMIIEvQIBADANBgkqhkiG9w0\nBAQEFAASCBKcwggSjAgEAAoIBAQC7\n-----END-----";
        assert_eq!(masked(pem, "line: BAQEFAASCBKcwggSjAgEAAoIBAQC7"), "line: [secret]");
        assert_eq!(masked("abc", "abc abcd"), "abc abcd", "too short to be told from text");
    }

    proptest! {
        #[test]
        fn base64_of_anything_around_it_does_not_show_it(before in ".{0,9}", secret in "[ -~]{12,40}", after in ".{0,9}") {
            let text = base64::engine::general_purpose::STANDARD.encode(format!("{before}{secret}{after}"));
            prop_assert!(masked(&secret, &text).contains(MASK));
        }

        #[test]
        fn no_form_is_left(secret in "[ -~]{4,40}", around in ".{0,20}") {
            let text = format!("{around}{secret}{around}{secret}");
            prop_assert!(!masked(&secret, &text).contains(&secret) || MASK.contains(&secret));
        }
    }
}
