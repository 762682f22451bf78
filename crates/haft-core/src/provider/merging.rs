//! Merges schemas that all apply (`allOf`), and tells whether alternatives are disjoint.

use super::subschemas::{required, types};
use serde_json::{Map, Value};

/// What happens where two schemas disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// They cannot be merged.
    Refuse,
    /// The first one counts.
    First,
}

/// Puts the parts of `allOf` into the schema itself. The error says what stands against it.
pub(super) fn merge_all_of(schema: &mut Map<String, Value>, conflict: Conflict) -> Result<(), String> {
    while let Some(parts) = schema.shift_remove("allOf") {
        let Value::Array(parts) = parts else { return Err("its `allOf` is no list".to_owned()) };
        let mut later = Vec::new();
        for part in parts {
            match part {
                Value::Bool(true) => {}
                Value::Object(mut part) => {
                    if let Some(Value::Array(inner)) = part.shift_remove("allOf") {
                        later.extend(inner);
                    }
                    merge(schema, part, conflict)?;
                }
                _ => return Err("a part of its `allOf` is no schema".to_owned()),
            }
        }
        if !later.is_empty() {
            schema.insert("allOf".to_owned(), Value::Array(later));
        }
    }
    Ok(())
}

/// Adds what another schema asks for.
pub(super) fn merge(
    schema: &mut Map<String, Value>,
    other: Map<String, Value>,
    conflict: Conflict,
) -> Result<(), String> {
    let closed = |schema: &Map<String, Value>| schema.get("additionalProperties").is_some_and(|more| more != true);
    if conflict == Conflict::Refuse && (closed(schema) || closed(&other)) {
        return Err("a closed object is a part of its `allOf`".to_owned());
    }
    for (keyword, value) in other {
        match (keyword.as_str(), schema.get_mut(&keyword), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                for (name, property) in more {
                    match known.get(&name) {
                        Some(one) if *one != property && conflict == Conflict::Refuse => {
                            return Err(format!("its `allOf` says two things of `{name}`"));
                        }
                        Some(_) => {}
                        None => {
                            known.insert(name, property);
                        }
                    }
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(more)) => {
                for name in more {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
            }
            ("description" | "title", Some(_), _) => {}
            (_, Some(known), value) => {
                if *known != value && conflict == Conflict::Refuse {
                    return Err(format!("its `allOf` says two things by `{keyword}`"));
                }
            }
            (_, None, value) => {
                schema.insert(keyword, value);
            }
        }
    }
    Ok(())
}

/// Whether no value fits two of these schemas: their types differ, or a property that all require has other values in each.
pub(super) fn are_disjoint(schemas: &[Value]) -> bool {
    schemas.iter().enumerate().all(|(at, one)| schemas[at + 1..].iter().all(|other| differ(one, other)))
}

fn differ(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return false };
    let one_types = types(one);
    let other_types = types(other);
    let are_typed = !one_types.is_empty() && !other_types.is_empty();
    if are_typed && !one_types.iter().any(|kind| other_types.iter().any(|also| overlap(kind, also))) {
        return true;
    }
    if have_no_value_in_common(&Value::Object(one.clone()), &Value::Object(other.clone())) {
        return true;
    }
    let objects = one_types == ["object"] && other_types == ["object"];
    objects && required(one).iter().any(|name| required(other).contains(name) && is_discriminator(one, other, name))
}

fn overlap(one: &str, other: &str) -> bool {
    let number = |kind: &str| kind == "number" || kind == "integer";
    one == other || (number(one) && number(other))
}

/// Whether a property has other values in one object than in the other.
pub(super) fn is_discriminator(one: &Map<String, Value>, other: &Map<String, Value>, name: &str) -> bool {
    let property = |schema: &Map<String, Value>| schema.get("properties").and_then(|all| all.get(name)).cloned();
    match (property(one), property(other)) {
        (Some(one), Some(other)) => have_no_value_in_common(&one, &other),
        _ => false,
    }
}

fn have_no_value_in_common(one: &Value, other: &Value) -> bool {
    match (values(one), values(other)) {
        (Some(ones), Some(others)) => !ones.iter().any(|value| others.contains(value)),
        _ => false,
    }
}

/// The values that a schema names one by one.
fn values(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}
