//! Secrets in texts that are part of a command: here-documents, JSON, SQL, code, headers.

use super::names::{Secrecy, can_be_secret, secrecy};
use super::netrc;
use core::ops::Range;
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// A name and a sign, after which a value stands. The name may be a subscript: `x["name"] =`, `$ENV{NAME} =`.
static SETTING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r#"([A-Za-z_][A-Za-z0-9_.-]*)\\?["'`]?[ \t]*([\]}]?)[ \t]*(=>|:=|(?:\+|\|\||\?\??)?=|:)[ \t]*"#;
    Regex::new(pattern).ok()
});
/// The same with a type before the sign: `name: str =`, `let name: &str =`.
static TYPED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let name = r#"([A-Za-z_][A-Za-z0-9_.-]*)\\?["'`]?[ \t]*\]?"#;
    let a_type = r"[ \t]*:[ \t]*&?(?:'[a-z]+ )?[A-Za-z_][A-Za-z0-9_.]*(?:\[[^\]\n]{0,40}\])?[ \t]*=[ \t]*";
    Regex::new(&[name, a_type].concat()).ok()
});
/// A function that sets something, and the name that it sets: `os.environ.setdefault("NAME",`, `setattr(x, "name",`.
static SETTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let function = r"(?i)(?:set|put|add|append|store|define|insert|env|header|property)[A-Za-z_]*\(\s{0,40}(?:[\w.]{1,80}\s{0,4},\s{0,4})?";
    let name = r#"\\?["'`]([A-Za-z_][A-Za-z0-9_.-]*)\\?["'`]\s{0,40},\s{0,40}"#;
    Regex::new(&[function, name].concat()).ok()
});
/// `IDENTIFIED BY '…'`, `PASSWORD '…'`, `PASSWORD = '…'`, `PASSWORD('…')`.
static SQL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:identified\b[^'\n;]{0,60}\bby|password)[\s=(][^'\n;]{0,20}'([^'\n]+)'").ok()
});

/// So much before a value is looked at for its name.
const NAME_MAX: usize = 256;
/// Where a value ends that is not in quotes.
const ENDS: &[char] = &[',', ';', '&', '"', '\'', '`', ')', '}', ']', '<', '>', '|'];

/// What a text is to the program that is given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Settings, JSON, prose: no part of it runs.
    Data,
    /// A program, or what a program may be made of: of that, no more is masked than what can only be a value.
    Code,
    /// A program in which backticks are quotes. Elsewhere they may run a command.
    JavaScript,
}

/// The values of settings in a text whose names mean secrets: `password: …`, `"token": "…"`, `API_KEY=…`,
/// `x["password"] = "…"`, `machine … login … password …`.
pub(super) fn settings(text: &str, kind: TextKind) -> Vec<Range<usize>> {
    let (Some(setting), Some(typed), Some(setter), Some(sql)) =
        (SETTING.as_ref(), TYPED.as_ref(), SETTER.as_ref(), SQL.as_ref())
    else {
        // Without the patterns nothing can be cleared, so nothing is.
        let everything = 0..text.len();
        return Vec::from([everything]);
    };
    let closing = if kind == TextKind::Data { Vec::new() } else { closing_quotes(text) };
    let text = Source { text, kind, closing };
    let mut found = Vec::new();
    let all = setting.captures_iter(text.text).chain(typed.captures_iter(text.text));
    for named in all.chain(setter.captures_iter(text.text)) {
        found.extend(text.named_value(&named));
    }
    let in_sql = sql.captures_iter(text.text).filter_map(|found| found.get(1));
    found.extend(in_sql.map(|value| value.range()).filter(|value| text.can_be_value(value, '\'')));
    found.extend(netrc::passwords(text.text));
    found
}

/// Whether a text ends with a secret's name and a sign, so that what is put behind it is the value: `DB_PASSWORD=`.
pub(super) fn announces_secret(text: &str) -> bool {
    let text = &text[text.floor_char_boundary(text.len().saturating_sub(NAME_MAX))..];
    let text = text.trim_end_matches(['"', '\'', '\\']);
    let last = SETTING.as_ref().and_then(|setting| setting.captures_iter(text).last());
    let name = last.as_ref().filter(|named| named.get(0).is_some_and(|all| all.end() == text.len()));
    name.and_then(|named| named.get(1)).is_some_and(|name| secrecy(name.as_str()) == Secrecy::Named)
}

/// A text with secrets in it.
struct Source<'t> {
    text: &'t str,
    kind: TextKind,
    /// The quotes that close a string, in a program.
    closing: Vec<usize>,
}

/// What stands in quotes at a place.
enum Quoted {
    Value(Range<usize>),
    /// Quotes, and nothing in them that can be told from code.
    NoValue,
    NoQuote,
}

