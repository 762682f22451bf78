//! The form of a schema that Gemini takes: the subset of `OpenAPI` 3.0 that its `Schema` message has.
//!
//! A list of types becomes `anyOf`, null becomes `nullable`, `const` becomes an enum of one, `oneOf` becomes `anyOf`, and
//! what is referred to is put in place. Rules that the subset lacks are left out or put into the description; haft checks
//! the arguments against the tool's own schema.

use super::merging::{Conflict, merge, merge_all_of};
use super::references::{Recursion, has_references, resolved};
use super::rules::{GEMINI, SchemaRules};
use super::subschemas::{describe, required, type_of, types};
use super::{NoteKind, RewrittenSchema, portable, takes_property};
use serde_json::{Map, Value, json};

/// How many values are named in a description.
const NAMED_MAX: usize = 20;

/// The schema in Gemini's form. The error says why Gemini cannot be told of the tool.
pub(super) fn gemini_form(schema: &Value) -> Result<RewrittenSchema, String> {
    let whole = if has_references(schema) {
        resolved(schema, Recursion::Cut).map_err(|error| error.to_string())?
    } else {
        schema.clone()
    };
    // The root takes the portable form first. Names of properties are checked while writing, because the rule covers nested
    // objects.
    let RewrittenSchema { schema: root, mut notes } = portable::portable_form(&whole, &ROOT)?;
    let mut writer = GeminiWriter { rules: GEMINI.schema, notes: Vec::new(), refused: None };
    let mut form = writer.write(&root);
    if let Some(reason) = writer.refused {
        return Err(reason);
    }
    notes.extend(writer.notes);
    form.insert("type".to_owned(), json!("object"));
    Ok(RewrittenSchema { schema: Value::Object(form), notes })
}

/// What the root must not have before it is written.
static ROOT: SchemaRules = SchemaRules {
    keywords: None,
    not_at_root: &["oneOf", "anyOf", "allOf", "enum", "const", "not"],
    root_lists_properties: true,
    closed_objects: false,
    one_type: false,
    typed: false,
    lists_have_items: false,
    enums_of_strings: false,
    lone_any_of: false,
    formats: None,
    plain_patterns: false,
    property_name: None,
    nested_property_names: false,
    sizes: None,
};

/// Writes schemas in Gemini's form.
struct GeminiWriter {
    rules: &'static SchemaRules,
    notes: Vec<(NoteKind, String)>,
    /// Why the tool cannot be told at all.
    refused: Option<String>,
}

