//! `${x}` in a manifest's `exec`, filled in. A lone `${x}` keeps its value's type; inside text it is rendered; one that
//! is not set drops what it is in. `$${x}` is the text `${x}`.
//!
//! Nothing here is ever read by a shell: what comes out are values, arguments and parts of a URL, each whole.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What may stand for a name: inputs, and secrets that were declared.
#[derive(Debug, Clone, Copy)]
pub struct Values<'v> {
    /// The inputs, defaults filled; also `steps`, in a pipeline.
    pub inputs: &'v Map<String, Value>,
    /// The secrets, by name.
    pub secrets: &'v BTreeMap<String, String>,
}

/// Why a template cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It begins a name and does not end it, or the name is none.
    #[error("`{0}` is not a name in `${{…}}`; write `$${{` for the characters themselves")]
    Malformed(String),
    /// It stands where it cannot be left out.
    #[error("`{0}` is not set, and cannot be left out here")]
    Unset(String),
    /// It stands in what names the host.
    #[error("`{0}` stands in the part of the URL that names the host; only path and query may hold inputs")]
    Host(String),
    /// A part of a path that would lead elsewhere.
    #[error("`{0}` would be `{1}`, which leads to another path")]
    Elsewhere(String, String),
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Itself.
    Text(Cow<'t, str>),
    /// What stands for something else.
    Name(&'t str),
}

/// The pieces of a text.
pub fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Unfit> {
    let (mut found, mut rest, mut plain) = (Vec::new(), text, String::new());
    while let Some(at) = rest.find("${") {
        if at > 0 && rest.as_bytes()[at - 1] == b'$' {
            plain.push_str(&rest[..at - 1]);
            plain.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        plain.push_str(&rest[..at]);
        let inner = &rest[at + 2..];
        let malformed = || Unfit::Malformed(crate::preview::cut(&crate::preview::inert(&rest[at..]), 40));
        let end = inner.find('}').ok_or_else(malformed)?;
        let name = &inner[..end];
        if !is_name(name) {
            return Err(malformed());
        }
        if !plain.is_empty() {
            found.push(Piece::Text(std::mem::take(&mut plain).into()));
        }
        found.push(Piece::Name(name));
        rest = &inner[end + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        found.push(Piece::Text(plain.into()));
    }
    Ok(found)
}

/// Words with dots between; each of letters, digits, `_` and `-`.
fn is_name(name: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    name.split('.').all(word)
}

/// The names in a value, wherever they are in it. What is malformed names nothing.
pub fn names(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => names_in(text),
        Value::Array(items) => items.iter().flat_map(names).collect(),
        Value::Object(map) => map.values().flat_map(names).collect(),
        _ => Vec::new(),
    }
}

/// The names in a text.
pub fn names_in(text: &str) -> Vec<&str> {
    let name = |piece| match piece {
        Piece::Name(name) => Some(name),
        Piece::Text(_) => None,
    };
    pieces(text).unwrap_or_default().into_iter().filter_map(name).collect()
}

impl Values<'_> {
    /// What a name stands for; none if it is not set.
    pub fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        if let Some(secret) = self.secrets.get(name) {
            return Some(Cow::Owned(Value::from(secret.as_str())));
        }
        let mut words = name.split('.');
        let first = self.inputs.get(words.next()?)?;
        let found = words.try_fold(first, |value, word| match value {
            Value::Array(items) => items.get(word.parse::<usize>().ok()?),
            other => other.get(word),
        })?;
        (!found.is_null()).then_some(Cow::Borrowed(found))
    }

    /// Fills in a value. None if it is to be left out.
    pub fn fill(&self, template: &Value) -> Result<Option<Value>, Unfit> {
        Ok(match template {
            Value::String(text) => self.fill_text(text)?,
            Value::Array(items) => Some(Value::Array(self.fill_each(items)?)),
            Value::Object(map) => Some(Value::Object(self.fill_map(map)?)),
            other => Some(other.clone()),
        })
    }

    /// The same for each of several, without those that are left out.
    pub fn fill_each(&self, items: &[Value]) -> Result<Vec<Value>, Unfit> {
        items.iter().filter_map(|item| self.fill(item).transpose()).collect()
    }

    /// The same for named ones.
    pub fn fill_map(&self, map: &Map<String, Value>) -> Result<Map<String, Value>, Unfit> {
        let each = map.iter().map(|(key, value)| Ok(self.fill(value)?.map(|value| (key.clone(), value))));
        each.filter_map(Result::transpose).collect()
    }

    fn fill_text(&self, text: &str) -> Result<Option<Value>, Unfit> {
        let pieces = pieces(text)?;
        if let [Piece::Name(name)] = pieces.as_slice() {
            return Ok(self.get(name).map(Cow::into_owned));
        }
        Ok(self.join(&pieces, |_, text| Ok(text))?.map(Value::String))
    }

    /// Joins pieces to a text, each value rendered and then treated. None if one of them is not set.
    fn join(
        &self,
        pieces: &[Piece<'_>],
        treat: impl Fn(&str, String) -> Result<String, Unfit>,
    ) -> Result<Option<String>, Unfit> {
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Name(name) => match self.get(name) {
                    Some(value) => out.push_str(&treat(name, rendered(&value))?),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(out))
    }

    /// Arguments of a program: each template is one, a list is one for each of its items.
    pub fn arguments(&self, templates: &[Value]) -> Result<Vec<String>, Unfit> {
        let filled = self.fill_each(templates)?;
        let spread = filled.into_iter().flat_map(|value| match value {
            Value::Array(items) => items,
            other => vec![other],
        });
        Ok(spread.map(|value| rendered(&value)).collect())
    }

    /// A URL. What is filled in stays in the part of the path or query that it stands in, whatever it is.
    pub fn url(&self, template: &str) -> Result<String, Unfit> {
        let pieces = pieces(template)?;
        let mut out = String::new();
        for piece in &pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Name(name) => {
                    let place = Part::at_the_end_of(&out).ok_or_else(|| Unfit::Host((*name).to_owned()))?;
                    let value = self.get(name).ok_or_else(|| Unfit::Unset((*name).to_owned()))?;
                    out.push_str(&place.encode(&rendered(&value)));
                }
            }
        }
        let path = out.split(['?', '#']).next().unwrap_or_default();
        let dots = path.split('/').find(|part| is_dots(part));
        match (dots, pieces.iter().find_map(|piece| if let Piece::Name(name) = piece { Some(*name) } else { None })) {
            (Some(dots), Some(name)) => Err(Unfit::Elsewhere(name.to_owned(), dots.to_owned())),
            _ => Ok(out),
        }
    }
}

