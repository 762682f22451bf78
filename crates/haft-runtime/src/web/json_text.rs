//! JSON as it was written, with every member on a line of its own: numbers keep their digits, names their order and their
//! repetitions. Only white space between tokens changes.

use serde::de::IgnoredAny;

/// What is nested deeper stays on one line, so that no nesting makes a long text of a short one.
const DEPTH_MAX: usize = 64;
const INDENT: &str = "  ";

/// A JSON text with every member on its own line. None if it is not JSON, or if it would have more than `bytes_max`.
pub(crate) fn indented(json: &str, bytes_max: usize) -> Option<String> {
    // It is checked without being kept: a value would lose digits of its numbers.
    serde_json::from_str::<IgnoredAny>(json).ok()?;
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len() + json.len() / 2);
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        if out.len() > bytes_max {
            return None;
        }
        let end = token_end(bytes, at);
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            b'{' | b'[' => {
                depth += 1;
                out.push(char::from(byte));
                match first_token(bytes, end) {
                    Some(b'}' | b']') => {}
                    _ => break_line(&mut out, depth),
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth < DEPTH_MAX && !out.ends_with(['{', '[']) {
                    break_line(&mut out, depth);
                }
                out.push(char::from(byte));
            }
            b',' => {
                out.push(',');
                break_line(&mut out, depth);
            }
            b':' => out.push_str(": "),
            _ => out.push_str(json.get(at..end)?),
        }
        at = end;
    }
    (out.len() <= bytes_max).then_some(out)
}

fn break_line(out: &mut String, depth: usize) {
    if depth <= DEPTH_MAX {
        out.push('\n');
        out.extend(std::iter::repeat_n(INDENT, depth));
    }
}

/// Where the token ends that begins here.
fn token_end(bytes: &[u8], at: usize) -> usize {
    match bytes[at] {
        b'"' => string_end(bytes, at),
        b'{' | b'}' | b'[' | b']' | b',' | b':' => at + 1,
        first => {
            let blank = first.is_ascii_whitespace();
            let same = |byte: &u8| !b"{}[],:\"".contains(byte) && byte.is_ascii_whitespace() == blank;
            at + bytes[at..].iter().take_while(|byte| same(byte)).count()
        }
    }
}

/// The end of the string that begins here.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[end.min(bytes.len())..]) {
        end += found;
        if bytes[end] == b'"' {
            return end + 1;
        }
        end += 2;
    }
    bytes.len()
}

/// What follows the white space that begins here.
fn first_token(bytes: &[u8], at: usize) -> Option<u8> {
    bytes[at..].iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

/// The text as somebody would read it who knows what its escapes mean, if it has any.
pub(crate) fn unescaped(json: &str) -> Option<String> {
    let mut parts = json.split('\\');
    let mut out = parts.next()?.to_owned();
    let mut units = Vec::new();
    let (mut found, mut literal) = (false, false);
    for part in parts {
        if std::mem::take(&mut literal) {
            // The second of two backslashes.
            out.push('\\');
            out.push_str(part);
            continue;
        }
        found = true;
        let code =
            part.strip_prefix('u').and_then(|rest| Some((u16::from_str_radix(rest.get(..4)?, 16).ok()?, &rest[4..])));
        if let Some((unit, rest)) = code {
            units.push(unit);
            if rest.is_empty() {
                continue;
            }
        }
        out.extend(char::decode_utf16(units.drain(..)).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        match code {
            Some((_, rest)) => out.push_str(rest),
            None if part.is_empty() => literal = true,
            None => {
                let (first, rest) = part.split_at(part.chars().next().map_or(0, char::len_utf8));
                out.push_str(match first {
                    "n" | "r" => "\n",
                    "t" => "\t",
                    "b" | "f" => " ",
                    other => other,
                });
                out.push_str(rest);
            }
        }
    }
    out.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const ROOM: usize = 1 << 20;

    #[test]
    fn what_is_written_stays_as_it_is_written() {
        let json = r#" {"b":1.10 ,"a":[ ],"a":{ },"n":123456789012345678901234567890,
            "e":[1E400,-0.0,"\u00e9 \" , [\\",true,null]} "#;
        insta::assert_snapshot!(indented(json, ROOM).unwrap(), @r#"
        {
          "b": 1.10,
          "a": [],
          "a": {},
          "n": 123456789012345678901234567890,
          "e": [
            1E400,
            -0.0,
            "\u00e9 \" , [\\",
            true,
            null
          ]
        }
        "#);
        assert_eq!(indented(" 1.10 ", ROOM).as_deref(), Some("1.10"));
    }

    #[test]
    fn what_is_not_json_is_left_alone() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{'a':1}",
            "[1] [2]",
            "\"\n\"",
            "01",
            "nul",
            "[\"a\" \"b\"]",
            "{\"a\":1,}",
            "\u{feff}1",
        ] {
            assert_eq!(indented(text, ROOM), None, "{text}");
        }
    }

    #[test]
    fn nesting_without_end_stays_short_and_takes_little_time() {
        let depth = 1 << 20;
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[1,", "]")] {
            let inner = if open == "[" { "" } else { "1" };
            let json = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            let begun = Instant::now();
            let text = indented(&json, usize::MAX).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(20), "{open} takes {:?}", begun.elapsed());
            assert!(text.len() < 2 * json.len() + 20_000, "{open} becomes {}", text.len());
            assert_eq!(text.replace(['\n', ' '], ""), json);
        }
        let wide = format!("{}{}{}", "[".repeat(64), "1,".repeat(1 << 20) + "1", "]".repeat(64));
        assert_eq!(indented(&wide, ROOM), None, "what would become too long stays as it is");
    }

    #[test]
    fn escapes_are_read_as_what_they_mean() {
        for (json, read) in [
            (r#""\u0049gnore \"all\"""#, r#""Ignore "all"""#),
            (r#""\ud83d\ude00 \\u0049 \\\u0049\n\/""#, "\"😀 \\u0049 \\I\n/\""),
            (r#""\ud83d \u00""#, "\"\u{fffd} u00\""),
        ] {
            assert_eq!(unescaped(json).as_deref(), Some(read), "{json}");
        }
        assert_eq!(unescaped("\"plain\""), None);
    }
}
