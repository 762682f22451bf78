//! Whether a provider would take the tools of a request. Written from the providers' documents and error messages, and
//! apart from haft's own validator: what haft believes of the rules is not what it is judged by.

use crate::Wire;
use serde_json::{Map, Value};

/// What is wrong with the tools of a request, if something is.
pub(super) fn fault(wire: Wire, body: &Value) -> Option<String> {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    match wire {
        Wire::Anthropic => tools.iter().enumerate().find_map(|(at, tool)| anthropic(at, tool)),
        Wire::Chat => tools.iter().enumerate().find_map(|(at, tool)| {
            openai(&format!("tools[{at}].function"), &tool["function"]).filter(|_| tool["type"] == "function")
        }),
        Wire::Responses => tools
            .iter()
            .enumerate()
            .find_map(|(at, tool)| openai(&format!("tools[{at}]"), tool).filter(|_| tool["type"] == "function")),
        Wire::Gemini => {
            let declared = tools.iter().flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
            declared.enumerate().find_map(|(at, tool)| gemini(at, tool))
        }
    }
}

fn is_word(name: &str, also: &str) -> bool {
    (1..=64).contains(&name.chars().count()) && name.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn keys(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn anthropic(at: usize, tool: &Value) -> Option<String> {
    // Its own tools have a type with a date and no schema.
    if tool["type"].as_str().is_some_and(|kind| kind != "custom") {
        return None;
    }
    let (name, schema) = (tool["name"].as_str().unwrap_or_default(), &tool["input_schema"]);
    if !is_word(name, "_-") {
        return Some(format!("tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"));
    }
    if schema["type"] != "object" {
        return Some(format!("tools.{at}.custom.input_schema.type: Field required"));
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|keyword| schema.get(keyword).is_some()) {
        return Some(format!(
            "tools.{at}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        ));
    }
    keys(&schema["properties"]).find(|(name, _)| !is_word(name, "_.-")).map(|_| {
        format!(
            "tools.{at}.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
        )
    })
}

fn openai(param: &str, tool: &Value) -> Option<String> {
    let (name, schema) = (tool["name"].as_str().unwrap_or_default(), &tool["parameters"]);
    if !is_word(name, "_-") {
        return Some(format!(
            "Invalid '{param}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        ));
    }
    let invalid = |why: &str| Some(format!("Invalid schema for function '{name}': {why}"));
    // A function without parameters may leave them out.
    if schema.is_null() {
        return None;
    }
    if schema["type"] != "object" {
        return invalid("schema must be a JSON Schema of 'type: \"object\"'.");
    }
    if ["oneOf", "anyOf", "allOf", "enum", "not"].iter().any(|keyword| schema.get(keyword).is_some()) {
        return invalid(
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
        );
    }
    if !schema["properties"].is_object() {
        return invalid("In context=(), object schema missing properties.");
    }
    if let Some(place) = list_without_items(schema, "") {
        return invalid(&format!("In context=({place}), array schema missing items."));
    }
    if tool["strict"] == true {
        return strictly(schema, "", 0).and_then(|why| invalid(&why));
    }
    None
}

/// Where a list does not say what its items are.
fn list_without_items(schema: &Value, place: &str) -> Option<String> {
    if schema["type"] == "array" && schema.get("items").is_none() {
        return Some(place.to_owned());
    }
    let inside =
        keys(&schema["properties"]).find_map(|(name, inner)| list_without_items(inner, &format!("{place}'{name}', ")));
    inside.or_else(|| list_without_items(schema.get("items")?, &format!("{place}'items', ")))
}

const STRICT_FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
const NOT_STRICT: [&str; 22] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "default",
    "minLength",
    "maxLength",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "prefixItems",
];

/// What strict mode refuses.
fn strictly(schema: &Value, place: &str, depth: usize) -> Option<String> {
    let context = format!("In context=({place}), ");
    let Some(object) = schema.as_object() else { return Some(format!("{context}schema must be an object.")) };
    if let Some(keyword) = NOT_STRICT.iter().find(|keyword| object.contains_key(**keyword)) {
        return Some(format!("{context}'{keyword}' is not permitted."));
    }
    let is = |kind: &str| schema["type"] == kind || strings(&schema["type"]).contains(&kind);
    if !["type", "anyOf", "$ref", "enum", "const"].iter().any(|keyword| object.contains_key(*keyword)) {
        return Some(format!("{context}schema must have a 'type' key."));
    }
    if schema["format"].as_str().is_some_and(|format| !STRICT_FORMATS.contains(&format)) {
        return Some(format!("{context}'{}' is not a valid format.", schema["format"]));
    }
    if schema["pattern"]
        .as_str()
        .is_some_and(|pattern| pattern.contains("(?=") || pattern.contains("(?!") || pattern.contains("(?<"))
    {
        return Some(format!("{context}regex lookaround is not supported."));
    }
    let mut depth = depth;
    if is("object") {
        depth += 1;
        if schema["additionalProperties"] != false {
            return Some(format!("{context}'additionalProperties' is required to be supplied and to be false."));
        }
        let required = strings(&schema["required"]);
        if let Some((name, _)) = keys(&schema["properties"]).find(|(name, _)| !required.contains(&name.as_str())) {
            return Some(format!(
                "{context}'required' is required to be supplied and to be an array including every key in properties. \
                 Missing '{name}'."
            ));
        }
        if let Some(name) = required.iter().find(|name| schema["properties"].get(**name).is_none()) {
            return Some(format!("{context}'required' has '{name}', which is not in 'properties'."));
        }
    }
    if is("array") {
        depth += 1;
        if schema.get("items").is_none() {
            return Some(format!("{context}array schema missing items."));
        }
    }
    if depth > 10 {
        return Some(format!("{depth} levels of nesting exceeds limit of 10."));
    }
    if let Some(why) = same_first_keys(&schema["anyOf"]) {
        return Some(format!("{context}{why}"));
    }
    let named =
        keys(&schema["properties"]).find_map(|(name, inner)| strictly(inner, &format!("{place}'{name}', "), depth));
    let items = || strictly(schema.get("items")?, &format!("{place}'items', "), depth);
    let branches =
        || schema["anyOf"].as_array()?.iter().find_map(|branch| strictly(branch, &format!("{place}'anyOf', "), depth));
    named.or_else(items).or_else(branches)
}

fn same_first_keys(branches: &Value) -> Option<String> {
    let firsts: Vec<(&String, &Value)> =
        branches.as_array()?.iter().filter_map(|branch| keys(&branch["properties"]).next()).collect();
    let clash = firsts.iter().enumerate().any(|(at, (name, schema))| {
        firsts[at + 1..].iter().any(|(also, other)| {
            let told_apart = |one: &Value| one.get("const").is_some() || one.get("enum").is_some();
            name == also && (schema == other || !told_apart(schema) || !told_apart(other))
        })
    });
    clash.then(|| {
        "Objects provided via 'anyOf' must not share identical first keys. Consider adding a discriminator key or \
         rearranging the properties to ensure the first key is unique."
            .to_owned()
    })
}

/// The fields of the message that a schema is read into. What else there is, is an unknown name.
const GEMINI_FIELDS: [&str; 24] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
    "ref",
    "defs",
];
const GEMINI_TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

fn gemini(at: usize, tool: &Value) -> Option<String> {
    let name = tool["name"].as_str().unwrap_or_default();
    let place = format!("tools[0].function_declarations[{at}]");
    if !is_word(name, "_-.:") || name.starts_with(|c: char| !c.is_ascii_alphabetic() && c != '_') {
        return Some(format!(
            "GenerateContentRequest.{place}.name: Invalid function name. Must start with a letter or an underscore. Must be \
             alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
        ));
    }
    // A schema in the other field is read as JSON Schema.
    let schema = tool.get("parameters")?;
    if !schema["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("object")) {
        return Some(format!("GenerateContentRequest.{place}.parameters.type: must be OBJECT"));
    }
    gemini_schema(schema, &format!("{place}.parameters"))
}

fn gemini_schema(schema: &Value, place: &str) -> Option<String> {
    let object: &Map<String, Value> = schema.as_object()?;
    if let Some(odd) = object.keys().find(|key| !GEMINI_FIELDS.contains(&key.as_str())) {
        return Some(format!("Invalid JSON payload received. Unknown name \"{odd}\" at '{place}': Cannot find field."));
    }
    if schema["type"].is_array() {
        return Some(format!(
            "Invalid JSON payload received. Unknown name \"type\" at '{place}': Proto field is not repeating, cannot start list."
        ));
    }
    if object.contains_key("anyOf") {
        if object.len() > 1 {
            return Some(format!(
                "`{place}` schema specified other fields alongside any_of. When using any_of, it must be the only field set."
            ));
        }
        return schema["anyOf"].as_array()?.iter().find_map(|branch| gemini_schema(branch, &format!("{place}.any_of")));
    }
    let kind = schema["type"].as_str().unwrap_or_default().to_ascii_lowercase();
    if !GEMINI_TYPES.contains(&kind.as_str()) {
        return Some(format!(
            "Invalid value at '{place}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), \"{kind}\""
        ));
    }
    if let Some(values) = schema["enum"].as_array() {
        if kind != "string" {
            return Some(format!("GenerateContentRequest.{place}.enum: only allowed for STRING type"));
        }
        if values.iter().any(|value| !value.is_string()) {
            return Some(format!("Invalid value at '{place}.enum[0]' (TYPE_STRING)"));
        }
        if values.iter().any(|value| value == "") {
            return Some(format!("GenerateContentRequest.{place}.enum[0]: cannot be empty"));
        }
    }
    if kind == "string" && schema["format"].as_str().is_some_and(|format| format != "enum" && format != "date-time") {
        return Some(format!(
            "GenerateContentRequest.{place}.format: only 'enum' and 'date-time' are supported for STRING type"
        ));
    }
    if kind == "array" && schema.get("items").is_none() {
        return Some(format!("GenerateContentRequest.{place}.items: missing field."));
    }
    let properties = &schema["properties"];
    if let Some(name) = strings(&schema["required"]).iter().find(|name| properties.get(**name).is_none()) {
        return Some(format!("GenerateContentRequest.{place}.required[0]: property is not defined: {name}"));
    }
    if let Some((name, _)) =
        keys(properties).find(|(name, _)| !is_word(name, "_") || name.starts_with(|c: char| c.is_ascii_digit()))
    {
        return Some(format!("`{place}.{name}` parameter name is invalid. Must start with a letter or an underscore."));
    }
    let named = keys(properties).find_map(|(name, inner)| gemini_schema(inner, &format!("{place}.properties[{name}]")));
    named.or_else(|| gemini_schema(schema.get("items")?, &format!("{place}.items")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "each property is written where it is judged")]
    fn words(wire: Wire, property: Value, strict: bool) -> String {
        let parameters =
            json!({"type": "object", "properties": {"p": property}, "required": ["p"], "additionalProperties": false});
        let tool = match wire {
            Wire::Anthropic => json!({"name": "t", "input_schema": parameters}),
            Wire::Responses => json!({"type": "function", "name": "t", "parameters": parameters, "strict": strict}),
            Wire::Chat => {
                json!({"type": "function", "function": {"name": "t", "parameters": parameters, "strict": strict}})
            }
            Wire::Gemini => {
                let mut parameters = parameters;
                parameters.as_object_mut().map(|all| all.remove("additionalProperties"));
                json!({"functionDeclarations": [{"name": "t", "parameters": parameters}]})
            }
        };
        fault(wire, &json!({ "tools": [tool] })).unwrap_or_default()
    }

    #[test]
    fn open_object_in_a_strict_tool_is_refused_and_in_another_it_is_not() {
        for wire in [Wire::Responses, Wire::Chat] {
            assert!(
                words(wire, json!({"type": "object"}), true).contains("'additionalProperties' is required"),
                "{wire:?}"
            );
            assert_eq!(words(wire, json!({"type": "object"}), false), "", "{wire:?}");
        }
    }

    #[test]
    fn gemini_refuses_what_its_message_has_no_field_for() {
        for (property, why) in [
            (json!({"type": ["string", "null"]}), "Proto field is not repeating"),
            (json!({"type": "string", "const": "x"}), "Unknown name \"const\""),
            (json!({"type": "integer", "enum": [1]}), "only allowed for STRING type"),
            (json!({"type": "array"}), "items: missing field"),
            (json!({"anyOf": [{"type": "string"}], "description": "x"}), "the only field set"),
        ] {
            assert!(words(Wire::Gemini, property.clone(), false).contains(why), "{property}");
        }
        assert_eq!(words(Wire::Gemini, json!({"type": "string", "nullable": true}), false), "");
    }

    #[test]
    fn anthropic_refuses_alternatives_at_the_top() {
        let tool = json!({"name": "t", "input_schema": {"type": "object", "anyOf": []}});
        let words = fault(Wire::Anthropic, &json!({ "tools": [tool] })).unwrap();
        assert!(words.contains("at the top level"), "{words}");
    }
}
