//! JSON Schema 2020-12: compiled once, defaults filled before validation, every violation listed with
//! its pointer, what was expected and what came.

mod effort;
mod nulls;

pub use effort::excess;
pub(crate) use nulls::allows_null;

use crate::error::CallError;
use crate::name::ToolName;
use crate::suggest::nearest;
use jsonschema::{Draft, ValidationError, Validator};
use serde::Serialize;
use serde_json::{Map, Value};

/// Arguments nested deeper than this are refused unread: no tool needs it, and recursion has to end.
pub const MAX_DEPTH: usize = 64;
/// How much of an offending value is quoted.
const QUOTE_MAX: usize = 60;
/// How many violations are spelled out.
const LISTED_MAX: usize = 20;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: Validator,
}

/// A schema that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema is not valid JSON Schema 2020-12: at {pointer}: {why}")]
pub struct BadSchema {
    /// Where in the schema.
    pub pointer: String,
    /// What is wrong there.
    pub why: String,
}

/// One thing wrong with some data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON pointer to the value at fault; empty is the whole.
    pub pointer: String,
    /// What the schema wants there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Schema {
    /// Compiles a schema. References may only point into the schema itself: nothing is ever fetched.
    pub fn compile(source: &Value) -> Result<Self, BadSchema> {
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .build(source)
            .map_err(|error| BadSchema { pointer: pointer(error.instance_path().as_str()), why: error.to_string() })?;
        Ok(Self { source: source.clone(), validator })
    }

    /// The schema as written.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Makes arguments ready: an optional property that is null where null is not allowed counts as
    /// absent (strict-mode models send it so), then defaults are filled.
    pub fn prepare(&self, args: &mut Value) {
        if args.is_null() {
            *args = Value::Object(Map::new());
        }
        nulls::drop_nulls(&self.source, args);
        Filler { root: &self.source, left: FILL_MAX }.fill(&self.source, args, 0);
    }

    /// Whether nothing is wrong with `value`. Quicker than asking what is.
    pub fn fits(&self, value: &Value) -> bool {
        !too_deep(value) && effort::is_checkable(&self.source, value) && self.validator.is_valid(value)
    }

    /// Everything wrong with `value`, worst paths first come.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        if too_deep(value) {
            let expected = format!("at most {MAX_DEPTH} levels of nesting");
            return vec![Violation { pointer: String::new(), expected, found: "more".to_owned() }];
        }
        if !effort::is_checkable(&self.source, value) {
            let expected = "something that can be checked in reasonable time".to_owned();
            return vec![Violation { pointer: String::new(), expected, found: "more".to_owned() }];
        }
        self.validator.iter_errors(value).flat_map(|error| self.explain(&error)).collect()
    }

    /// Refuses arguments that violate the schema, naming every violation.
    pub fn check(&self, tool: &ToolName, args: &Value) -> Result<(), CallError> {
        if self.fits(args) {
            return Ok(());
        }
        let violations = self.violations(args);
        let mut lines: Vec<String> = violations
            .iter()
            .take(LISTED_MAX)
            .map(|v| format!("  {}: expected {}, got {}", pointer(&v.pointer), v.expected, v.found))
            .collect();
        if violations.len() > LISTED_MAX {
            lines.push(format!("  and {} more", violations.len() - LISTED_MAX));
        }
        let message = format!("the arguments of `{tool}` do not fit its schema:\n{}", lines.join("\n"));
        let details = serde_json::json!({ "violations": violations });
        Err(CallError::invalid(message).details(details).hint(format!("`haft tools {tool}` shows the schema")))
    }

    fn explain(&self, error: &ValidationError<'_>) -> Vec<Violation> {
        use jsonschema::error::ValidationErrorKind as Kind;
        let at = error.instance_path().as_str().to_owned();
        let one = |pointer: String, expected: String, found: String| vec![Violation { pointer, expected, found }];
        let found = quote(error.instance());
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                one(format!("{at}/{}", escape(name)), self.wanted(error, name), "nothing".to_owned())
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let known = self.properties_at(error);
                let expected = |name: &str| match nearest(name, known.iter().copied()) {
                    Some(meant) => format!("no such property (did you mean `{meant}`?)"),
                    None => format!("no such property (known: {})", known.join(", ")),
                };
                unexpected
                    .iter()
                    .map(|name| Violation {
                        pointer: format!("{at}/{}", escape(name)),
                        expected: expected(name),
                        found: quote(error.instance().get(name).unwrap_or(&Value::Null)),
                    })
                    .collect()
            }
            _ => one(at, self.keyword(error), found),
        }
    }

    /// What the schema's keyword asks for, in words.
    fn keyword(&self, error: &ValidationError<'_>) -> String {
        let path = error.schema_path().as_str();
        let keyword = path.rsplit('/').next().unwrap_or_default();
        let value = self.source.pointer(path).map(short).unwrap_or_default();
        match keyword {
            "type" => value.trim_matches('"').to_owned(),
            "enum" => format!("one of {value}"),
            "const" => value,
            "minimum" => format!("a number of at least {value}"),
            "maximum" => format!("a number of at most {value}"),
            "minLength" => format!("at least {value} characters"),
            "maxLength" => format!("at most {value} characters"),
            "minItems" => format!("at least {value} items"),
            "maxItems" => format!("at most {value} items"),
            "pattern" => format!("text that matches {value}"),
            "format" => format!("a value of format {value}"),
            _ if value.is_empty() => error.to_string(),
            _ => format!("{keyword}: {value}"),
        }
    }

    /// What a missing property should have been.
    fn wanted(&self, error: &ValidationError<'_>, name: &str) -> String {
        let kind =
            self.object_at(error).and_then(|object| object.pointer(&format!("/properties/{}/type", escape(name))));
        kind.map_or_else(|| "a value".to_owned(), |kind| short(kind).trim_matches('"').to_owned())
    }

    fn object_at(&self, error: &ValidationError<'_>) -> Option<&Value> {
        let path = error.schema_path().as_str();
        self.source.pointer(path.rsplit_once('/').map_or("", |(parent, _)| parent))
    }

    fn properties_at(&self, error: &ValidationError<'_>) -> Vec<&str> {
        let properties = self.object_at(error).and_then(|object| object.get("properties")).and_then(Value::as_object);
        properties.map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
    }
}