impl Source<'_> {
    /// The value behind a name and a sign, if it is a secret.
    fn named_value(&self, named: &Captures<'_>) -> Option<Range<usize>> {
        let (all, name) = (named.get(0)?, named.get(1)?);
        if secrecy(name.as_str()) == Secrecy::None {
            return None;
        }
        let sign = named.get(3).map(|sign| sign.as_str());
        // Of a subscript, a type or a function, only a literal is a value: all else is code.
        let literal_only = sign.is_none() || named.get(2).is_some_and(|bracket| !bracket.is_empty());
        let part = match self.quoted(all.end()) {
            Quoted::Value(part) => part,
            Quoted::NoValue => return None,
            Quoted::NoQuote if literal_only => return None,
            Quoted::NoQuote => unquoted(self.text, all.end())
                .filter(|part| self.kind == TextKind::Data || is_plain_word(&self.text[part.clone()]))?,
        };
        let is_secret = can_be_secret(name.as_str(), &self.text[part.clone()]);
        (is_secret && is_meant(self.text, name.start(), sign.unwrap_or("="), &part)).then_some(part)
    }

    fn quoted(&self, start: usize) -> Quoted {
        let (text, rest) = (self.text, &self.text[start..]);
        // Of Python and Rust. What `f` begins is code.
        let prefix = rest.bytes().take_while(|byte| b"bBrRuU".contains(byte)).take(2).count();
        let prefix = if rest[prefix..].starts_with(['"', '\'']) { prefix } else { 0 };
        let escaped = usize::from(rest[prefix..].starts_with("\\\""));
        let Some(quote) = rest[prefix + escaped..].chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else {
            return Quoted::NoQuote;
        };
        let open = start + prefix + escaped;
        if (quote == '`' && self.kind != TextKind::JavaScript) || self.closing.binary_search(&open).is_ok() {
            return Quoted::NoValue;
        }
        let begin = open + 1;
        let triple: String = [quote; 3].iter().collect();
        let inner = if rest[prefix..].starts_with(&triple) {
            let begin = begin + 2;
            text[begin..].find(&triple).map(|length| begin..begin + length)
        } else {
            let length = text[begin..].find(quote).unwrap_or(text.len() - begin);
            let inner = text[begin..begin + length].strip_suffix('\\').map_or(length, str::len);
            let goes_on = inner < length && escaped == 0 && begin + length < text.len();
            let end = if goes_on { rest_of_value(text, begin + length, quote) } else { begin + inner };
            Some(begin..end)
        };
        match inner.filter(|inner| !inner.is_empty() && self.can_be_value(inner, quote)) {
            Some(inner) => Quoted::Value(inner),
            None => Quoted::NoValue,
        }
    }

    /// Whether what stands between two quotes is nothing but a value.
    fn can_be_value(&self, part: &Range<usize>, quote: char) -> bool {
        let value = &self.text[part.clone()];
        !computes(value) && (self.kind == TextKind::Data || !holds_code(value, quote))
    }
}

/// The quotes that close a string, line by line.
fn closing_quotes(text: &str) -> Vec<usize> {
    let (mut closing, mut open, mut is_escaped) = (Vec::new(), None, false);
    for (at, c) in text.char_indices() {
        match c {
            '\n' => open = None,
            _ if is_escaped => {}
            '"' | '\'' | '`' if open == Some(c) => {
                closing.push(at);
                open = None;
            }
            '"' | '\'' | '`' => open = open.or(Some(c)),
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    closing
}

/// Where a value ends whose quote at a place is escaped: at the next one, if nothing between them could run.
fn rest_of_value(text: &str, at: usize, quote: char) -> usize {
    let rest = &text[at + 1..];
    let could_run = |c: char| c.is_whitespace() || ";|&<>()".contains(c);
    match rest.find(quote) {
        Some(length) if !rest[..length].contains(could_run) && !rest[..length].ends_with('\\') => at + 1 + length,
        _ => at - 1,
    }
}

/// Whether what stands between two quotes may be code after all: the quotes may be parts of comments or of other strings.
fn holds_code(value: &str, quote: char) -> bool {
    let others = value.chars().filter(|c| matches!(c, '"' | '\'' | '`') && *c != quote).count();
    let is_joined = value.contains(|c: char| c.is_whitespace() || ";()+.#/*|&".contains(c));
    let follows_string = value.starts_with(|c: char| c.is_whitespace() || "+.,)]};&|*/%?:-=".contains(c));
    let acts = value.contains(|c: char| c.is_whitespace() || "();|&".contains(c));
    value.contains('\n') || value.contains("*/") || others > 1 || (others == 1 && is_joined) || (follows_string && acts)
}

/// Whether a value is computed when it is read: `"#{…}"`, `"${run()}"`, `"{$f()}"`. Plain names in it compute nothing.
fn computes(value: &str) -> bool {
    let plain = |inner: &str| {
        let end = inner.find('}').unwrap_or(inner.len());
        end < inner.len() && inner[..end].bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:+?=-".contains(&byte))
    };
    ["#{", "@{", "{$", "\\("].iter().any(|sign| value.contains(sign))
        || value.split("${").skip(1).any(|inner| !plain(inner))
}

/// Whether a word of a program can only be a value or a name, in every language.
pub(super) fn is_plain_word(word: &str) -> bool {
    word.bytes().all(|byte| !byte.is_ascii() || byte.is_ascii_alphanumeric() || b"_.:/@+=-!#$~^*?,".contains(&byte))
}

/// The value without quotes that begins at `start`.
fn unquoted(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let length = rest.find(|c: char| c.is_whitespace() || ENDS.contains(&c)).unwrap_or(rest.len());
    // A comparison, a reference, a call.
    let stands_for_one = rest.starts_with(['=', '$', '%', '(', '/', '[', '{', '\\', '*', '?']);
    let called = rest[..length].contains('(');
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
