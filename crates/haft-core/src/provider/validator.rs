//! Whether a provider would take a declaration, by its documented rules ([`super::rules`]).

use super::Provider;
use super::merging::is_discriminator;
use super::rules::{SchemaRules, SchemaSizes};
use super::subschemas::{each, required, types};
use serde_json::{Map, Value};
use std::fmt;

/// A rule that a declaration breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleViolation {
    /// Where in the schema, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// Which rule.
    pub rule: String,
}

impl fmt::Display for RuleViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, rule } = self;
        if pointer.is_empty() { f.write_str(rule) } else { write!(f, "at {}: {rule}", crate::preview::inert(pointer)) }
    }
}

/// Every rule of this provider that a declaration breaks.
pub fn violations(provider: Provider, declaration: &Value) -> Vec<RuleViolation> {
    let rules = provider.rules();
    let function = if provider == Provider::OpenAiChat { &declaration["function"] } else { declaration };
    let parameters = if provider == Provider::Anthropic { &function["input_schema"] } else { &function["parameters"] };
    let schema_rules = match rules.strict {
        Some(strict) if function["strict"] == true => strict,
        _ => rules.schema,
    };
    let mut check = SchemaCheck { rules: schema_rules, found: Vec::new(), size: SchemaCounts::default() };
    let name = function["name"].as_str().unwrap_or_default();
    if !rules.name.fits(name) {
        check.add("", format!("`{}` is no name for a tool", crate::preview::inert(name)));
    }
    let length = function["description"].as_str().unwrap_or_default().chars().count();
    if let Some(most) = rules.description_max.filter(|most| length > *most) {
        check.add("", format!("its description has {length} characters, {most} are allowed"));
    }
    check.root(parameters);
    check.found
}

/// The counts that [`SchemaSizes`] limits.
#[derive(Default)]
struct SchemaCounts {
    properties: usize,
    text: usize,
    enum_values: usize,
}

struct SchemaCheck {
    rules: &'static SchemaRules,
    found: Vec<RuleViolation>,
    size: SchemaCounts,
}

impl SchemaCheck {
    fn add(&mut self, pointer: &str, rule: impl Into<String>) {
        self.found.push(RuleViolation { pointer: pointer.to_owned(), rule: rule.into() });
    }

    fn root(&mut self, schema: &Value) {
        let Some(root) = schema.as_object() else { return self.add("", "its parameters are not a JSON Schema") };
        if root.get("type").is_none_or(|kind| kind != "object") {
            self.add("", "its parameters are not of type `object`");
        }
        for keyword in self.rules.not_at_root {
            if root.contains_key(*keyword) {
                self.add("", format!("`{keyword}` stands at the top level"));
            }
        }
        if self.rules.root_lists_properties && !root.get("properties").is_some_and(Value::is_object) {
            self.add("", "its parameters list no properties");
        }
        self.names(root, "");
        self.schema(schema, "", 0);
        if let Some(sizes) = self.rules.sizes {
            self.sizes(sizes);
        }
    }

    fn schema(&mut self, schema: &Value, at: &str, depth: usize) {
        let Some(object) = schema.as_object() else {
            if self.rules.typed {
                self.add(at, "it accepts anything or nothing");
            }
            return;
        };
        if let Some(keywords) = self.rules.keywords {
            for keyword in object.keys().filter(|keyword| !keywords.contains(&keyword.as_str())) {
                self.add(at, format!("`{keyword}` is not known"));
            }
        }
        let kinds = types(object);
        let nests = kinds.contains(&"object") || kinds.contains(&"array");
        let depth = depth + usize::from(nests);
        if let Some(sizes) = self.rules.sizes.filter(|sizes| depth > sizes.depth) {
            // Once is enough: everything inside is deeper still.
            return self.add(at, format!("it nests deeper than {} levels", sizes.depth));
        }
        self.types(object, &kinds, at);
        self.values(object, &kinds, at);
        if kinds.contains(&"object") {
            self.object(object, at);
        }
        if self.rules.lists_have_items && kinds.contains(&"array") && !object.contains_key("items") {
            self.add(at, "a list does not say what its items are");
        }
        self.alternatives(object, at);
        let mut inside = Vec::new();
        each(object, &mut |step, inner| inside.push((format!("{at}/{step}"), inner.clone())));
        for (place, inner) in inside {
            self.schema(&inner, &place, depth);
        }
    }

