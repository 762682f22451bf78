//! A schema of a document as one that stands by itself: references resolved, cycles cut, in the words of JSON Schema
//! 2020-12.

use super::Document;
use serde_json::{Map, Value, json};

/// How deep a schema may nest.
const DEPTH_MAX: usize = 24;

/// Keys of OpenAPI that mean nothing to JSON Schema, or nothing to whoever calls.
const DROPPED: &[&str] = &[
    "example",
    "examples",
    "xml",
    "discriminator",
    "externalDocs",
    "nullable",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
];

/// Resolves schemas within bounds.
pub(super) struct Resolver<'d> {
    document: &'d Document,
    /// How many values may still be made.
    left: usize,
    /// The references that are being resolved.
    open: Vec<String>,
    /// Whether something was left out.
    pub(super) cut: bool,
}

impl<'d> Resolver<'d> {
    pub(super) fn new(document: &'d Document, room: usize) -> Self {
        Self { document, left: room, open: Vec::new(), cut: false }
    }

    /// A schema that stands by itself. What cannot be said fits everything.
    pub(super) fn schema(&mut self, value: &Value, depth: usize) -> Value {
        if self.left == 0 || depth > DEPTH_MAX {
            self.cut = true;
            return json!({});
        }
        self.left -= 1;
        let Some(object) = value.as_object() else { return json!({}) };
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, depth);
        }
        let mut made = Map::new();
        for (key, part) in object {
            if DROPPED.contains(&key.as_str()) || key.starts_with("x-") {
                continue;
            }
            let part = match (key.as_str(), part) {
                ("properties" | "patternProperties", Value::Object(parts)) => {
                    let kept = parts.iter().filter(|(_, part)| self.document.resolve(part)["readOnly"] != true);
                    let kept: Vec<(&String, &Value)> = kept.collect();
                    kept.into_iter().map(|(name, part)| (name.clone(), self.schema(part, depth + 1))).collect()
                }
                ("items" | "additionalProperties" | "not", Value::Object(_)) => self.schema(part, depth + 1),
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(parts)) => {
                    parts.iter().map(|part| self.schema(part, depth + 1)).collect()
                }
                _ => self.plain(part, depth),
            };
            made.insert(key.clone(), part);
        }
        modern(object, &mut made);
        required(&mut made);
        Value::Object(made)
    }

    fn reference(&mut self, reference: &str, depth: usize) -> Value {
        let document = self.document;
        let known = document.at(reference).filter(|_| !self.open.iter().any(|open| open == reference));
        let Some(target) = known else {
            // It refers to itself, or to somewhere else.
            self.cut = true;
            return json!({});
        };
        self.open.push(reference.to_owned());
        let made = self.schema(target, depth + 1);
        self.open.pop();
        made
    }

    /// A value that is no schema: an enum, a bound, a description.
    fn plain(&mut self, value: &Value, depth: usize) -> Value {
        let size = match value {
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            Value::String(text) => text.len() / 64,
            _ => 0,
        };
        if size > self.left || depth > DEPTH_MAX {
            self.cut = true;
            return Value::Null;
        }
        self.left -= size;
        match value {
            Value::Array(items) => items.iter().map(|item| self.plain(item, depth + 1)).collect(),
            Value::Object(map) => map.iter().map(|(name, item)| (name.clone(), self.plain(item, depth + 1))).collect(),
            other => other.clone(),
        }
    }
}

/// What version 3.0 says in its own words.
fn modern(said: &Map<String, Value>, made: &mut Map<String, Value>) {
    if said.get("nullable") == Some(&Value::Bool(true))
        && let Some(kind) = made.get("type").filter(|kind| kind.is_string()).cloned()
    {
        made.insert("type".to_owned(), json!([kind, "null"]));
        if let Some(options) =
            made.get_mut("enum").and_then(Value::as_array_mut).filter(|list| !list.contains(&Value::Null))
        {
            options.push(Value::Null);
        }
    }
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match said.get(flag) {
            Some(Value::Bool(true)) => {
                if let Some(number) = made.remove(bound) {
                    made.insert(flag.to_owned(), number);
                } else {
                    made.remove(flag);
                }
            }
            Some(Value::Bool(false)) => {
                made.remove(flag);
            }
            _ => {}
        }
    }
    // What could not be kept is not kept by halves.
    made.retain(|_, value| !value.is_null() || said.get("const") == Some(&Value::Null));
}

/// What is required is there.
fn required(made: &mut Map<String, Value>) {
    let Some(properties) = made.get("properties").and_then(Value::as_object) else { return };
    let names: Vec<String> = properties.keys().cloned().collect();
    if let Some(list) = made.get_mut("required").and_then(Value::as_array_mut) {
        list.retain(|name| name.as_str().is_some_and(|name| names.iter().any(|known| known == name)));
    }
}
