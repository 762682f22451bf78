//! The form of a schema in `OpenAI`'s strict mode: every object closed, every property required, an optional one nullable.
//!
//! What fits the strict form fits the tool's own schema once the nulls that stand for absent properties are dropped
//! ([`crate::Schema::prepare`]); a schema for which that does not hold has no strict form. One rule is not told in
//! the schema: strict mode has no lengths of texts, so they are put into the description, and haft checks them.

use super::merging::{Conflict, are_disjoint, merge_all_of};
use super::references::{Recursion, resolved};
use super::rules::{ANNOTATIONS, OPENAI_RESPONSES};
use super::subschemas::{describe, required, type_of, types};
use crate::schema::allows_null;
use serde_json::{Map, Value, json};
use std::fmt;

/// Why a schema has no strict form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrictObstacle {
    /// The property, as `edits[].range`; empty for the whole.
    pub place: String,
    /// What is in the way.
    pub why: String,
}

impl fmt::Display for StrictObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() { f.write_str(&self.why) } else { write!(f, "`{}`: {}", self.place, self.why) }
    }
}

/// The strict form of a schema.
pub fn strict_form(schema: &Value) -> Result<Value, StrictObstacle> {
    let whole = resolved(schema, Recursion::Refuse)
        .map_err(|error| StrictObstacle { place: String::new(), why: error.to_string() })?;
    let mut writer = StrictWriter { place: Vec::new() };
    let form = writer.write(&whole)?;
    if form["type"] != "object" {
        return writer.stop("it is not an object");
    }
    Ok(form)
}

/// Writes strict forms, and knows where it is.
struct StrictWriter {
    place: Vec<String>,
}

impl StrictWriter {
    fn stop<T>(&self, why: impl Into<String>) -> Result<T, StrictObstacle> {
        Err(StrictObstacle { place: self.place.concat(), why: why.into() })
    }

    fn at<T>(
        &mut self,
        step: String,
        then: impl FnOnce(&mut Self) -> Result<T, StrictObstacle>,
    ) -> Result<T, StrictObstacle> {
        self.place.push(step);
        let outcome = then(self);
        self.place.pop();
        outcome
    }

    fn write(&mut self, schema: &Value) -> Result<Value, StrictObstacle> {
        let Some(object) = schema.as_object() else { return self.stop("it takes any value") };
        let mut schema = object.clone();
        for annotation in ANNOTATIONS {
            schema.shift_remove(*annotation);
        }
        merge_all_of(&mut schema, Conflict::Refuse).or_else(|why| self.stop(why))?;
        for annotation in ANNOTATIONS {
            schema.shift_remove(*annotation);
        }
        self.write_const(&mut schema)?;
        if schema.contains_key("oneOf") || schema.contains_key("anyOf") {
            return self.write_alternatives(schema);
        }
        self.write_types(&mut schema)?;
        describe_lengths(&mut schema);
        let kinds: Vec<String> = types(&schema).into_iter().map(str::to_owned).collect();
        let known = OPENAI_RESPONSES.strict.and_then(|rules| rules.keywords).unwrap_or_default();
        if let Some(keyword) = schema.keys().find(|keyword| !known.contains(&keyword.as_str())) {
            return self.stop(format!("strict mode has no `{keyword}`"));
        }
        if kinds.iter().any(|kind| kind == "object") {
            self.write_object(&mut schema)?;
        } else {
            for keyword in ["properties", "required", "additionalProperties"] {
                schema.shift_remove(keyword);
            }
        }
        if kinds.iter().any(|kind| kind == "array") {
            let Some(items) = schema.get("items").cloned() else { return self.stop("its items may be anything") };
            let items = self.at("[]".to_owned(), |inner| inner.write(&items))?;
            schema.insert("items".to_owned(), items);
        } else {
            schema.shift_remove("items");
        }
        Ok(Value::Object(schema))
    }

