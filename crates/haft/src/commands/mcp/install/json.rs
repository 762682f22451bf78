//! An entry in a JSON file: the other members stay what they are and where they are.

use super::clients::NAME;
use serde_json::{Map, Value};

/// The text with the entry in it, or why it cannot be entered.
pub(super) fn entered(old: &str, under: &str, entry: &Value) -> Result<String, String> {
    let mut whole: Value = if old.trim().is_empty() {
        Value::Object(Map::new())
    } else {
        serde_json::from_str(old)
            .map_err(|error| format!("it is not plain JSON, and comments in it would be lost ({error})"))?
    };
    let servers = whole
        .as_object_mut()
        .ok_or("it holds no JSON object")?
        .entry(under)
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()
        .ok_or_else(|| format!("`{under}` in it is no object"))?;
    if servers.get(NAME) == Some(entry) {
        return Ok(old.to_owned());
    }
    servers.insert(NAME.to_owned(), entry.clone());
    written(&whole, indent(old)).map_err(|error| error.to_string())
}

/// How deep the file's first member stands.
fn indent(old: &str) -> &str {
    let second = old.lines().nth(1).unwrap_or("  ");
    let blank = &second[..second.len() - second.trim_start().len()];
    if blank.is_empty() { "  " } else { blank }
}

fn written(value: &Value, indent: &str) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    let pretty = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    serde::Serialize::serialize(value, &mut serde_json::Serializer::with_formatter(&mut bytes, pretty))?;
    bytes.push(b'\n');
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn others_stay_and_twice_is_once() {
        let old =
            "{\n\t\"z\": 1,\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"}\n\t},\n\t\"a\": [1.5, null]\n}\n";
        let new = entered(old, "mcpServers", &json!({"command": "haft"})).unwrap();
        let value: Value = serde_json::from_str(&new).unwrap();
        assert_eq!(value["mcpServers"]["other"]["command"], "x");
        assert_eq!(value["mcpServers"]["haft"]["command"], "haft");
        assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["z", "mcpServers", "a"]);
        assert!(new.contains("\n\t\"z\": 1"), "{new}");
        assert_eq!(entered(&new, "mcpServers", &json!({"command": "haft"})).unwrap(), new);
    }

    #[test]
    fn comments_are_not_destroyed() {
        for old in ["// mine\n{}", "{\"a\": 1,}", "[]", "{\"mcpServers\": 3}"] {
            assert!(entered(old, "mcpServers", &json!({})).is_err(), "{old}");
        }
    }
}