/// A pointer for people: the root has no text of its own.
fn pointer(text: &str) -> String {
    if text.is_empty() { "/".to_owned() } else { text.to_owned() }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn short(value: &Value) -> String {
    crate::preview::cut(&crate::preview::inert(&value.to_string()), 200)
}

fn quote(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => return format!("array of {} items", items.len()),
        Value::Object(map) => return format!("object with {} properties", map.len()),
    };
    format!("{kind} {}", crate::preview::cut(&crate::preview::inert(&value.to_string()), QUOTE_MAX))
}

/// Whether a value nests deeper than anything may. Stops at the limit, so depth costs nothing.
fn too_deep(value: &Value) -> bool {
    fn beyond(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(_) | Value::Object(_) if left == 0 => true,
            Value::Array(items) => items.iter().any(|item| beyond(item, left - 1)),
            Value::Object(map) => map.values().any(|item| beyond(item, left - 1)),
            _ => false,
        }
    }
    beyond(value, MAX_DEPTH)
}

/// `5.0` is an integer to JSON Schema; tools should not have to know that it can be written so.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers below 2^53 are turned into integers")]
fn whole_number(schema: &Value, value: &mut Value) {
    let wanted = schema.get("type").is_some_and(|kind| kind == "integer");
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15);
    if let (true, Some(number)) = (wanted && value.is_f64(), number) {
        *value = Value::from(number as i64);
    }
}

/// How many values defaults may be filled into: a schema that refers to itself could otherwise grow
/// without end.
const FILL_MAX: usize = 10_000;

/// Fills defaults, through properties, items, `allOf` and local references.
struct Filler<'s> {
    root: &'s Value,
    left: usize,
}

impl Filler<'_> {
    fn fill(&mut self, schema: &Value, value: &mut Value, depth: usize) {
        if depth > MAX_DEPTH || self.left == 0 {
            return;
        }
        self.left -= 1;
        let local = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
        if let Some(target) = local.and_then(|path| self.root.pointer(path)) {
            self.fill(target, value, depth + 1);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.fill(part, value, depth + 1);
        }
        match value {
            Value::Object(object) => self.fill_object(schema, object, depth),
            Value::Array(items) => {
                let Some(each) = schema.get("items") else { return };
                for item in items {
                    self.fill(each, item, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn fill_object(&mut self, schema: &Value, object: &mut Map<String, Value>, depth: usize) {
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let (None, Some(default)) = (object.get(name), property.get("default")) {
                object.insert(name.clone(), default.clone());
            }
            if let Some(inner) = object.get_mut(name) {
                whole_number(property, inner);
                self.fill(property, inner, depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_that_refers_to_itself_does_not_grow_for_ever() {
        let bomb = json!({"type": "object", "properties": {
            "a": {"$ref": "#", "default": {}}, "b": {"$ref": "#", "default": {}}}});
        let mut args = json!({});
        Schema::compile(&bomb).unwrap().prepare(&mut args);
        assert!(args["a"]["b"].is_object());
    }

    #[test]
    fn defaults_are_filled_everywhere_and_null_counts_as_absent() {
        let schema = json!({"type": "object", "properties": {
            "n": {"type": "integer", "default": 3},
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"default": 1}}}},
            "ref": {"$ref": "#/$defs/d"}}, "$defs": {"d": {"properties": {"y": {"default": 2}}}}});
        let mut args = json!({"n": null, "list": [{}, {"x": 5}], "ref": {}});
        Schema::compile(&schema).unwrap().prepare(&mut args);
        assert_eq!(args, json!({"list": [{"x": 1}, {"x": 5}], "ref": {"y": 2}, "n": 3}));
    }
}
