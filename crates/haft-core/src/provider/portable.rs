//! The form of a schema that Anthropic takes, and `OpenAI` without strict mode: JSON Schema whose root is an object with
//! properties and no alternatives.
//!
//! The rules that the root may not have are left out; haft checks the arguments against the tool's own schema.

use super::merging::{Conflict, merge, merge_all_of};
use super::references::target;
use super::rules::SchemaRules;
use super::subschemas::{describe, each_mut, required, types};
use super::{NoteKind, RewrittenSchema, takes_property};
use serde_json::{Map, Value, json};

/// The longest chain of references that is followed.
const REFERENCES_MAX: usize = 16;

/// The schema as these rules have it. The error says why the provider cannot be told of the tool.
pub(super) fn portable_form(schema: &Value, rules: &SchemaRules) -> Result<RewrittenSchema, String> {
    let mut notes = Vec::new();
    let mut root = match schema {
        Value::Object(root) => root.clone(),
        Value::Bool(true) => Map::new(),
        _ => return Err("its input schema is no schema".to_owned()),
    };
    follow_references(schema, &mut root, rules);
    if rules.not_at_root.contains(&"allOf") {
        let parts = root.get_mut("allOf").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        let parts = parts.into_iter().map(|part| dereferenced(schema, part)).collect();
        root.insert("allOf".to_owned(), Value::Array(parts));
        merge_all_of(&mut root, Conflict::First)?;
    }
    for keyword in ["anyOf", "oneOf"].into_iter().filter(|keyword| rules.not_at_root.contains(keyword)) {
        if let Some(Value::Array(branches)) = root.shift_remove(keyword) {
            let branches: Vec<Value> = branches.into_iter().map(|branch| dereferenced(schema, branch)).collect();
            join_alternatives(&mut root, keyword, &branches);
            notes.push((NoteKind::Loosened, format!("`{keyword}` at the top level")));
        }
    }
    for keyword in rules.not_at_root {
        if root.shift_remove(*keyword).is_some() {
            notes.push((NoteKind::Loosened, format!("`{keyword}` at the top level")));
        }
    }
    let kinds = types(&root);
    if !kinds.is_empty() && !kinds.contains(&"object") {
        return Err("its arguments are not an object".to_owned());
    }
    root.insert("type".to_owned(), json!("object"));
    if rules.root_lists_properties && !root.get("properties").is_some_and(Value::is_object) {
        root.insert("properties".to_owned(), json!({}));
    }
    leave_out_names(&mut root, rules, &mut notes)?;
    let mut schema = Value::Object(root);
    if rules.lists_have_items {
        give_lists_items(&mut schema);
    }
    Ok(RewrittenSchema { schema, notes })
}

/// Puts what the root refers to in its place; definitions stay where they are.
fn follow_references(whole: &Value, root: &mut Map<String, Value>, rules: &SchemaRules) {
    if rules.not_at_root.is_empty() {
        return;
    }
    for _ in 0..REFERENCES_MAX {
        let Some(Value::String(reference)) = root.shift_remove("$ref") else { return };
        let Some(Value::Object(meant)) = target(whole, &reference) else { return };
        for (keyword, value) in meant {
            root.entry(keyword.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// What a part of the root refers to, together with what stands beside the reference.
fn dereferenced(whole: &Value, part: Value) -> Value {
    let mut part = part;
    for _ in 0..REFERENCES_MAX {
        let Some(reference) = part.get("$ref").and_then(Value::as_str) else { break };
        let Some(Value::Object(meant)) = target(whole, reference).cloned() else { break };
        let Value::Object(mut beside) = part else { break };
        beside.shift_remove("$ref");
        // `Conflict::First` never fails.
        let _ = merge(&mut beside, meant, Conflict::First);
        part = Value::Object(beside);
    }
    part
}

/// Makes one object of alternatives: it has the properties of all, and requires what all of them require.
fn join_alternatives(root: &mut Map<String, Value>, keyword: &str, branches: &[Value]) {
    let objects: Vec<&Map<String, Value>> = branches.iter().filter_map(Value::as_object).collect();
    let mut common: Option<Vec<&str>> = None;
    let mut sets: Vec<String> = Vec::new();
    for branch in &objects {
        let needed = required(branch);
        sets.push(needed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and "));
        common = Some(match common {
            None => needed,
            Some(common) => common.into_iter().filter(|name| needed.contains(name)).collect(),
        });
        let properties = branch.get("properties").cloned();
        let only_properties: Map<String, Value> =
            properties.map(|all| ("properties".to_owned(), all)).into_iter().collect();
        let _ = merge(root, only_properties, Conflict::First);
    }
    if let Some(common) = common.filter(|common| !common.is_empty()) {
        let more: Map<String, Value> = [("required".to_owned(), json!(common))].into_iter().collect();
        let _ = merge(root, more, Conflict::First);
    }
    // A branch that closes the object closes it to what the others have.
    if objects.len() == branches.len() && sets.iter().all(|set| !set.is_empty()) && sets.len() > 1 {
        let how_many = if keyword == "oneOf" { "exactly one" } else { "at least one" };
        describe(root, &format!("Give {how_many} of: {}.", sets.join("; ")));
    }
}

/// Leaves out the parameters that cannot be named to the provider.
fn leave_out_names(
    root: &mut Map<String, Value>,
    rules: &SchemaRules,
    notes: &mut Vec<(NoteKind, String)>,
) -> Result<(), String> {
    let needed: Vec<String> = required(root).into_iter().map(str::to_owned).collect();
    let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) else { return Ok(()) };
    let odd: Vec<String> = properties.keys().filter(|name| !takes_property(rules, name)).cloned().collect();
    for name in odd {
        let shown = crate::preview::inert(&name);
        if needed.contains(&name) {
            return Err(format!("its parameter `{shown}` has a name that the provider does not take"));
        }
        properties.shift_remove(&name);
        notes.push((NoteKind::ParameterLeftOut, format!("`{shown}` has a name that the provider does not take")));
    }
    Ok(())
}

/// A list that says nothing of its items takes any.
fn give_lists_items(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if types(object).contains(&"array") && !object.contains_key("items") {
        object.insert("items".to_owned(), json!({}));
    }
    each_mut(object, &mut give_lists_items);
}
