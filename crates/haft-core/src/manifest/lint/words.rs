//! The texts that models and people read: they hide nothing and give no orders.

use super::super::Manifest;
use super::super::fix::below;
use super::super::flaw::Flaw;
use serde_json::Value;

/// So many texts of a schema are looked at; what has more is no honest schema.
const TEXTS_MAX: usize = 500;

pub(super) fn check(manifest: &Manifest, flaws: &mut Vec<Flaw>) {
    if manifest.description.trim().is_empty() {
        flaws.push(Flaw::error("description", "/description", "is empty: models choose a tool by it"));
    }
    let mut texts = vec![("/description".to_owned(), manifest.description.as_str())];
    described(&manifest.inputs.schema, "/inputs/schema", 0, &mut texts);
    texts.extend(manifest.approval.reason.as_deref().map(|reason| ("/approval/reason".to_owned(), reason)));
    let examples =
        manifest.examples.iter().zip(0..).filter_map(|(example, index)| Some((example.description.as_deref()?, index)));
    texts.extend(examples.map(|(text, index)| (format!("/examples/{index}/description"), text)));
    flaws.extend(texts.into_iter().filter_map(|(pointer, text)| judged(pointer, text)));
}

/// The texts of a schema.
fn described<'s>(schema: &'s Value, at: &str, depth: usize, texts: &mut Vec<(String, &'s str)>) {
    if depth > crate::schema::MAX_DEPTH || texts.len() > TEXTS_MAX {
        return;
    }
    let entries: Vec<(String, &Value)> = match schema {
        Value::Object(map) => map.iter().map(|(key, value)| (below(at, key), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (format!("{at}/{index}"), value)).collect()
        }
        _ => return,
    };
    for (pointer, value) in entries {
        match value {
            Value::String(text) if pointer.ends_with("/description") || pointer.ends_with("/title") => {
                texts.push((pointer, text));
            }
            other => described(other, &pointer, depth + 1, texts),
        }
    }
}

fn judged(pointer: String, text: &str) -> Option<Flaw> {
    if text.chars().any(is_hidden) {
        let message = "has characters that nobody sees; models read them nevertheless";
        return Some(Flaw::error("description", pointer, message));
    }
    let scan = crate::scan::scan(text);
    if scan.is_flagged() {
        let message = format!("reads like an attack on models: {}", scan.reasons());
        return Some(Flaw::error("description", pointer, message));
    }
    scan.is_noted().then(|| {
        let message = format!("could be taken for an order to models: {}", scan.reasons());
        Flaw::warning("description", pointer, message)
    })
}

/// Control characters, changes of direction, zero width.
fn is_hidden(c: char) -> bool {
    !matches!(c, '\n' | '\t' | '\r')
        && (c.is_control() || (!c.is_ascii() && crate::preview::inert(c.encode_utf8(&mut [0; 4])).starts_with('\\')))
}
