//! What the fuzz targets share: arbitrary JSON, and arbitrary arguments that come near enough to a
//! schema to get past its first check.

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use serde_json::{Map, Value};

/// Deeper than the limit that the schema code promises to refuse, so that both sides of it are met.
const MAX_DEPTH: usize = 70;

/// Any JSON at all.
pub fn any_json(u: &mut Unstructured<'_>) -> Result<Value> {
    nested(u, 0)
}

/// Arguments for a schema: mostly its own properties, mostly of the right type, sometimes neither.
pub fn arguments(schema: &Value, u: &mut Unstructured<'_>) -> Result<Value> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return any_json(u) };
    if u.ratio(1, 32)? {
        return any_json(u);
    }
    let mut args = Map::new();
    for (name, property) in properties {
        if u.ratio(3, 4)? {
            args.insert(name.clone(), value_for(property, u)?);
        }
    }
    if u.ratio(1, 8)? {
        args.insert(stray(u)?, any_json(u)?);
    }
    Ok(Value::Object(args))
}

/// A name that the schema does not know: another vocabulary's, or nobody's.
fn stray(u: &mut Unstructured<'_>) -> Result<String> {
    const FOREIGN: &[&str] = &["path", "file_path", "old_string", "oldText", "session", "delay_ms", "line_numbers", ""];
    if u.ratio(1, 2)? { Ok((*u.choose(FOREIGN)?).to_owned()) } else { text(u) }
}

fn value_for(property: &Value, u: &mut Unstructured<'_>) -> Result<Value> {
    if u.ratio(1, 16)? {
        return any_json(u);
    }
    if let Some(choices) = property.get("enum").and_then(Value::as_array).filter(|list| !list.is_empty()) {
        return Ok(u.choose(choices)?.clone());
    }
    let kind = match property.get("type") {
        Some(Value::Array(kinds)) if !kinds.is_empty() => u.choose(kinds)?.as_str(),
        Some(kind) => kind.as_str(),
        None => None,
    };
    Ok(match kind {
        Some("string") if u.ratio(1, 2)? => Value::from(format!("/{}", text(u)?)),
        Some("string") => Value::from(text(u)?),
        Some("integer" | "number") => number(u)?,
        Some("boolean") => Value::from(u.arbitrary::<bool>()?),
        Some("null") => Value::Null,
        Some("object") => arguments(property, u)?,
        Some("array") => match property.get("items") {
            Some(items) => {
                Value::Array((0..u.int_in_range(0..=4)?).map(|_| value_for(items, u)).collect::<Result<_>>()?)
            }
            None => any_json(u)?,
        },
        _ => any_json(u)?,
    })
}

fn nested(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let last = if depth < MAX_DEPTH { 6 } else { 3 };
    Ok(match u.int_in_range(0..=last)? {
        0 => Value::Null,
        1 => Value::from(u.arbitrary::<bool>()?),
        2 => number(u)?,
        3 => Value::from(text(u)?),
        // A chain costs one byte a level, so that real depth is within a small input's reach.
        4 => Value::Array(vec![nested(u, depth + 1)?]),
        5 => Value::Array((0..u.int_in_range(0..=4)?).map(|_| nested(u, depth + 1)).collect::<Result<_>>()?),
        _ => {
            let pairs = (0..u.int_in_range(0..=4)?).map(|_| Ok((text(u)?, nested(u, depth + 1)?)));
            Value::Object(pairs.collect::<Result<_>>()?)
        }
    })
}

fn number(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match u.int_in_range(0..=4)? {
        0 => Value::from(u.arbitrary::<i8>()?),
        1 => Value::from(u.arbitrary::<i64>()?),
        2 => Value::from(u.arbitrary::<u64>()?),
        3 => Value::from(f64::from(u.arbitrary::<i16>()?)),
        _ => Value::from(u.arbitrary::<f64>()?),
    })
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(u.arbitrary::<&str>()?.chars().take(64).collect())
}
