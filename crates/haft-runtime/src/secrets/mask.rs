//! Hiding what was sent: one way for credentials and for secrets, in every form in which somebody may write them back.

use crate::web::written::masked as disguised;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use haft_core::secret::MASK;
use memchr::memmem::Finder;
use serde_json::Value;
use std::ops::Range;

/// What is shorter than this is not looked for: it would be found everywhere.
pub const FORM_MIN: usize = 4;
/// The same for what is looked for behind escapes.
const WHOLE_MIN: usize = 6;
/// The same for what may also stand in the middle of something else.
const PIECE_MIN: usize = 10;
/// A line of a longer secret that is worth hiding by itself.
const LINE_MIN: usize = 16;

/// Where something was cut off from what is to be masked: there may be a part of a secret.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) front: bool,
    pub(crate) back: bool,
}

impl Cut {
    pub(crate) const NOWHERE: Self = Self { front: false, back: false };

    /// At its beginning, if so.
    pub(crate) const fn front(front: bool) -> Self {
        Self { front, back: false }
    }

    /// At its end, if so.
    pub(crate) const fn back(back: bool) -> Self {
        Self { front: false, back }
    }
}

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
        text_by([self], text, Cut::NOWHERE);
    }

    /// Where they are, whole or, at an end where something was cut off, in part.
    fn places(&self, bytes: &[u8], cut: Cut, found: &mut Vec<Range<usize>>) {
        for form in self.forms.iter().map(String::as_bytes) {
            let finder = Finder::new(form);
            let (mut from, first) = (0, found.len());
            // Each byte may begin one: of two that overlap, either may be the one that was meant.
            while let Some(at) = bytes.get(from..).and_then(|rest| finder.find(rest)).map(|at| from + at) {
                let end = at + form.len();
                match found.get_mut(first..).and_then(<[_]>::last_mut) {
                    Some(last) if at < last.end => last.end = end,
                    _ => found.push(at..end),
                }
                from = at + 1;
            }
            let parts = |longest: usize| (FORM_MIN..=longest.min(bytes.len())).rev();
            let longest = form.len().saturating_sub(1);
            if cut.front {
                let part = parts(longest).find(|length| bytes.starts_with(&form[form.len() - length..]));
                found.extend(part.map(|length| 0..length));
            }
            if cut.back {
                let part = parts(longest).find(|length| bytes.ends_with(&form[..*length]));
                found.extend(part.map(|length| bytes.len() - length..bytes.len()));
            }
            if cut.front && cut.back && bytes.len() >= FORM_MIN && is_part(form, bytes) {
                found.push(0..bytes.len());
            }
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

/// Hides in bytes what several hide. All of it is found before any of it is hidden: part of one may be part of another.
pub(crate) fn bytes_by<'m>(masks: impl IntoIterator<Item = &'m Mask>, bytes: &mut Vec<u8>, cut: Cut) {
    let mut found = Vec::new();
    masks.into_iter().for_each(|mask| mask.places(bytes, cut, &mut found));
    if found.is_empty() {
        return;
    }
    found.sort_unstable_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
    let mut hidden = Vec::with_capacity(bytes.len());
    let (mut done, mut begun) = (0, false);
    for place in found {
        // Those that overlap are one.
        if !begun || place.start >= done {
            hidden.extend_from_slice(&bytes[done..place.start]);
            hidden.extend_from_slice(MASK.as_bytes());
        }
        (done, begun) = (done.max(place.end), true);
    }
    hidden.extend_from_slice(&bytes[done..]);
    *bytes = hidden;
}

/// The same in a text, where they are found behind escapes as well.
pub(crate) fn text_by<'m, M>(masks: M, text: &mut String, cut: Cut)
where
    M: IntoIterator<Item = &'m Mask> + Clone,
{
    let mut bytes = std::mem::take(text).into_bytes();
    bytes_by(masks.clone(), &mut bytes, cut);
    // What is hidden begins and ends with whole characters, so that nothing is lost here.
    *text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    for mask in masks {
        if let Some(masked) = disguised(text, &mask.secrets) {
            *text = masked;
        }
    }
}

fn is_part(form: &[u8], part: &[u8]) -> bool {
    part.len() < form.len() && Finder::new(part).find(form).is_some()
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
        fn nothing_of_it_is_left_where_something_was_cut_off(
            (secret, other) in ("[a-c0-9é]{6,40}", "[a-c0-9]{6,40}"),
            (before, after) in ("[A-Z ]{0,30}", "[A-Z ]{0,30}"),
            (from, to) in (0_usize..200, 0_usize..200),
        ) {
            let whole = format!("{before}{secret}{after}|{other}|{after}{secret}{before}").into_bytes();
            let (from, to) = (from.min(whole.len()), to.min(whole.len()));
            let mut bytes = whole[from.min(to)..from.max(to)].to_vec();
            let masks = [Mask::of([secret.as_str()]), Mask::of([other.as_str()])];
            bytes_by(&masks, &mut bytes, Cut { front: true, back: true });
            let shown = |piece: &[u8]| [&secret, &other].iter().any(|known| is_part(known.as_bytes(), piece));
            prop_assert!(!bytes.windows(FORM_MIN).any(shown), "{}", String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn a_text_that_was_cut_loses_nothing_else(secret in "[a-zé]{8,20}", at in 0_usize..20) {
            let at = secret.char_indices().map(|(at, _)| at).nth(at).unwrap_or(0);
            let mut text = format!("ÄÖÜ {}", &secret[..at]);
            text_by([&Mask::of([secret.as_str()])], &mut text, Cut::back(true));
            let left = if at >= FORM_MIN { MASK } else { &secret[..at] };
            prop_assert_eq!(text, format!("ÄÖÜ {left}"));
            let mut text = format!("{} ÄÖÜ", &secret[at..]);
            text_by([&Mask::of([secret.as_str()])], &mut text, Cut::front(true));
            let left = if secret.len() - at >= FORM_MIN { MASK } else { &secret[at..] };
            prop_assert_eq!(text, format!("{left} ÄÖÜ"));
        }

        #[test]
        fn no_form_is_left(secret in "[ -~]{4,40}", around in ".{0,20}") {
            let text = format!("{around}{secret}{around}{secret}");
            prop_assert!(!masked(&secret, &text).contains(&secret) || MASK.contains(&secret));
        }
    }
}