    fn types(&mut self, object: &Map<String, Value>, kinds: &[&str], at: &str) {
        let has = |keyword: &str| object.contains_key(keyword);
        let told =
            has("type") || has("anyOf") || (!self.rules.one_type && (has("enum") || has("const") || has("$ref")));
        if self.rules.typed && !told {
            self.add(at, "it does not say of which type it is");
        }
        if self.rules.one_type && object.get("type").is_some_and(|kind| !kind.is_string()) {
            self.add(at, "`type` is a list");
        }
        if self.rules.lone_any_of && has("anyOf") && object.len() > 1 {
            self.add(at, "`anyOf` must be the only keyword");
        }
        if let (Some(formats), Some(format)) = (self.rules.formats, object.get("format").and_then(Value::as_str)) {
            let known = formats.iter().any(|(kind, names)| kinds.contains(kind) && names.contains(&format));
            if !known {
                self.add(at, format!("the format `{}` is not known", crate::preview::inert(format)));
            }
        }
        if let (true, Some(pattern)) = (self.rules.plain_patterns, object.get("pattern").and_then(Value::as_str))
            && !is_plain_pattern(pattern)
        {
            self.add(at, "the pattern uses lookaround or a backreference");
        }
    }

    fn values(&mut self, object: &Map<String, Value>, kinds: &[&str], at: &str) {
        if let Some(value) = object.get("const") {
            self.size.text += value.as_str().map_or(0, str::len);
        }
        let Some(values) = object.get("enum") else { return };
        let Some(values) = values.as_array().filter(|values| !values.is_empty()) else {
            return self.add(at, "`enum` names no values");
        };
        let text: usize = values.iter().filter_map(Value::as_str).map(str::len).sum();
        self.size.text += text;
        self.size.enum_values += values.len();
        if let Some(SchemaSizes { long_enum: (many, most), .. }) = self.rules.sizes
            && values.len() > many
            && text > most
        {
            self.add(at, format!("an enum of more than {many} values has {text} characters, {most} are allowed"));
        }
        if self.rules.enums_of_strings {
            let strings = values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty()));
            if kinds != ["string"] || !strings {
                self.add(at, "`enum` is for strings that are not empty");
            }
        }
    }

    fn object(&mut self, object: &Map<String, Value>, at: &str) {
        let empty = Map::new();
        let properties = object.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        self.size.properties += properties.len();
        self.size.text += properties.keys().map(String::len).sum::<usize>();
        let needed = required(object);
        if self.rules.closed_objects {
            if object.get("additionalProperties") != Some(&Value::Bool(false)) {
                self.add(at, "an object is open (`additionalProperties` is not false)");
            }
            if let Some(name) = properties.keys().find(|name| !needed.contains(&name.as_str())) {
                self.add(at, format!("`{}` is not required", crate::preview::inert(name)));
            }
        }
        if (self.rules.closed_objects || self.rules.one_type)
            && let Some(name) = needed.iter().find(|name| !properties.contains_key(**name))
        {
            self.add(at, format!("`{}` is required and not described", crate::preview::inert(name)));
        }
        if self.rules.nested_property_names && !at.is_empty() {
            self.names(object, at);
        }
    }

    fn names(&mut self, object: &Map<String, Value>, at: &str) {
        let Some(form) = self.rules.property_name else { return };
        let properties = object.get("properties").and_then(Value::as_object);
        for name in properties.into_iter().flat_map(Map::keys).filter(|name| !form.fits(name)) {
            self.add(at, format!("`{}` is no name for a property", crate::preview::inert(name)));
        }
    }

    /// Objects among the alternatives of a strict schema begin with different properties, or with different values of one.
    fn alternatives(&mut self, object: &Map<String, Value>, at: &str) {
        if !self.rules.closed_objects {
            return;
        }
        let branches = object.get("anyOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let objects: Vec<(&Map<String, Value>, &String)> = branches
            .iter()
            .filter_map(Value::as_object)
            .filter_map(|branch| Some((branch, branch.get("properties")?.as_object()?.keys().next()?)))
            .collect();
        for (number, (one, first)) in objects.iter().enumerate() {
            for (other, also) in &objects[number + 1..] {
                if first == also && !is_discriminator(one, other, first) {
                    return self.add(at, format!("two alternatives begin with `{}`", crate::preview::inert(first)));
                }
            }
        }
    }

    fn sizes(&mut self, most: SchemaSizes) {
        let SchemaCounts { properties, text, enum_values } = self.size;
        for (what, count, most) in [
            ("properties", properties, most.properties),
            ("characters in names and values", text, most.text),
            ("values in enums", enum_values, most.enum_values),
        ] {
            if count > most {
                self.add("", format!("it has {count} {what}, {most} are allowed"));
            }
        }
    }
}

/// Whether a pattern does without looking around and back.
fn is_plain_pattern(pattern: &str) -> bool {
    let mut escaped = false;
    for (at, c) in pattern.char_indices() {
        if escaped {
            escaped = false;
            if c.is_ascii_digit() && c != '0' || matches!(c, 'b' | 'B' | 'k' | 'p' | 'P') {
                return false;
            }
        } else if c == '\\' {
            escaped = true;
        } else if c == '(' {
            let rest = &pattern[at + 1..];
            if ["?=", "?!", "?<=", "?<!"].iter().any(|look| rest.starts_with(look)) {
                return false;
            }
        }
    }
    true
}