/// Whether a part of a path is `.` or `..` to whoever reads it.
fn is_dots(part: &str) -> bool {
    matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}

/// A value as text.
pub fn rendered(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The part of a URL that something stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Query,
}

impl Part {
    /// The part that begins where this text ends. None where the host is named.
    fn at_the_end_of(before: &str) -> Option<Self> {
        let (_, rest) = before.split_once("://")?;
        if rest.contains(['?', '#']) {
            return Some(Self::Query);
        }
        rest.contains('/').then_some(Self::Path)
    }

    /// A value that stays one part. Everything is encoded but what has no meaning anywhere in a URL.
    fn encode(self, text: &str) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~' | b'.');
        let mut out = String::with_capacity(text.len());
        for byte in text.bytes() {
            match byte {
                b' ' if self == Self::Query => out.push('+'),
                byte if plain(byte) => out.push(char::from(byte)),
                byte => out.push_str(&format!("%{byte:02X}")),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with<T>(inputs: &Value, look: impl FnOnce(Values<'_>) -> T) -> T {
        let secrets = BTreeMap::from([("KEY".to_owned(), "hunter2".to_owned())]);
        look(Values { inputs: inputs.as_object().unwrap(), secrets: &secrets })
    }

    #[test]
    fn types_are_kept_and_what_is_not_set_is_left_out() {
        let inputs = json!({"q": "a b", "n": 5, "list": [1, "x"], "flag": false, "nothing": null});
        let template = json!({"q": "${q}", "n": "${n}", "list": "${list}", "flag": "${flag}", "unset": "${nothing}",
            "text": "n=${n} ${list}", "half": "is ${gone}", "deep": {"a": ["${gone}", "${q}"]}, "plain": 7,
            "literal": "$${q}", "key": "Bearer ${KEY}"});
        let filled = with(&inputs, |values| values.fill(&template)).unwrap().unwrap();
        let expected = json!({"q": "a b", "n": 5, "list": [1, "x"], "flag": false, "text": "n=5 [1,\"x\"]",
            "deep": {"a": ["a b"]}, "plain": 7, "literal": "${q}", "key": "Bearer hunter2"});
        assert_eq!(filled, expected);
    }

    #[test]
    fn arguments_stay_whole() {
        let inputs = json!({"path": "a; rm -rf $HOME `x`", "files": ["one two", 3], "n": 5});
        let args =
            [json!("-n"), json!("${n}"), json!("${gone}"), json!("${path}"), json!("${files}"), json!("--x=${gone}")];
        let filled = with(&inputs, |values| values.arguments(&args)).unwrap();
        assert_eq!(filled, ["-n", "5", "a; rm -rf $HOME `x`", "one two", "3"]);
    }

    #[test]
    fn a_url_keeps_its_shape() {
        let inputs = json!({"id": "a/b?c#d", "q": "x y&z=1", "up": "..", "host": "evil.example"});
        let url = |template: &str| with(&inputs, |values| values.url(template));
        assert_eq!(url("https://a.test/v1/${id}?q=${q}").unwrap(), "https://a.test/v1/a%2Fb%3Fc%23d?q=x+y%26z%3D1");
        assert!(matches!(url("https://a.test/${up}/x").unwrap_err(), Unfit::Elsewhere(..)));
        for bad in ["https://${host}/", "${host}", "https://a.test${host}/", "https://a.test:${host}/", "${host}://a/"]
        {
            assert!(matches!(url(bad).unwrap_err(), Unfit::Host(_)), "{bad}");
        }
        assert_eq!(url("https://a.test/${gone}").unwrap_err(), Unfit::Unset("gone".to_owned()));
    }

    #[test]
    fn what_is_no_name_is_an_error() {
        for bad in ["${", "${}", "${a b}", "x${a..b}", "${a"] {
            assert!(matches!(pieces(bad), Err(Unfit::Malformed(_))), "{bad}");
        }
        assert_eq!(names(&json!({"a": ["${x} ${y.z}", 1], "b": "$${no}"})), ["x", "y.z"]);
    }
}
