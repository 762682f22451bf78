//! The value of a word, worked out from how it is written: quotes, escapes, `$'…'`, tildes, braces, globs and
//! variables that are known. What is not understood is not known.

use super::braces;
use super::state::State;
use super::word::{Value, Word};

/// Values longer than this are not worked out.
const LENGTH_MAX: usize = 16 << 10;

/// How a word is used, which decides what the shell does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// An argument: split, globbed, braces expanded.
    Argument,
    /// The value of an assignment, or a word that is never split.
    Whole,
}

/// The words that a written word becomes. `splits` says whether an expansion in it stands outside quotes, or
/// gives many words.
pub(super) fn words(text: &str, how: Use, splits: bool, state: &State) -> Vec<Word> {
    if how == Use::Argument && text.contains('{') && !is_quoted(text) {
        let Some(expanded) = braces::expand(text) else { return vec![Word::unknown(text)] };
        // A word of nothing is no word.
        let words = expanded.iter().filter(|each| !each.is_empty());
        return words.map(|each| word(text, each, how, splits, state)).collect();
    }
    vec![word(text, text, how, splits, state)]
}

fn word(text: &str, raw: &str, how: Use, splits: bool, state: &State) -> Word {
    let mut scan = Scan {
        rest: raw,
        how,
        splits,
        state,
        plain: String::new(),
        pattern: String::new(),
        glob: false,
        last: raw.rfind(']').map(|at| raw.len() - at),
        quoted: false,
    };
    let value = scan.run();
    Word { text: text.to_owned(), value }
}

struct Scan<'s> {
    rest: &'s str,
    how: Use,
    splits: bool,
    state: &'s State,
    /// The value so far.
    plain: String,
    /// The same as a pattern, in which a backslash quotes.
    pattern: String,
    glob: bool,
    /// How much is left where the last `]` stands.
    last: Option<usize>,
    /// Inside double quotes.
    quoted: bool,
}

