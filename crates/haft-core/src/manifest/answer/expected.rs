//! Whether an output is the one that an example promises.
//!
//! Values are compared by what they are, not by how they are written. `...` stands for anything: as a value, as any
//! number of items of a list, as any other keys of an object, and inside text for any characters. Text is compared line
//! by line without what blanks stand at the ends; a line `...` stands for any lines.

use super::super::Format;
use crate::preview::{cut, inert};
use serde_json::Value;

const ANY: &str = "...";
/// How much of a value is quoted.
const QUOTE_MAX: usize = 120;

/// Where an output is not what was promised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: expected {expected}, got {found}")]
pub struct Mismatch {
    /// Where: `[0].title`, `line 3`.
    pub at: String,
    /// What was promised there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// Compares an output with what an example promises. Text that is promised of a JSON output is read as JSON, in which
/// `...` may stand bare.
pub fn expected(promised: &Value, format: Format, found: &Value) -> Result<(), Mismatch> {
    match (format, promised, found) {
        (Format::Text, Value::String(promised), Value::String(found)) => same_text(promised, found),
        (Format::Text, promised, found) => {
            let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            same_text(&shown(promised), &shown(found))
        }
        (Format::Json, Value::String(text), found) => match pattern(text) {
            Some(promised) => same(&promised, found, ""),
            // A text as value needs no quotes.
            None => same(&Value::from(text.trim_end()), found, ""),
        },
        (Format::Json, promised, found) => same(promised, found, ""),
    }
}

/// JSON in which a bare `...` may stand for a value, for items or for keys; as a value in which `"..."` does. None if
/// it is no such thing.
pub fn pattern(text: &str) -> Option<Value> {
    let mut json = String::with_capacity(text.len() + 16);
    let (mut open, mut rest, mut last) = (Vec::new(), text, ' ');
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '"' => quoted(rest)?,
            '.' if rest.starts_with(ANY) => {
                // A key is due behind `{`, and behind `,` in an object.
                let key = open.last() == Some(&'{') && matches!(last, '{' | ',');
                json.push_str(if key { "\"...\":\"...\"" } else { "\"...\"" });
                (rest, last) = (&rest[ANY.len()..], '.');
                continue;
            }
            c => {
                match c {
                    '[' | '{' => open.push(c),
                    ']' | '}' => drop(open.pop()),
                    _ => {}
                }
                &rest[..c.len_utf8()]
            }
        };
        if !c.is_whitespace() {
            last = c;
        }
        json.push_str(taken);
        rest = &rest[taken.len()..];
    }
    serde_json::from_str(&json).ok()
}

/// The text in quotes that begins here, with its quotes.
fn quoted(text: &str) -> Option<&str> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return text.get(..=at),
            _ => {}
        }
    }
    None
}

fn is_any(value: &Value) -> bool {
    value.as_str() == Some(ANY)
}

fn same(promised: &Value, found: &Value, at: &str) -> Result<(), Mismatch> {
    let differs = || Err(mismatch(at, quote(promised), quote(found)));
    match (promised, found) {
        (promised, _) if is_any(promised) => Ok(()),
        (Value::String(promised), Value::String(found)) if fits(promised, found) => Ok(()),
        (Value::Number(promised), Value::Number(found)) if promised.as_f64() == found.as_f64() => Ok(()),
        (Value::Array(promised), Value::Array(found)) => same_lists(promised, found, at),
        (Value::Object(promised), Value::Object(found)) => {
            for (key, value) in promised.iter().filter(|(key, _)| *key != ANY) {
                let below = format!("{at}.{}", inert(key));
                match found.get(key) {
                    Some(found) => same(value, found, &below)?,
                    None => return Err(mismatch(&below, quote(value), "nothing".to_owned())),
                }
            }
            let strange = found.iter().find(|(key, _)| !promised.contains_key(*key) && !promised.contains_key(ANY));
            strange.map_or(Ok(()), |(key, value)| {
                Err(mismatch(&format!("{at}.{}", inert(key)), "nothing".to_owned(), quote(value)))
            })
        }
        (promised, found) if promised == found => Ok(()),
        _ => differs(),
    }
}

