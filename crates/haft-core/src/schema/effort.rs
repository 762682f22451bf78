//! How much work a schema makes. A few short definitions that refer to each other twice are a tower of two to the
//! power of their number, and whoever writes a schema need not be a friend: both a schema, and a schema with what is
//! checked against it, are weighed before anything is checked.

use serde_json::Value;

/// How many parts a schema may have with its references followed.
const PARTS_MAX: usize = 20_000;
/// How many steps one check may take.
const STEPS_MAX: usize = 2_000_000;
/// How deep either may go.
const DEPTH_MAX: usize = 512;

/// Why a schema makes too much work, if it does. References have to be paths within it: others cannot be followed
/// here, and so not weighed.
pub fn excess(schema: &Value) -> Option<&'static str> {
    let mut parts = Parts { root: schema, left: PARTS_MAX, path: Vec::new() };
    parts.count(schema, 0).err()
}

/// Whether a value can be checked against a schema in reasonable time.
pub(super) fn is_checkable(schema: &Value, value: &Value) -> bool {
    Steps { root: schema, left: STEPS_MAX }.take(schema, value, 0).is_some()
}

/// What a reference means, if it is a path within the schema.
fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let path = reference.strip_prefix('#')?;
    if path.contains('%') { root.pointer(&decoded(path)?) } else { root.pointer(path) }
}

/// A path with its `%41` as `A`.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut pieces = path.split('%');
    bytes.extend_from_slice(pieces.next()?.as_bytes());
    for piece in pieces {
        bytes.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// How often what lies in a part is gone through: to find what was not looked at, everything is looked at again.
fn times(part: &serde_json::Map<String, Value>) -> usize {
    let again = ["unevaluatedProperties", "unevaluatedItems"];
    1 + 2 * again.iter().filter(|name| part.contains_key(**name)).count()
}

/// Counts the parts of a schema.
struct Parts<'s> {
    root: &'s Value,
    left: usize,
    /// The references that led here: one that leads back is not followed again.
    path: Vec<&'s str>,
}

