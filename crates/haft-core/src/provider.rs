//! Tool declarations in the forms that model providers take.

use crate::tool::ToolSpec;
use serde_json::{Map, Value, json};

/// A model provider's way of being told about tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Responses.
    OpenAi,
    /// Google Gemini.
    Gemini,
}

impl Provider {
    /// Reads a provider's name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "anthropic" => Some(Self::Anthropic),
            "openai" => Some(Self::OpenAi),
            "gemini" => Some(Self::Gemini),
            _ => None,
        }
    }

    /// A declaration under `name` with this input schema.
    pub fn declare(self, name: &str, spec: &ToolSpec, input: &Value) -> Value {
        match self {
            Self::Anthropic => json!({"name": name, "description": spec.description, "input_schema": input}),
            Self::OpenAi => {
                let strict = spec.shapes.strict;
                let parameters = if strict { strict_form(input) } else { input.clone() };
                json!({"type": "function", "name": name, "description": spec.description, "parameters": parameters, "strict": strict})
            }
            Self::Gemini => json!({"name": name, "description": spec.description, "parameters": gemini_form(input)}),
        }
    }
}

/// Strict mode: every property required, optional ones nullable, nothing additional.
pub fn strict_form(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let mut strict = object.clone();
    // Strict mode knows no defaults: a null stands for "as you see fit".
    strict.remove("default");
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        let required = |name: &str| {
            object.get("required").and_then(Value::as_array).is_some_and(|list| list.iter().any(|item| item == name))
        };
        let all: Map<String, Value> = properties
            .iter()
            .map(|(name, property)| {
                let inner = strict_form(property);
                (name.clone(), if required(name) { inner } else { nullable(inner) })
            })
            .collect();
        strict.insert("required".to_owned(), all.keys().cloned().collect());
        strict.insert("properties".to_owned(), Value::Object(all));
        strict.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    if let Some(items) = object.get("items") {
        strict.insert("items".to_owned(), strict_form(items));
    }
    Value::Object(strict)
}

fn nullable(mut schema: Value) -> Value {
    if let Some(kind) = schema.get("type").cloned() {
        schema["type"] = match kind {
            Value::Array(mut kinds) => {
                if !kinds.iter().any(|kind| kind == "null") {
                    kinds.push(json!("null"));
                }
                Value::Array(kinds)
            }
            kind => json!([kind, "null"]),
        };
    }
    if let Some(options) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        options.push(Value::Null);
    }
    schema
}

/// The keywords that Gemini's subset of JSON Schema has.
const GEMINI_KEYWORDS: &[&str] = &[
    "type",
    "description",
    "enum",
    "properties",
    "required",
    "items",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "nullable",
    "anyOf",
    "title",
];

fn gemini_form(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else { return schema.clone() };
    let kept = object.iter().filter(|(keyword, _)| GEMINI_KEYWORDS.contains(&keyword.as_str()));
    let form = kept.map(|(keyword, value)| {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, property)| (name.clone(), gemini_form(property))).collect()
            }
            ("items", items) => gemini_form(items),
            ("anyOf", Value::Array(options)) => options.iter().map(gemini_form).collect(),
            (_, value) => value.clone(),
        };
        (keyword.clone(), value)
    });
    Value::Object(form.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
            "path": {"type": "string"}, "limit": {"type": "integer", "default": 5}, "mode": {"type": "string", "enum": ["a"]}}})
    }

    #[test]
    fn strict_mode_requires_everything_and_makes_the_optional_nullable() {
        assert_eq!(
            strict_form(&schema()),
            json!({"type": "object", "additionalProperties": false, "required": ["path", "limit", "mode"], "properties": {
                "path": {"type": "string"}, "limit": {"type": ["integer", "null"]},
                "mode": {"type": ["string", "null"], "enum": ["a", null]}}})
        );
    }

    #[test]
    fn gemini_hears_only_its_subset() {
        let text = gemini_form(&schema()).to_string();
        assert!(!text.contains("additionalProperties") && !text.contains("default"), "{text}");
    }
}