impl GeminiWriter {
    fn write(&mut self, schema: &Value) -> Map<String, Value> {
        let Some(object) = schema.as_object() else { return any_value() };
        let mut schema = object.clone();
        // `Conflict::First` fails only at a part that is no schema; the declaration is then looser.
        let _ = merge_all_of(&mut schema, Conflict::First);
        if let Some(alternatives) = self.alternatives(&mut schema) {
            return alternatives;
        }
        if let Some(value) = schema.shift_remove("const") {
            schema.insert("enum".to_owned(), json!([value]));
        }
        let mut kinds: Vec<String> = types(&schema).into_iter().map(str::to_owned).collect();
        let mut nullable = schema.get("nullable") == Some(&Value::Bool(true));
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            nullable |= values.contains(&Value::Null) && (kinds.is_empty() || kinds.iter().any(|kind| kind == "null"));
        }
        if kinds.is_empty() {
            kinds = implied_types(&schema);
        } else if kinds.len() > 1 || kinds == ["null"] {
            nullable |= kinds.iter().any(|kind| kind == "null");
            kinds.retain(|kind| kind != "null");
        }
        let description = schema.get("description").cloned();
        let mut form = match kinds.as_slice() {
            [] if schema.contains_key("type") => {
                let mut nothing = Map::new();
                nothing.insert("type".to_owned(), json!("string"));
                describe(&mut nothing, "Always null.");
                nothing
            }
            [] => with_description(any_value(), description.as_ref()),
            [one] => self.write_type(one, &schema, description.as_ref()),
            many => {
                let branches: Vec<Value> = many
                    .iter()
                    .enumerate()
                    .map(|(at, kind)| self.write_type(kind, &schema, description.as_ref().filter(|_| at == 0)).into())
                    .collect();
                [("anyOf".to_owned(), Value::Array(branches))].into_iter().collect()
            }
        };
        if nullable {
            make_nullable(&mut form);
        }
        form
    }

    /// `anyOf` and `oneOf`, if they say more than which properties are required.
    fn alternatives(&mut self, schema: &mut Map<String, Value>) -> Option<Map<String, Value>> {
        let mut branches = Vec::new();
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(list)) = schema.shift_remove(keyword) {
                branches.extend(list);
            }
        }
        let is_null =
            |branch: &Value| branch["type"] == "null" || branch["const"].is_null() && branch.get("const").is_some();
        let nullable = branches.iter().any(is_null);
        branches.retain(|branch| !is_null(branch));
        let typed = |branch: &Value| {
            ["type", "properties", "items", "enum", "const", "anyOf", "oneOf", "allOf"]
                .iter()
                .any(|keyword| branch.get(*keyword).is_some())
        };
        if branches.is_empty() && nullable {
            let mut rest = std::mem::take(schema);
            rest.insert("type".to_owned(), json!("null"));
            return Some(self.write(&Value::Object(rest)));
        }
        if !branches.iter().any(typed) {
            return None;
        }
        let description = schema.shift_remove("description");
        let mut written: Vec<Map<String, Value>> = Vec::new();
        for branch in branches {
            let Value::Object(mut branch) = branch else { continue };
            // What stands beside the alternatives counts for each of them.
            let _ = merge(&mut branch, schema.clone(), Conflict::First);
            let form = self.write(&Value::Object(branch));
            let inner = form.get("anyOf").and_then(Value::as_array).cloned();
            let flat = inner.map_or_else(|| vec![form], |inner| inner.into_iter().filter_map(into_object).collect());
            for form in flat {
                if !written.contains(&form) {
                    written.push(form);
                }
            }
        }
        let mut form = if written.len() == 1 {
            written.remove(0)
        } else {
            let list = written.into_iter().map(Value::Object).collect();
            [("anyOf".to_owned(), Value::Array(list))].into_iter().collect()
        };
        form = with_description(form, description.as_ref());
        if nullable {
            make_nullable(&mut form);
        }
        Some(form)
    }

    /// The schema as far as it speaks of one type.
    fn write_type(
        &mut self,
        kind: &str,
        schema: &Map<String, Value>,
        description: Option<&Value>,
    ) -> Map<String, Value> {
        let mut form = Map::new();
        form.insert("type".to_owned(), json!(kind));
        if let Some(description) = description {
            form.insert("description".to_owned(), description.clone());
        }
        let copied: &[&str] = match kind {
            "string" => &["minLength", "maxLength", "pattern"],
            "number" | "integer" => &["minimum", "maximum"],
            "array" => &["minItems", "maxItems"],
            "object" => &["minProperties", "maxProperties"],
            _ => &[],
        };
        for keyword in copied {
            if let Some(value) = schema.get(*keyword) {
                form.insert((*keyword).to_owned(), value.clone());
            }
        }
        self.write_format(kind, schema, &mut form);
        write_values(kind, schema, &mut form);
        match kind {
            "object" => self.write_object(schema, &mut form),
            "array" => self.write_items(schema, &mut form),
            _ => {}
        }
        form
    }

    fn write_format(&self, kind: &str, schema: &Map<String, Value>, form: &mut Map<String, Value>) {
        let Some(format) = schema.get("format").and_then(Value::as_str) else { return };
        let known = self.rules.formats.unwrap_or_default().iter().find(|(named, _)| *named == kind);
        if format != "enum" && known.is_some_and(|(_, formats)| formats.contains(&format)) {
            form.insert("format".to_owned(), json!(format));
        } else if kind == "string" {
            describe(form, &format!("Format: {}.", crate::preview::inert(format)));
        }
    }

    fn write_object(&mut self, schema: &Map<String, Value>, form: &mut Map<String, Value>) {
        let needed = required(schema);
        let mut properties = Map::new();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if takes_property(self.rules, name) {
                properties.insert(name.clone(), Value::Object(self.write(property)));
                continue;
            }
            let reason = format!("`{}` has a name that the provider does not take", crate::preview::inert(name));
            if needed.contains(&name.as_str()) {
                self.refused.get_or_insert(format!("its parameter {reason}"));
            } else {
                self.notes.push((NoteKind::ParameterLeftOut, reason));
            }
        }
        let needed: Vec<&str> = needed.into_iter().filter(|name| properties.contains_key(*name)).collect();
        let named = schema.contains_key("properties");
        if named {
            form.insert("properties".to_owned(), Value::Object(properties));
        }
        if !needed.is_empty() {
            form.insert("required".to_owned(), json!(needed));
        }
        match schema.get("additionalProperties") {
            Some(Value::Object(each)) if !types(each).is_empty() => {
                describe(form, &format!("Takes properties of any name; each value: {}.", types(each).join(" or ")));
            }
            Some(Value::Object(_) | Value::Bool(true)) if !named => {
                describe(form, "Takes properties of any name.");
            }
            _ => {}
        }
    }

    fn write_items(&mut self, schema: &Map<String, Value>, form: &mut Map<String, Value>) {
        let items = match (schema.get("items"), schema.get("prefixItems").and_then(Value::as_array)) {
            (Some(items), None) => self.write(items),
            (_, Some(each)) if !each.is_empty() => {
                let all = json!({ "anyOf": each });
                self.write(&all)
            }
            _ => any_value(),
        };
        form.insert("items".to_owned(), Value::Object(items));
    }
}

