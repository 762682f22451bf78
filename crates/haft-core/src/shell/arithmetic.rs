//! Arithmetic runs what is in its variables: `x='a[$(id)]'; echo $((x))` runs `id`. So a variable may stand in
//! arithmetic only if its value is known to be a number, or nobody has set it.

use super::state::State;
use super::word::Value;

/// Why the arithmetic in a word may run something, if it may.
pub(super) fn danger(text: &str, state: &State) -> Option<String> {
    if !text.contains('$') {
        return None;
    }
    if let Some(at) = text.find("@P}") {
        let from = text[..at].rfind("${").unwrap_or(at);
        return Some(format!("`{}` expands like a prompt, which runs what is in it", super::cut(&text[from..])));
    }
    if let Some(at) = text.find("${!") {
        let inner = text[at + 3..].split('}').next().unwrap_or_default();
        // `${!a[@]}` and `${!prefix*}` are lists of names.
        let list = inner.ends_with(['*', '@']) || inner.ends_with("[@]") || inner.ends_with("[*]");
        let known = matches!(state.get(inner), Some(Value::Known(name)) if is_name(name));
        if !list && !known {
            return Some(format!(
                "`${{!{}}}` reads a variable that is not known, which may run something",
                super::cut(inner)
            ));
        }
    }
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        let part = if let Some(inner) = rest.strip_prefix("((") {
            inner
        } else if let Some(inner) = rest.strip_prefix('[') {
            inner
        } else if let Some(inner) = rest.strip_prefix('{') {
            match computed(inner) {
                Some(inner) => inner,
                None => continue,
            }
        } else {
            continue;
        };
        if let Some(name) = unsafe_name(part, state) {
            return Some(format!("`{name}` stands in arithmetic, which runs what is in it"));
        }
    }
    None
}

/// The part of `${…` that is worked out as arithmetic: a subscript, or the numbers of a slice.
fn computed(inner: &str) -> Option<&str> {
    let name = inner.strip_prefix(['#', '!']).unwrap_or(inner);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    let after = &name[end..];
    match after.as_bytes() {
        [b'[', b'@' | b'*', b']', rest @ ..] => (rest.first() == Some(&b':')).then(|| &after[4..]),
        [b'[', ..] => Some(&after[1..]),
        [b':', b'-' | b'=' | b'?' | b'+', ..] => None,
        [b':', ..] => Some(&after[1..]),
        _ => None,
    }
}

/// The first variable in arithmetic that is not known to be a number.
pub(super) fn unsafe_name<'t>(text: &'t str, state: &State) -> Option<&'t str> {
    let end = text.find("))").unwrap_or(text.len());
    let mut rest = &text[..end];
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let before = rest[..at].chars().next_back();
        rest = &rest[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        rest = after;
        // `16#ff` and `0xff` are numbers.
        if before.is_some_and(|c| c == '#' || c.is_ascii_digit()) {
            continue;
        }
        if !is_number(state.get(name), state) {
            return Some(name);
        }
    }
    None
}

fn is_number(value: Option<&Value>, state: &State) -> bool {
    match value {
        // Nobody has set it.
        None => !state.forgot(),
        Some(Value::Number) => true,
        Some(Value::Known(text)) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            digits.chars().all(|c| c.is_ascii_digit())
        }
        Some(_) => false,
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Why a `[[ … ]]` may run something, if it may.
pub(super) fn condition(text: &str, state: &State) -> Option<String> {
    let compares = [" -eq ", " -ne ", " -lt ", " -le ", " -gt ", " -ge "].iter().any(|op| text.contains(op));
    if compares {
        if text.contains("$(") || text.contains('`') {
            return Some("`[[ ]]` compares numbers, and runs what is in what it compares".to_owned());
        }
        let names = text.split([' ', '\t', '\n', '"', '$', '{', '}']).filter(|word| is_name(word));
        let mut names = names.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
        if let Some(name) = names.find(|name| !is_number(state.get(name), state)) {
            return Some(format!("`{}` is compared as a number, which runs what is in it", super::cut(name)));
        }
    }
    let tests = text.contains("-v ") || text.contains("-R ");
    (tests && text.contains(['[', '$', '`']) && text.matches('[').count() > 2)
        .then(|| "`-v` works out a subscript, which may run something".to_owned())
}

/// The variables that arithmetic sets.
pub(super) fn assigned(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !(bytes[at].is_ascii_alphabetic() || bytes[at] == b'_') {
            at += 1;
            continue;
        }
        let end = (at..bytes.len())
            .find(|i| !(bytes[*i].is_ascii_alphanumeric() || bytes[*i] == b'_'))
            .unwrap_or(bytes.len());
        let after = text[end..].trim_start();
        let compound = ["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"];
        let plain = after.starts_with('=') && !after.starts_with("==");
        let before = text[..at].trim_end();
        if plain || compound.iter().any(|op| after.starts_with(op)) || before.ends_with("++") || before.ends_with("--")
        {
            found.push(text[at..end].to_owned());
        }
        at = end;
    }
    found
}
