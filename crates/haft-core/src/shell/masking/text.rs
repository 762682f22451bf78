//! Secrets in texts that are part of a command: here-documents, JSON, SQL, code, headers.

use super::names::{Secrecy, can_be_secret, secrecy};
use core::ops::Range;
use regex::Regex;
use std::sync::LazyLock;

/// A name and a sign, after which a value stands.
static SETTING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"([A-Za-z_][A-Za-z0-9_.-]*)(\\?["'`]?)[ \t]*(=>|:=|=|:)[ \t]*"#).ok());
/// `IDENTIFIED BY '…'`, `PASSWORD '…'`, `PASSWORD = '…'`.
static SQL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)\b(?:identified\b[^'\n;]{0,60}\bby|password)\b[^'\n;]{0,20}'([^'\n]+)'").ok());

/// Where a value ends that is not in quotes.
const ENDS: &[char] = &[',', ';', '&', '"', '\'', '`', ')', '}', ']', '<', '>', '|'];

/// The values of settings in a text whose names mean secrets: `password: …`, `"token": "…"`, `API_KEY=…`.
pub(super) fn settings(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (Some(setting), Some(sql)) = (SETTING.as_ref(), SQL.as_ref()) else {
        // Without the patterns nothing can be cleared, so nothing is.
        let everything = 0..text.len();
        return Vec::from([everything]);
    };
    for named in setting.captures_iter(text) {
        let (Some(all), Some(name), Some(sign)) = (named.get(0), named.get(1), named.get(3)) else { continue };
        if secrecy(name.as_str()) == Secrecy::None {
            continue;
        }
        if let Some(part) = value(text, all.end())
            && can_be_secret(name.as_str(), &text[part.clone()])
            && is_meant(text, name.start(), sign.as_str(), &part)
        {
            found.push(part);
        }
    }
    found.extend(sql.captures_iter(text).filter_map(|found| found.get(1)).map(|value| value.range()));
    found
}

/// The value that begins at `start`.
fn value(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let escaped = usize::from(rest.starts_with("\\\""));
    let quote = rest[escaped..].chars().next()?;
    if matches!(quote, '"' | '\'' | '`') {
        let begin = start + escaped + 1;
        let length = text[begin..].find(quote).unwrap_or(text.len() - begin);
        let inner = text[begin..begin + length].strip_suffix('\\').map_or(length, str::len);
        return (inner > 0).then_some(begin..begin + inner);
    }
    let length = rest.find(|c: char| c.is_whitespace() || ENDS.contains(&c)).unwrap_or(rest.len());
    // A comparison, a reference, a call.
    let stands_for_one = rest.starts_with(['=', '$', '%', '(', '/', '[', '{', '\\', '*', '?']);
    let called = rest[..length].ends_with('(') || rest[..length].contains('(');
    (length >= 4 && !stands_for_one && !called).then_some(start..start + length)
}

/// Whether a value is one, and not the rest of a sentence: `the password: see the vault`.
fn is_meant(text: &str, name: usize, sign: &str, part: &Range<usize>) -> bool {
    let quoted = text[..part.start].ends_with(['"', '\'', '`']);
    if sign != ":" || quoted {
        return true;
    }
    let value = &text[part.clone()];
    let mixed = value.bytes().any(|byte| byte.is_ascii_digit()) && value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let line = text[..name].rsplit('\n').next().unwrap_or_default();
    let alone = line.trim_start_matches([' ', '\t', '-']).is_empty()
        && text[part.end..].split('\n').next().is_some_and(|rest| rest.trim().is_empty())
        && text.contains('\n');
    (mixed && value.len() >= 6) || alone
}

/// The secret of `Name: value`, if that is a header. `surely` says that it can be nothing else.
pub(super) fn header(text: &str, surely: bool) -> Option<Range<usize>> {
    let (name, value) = text.split_once(':')?;
    let lower = name.to_ascii_lowercase();
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let known =
        matches!(lower.as_str(), "authorization" | "proxy-authorization" | "private-token") || lower.starts_with("x-");
    if !is_name || !(surely || known) || !crate::secret::is_secret_header(name) {
        return None;
    }
    let mut start = text.len() - value.trim_start().len();
    // The scheme stays: it says what kind of secret it is.
    if let Some((scheme, rest)) = text[start..].split_once(' ')
        && lower.ends_with("authorization")
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        start = text.len() - rest.trim_start().len();
    }
    let value = &text[start..];
    let stands_for_one = ["secret:", "{{", "<"].iter().any(|sign| value.starts_with(sign));
    (!value.is_empty() && !stands_for_one).then_some(start..text.len())
}