/// The values that a schema names, as far as they are of this type: strings as an enum, others in words.
fn write_values(kind: &str, schema: &Map<String, Value>, form: &mut Map<String, Value>) {
    let Some(values) = schema.get("enum").and_then(Value::as_array) else { return };
    let of_kind = |value: &&Value| match kind {
        "number" => value.is_number(),
        _ => type_of(value) == kind,
    };
    let mut mine: Vec<&Value> = values.iter().filter(of_kind).collect();
    mine.dedup();
    if mine.is_empty() {
        return;
    }
    let has_empty = mine.iter().any(|value| value.as_str() == Some(""));
    if kind == "string" && !has_empty {
        form.insert("enum".to_owned(), json!(mine));
        return;
    }
    let named: Vec<String> = mine.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = if mine.len() > NAMED_MAX { " and others" } else { "" };
    describe(form, &format!("One of: {}{more}.", named.join(", ")));
}

/// The types that a schema without `type` speaks of.
fn implied_types(schema: &Map<String, Value>) -> Vec<String> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let mut kinds: Vec<String> =
            values.iter().map(type_of).filter(|kind| *kind != "null").map(str::to_owned).collect();
        kinds.sort_unstable();
        kinds.dedup();
        return kinds;
    }
    if ["properties", "required"].iter().any(|keyword| schema.contains_key(*keyword)) {
        return vec!["object".to_owned()];
    }
    if ["items", "prefixItems"].iter().any(|keyword| schema.contains_key(*keyword)) {
        return vec!["array".to_owned()];
    }
    Vec::new()
}

/// A schema of any JSON value.
fn any_value() -> Map<String, Value> {
    let scalars = [json!({"type": "string"}), json!({"type": "number"}), json!({"type": "boolean"})];
    let mut branches = scalars.to_vec();
    branches.push(json!({"type": "object"}));
    branches.push(json!({"type": "array", "items": {"anyOf": scalars}}));
    [("anyOf".to_owned(), Value::Array(branches))].into_iter().collect()
}

/// Puts a description where one may stand: beside alternatives there is no room for one.
fn with_description(mut form: Map<String, Value>, description: Option<&Value>) -> Map<String, Value> {
    let Some(text) = description.and_then(Value::as_str).filter(|text| !text.is_empty()) else { return form };
    in_first(&mut form, |first| {
        let both = match first.get("description").and_then(Value::as_str) {
            Some(own) if own != text => format!("{text} {own}"),
            _ => text.to_owned(),
        };
        first.insert("description".to_owned(), both.into());
    });
    form
}

fn make_nullable(form: &mut Map<String, Value>) {
    in_first(form, |first| {
        first.insert("nullable".to_owned(), Value::Bool(true));
    });
}

/// Changes the first of a schema's alternatives, or the schema itself if it has none.
fn in_first(form: &mut Map<String, Value>, change: impl FnOnce(&mut Map<String, Value>)) {
    match form.get_mut("anyOf").and_then(Value::as_array_mut).and_then(|branches| branches.first_mut()) {
        Some(Value::Object(first)) => change(first),
        _ => change(form),
    }
}

fn into_object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}
