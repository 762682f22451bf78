//! From bytes to text: what the server says, what the page says, and else what the bytes look like.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use std::borrow::Cow;

/// As far as a page is looked at for what it says of itself.
const HEAD: usize = 1024;
/// As far as bytes are looked at to guess.
const SAMPLE: usize = 64 << 10;

/// The text, and the name of the encoding it was in. What cannot be decoded becomes U+FFFD; no label is ever an error.
pub fn decode<'b>(bytes: &'b [u8], content_type: Option<&str>) -> (Cow<'b, str>, &'static str) {
    let encoding = choose(bytes, content_type);
    let (text, used, _) = encoding.decode(bytes);
    (text, used.name())
}

fn choose(bytes: &[u8], content_type: Option<&str>) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding;
    }
    let told = content_type.and_then(|value| label(value.as_bytes())).and_then(known);
    told.or_else(|| said(bytes)).unwrap_or_else(|| guess(bytes))
}

/// An encoding that a label names. The one that browsers use to refuse dangerous ones would lose all of the text.
fn known(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(label).filter(|encoding| *encoding != REPLACEMENT)
}

/// What follows `charset=`.
fn label(text: &[u8]) -> Option<&[u8]> {
    let at = find(text, b"charset")?;
    let rest = text[at + 7..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest.iter().position(|byte| b"\"'; \t\r\n/>".contains(byte)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// What the page says in a meta element near its beginning.
fn said(bytes: &[u8]) -> Option<&'static Encoding> {
    let mut head = &bytes[..bytes.len().min(HEAD)];
    while let Some(at) = find(head, b"<meta") {
        let rest = &head[at + 5..];
        let end = rest.iter().position(|byte| *byte == b'>').unwrap_or(rest.len());
        if let Some(encoding) = label(&rest[..end]).and_then(known) {
            // Whoever could read this had no two-byte encoding.
            return Some(match encoding {
                wide if wide == UTF_16LE || wide == UTF_16BE => UTF_8,
                own if own == X_USER_DEFINED => WINDOWS_1252,
                other => other,
            });
        }
        head = &rest[end..];
    }
    None
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[..bytes.len().min(SAMPLE)], true);
    detector.guess(None, Utf8Detection::Allow)
}

/// Where a word of lower-case letters begins, whatever the case.
fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], content_type: Option<&str>) -> (String, &'static str) {
        let (text, name) = decode(bytes, content_type);
        (text.into_owned(), name)
    }

    #[test]
    fn the_mark_then_the_server_then_the_page_decide() {
        assert_eq!(read(b"\xef\xbb\xbf\xc3\xa4", Some("text/html; charset=latin1")), ("ä".to_owned(), "UTF-8"));
        assert_eq!(read(b"\xe4", Some("text/html; Charset=\"ISO-8859-1\"; x=y")), ("ä".to_owned(), "windows-1252"));
        let page = b"<html><META http-equiv=x content='text/html; charset=koi8-r'>\xc4\xc1";
        assert!(read(page, None).0.ends_with("да"));
        assert!(read(page, Some("text/html")).0.ends_with("да"));
        assert_eq!(read(b"<meta charset=utf-16><p>\xc3\xa4", None).1, "UTF-8");
        assert_eq!(read(b"\xff\xfea\0b\0", None), ("ab".to_owned(), "UTF-16LE"));
    }

    #[test]
    fn what_nobody_says_is_guessed() {
        assert_eq!(read("naïve".as_bytes(), None).1, "UTF-8");
        let (sjis, _, _) = encoding_rs::SHIFT_JIS.encode("これは日本語の文章です。今日は天気がいいですね。");
        assert_eq!(read(&sjis, None).1, "Shift_JIS");
        let (cyrillic, _, _) = encoding_rs::WINDOWS_1251.encode("Это обычный русский текст, довольно длинный.");
        assert_eq!(read(&cyrillic, None).1, "windows-1251");
    }

    #[test]
    fn hostile_labels_are_as_if_nothing_was_said() {
        for label in ["utf-7", "x-unknown", "iso-2022-kr", "hz-gb-2312", "", "\"", "utf-8\0", &"a".repeat(1 << 20)] {
            let (text, name) = read(b"+ADw-script+AD4- plain", Some(&format!("text/html; charset={label}")));
            assert_eq!((text.as_str(), name), ("+ADw-script+AD4- plain", "UTF-8"), "{}", label.len());
        }
        assert_eq!(read(b"a\xfe\xfd", Some("text/html; charset=utf-8")).0, "a\u{fffd}\u{fffd}");
    }
}
