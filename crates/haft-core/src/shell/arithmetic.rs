//! Arithmetic runs what is in its variables: `x='a[$(id)]'; echo $((x))` runs `id`. So only what is known to be
//! a number may stand in it: digits, and variables that were set to numbers.

use super::state::State;
use super::variables;
use super::word::Value;

/// Why the expansions in a word may run something, if they may.
pub(super) fn danger(text: &str, state: &State) -> Option<String> {
    if !text.contains('$') {
        return None;
    }
    let text = &active(text);
    if text.contains("@P") {
        return Some(format!("`{}` expands like a prompt, which runs what is in it", super::cut(text)));
    }
    let mut rest = text.as_str();
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        let part = if let Some(inner) = rest.strip_prefix("((") {
            inner
        } else if let Some(inner) = rest.strip_prefix('[') {
            inner
        } else if let Some(inner) = rest.strip_prefix('{') {
            match parameter(inner) {
                Parameter::Plain => continue,
                Parameter::Computed(inner) => inner,
                Parameter::Indirect => {
                    let why = "reads or sets a variable that is not known, which may run something";
                    return Some(format!("`${{{}` {why}", super::cut(inner)));
                }
            }
        } else {
            continue;
        };
        let mut parts = part.split([';', ',']).filter(|part| set_to_number(part).is_none());
        if let Some(name) = parts.find_map(|part| unsafe_name(part, state)) {
            return Some(format!("`{}` stands in arithmetic, which runs what is in it", super::cut(name)));
        }
    }
    None
}

/// A text without what is in single quotes, and with lines joined that a backslash joins.
fn active(text: &str) -> String {
    let text = text.replace("\\\n", "");
    let mut out = String::with_capacity(text.len());
    let (mut quoted, mut rest) = (false, text.as_str());
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let next = rest.chars().next();
                rest = &rest[next.map_or(0, char::len_utf8)..];
                // A dollar that is quoted expands nothing.
                out.extend(['\\', next.filter(|c| *c != '$').unwrap_or('_')]);
            }
            '"' => quoted = !quoted,
            '\'' if !quoted && !out.ends_with('$') => rest = rest.find('\'').map_or("", |end| &rest[end + 1..]),
            c => out.push(c),
        }
    }
    out
}

/// What stands after `${`.
enum Parameter<'p> {
    /// A value, perhaps with another for when there is none.
    Plain,
    /// Something that is worked out: a subscript, or the numbers of a slice.
    Computed(&'p str),
    /// A variable that another one names, or one that is set.
    Indirect,
}

fn parameter(inner: &str) -> Parameter<'_> {
    let name_of = |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if let Some(rest) = inner.strip_prefix('!') {
        let end = name_of(rest);
        let list = ["[@]}", "[*]}", "@}", "*}"].iter().any(|list| rest[end..].starts_with(list));
        return if list && end > 0 { Parameter::Plain } else { Parameter::Indirect };
    }
    let name = inner.strip_prefix('#').filter(|rest| !rest.starts_with(['}', ':'])).unwrap_or(inner);
    // `$@`, `$*`, `$?` and their like are one character.
    let end = match name_of(name) {
        0 => name.chars().next().map_or(0, char::len_utf8),
        end => end,
    };
    let after = &name[end..];
    match after.as_bytes() {
        [b'[', b'@' | b'*', b']', b':', b'-' | b'?' | b'+', ..] | [b'[', b'@' | b'*', b']', b'}', ..] => {
            Parameter::Plain
        }
        [b':', b'-' | b'?' | b'+', ..] => Parameter::Plain,
        [b':', b'=', ..] | [b'=', ..] => {
            let value = after.trim_start_matches(':').trim_start_matches('=').split('}').next().unwrap_or_default();
            let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "_./:-".contains(c));
            let named = is_name(&name[..end]) && variables::plain(&name[..end]).is_none();
            if plain && named { Parameter::Plain } else { Parameter::Indirect }
        }
        [b'[' | b':', ..] => Parameter::Computed(&after[1..]),
        _ => Parameter::Plain,
    }
}

/// The first thing in arithmetic that is not known to be a number. Where it ends is not looked for: what
/// follows it is held to the same.
pub(super) fn unsafe_name<'t>(text: &'t str, state: &State) -> Option<&'t str> {
    let mut rest = text;
    while let Some(at) =
        rest.find(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '`' | '[' | '\\' | '\''))
    {
        let before = rest[..at].chars().next_back();
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('$') {
            // `$x`, `${x}`, `$#`, `$?`: the name is looked at next.
            let named = after.strip_prefix('{').unwrap_or(after);
            if after.starts_with(['#', '?']) || named.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                rest = named.strip_prefix(['#', '?']).unwrap_or(named);
                continue;
            }
            return Some(rest);
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            return Some(rest);
        }
        let (name, after) = rest.split_at(end);
        rest = after;
        // `16#ff` and `0xff` are numbers.
        if before.is_some_and(|c| c == '#' || c.is_ascii_digit()) {
            continue;
        }
        if !is_number(state.get(name)) {
            return Some(name);
        }
    }
    None
}

/// The variable that a part of arithmetic sets to a number that stands there.
pub(super) fn set_to_number(part: &str) -> Option<&str> {
    let (name, number) = part.trim().trim_start_matches('(').split_once('=')?;
    let (name, number) = (name.trim(), number.trim().trim_end_matches(')').trim());
    let constant = |c: char| c.is_ascii_digit() || " \t+-*/%<>&|^~!()".contains(c);
    (!number.is_empty() && number.chars().all(constant) && is_name(name)).then_some(name)
}

fn is_number(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Number) => true,
        Some(Value::Known(text)) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
        }
        _ => false,
    }
}

fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Why a `[[ … ]]` may run something, if it may.
pub(super) fn condition(text: &str, state: &State) -> Option<String> {
    let inner = text.trim().trim_start_matches("[[").trim_end_matches("]]");
    let compares = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
    if compares.iter().any(|op| inner.contains(op)) {
        // Everything in it is held to be a number, but for the operators and counts.
        let bare = compares.iter().fold(inner.replace(['"', '(', ')'], " "), |text, op| text.replace(op, " "));
        let counts = bare.replace("${#", "$#").replace("[@]}", " ").replace("[*]}", " ");
        let words = counts.split(|c: char| c.is_whitespace()).filter(|word| !word.starts_with("$#"));
        for word in words {
            if let Some(name) = unsafe_name(word, state) {
                return Some(format!("`{}` is compared as a number, which runs what is in it", super::cut(name)));
            }
        }
    }
    let tests = inner.contains("-v") || inner.contains("-R");
    (tests && inner.contains(['[', '$', '`', '\'', '"', '\\']))
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