impl<'s> Parts<'s> {
    fn count(&mut self, schema: &'s Value, depth: usize) -> Result<(), &'static str> {
        if depth > DEPTH_MAX {
            return Err("it goes too deep");
        }
        let part = match schema {
            Value::Object(part) => part,
            Value::Array(items) => return items.iter().try_for_each(|item| self.count(item, depth + 1)),
            _ => return Ok(()),
        };
        self.left = self.left.checked_sub(1).ok_or("its references make it too large")?;
        if depth > 0 && part.get("$id").is_some_and(Value::is_string) {
            return Err("a part of it has an `$id` of its own");
        }
        for _ in 0..times(part) {
            self.follow(part, depth)?;
            let inner = part.iter().filter(|(name, _)| !matches!(name.as_str(), "$defs" | "definitions"));
            inner.map(|(_, inner)| inner).try_for_each(|inner| self.count(inner, depth + 1))?;
        }
        Ok(())
    }

    fn follow(&mut self, part: &'s serde_json::Map<String, Value>, depth: usize) -> Result<(), &'static str> {
        let strange = "it has a reference that is no path within it";
        if ["$dynamicRef", "$recursiveRef"].iter().any(|name| part.get(*name).is_some_and(Value::is_string)) {
            return Err(strange);
        }
        let Some(reference) = part.get("$ref").and_then(Value::as_str) else { return Ok(()) };
        let meant = target(self.root, reference).ok_or(strange)?;
        if self.path.contains(&reference) {
            return Ok(());
        }
        self.path.push(reference);
        self.count(meant, depth + 1)?;
        self.path.pop();
        Ok(())
    }
}

/// Counts the steps of a check.
struct Steps<'s> {
    root: &'s Value,
    left: usize,
}

impl Steps<'_> {
    /// None if it is too much.
    fn take(&mut self, schema: &Value, value: &Value, depth: usize) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        let Some(part) = schema.as_object() else { return Some(()) };
        if depth > DEPTH_MAX {
            return None;
        }
        for _ in 0..times(part) {
            for (name, inner) in part {
                self.keyword(name, inner, value, depth + 1)?;
            }
        }
        Some(())
    }

    fn keyword(&mut self, name: &str, inner: &Value, value: &Value, depth: usize) -> Option<()> {
        let items = || value.as_array().into_iter().flatten();
        let members = || value.as_object().into_iter().flatten();
        match name {
            "$ref" => match inner.as_str().and_then(|reference| target(self.root, reference)) {
                Some(meant) => self.take(meant, value, depth),
                None => Some(()),
            },
            "allOf" | "anyOf" | "oneOf" => {
                let parts = inner.as_array().into_iter().flatten();
                parts.map(|part| self.take(part, value, depth)).collect()
            }
            "not" | "if" | "then" | "else" => self.take(inner, value, depth),
            "dependentSchemas" => inner.as_object()?.values().map(|part| self.take(part, value, depth)).collect(),
            "properties" => {
                let known = members().filter_map(|(name, value)| Some((inner.get(name)?, value)));
                known.map(|(part, value)| self.take(part, value, depth)).collect()
            }
            "patternProperties" => {
                for part in inner.as_object()?.values() {
                    members().map(|(_, value)| self.take(part, value, depth)).collect::<Option<()>>()?;
                }
                Some(())
            }
            "additionalProperties" | "unevaluatedProperties" => {
                members().map(|(_, value)| self.take(inner, value, depth)).collect()
            }
            "propertyNames" => members().map(|_| self.take(inner, &Value::Null, depth)).collect(),
            "prefixItems" => {
                let parts = inner.as_array().into_iter().flatten();
                parts.zip(items()).map(|(part, value)| self.take(part, value, depth)).collect()
            }
            "items" | "contains" | "unevaluatedItems" => items().map(|value| self.take(inner, value, depth)).collect(),
            _ => Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;
    use serde_json::json;

    fn tower(height: usize) -> Value {
        let mut defs = serde_json::Map::new();
        for at in 0..height {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            defs.insert(format!("d{at}"), json!({"allOf": [next, next]}));
        }
        defs.insert(format!("d{height}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    }

    #[test]
    fn what_a_schema_means_counts_and_not_what_it_says() {
        assert_eq!(excess(&tower(5)), None);
        assert_eq!(excess(&tower(45)), Some("its references make it too large"));
        let tree = json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"properties": {
            "left": {"$ref": "#/$defs/a%20b"}, "right": {"$ref": "#/$defs/a%20b"}}}}});
        assert_eq!(excess(&tree), None, "one that leads back to itself is as large as what is checked");
        let mut nested = json!({"type": "object"});
        for _ in 0..30 {
            nested = json!({"allOf": [nested], "unevaluatedProperties": false});
        }
        assert!(excess(&nested).is_some());
    }

    #[test]
    fn what_cannot_be_followed_is_too_much() {
        for strange in [
            json!({"$ref": "#name", "$defs": {"a": {"$anchor": "name"}}}),
            json!({"$dynamicRef": "#name"}),
            json!({"$ref": "https://example.com/s"}),
            json!({"properties": {"a": {"$id": "b", "$ref": "#/c"}}, "c": {}}),
        ] {
            assert!(excess(&strange).is_some(), "{strange}");
        }
        assert_eq!(excess(&json!({"$id": "https://x/", "properties": {"$id": {}, "$ref": {}}})), None);
    }

    #[test]
    fn a_check_without_end_is_not_begun() {
        let again = json!({"properties": {"x": {"$ref": "#"}}});
        let twice = Schema::compile(&json!({"allOf": [again, again]})).unwrap();
        assert_eq!(excess(twice.source()), None);
        let deep = (0..50).fold(json!({}), |inner, _| json!({ "x": inner }));
        // Were it begun, this test would have no end.
        assert!(twice.check(&crate::ToolName::new("t.t").unwrap(), &deep).is_err());
        assert_eq!(twice.violations(&deep)[0].expected, "something that can be checked in reasonable time");
        assert!(twice.violations(&json!({"x": {"x": {}}})).is_empty());
    }
}