fn same_lists(promised: &[Value], found: &[Value], at: &str) -> Result<(), Mismatch> {
    let begin = promised.iter().position(is_any).unwrap_or(promised.len());
    for (index, (promised, found)) in promised[..begin].iter().zip(found).enumerate() {
        same(promised, found, &format!("{at}[{index}]"))?;
    }
    let whole = begin == promised.len();
    if found.len() < begin || (whole && found.len() > begin) {
        let least = if whole { "" } else { "at least " };
        return Err(mismatch(at, format!("{least}{begin} items"), found.len().to_string()));
    }
    let rest = (&promised[begin..], &found[begin..]);
    if matched(rest.0, rest.1, is_any, &|promised, found| same(promised, found, "").is_ok()) {
        return Ok(());
    }
    Err(mismatch(&format!("{at}[{begin}…]"), cut(&quote(&Value::from(rest.0)), QUOTE_MAX), quote(&Value::from(rest.1))))
}

fn same_text(promised: &str, found: &str) -> Result<(), Mismatch> {
    let lines =
        |text: &str| -> Vec<String> { text.trim_end().split('\n').map(|line| line.trim_end().to_owned()).collect() };
    let (promised, found) = (lines(promised), lines(found));
    let is_any = |line: &String| line.trim() == ANY;
    if matched(&promised, &found, is_any, &|promised, found| fits(promised, found)) {
        return Ok(());
    }
    let begin = promised.iter().position(is_any).unwrap_or(promised.len());
    let differs = (0..begin).find(|index| found.get(*index).is_none_or(|found| !fits(&promised[*index], found)));
    let index = differs.unwrap_or(begin);
    let line = |lines: &[String]| {
        lines.get(index).map_or_else(|| "the end".to_owned(), |line| quote(&Value::from(line.as_str())))
    };
    Err(mismatch(&format!("line {}", index + 1), line(&promised), line(&found)))
}

/// Whether a text fits one in which `...` stands for any characters.
fn fits(promised: &str, found: &str) -> bool {
    let Some((first, rest)) = promised.split_once(ANY) else { return promised == found };
    let Some(mut left) = found.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split(ANY).collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(last)
}

/// Whether a row fits one in which some stand for any number of others. Goes back no further than to the last such one,
/// so that it takes no more steps than the two lengths multiplied.
fn matched<T>(promised: &[T], found: &[T], is_any: impl Fn(&T) -> bool, fits: &impl Fn(&T, &T) -> bool) -> bool {
    let (mut p, mut f, mut again) = (0, 0, None);
    while f < found.len() {
        match promised.get(p) {
            Some(any) if is_any(any) => {
                again = Some((p + 1, f));
                p += 1;
            }
            Some(one) if fits(one, &found[f]) => (p, f) = (p + 1, f + 1),
            _ => match again {
                Some((behind, from)) => {
                    (p, f) = (behind, from + 1);
                    again = Some((behind, from + 1));
                }
                None => return false,
            },
        }
    }
    promised[p..].iter().all(is_any)
}

fn mismatch(at: &str, expected: String, found: String) -> Mismatch {
    let at = if at.is_empty() { "the output".to_owned() } else { cut(at.trim_start_matches('.'), QUOTE_MAX) };
    Mismatch { at, expected, found }
}