impl Scan<'_> {
    fn run(&mut self) -> Value {
        if let Some(value) = self.tilde() {
            return value;
        }
        let whole = self.rest;
        while let Some(c) = self.rest.chars().next() {
            let before = self.rest;
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                '\\' => self.escape(),
                '"' => self.quoted = !self.quoted,
                '\'' if !self.quoted => {
                    let Some(end) = self.rest.find('\'') else { return self.unknown() };
                    let inner = &self.rest[..end];
                    self.rest = &self.rest[end + 1..];
                    self.literal(inner);
                }
                '$' => {
                    if let Some(value) = self.dollar(before.len() + usize::from(self.quoted) == whole.len()) {
                        return value;
                    }
                }
                '`' => return self.unknown(),
                '(' | ')' | '<' | '>' if !self.quoted => return self.unknown(),
                '*' | '?' | '[' if !self.quoted && self.how == Use::Argument => {
                    self.glob |= c != '[' || self.last.is_some_and(|last| self.rest.len() >= last);
                    self.plain.push(c);
                    self.pattern.push(c);
                }
                '~' if !self.quoted && self.assigns() => match self.home() {
                    Some(home) => self.literal(&home),
                    None => return self.unknown(),
                },
                c => self.push(c),
            }
        }
        if self.glob {
            Value::Glob(std::mem::take(&mut self.pattern))
        } else {
            Value::Known(std::mem::take(&mut self.plain))
        }
    }

    fn push(&mut self, c: char) {
        self.plain.push(c);
        if matches!(c, '*' | '?' | '[' | '\\' | '{' | '}') {
            self.pattern.push('\\');
        }
        self.pattern.push(c);
    }

    fn literal(&mut self, text: &str) {
        text.chars().for_each(|c| self.push(c));
    }

    fn unknown(&mut self) -> Value {
        Value::Partial { start: std::mem::take(&mut self.plain), splits: self.splits && self.how == Use::Argument }
    }

    fn escape(&mut self) {
        let Some(c) = self.rest.chars().next() else { return self.push('\\') };
        self.rest = &self.rest[c.len_utf8()..];
        match c {
            '\n' => {}
            c if !self.quoted || matches!(c, '$' | '`' | '"' | '\\') => self.push(c),
            c => {
                self.push('\\');
                self.push(c);
            }
        }
    }

    /// A tilde at the beginning.
    fn tilde(&mut self) -> Option<Value> {
        let rest = self.rest.strip_prefix('~')?;
        if rest.is_empty() || rest.starts_with('/') {
            let Some(home) = self.home() else { return Some(self.unknown()) };
            self.rest = rest;
            self.literal(&home);
            return None;
        }
        Some(self.unknown())
    }

    fn home(&self) -> Option<String> {
        match self.state.get("HOME") {
            Some(Value::Known(home)) => Some(home.clone()),
            _ => None,
        }
    }

    /// Whether a tilde here follows `name=` or, in an assignment, a colon.
    fn assigns(&self) -> bool {
        let ends_well = self.rest.is_empty() || self.rest.starts_with(['/', ':']);
        let named = self.plain.strip_suffix('=').is_some_and(|name| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
        });
        ends_well && (named || (self.plain.ends_with(':') && (self.how == Use::Whole || self.plain.contains('='))))
    }

    /// After a dollar sign. Returns the word's value where nothing more can be said.
    fn dollar(&mut self, first: bool) -> Option<Value> {
        if let Some(rest) = self.rest.strip_prefix('\'').filter(|_| !self.quoted) {
            let Some((text, rest)) = ansi(rest) else { return Some(self.unknown()) };
            self.rest = rest;
            self.literal(&text);
            return None;
        }
        if self.rest.starts_with('"') && !self.quoted {
            return None;
        }
        let Some((name, rest)) = variable(self.rest) else {
            let lone =
                self.rest.is_empty() || self.rest.starts_with(|c: char| c == '"' || c == '/' || c.is_whitespace());
            if lone {
                self.push('$');
                return None;
            }
            // What `$?` and its like are worth is a number.
            let end = if self.quoted { "\"" } else { "" };
            let number = first && self.rest.strip_prefix(['?', '#', '$', '!']).is_some_and(|rest| rest == end);
            return Some(if number { Value::Number } else { self.unknown() });
        };
        let end = if self.quoted { "\"" } else { "" };
        let alone = rest == end && self.plain.is_empty() && !self.glob;
        let whole = self.quoted || self.how == Use::Whole;
        match self.state.get(name).cloned() {
            Some(Value::Known(text)) if self.plain.len() + text.len() > LENGTH_MAX => Some(self.unknown()),
            Some(Value::Known(text)) if whole || is_simple(&text) => {
                self.rest = rest;
                self.literal(&text);
                None
            }
            Some(Value::Number) if alone => Some(Value::Number),
            Some(value @ (Value::Glob(_) | Value::Below { .. })) if alone && whole => Some(value),
            // A name with a blank in it becomes two words.
            Some(Value::Below { bases, .. }) if alone => Some(Value::Below { bases, safe: false }),
            Some(Value::Glob(pattern)) if alone => {
                let start = Word { text: String::new(), value: Value::Glob(pattern) }.start().to_owned();
                Some(Value::Partial { start, splits: true })
            }
            Some(Value::Partial { start, .. }) if alone => {
                Some(Value::Partial { start, splits: self.splits && !whole })
            }
            _ => Some(self.unknown()),
        }
    }
}

/// Whether a word is one pair of single quotes.
fn is_quoted(text: &str) -> bool {
    text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).is_some_and(|inner| !inner.contains('\''))
}

/// Whether a value outside quotes is one word, and itself.
fn is_simple(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c))
}

/// `NAME…` or `{NAME}…`: the name and what follows it.
fn variable(rest: &str) -> Option<(&str, &str)> {
    let inner = rest.strip_prefix('{').unwrap_or(rest);
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    let name = &inner[..end];
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let after = &inner[end..];
    if rest.starts_with('{') { after.strip_prefix('}').map(|after| (name, after)) } else { Some((name, after)) }
}