    /// Keeps one keyword for the values: a value that is fixed and not in the list leaves none.
    fn write_const(&self, schema: &mut Map<String, Value>) -> Result<(), StrictObstacle> {
        let Some(Value::Array(values)) = schema.get("enum") else { return Ok(()) };
        match schema.get("const") {
            Some(value) if !values.contains(value) => self.stop("it takes no value"),
            Some(_) => {
                schema.shift_remove("enum");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Makes sure that a schema says of which type it is.
    fn write_types(&self, schema: &mut Map<String, Value>) -> Result<(), StrictObstacle> {
        if schema.contains_key("type") {
            return Ok(());
        }
        let of_values = |values: &[Value]| {
            let mut kinds: Vec<&str> = values.iter().map(type_of).collect();
            kinds.sort_unstable();
            kinds.dedup();
            match kinds.as_slice() {
                [one] => json!(one),
                more => json!(more),
            }
        };
        let kind = match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => json!(type_of(value)),
            (None, Some(values)) if !values.is_empty() => of_values(values),
            _ if schema.contains_key("properties") => json!("object"),
            _ if schema.contains_key("items") => json!("array"),
            _ => return self.stop("it takes any value"),
        };
        schema.insert("type".to_owned(), kind);
        Ok(())
    }

    fn write_object(&mut self, schema: &mut Map<String, Value>) -> Result<(), StrictObstacle> {
        let closed = schema.get("additionalProperties");
        let Some(properties) = schema.get("properties").and_then(Value::as_object).cloned() else {
            if closed != Some(&Value::Bool(false)) {
                return self.stop("it takes properties of any name");
            }
            schema.insert("properties".to_owned(), json!({}));
            schema.insert("required".to_owned(), json!([]));
            return Ok(());
        };
        if closed.is_some_and(|more| more != false) {
            return self.stop("it takes properties of any name");
        }
        let needed: Vec<String> = required(schema).into_iter().map(str::to_owned).collect();
        if let Some(missing) = needed.iter().find(|name| !properties.contains_key(*name)) {
            return self.stop(format!("it requires `{missing}`, which it does not describe"));
        }
        let mut all = Map::new();
        for (name, property) in &properties {
            let step = if self.place.is_empty() { name.clone() } else { format!(".{name}") };
            let inner = self.at(step, |inner| inner.write(property))?;
            let inner = if needed.contains(name) { inner } else { nullable(inner) };
            all.insert(name.clone(), inner);
        }
        schema.insert("required".to_owned(), all.keys().cloned().collect());
        schema.insert("properties".to_owned(), Value::Object(all));
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        Ok(())
    }

    /// Alternatives: `anyOf`, and `oneOf` where no value fits two of them.
    fn write_alternatives(&mut self, mut schema: Map<String, Value>) -> Result<Value, StrictObstacle> {
        let (one_of, any_of) = (schema.shift_remove("oneOf"), schema.shift_remove("anyOf"));
        let exclusive = one_of.is_some();
        let (Some(Value::Array(branches)), None) = (one_of.clone().or(any_of.clone()), one_of.and(any_of)) else {
            return self.stop("it has both `anyOf` and `oneOf`");
        };
        if let Some(keyword) = schema.keys().find(|keyword| *keyword != "description") {
            return self.stop(format!("it has `{keyword}` beside its alternatives"));
        }
        if exclusive && !are_disjoint(&branches) {
            return self.stop("a value may fit more than one of its alternatives (`oneOf`)");
        }
        if confuses_nulls(&branches) {
            return self.stop("its alternatives disagree about whether a property may be null");
        }
        let mut written = Vec::new();
        for branch in &branches {
            let branch = self.write(branch)?;
            if !written.contains(&branch) {
                written.push(branch);
            }
        }
        if written.is_empty() {
            return self.stop("it has no alternatives");
        }
        schema.insert("anyOf".to_owned(), Value::Array(written));
        Ok(Value::Object(schema))
    }
}

/// Whether a null in a property could stand for an absent one in one alternative, and for null in another: then nobody could
/// say whether to drop it.
fn confuses_nulls(branches: &[Value]) -> bool {
    let mut stands_for_absent = Vec::new();
    let mut stands_for_null = Vec::new();
    for branch in branches.iter().filter_map(Value::as_object) {
        let needed = required(branch);
        for (name, property) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if allows_null(property) {
                stands_for_null.push(name);
            } else if !needed.contains(&name.as_str()) {
                stands_for_absent.push(name);
            }
        }
    }
    stands_for_absent.iter().any(|name| stands_for_null.contains(name))
}

/// The same schema, or null.
fn nullable(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        if !branches.iter().any(allows_null) {
            branches.push(json!({"type": "null"}));
        }
        return Value::Object(schema);
    }
    if let Some(value) = schema.shift_remove("const") {
        schema.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match schema.get_mut("type") {
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => kinds.push(json!("null")),
        Some(kind @ Value::String(_)) if *kind != "null" => *kind = json!([kind.clone(), "null"]),
        _ => {}
    }
    Value::Object(schema)
}

/// Puts the lengths of a text into its description.
fn describe_lengths(schema: &mut Map<String, Value>) {
    let mut take = |keyword: &str| schema.shift_remove(keyword).and_then(|value| value.as_u64());
    let sentence = match (take("minLength").unwrap_or_default(), take("maxLength")) {
        (0, None) => return,
        (1, None) => "Not empty.".to_owned(),
        (least, None) => format!("At least {least} characters."),
        (0, Some(most)) => format!("At most {most} characters."),
        (least, Some(most)) => format!("{least} to {most} characters."),
    };
    describe(schema, &sentence);
}
