//! Nulls that stand for absent properties: a model in strict mode has to name every property, and says null where it would
//! have left one out.

use serde_json::{Map, Value};

/// How many alternatives of one value are looked at.
const ALTERNATIVES_MAX: usize = 64;
/// How deep references and alternatives are followed.
const DEPTH_MAX: usize = 64;

/// Removes null where a property is optional and its schema does not allow null, in nested objects and lists too.
pub(super) fn drop_nulls(root: &Value, args: &mut Value) {
    drop_inside(root, &[root], args, 0);
}

/// Whether null is a value of this schema, as far as its shape tells. References lead nowhere here.
pub(crate) fn allows_null(schema: &Value) -> bool {
    allows(schema, schema, 0)
}

fn allows(root: &Value, schema: &Value, depth: usize) -> bool {
    let schema = match schema {
        Value::Bool(any) => return *any,
        Value::Object(schema) if depth <= DEPTH_MAX => schema,
        _ => return true,
    };
    let list = |keyword: &str| schema.get(keyword).and_then(Value::as_array);
    let typed = match schema.get("type") {
        Some(Value::String(kind)) => kind == "null",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        _ => true,
    };
    let inner = |schema: &Value| allows(root, schema, depth + 1);
    typed
        && list("enum").is_none_or(|values| values.contains(&Value::Null))
        && schema.get("const").is_none_or(Value::is_null)
        && list("anyOf").is_none_or(|all| all.iter().any(inner))
        && list("oneOf").is_none_or(|all| all.iter().any(inner))
        && list("allOf").is_none_or(|all| all.iter().all(inner))
        && referred(root, schema).is_none_or(inner)
}

/// What a schema refers to.
fn referred<'s>(root: &'s Value, schema: &Map<String, Value>) -> Option<&'s Value> {
    let path = schema.get("$ref").and_then(Value::as_str)?.strip_prefix('#')?;
    root.pointer(path)
}

/// `schemas` are those of which the value fits at least one.
fn drop_inside(root: &Value, schemas: &[&Value], value: &mut Value, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    let mut alternatives = Vec::new();
    for schema in schemas {
        expand(root, schema, &mut alternatives, 0);
    }
    match value {
        Value::Object(object) => {
            object.retain(|name, value| !(value.is_null() && stands_for_absent(root, &alternatives, name)));
            for (name, value) in object.iter_mut().filter(|(_, value)| is_nested(value)) {
                let inner: Vec<&Value> = alternatives.iter().filter_map(|schema| property(schema, name)).collect();
                if !inner.is_empty() {
                    drop_inside(root, &inner, value, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            let each: Vec<&Value> = alternatives.iter().filter_map(|schema| schema.get("items")).collect();
            if !each.is_empty() {
                for item in items.iter_mut().filter(|item| is_nested(item)) {
                    drop_inside(root, &each, item, depth + 1);
                }
            }
        }
        _ => {}
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn property<'s>(schema: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(name)
}

/// Whether null is no value of this property in any alternative, and one of them can do without it.
fn stands_for_absent(root: &Value, alternatives: &[&Map<String, Value>], name: &str) -> bool {
    let mut optional = false;
    for schema in alternatives {
        let Some(property) = property(schema, name) else { continue };
        if allows(root, property, 0) {
            return false;
        }
        let required = schema.get("required").and_then(Value::as_array);
        optional |= !required.is_some_and(|names| names.iter().any(|each| each == name));
    }
    optional
}

/// The schema itself, what it refers to, its parts and its alternatives.
fn expand<'s>(root: &'s Value, schema: &'s Value, out: &mut Vec<&'s Map<String, Value>>, depth: usize) {
    let Value::Object(schema) = schema else { return };
    if depth > DEPTH_MAX || out.len() >= ALTERNATIVES_MAX || out.iter().any(|known| std::ptr::eq(*known, schema)) {
        return;
    }
    out.push(schema);
    if let Some(target) = referred(root, schema) {
        expand(root, target, out, depth + 1);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for part in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            expand(root, part, out, depth + 1);
        }
    }
}
