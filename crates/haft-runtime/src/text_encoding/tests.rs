//! Encodings as files have them.

use super::*;
use proptest::prelude::*;

fn named(content: &[u8]) -> Option<&'static str> {
    TextEncoding::detect(content).map(TextEncoding::name)
}

fn encoded(label: &str, text: &str) -> Vec<u8> {
    let (bytes, _, has_gaps) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
    assert!(!has_gaps, "{label}: {text}");
    bytes.into_owned()
}

#[test]
fn short_western_texts_are_not_taken_for_exotic_ones() {
    let texts =
        ["£5", "10 µm\n", "naïve\n", "±0.5\n", "Æ", "\u{a0}x", "½ ¼ ¾ ½", "café", "it’s\n", "© 2020 Acme\n", "100°C"];
    for text in texts {
        let content = encoded("windows-1252", text);
        assert_eq!(
            (named(&content), text),
            (Some("windows-1252"), TextEncoding::detect(&content).unwrap().decode(&content).as_ref())
        );
    }
}

#[test]
fn texts_of_many_scripts_are_detected() {
    let cases = [
        ("windows-1252", "Grüße aus Köln, schöne Häuser und süße Äpfel\n"),
        ("windows-1251", "Это обычный русский текст.\n"),
        ("Shift_JIS", "エラー: ファイルが見つかりません\n"),
        ("Shift_JIS", "日本語\n"),
        ("EUC-JP", "これは日本語の文章です。\n"),
        ("GBK", "中文\n"),
        ("Big5", "這是一個中文檔案，內容是測試。\n"),
        ("EUC-KR", "안녕하세요 세계, 이것은 시험입니다\n"),
        ("ISO-8859-2", "Zażółć gęślą jaźń\n"),
        ("windows-1253", "Καλημέρα κόσμε\n"),
    ];
    for (label, text) in cases {
        let content = encoded(label, text);
        let found = TextEncoding::detect(&content).unwrap();
        assert_eq!((found.name(), found.decode(&content).as_ref()), (label, text));
        assert_eq!(found.encode_file(text).unwrap(), content);
    }
}

#[test]
fn utf16_is_text_with_and_without_a_byte_order_mark() {
    let text = "naïve text\r\nof two lines\n";
    for (bytes, name) in [(u16::to_le_bytes as fn(u16) -> [u8; 2], "UTF-16LE"), (u16::to_be_bytes, "UTF-16BE")] {
        let plain: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
        let marked: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect();
        for (content, title) in [(plain, name.to_owned()), (marked, format!("{name} with BOM"))] {
            let found = TextEncoding::detect(&content).unwrap();
            assert_eq!((found.title(), found.decode(&content).as_ref()), (title, text));
            assert_eq!(found.encode_file(text).unwrap(), content);
        }
    }
}

#[test]
fn binary_is_no_text() {
    let binary: &[&[u8]] = &[
        b"a\0b",
        b"abc\0",
        b"a\0\0\0b\0\0\0",
        b"\x01\0\x02\0\x03\0\x04\0",
        b"\xff\xfe\0\0a\0\0\0",
        b"\x7fELF\x02\0\0\0",
        b"\x93\x1f\x8b\x08\x9d\x03",
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    ];
    for content in binary {
        assert_eq!(named(content), None, "{content:?}");
    }
}

#[test]
fn a_few_bad_bytes_leave_a_text_utf8() {
    assert_eq!(named("日本語 and é".as_bytes()), Some("UTF-8"));
    assert_eq!(named(b"\xc3\xa9t\xc3\xa9 \xff\n"), Some("UTF-8"));
    assert_eq!(
        named(&[b"line\n".repeat(200).as_slice(), b"\x00\x01\xff\xfe junk\n"].concat()),
        Some("UTF-8"),
        "of a log"
    );
    assert_eq!(named(b"BMW f\xfcr alle"), Some("windows-1252"), "no bitmap");
}

#[test]
fn what_an_encoding_lacks_is_not_written() {
    let latin = TextEncoding::detect(b"caf\xe9").unwrap();
    assert_eq!(latin.encode("naïve"), Ok(b"na\xefve".to_vec()));
    assert_eq!(latin.encode("a → b"), Err('→'));
    let content = encoded("Shift_JIS", "これは日本語の文章です。");
    let japanese = TextEncoding::detect(&content).unwrap();
    // The encoder would write a backslash for it.
    assert_eq!((japanese.name(), japanese.encode("¥5")), ("Shift_JIS", Err('¥')));
}

proptest! {
    #[test]
    fn places_in_a_text_are_found_in_its_bytes(text in "[aé\n日𝄞ｱ한]{0,60}", label in 0..6_usize) {
        let encoding = ["UTF-8", "UTF-16LE", "UTF-16BE", "Shift_JIS", "gb18030", "EUC-KR"][label];
        let encoding = Encoding::for_label(encoding.as_bytes()).unwrap();
        for has_bom in [false, true] {
            let encoding = TextEncoding { encoding, has_bom: has_bom && (1..3).contains(&label) };
            let Ok(content) = encoding.encode_file(&text) else { return Ok(()) };
            let decoded = encoding.decode(&content).into_owned();
            let mut offsets = encoding.byte_offsets(&content);
            for (at, _) in decoded.char_indices().chain([(decoded.len(), ' ')]) {
                let byte = offsets.of(at).unwrap();
                prop_assert_eq!(encoding.encode_file(&decoded[..at]).unwrap().len().max(encoding.mark_length()), byte, "{}", at);
            }
        }
    }
}
