//! Going through the schemas inside a schema.

use serde_json::{Map, Value};

/// Keywords that hold one schema.
const ONE: [&str; 9] =
    ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems"];
/// Keywords that hold a list of schemas.
const LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords that hold schemas by name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Calls `visit` with every schema directly inside this one, and the path on which it is found there. Whether an object is
/// closed is no schema inside it.
pub(super) fn each(schema: &Map<String, Value>, visit: &mut dyn FnMut(&str, &Value)) {
    for (keyword, value) in schema {
        match value {
            Value::Bool(_) if keyword == "additionalProperties" => {}
            Value::Object(_) | Value::Bool(_) if ONE.contains(&keyword.as_str()) => visit(keyword, value),
            Value::Array(list) if LIST.contains(&keyword.as_str()) => {
                list.iter().enumerate().for_each(|(at, one)| visit(&format!("{keyword}/{at}"), one));
            }
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                named.iter().for_each(|(name, one)| visit(&format!("{keyword}/{name}"), one));
            }
            _ => {}
        }
    }
}

/// Calls `change` with every schema directly inside this one.
pub(super) fn each_mut(schema: &mut Map<String, Value>, change: &mut dyn FnMut(&mut Value)) {
    for (keyword, value) in schema.iter_mut() {
        let keyword = keyword.as_str();
        match value {
            one @ (Value::Object(_) | Value::Bool(_)) if ONE.contains(&keyword) => change(one),
            Value::Array(list) if LIST.contains(&keyword) => list.iter_mut().for_each(&mut *change),
            Value::Object(named) if NAMED.contains(&keyword) => named.values_mut().for_each(&mut *change),
            _ => {}
        }
    }
}

/// The types that a schema names.
pub(super) fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The JSON Schema type of a value.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The properties that an object requires.
pub(super) fn required(schema: &Map<String, Value>) -> Vec<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Adds a sentence to a schema's description.
pub(super) fn describe(schema: &mut Map<String, Value>, sentence: &str) {
    let text = match schema.get("description").and_then(Value::as_str).map(str::trim_end) {
        None | Some("") => sentence.to_owned(),
        Some(before) if before.ends_with(['.', '!', '?', ':']) => format!("{before} {sentence}"),
        Some(before) => format!("{before}. {sentence}"),
    };
    schema.insert("description".to_owned(), text.into());
}
