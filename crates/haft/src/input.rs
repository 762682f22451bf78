//! Arguments as people type them: JSON, a file, stdin, or `key=value` words.

use haft_core::CallError;
use serde_json::{Map, Value};
use std::io::Read;

/// More than this is not read.
const INPUT_MAX: u64 = 32 << 20;

/// Reads the arguments of a call.
pub(crate) fn arguments(words: &[String]) -> Result<Value, CallError> {
    match words {
        [] => Ok(Value::Object(Map::new())),
        [one] if one == "-" => parse(&read(std::io::stdin(), "stdin")?, "stdin"),
        [one] if one.starts_with('@') => {
            let path = &one[1..];
            let file = std::fs::File::open(path).map_err(|error| CallError::invalid(format!("{path}: {error}")))?;
            parse(&read(file, path)?, path)
        }
        [one] if one.trim_start().starts_with(['{', '[', '"']) => parse(one, "the arguments"),
        pairs => {
            let mut object = Map::new();
            for word in pairs {
                let (key, value) = pair(word)?;
                if object.insert(key.clone(), value).is_some() {
                    return Err(CallError::invalid(format!("`{key}` is given twice")));
                }
            }
            Ok(Value::Object(object))
        }
    }
}

/// Reads a source that has to be UTF-8.
pub(crate) fn read(source: impl Read, name: &str) -> Result<String, CallError> {
    let mut bytes = Vec::new();
    let read = source.take(INPUT_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| CallError::invalid(format!("{name}: {error}")))?;
    if bytes.len() as u64 > INPUT_MAX {
        return Err(CallError::invalid(format!("{name} is larger than {} MiB", INPUT_MAX >> 20)));
    }
    String::from_utf8(bytes)
        .map_err(|error| CallError::invalid(format!("{name} is not UTF-8 (byte {})", error.utf8_error().valid_up_to())))
}

/// Parses JSON, saying where it goes wrong.
pub(crate) fn parse(text: &str, name: &str) -> Result<Value, CallError> {
    serde_json::from_str(text).map_err(|error| {
        let why = error.to_string();
        let why = if why.starts_with("recursion limit") { format!("it nests too deeply ({why})") } else { why };
        CallError::invalid(format!("{name}: not valid JSON: {why}"))
    })
}

/// `key=text` or `key:=json`.
fn pair(word: &str) -> Result<(String, Value), CallError> {
    let usage = || {
        CallError::invalid(format!("`{}` is neither JSON nor KEY=VALUE", haft_core::preview::inert(word)))
            .hint("write path=a.txt for text, limit:=5 for JSON values, or one JSON object in quotes")
    };
    let (key, value) = word.split_once('=').ok_or_else(usage)?;
    match key.strip_suffix(':') {
        Some(key) if !key.is_empty() => Ok((key.to_owned(), parse(value, key)?)),
        None if !key.is_empty() => Ok((key.to_owned(), Value::String(value.to_owned()))),
        _ => Err(usage()),
    }
}

/// How an argument should have been spelled that was text and had to be something else.
pub(crate) fn respelled(words: &[String], error: &CallError) -> Option<String> {
    let violations = error.details.as_ref()?["violations"].as_array()?;
    violations.iter().find_map(|violation| {
        // What is not known at all is not known in another spelling either.
        violation["expected"].as_str().filter(|expected| !expected.starts_with("no such property"))?;
        let key = violation["pointer"].as_str()?.strip_prefix('/')?;
        let value = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
        let meant = serde_json::from_str::<Value>(value).is_ok_and(|value| !value.is_string());
        let shown =
            |sign: &str| haft_core::preview::cut(&haft_core::preview::inert(&format!("{key}{sign}{value}")), 80);
        meant.then(|| format!("`{}` is text; write `{}`", shown("="), shown(":=")))
    })
}

/// A length of time such as `30s`, `5m`, `1h`, `1d`, in milliseconds.
pub(crate) fn duration_ms(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let scale = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return None,
    };
    text[..text.len() - 1].parse::<i64>().ok().filter(|n| *n > 0)?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(list: &[&str]) -> Result<Value, CallError> {
        arguments(&list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn words_and_json() {
        assert_eq!(words(&["path=a=b", "limit:=5"]).unwrap(), json!({"path": "a=b", "limit": 5}));
        assert_eq!(words(&[r#"{"a": 1}"#]).unwrap(), json!({"a": 1}));
        assert_eq!(words(&[]).unwrap(), json!({}));
        assert_eq!(words(&["a=1", "a=2"]).unwrap_err().message, "`a` is given twice");
        assert!(words(&["nonsense"]).unwrap_err().message.contains("neither JSON nor KEY=VALUE"));
        assert!(words(&[&"[".repeat(1000)]).unwrap_err().message.contains("nests too deeply"));
    }

    #[test]
    fn text_that_looks_like_a_value_is_respelled() {
        let violation = |pointer: &str| json!({"pointer": pointer, "expected": "integer", "found": "string \"5\""});
        let hint = |words: &[&str], pointer: &str| {
            let error = CallError::invalid("x").details(json!({"violations": [violation(pointer)]}));
            respelled(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &error)
        };
        assert_eq!(hint(&["q=a", "n=5"], "/n").as_deref(), Some("`n=5` is text; write `n:=5`"));
        assert_eq!(hint(&["n=five"], "/n"), None);
        assert_eq!(hint(&["n:=\"5\""], "/n"), None);
        assert_eq!(hint(&["nn=5"], "/n"), None);
        let strange = json!({"pointer": "/n", "expected": "no such property (known: x)", "found": "string \"5\""});
        let error = CallError::invalid("x").details(json!({"violations": [strange]}));
        assert_eq!(respelled(&["n=5".to_owned()], &error), None);
    }

    #[test]
    fn lengths_of_time() {
        assert_eq!(duration_ms("90s"), Some(90_000));
        assert_eq!(duration_ms("1d"), Some(86_400_000));
        for bad in ["", "d", "-1s", "5", "é"] {
            assert_eq!(duration_ms(bad), None, "{bad}");
        }
    }
}