fn quote(value: &Value) -> String {
    cut(&inert(&value.to_string()), QUOTE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn json(promised: &str, found: impl Into<Value>) -> String {
        expected(&Value::from(promised), Format::Json, &found.into())
            .map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    }

    fn text(promised: &str, found: &str) -> String {
        let found = Value::from(found);
        expected(&Value::from(promised), Format::Text, &found)
            .map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    }

    #[test]
    fn the_documents_examples_mean_what_they_say() {
        let item = |title: &str| json!({"title": title, "url": "https://x", "description": "d"});
        let some = "[{\"title\": \"...\", \"url\": \"...\", \"description\": \"...\"}, ...]\n";
        assert_eq!(json(some, json!([item("a")])), "ok");
        assert_eq!(json(some, json!([item("a"), item("b"), 3])), "ok");
        assert_eq!(json(some, json!([])), "the output: expected at least 1 items, got 0");
        assert_eq!(json(some, json!([{"title": "a", "url": "b"}])), "[0].description: expected \"...\", got nothing");
        assert_eq!(json("{\"files\": 120, \"loc\": 15342}\n", json!({"loc": 15342.0, "files": 120})), "ok");
        assert_eq!(json("{\"files\": 120}", json!({"files": 121})), "files: expected 120, got 121");
        assert_eq!(text("Scan complete.\nMatches found: 2\n", "Scan complete.  \r\nMatches found: 2\n\n"), "ok");
        assert_eq!(
            text("Scan complete.\nMatches found: 2\n", "Scan complete.\nMatches found: 3"),
            "line 2: expected \"Matches found: 2\", got \"Matches found: 3\""
        );
    }

    #[test]
    fn dots_stand_for_anything_in_values() {
        assert_eq!(json("{\"a\": 1, ...}", json!({"a": 1, "b": 2})), "ok");
        assert_eq!(json("{...}", json!({"b": 2})), "ok");
        assert_eq!(json("{\"a\": 1}", json!({"a": 1, "b": 2})), "b: expected nothing, got 2");
        assert_eq!(json("{\"a\": ...}", json!({"a": [1]})), "ok");
        assert_eq!(json("[1, ..., 4]", json!([1, 2, 3, 4])), "ok");
        assert_eq!(json("[..., {\"x\": \"a...c\"}]", json!([0, {"x": "abbc"}])), "ok");
        assert_eq!(json("[1, ..., 5]", json!([1, 2, 3])), "[1…]: expected [\"...\",5], got [2,3]");
        assert_eq!(json("[1]", json!([1, 2])), "the output: expected 1 items, got 2");
        assert_eq!(json("\"v1...\"", json!("v1.2")), "ok");
        assert_eq!(json("just words", json!("just words")), "ok");
        assert_eq!(json("...", json!({"any": "thing"})), "ok");
        assert_eq!(json("[1, 2", json!([1, 2])), "the output: expected \"[1, 2\", got [1,2]");
        assert!(expected(&json!({"a": ["..."], "...": 0}), Format::Json, &json!({"a": [], "z": 1})).is_ok());
    }

    #[test]
    fn dots_stand_for_anything_in_text() {
        assert_eq!(text("first\n...\nlast", "first\nlast"), "ok");
        assert_eq!(text("first\n...\nlast", "first\na\nb\nlast\n"), "ok");
        assert_eq!(text("took ... ms", "took 12 ms"), "ok");
        assert_eq!(text("...", ""), "ok");
        assert_eq!(text("a\n...", "b"), "line 1: expected \"a\", got \"b\"");
        assert_eq!(text("a\nb", "a"), "line 2: expected \"b\", got the end");
        assert_eq!(text("a", "a\nb"), "line 2: expected the end, got \"b\"");
        assert!(expected(&json!(5), Format::Text, &json!("5")).is_ok());
    }

    #[test]
    fn many_dots_take_no_more_than_their_product() {
        let promised = Value::Array((0..400).map(|n| if n % 2 == 0 { json!("...") } else { json!("a") }).collect());
        let found = Value::Array(vec![json!("b"); 20_000]);
        assert!(expected(&promised, Format::Json, &found).is_err());
        assert!(!fits(&"...a".repeat(500), &"b".repeat(100_000)));
    }
}