/// The text of `$'…'` up to its end, and what follows.
fn ansi(text: &str) -> Option<(String, &str)> {
    let (mut out, mut chars) = (Vec::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((until_nul(out)?, &text[at + 1..])),
            '\\' => {
                let (at, c) = chars.next()?;
                match c {
                    'n' => out.push(b'\n'),
                    't' => out.push(b'\t'),
                    'r' => out.push(b'\r'),
                    'a' => out.push(7),
                    'b' => out.push(8),
                    'f' => out.push(12),
                    'v' => out.push(11),
                    'e' | 'E' => out.push(27),
                    '\\' | '\'' | '"' | '?' => out.push(c as u8),
                    'x' | 'u' | 'U' | '0'..='7' => {
                        let length = code(&text[at..], &mut out)?;
                        chars.by_ref().take(length - 1).for_each(drop);
                    }
                    // Control characters and the rest are nobody's everyday.
                    _ => return None,
                }
            }
            c => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    None
}

/// A number after a backslash: adds its character and returns how long it is written.
fn code(text: &str, out: &mut Vec<u8>) -> Option<usize> {
    let (skip, base, most) = match text.as_bytes().first()? {
        b'x' => (1, 16, 2),
        b'u' => (1, 16, 4),
        b'U' => (1, 16, 8),
        _ => (0, 8, 3),
    };
    let digits: String = text[skip..].chars().take(most).take_while(|c| c.is_digit(base)).collect();
    let number = u32::from_str_radix(&digits, base).ok()?;
    match text.as_bytes().first()? {
        b'u' | b'U' => out.extend(char::from_u32(number)?.encode_utf8(&mut [0; 4]).bytes()),
        _ => out.push(u8::try_from(number & 0xff).ok()?),
    }
    Some(skip + digits.len())
}

fn until_nul(mut bytes: Vec<u8>) -> Option<String> {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let mut state = State::new("/p", Some("/home/u"));
        state.set("x", Value::Known("a.txt".to_owned()));
        state.set("two", Value::Known("a b".to_owned()));
        state.set("f", Value::Glob("src/*.rs".to_owned()));
        let one = |word: Word| match word.value {
            Value::Known(text) => text,
            Value::Glob(text) => format!("glob {text}"),
            Value::Below { bases, .. } => format!("below {bases:?}"),
            Value::Number => "number".to_owned(),
            Value::Partial { start, splits } => format!("{start}…{}", if splits { "+" } else { "" }),
        };
        let splits = !text.starts_with('"');
        words(text, Use::Argument, splits, &state).into_iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_are_what_the_shell_makes_of_them() {
        for (text, want) in [
            ("a", "a"),
            (r#"r""m"#, "rm"),
            (r"\rm", "rm"),
            ("'a b'", "a b"),
            (r"$'\x72m'", "rm"),
            (r"$'\162\u006d'", "rm"),
            (r"$'a\0b'", "a"),
            ("r\\\nm", "rm"),
            ("~", "/home/u"),
            ("~/x", "/home/u/x"),
            ("'~'/x", "~/x"),
            ("of=~/x", "of=/home/u/x"),
            ("~root/x", "…+"),
            ("$x", "a.txt"),
            ("${x}", "a.txt"),
            ("\"$x\"", "a.txt"),
            ("src/$x", "src/a.txt"),
            ("$two", "…+"),
            ("\"$two\"", "a b"),
            ("$f", "src/…+"),
            ("\"$f\"", "glob src/*.rs"),
            ("\"$f.bak\"", "…"),
            ("$y", "…+"),
            ("--out=$y", "--out=…+"),
            ("$(cmd)", "…+"),
            ("a`b`", "a…+"),
            ("$?", "number"),
            ("{,-S}", "-S"),
            ("${x:-y}", "…+"),
            ("*.rs", "glob *.rs"),
            ("'*'.rs", "*.rs"),
            ("a[1]", "glob a[1]"),
            ("{a,b}.txt", "a.txt b.txt"),
            ("{a,$x}", "a a.txt"),
            ("$", "$"),
            ("a$", "a$"),
            ("日本", "日本"),
        ] {
            assert_eq!(said(text), want, "{text}");
        }
    }
}
