//! Putting what a schema refers to in the place of its references.

use super::subschemas::{each, each_mut};
use serde_json::{Map, Value};

/// How many schemas may come of a schema that refers to its parts again and again.
const SCHEMAS_MAX: usize = 5_000;
/// How deep schemas may nest.
const DEPTH_MAX: usize = 64;
/// Keywords that a resolved schema has no more use for.
const DEFINITIONS: [&str; 3] = ["$defs", "definitions", "$anchor"];

/// Why references cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnresolvedReference {
    /// A schema is part of itself.
    #[error("it refers to itself by `{0}`")]
    Recursive(String),
    /// There is nothing at that place.
    #[error("it refers to `{0}`, which it does not contain")]
    Missing(String),
    /// It would grow too large.
    #[error("it grows too large when its references are resolved")]
    TooLarge,
}

/// What becomes of a schema that is part of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recursion {
    /// The whole cannot be resolved.
    Refuse,
    /// The inner one takes anything.
    Cut,
}

/// The schema without references.
pub(super) fn resolved(schema: &Value, recursion: Recursion) -> Result<Value, UnresolvedReference> {
    let mut resolver = Resolver { root: schema, recursion, open: Vec::new(), left: SCHEMAS_MAX };
    resolver.resolve(schema, 0)
}

/// The schema at a reference of this kind: `#` or `#/…`.
pub(super) fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(pointer)
}

struct Resolver<'s> {
    root: &'s Value,
    recursion: Recursion,
    /// The references that are being resolved.
    open: Vec<String>,
    left: usize,
}

impl Resolver<'_> {
    fn resolve(&mut self, schema: &Value, depth: usize) -> Result<Value, UnresolvedReference> {
        self.left = self.left.checked_sub(1).ok_or(UnresolvedReference::TooLarge)?;
        if depth > DEPTH_MAX {
            return Err(UnresolvedReference::TooLarge);
        }
        let Some(object) = schema.as_object() else { return Ok(schema.clone()) };
        let mut object = object.clone();
        // Definitions are resolved where they are referred to.
        for keyword in DEFINITIONS {
            object.remove(keyword);
        }
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(reference) = object.shift_remove(keyword) {
                let reference = reference.as_str().unwrap_or_default().to_owned();
                return self.refer(reference, object, depth);
            }
        }
        self.inside(&mut object, depth)?;
        Ok(Value::Object(object))
    }

    /// Resolves a reference; what stands beside it counts as well.
    fn refer(
        &mut self,
        reference: String,
        beside: Map<String, Value>,
        depth: usize,
    ) -> Result<Value, UnresolvedReference> {
        if self.open.contains(&reference) {
            return match self.recursion {
                Recursion::Refuse => Err(UnresolvedReference::Recursive(reference)),
                Recursion::Cut => Ok(Value::Object(beside)),
            };
        }
        let target = target(self.root, &reference).ok_or_else(|| UnresolvedReference::Missing(reference.clone()))?;
        self.open.push(reference);
        let resolved = self.resolve(target, depth + 1);
        self.open.pop();
        let mut resolved = resolved?;
        let mut beside = beside;
        self.inside(&mut beside, depth)?;
        match &mut resolved {
            Value::Object(object) => {
                // Annotations beside a reference take the place of the target's; assertions count as well.
                let (own, asserted): (Map<String, Value>, Map<String, Value>) = beside
                    .into_iter()
                    .partition(|(keyword, _)| is_annotation(keyword) || !object.contains_key(keyword));
                object.extend(own);
                if !asserted.is_empty() {
                    let mut parts = vec![Value::Object(asserted)];
                    if let Some(Value::Array(more)) = object.shift_remove("allOf") {
                        parts.extend(more);
                    }
                    object.insert("allOf".to_owned(), Value::Array(parts));
                }
                Ok(resolved)
            }
            Value::Bool(true) => Ok(Value::Object(beside)),
            _ => Ok(resolved),
        }
    }

    fn inside(&mut self, object: &mut Map<String, Value>, depth: usize) -> Result<(), UnresolvedReference> {
        let mut outcome = Ok(());
        each_mut(object, &mut |inner| {
            if outcome.is_ok() {
                match self.resolve(inner, depth + 1) {
                    Ok(schema) => *inner = schema,
                    Err(error) => outcome = Err(error),
                }
            }
        });
        outcome
    }
}

fn is_annotation(keyword: &str) -> bool {
    keyword == "description" || super::rules::ANNOTATIONS.contains(&keyword)
}

/// Whether a schema refers to anything, itself or another.
pub(super) fn has_references(schema: &Value) -> bool {
    let Some(object) = schema.as_object() else { return false };
    let mut found = object.contains_key("$ref") || object.contains_key("$dynamicRef");
    each(object, &mut |_, inner| found = found || has_references(inner));
    found
}
