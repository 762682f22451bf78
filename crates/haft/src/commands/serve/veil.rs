//! Settings for everybody's eyes: what may be a secret is covered, what merely stands for one is not.

use haft_core::secret;
use serde_json::{Value, json};

/// What is seen instead.
const COVER: &str = "…";
/// Settings whose values are all covered: what is in them is mostly secret, whatever its name.
const PRIVATE: [&str; 2] = ["env", "headers"];

/// A value with everything covered that may be a secret.
pub(super) fn veiled(value: Value) -> Value {
    within("", value)
}

fn within(name: &str, value: Value) -> Value {
    match value {
        Value::String(text) if secret::is_secret_name(name) => json!(covered(text)),
        Value::String(text) => json!(words(&text)),
        Value::Array(items) => list(name, items),
        Value::Object(fields) if PRIVATE.contains(&name) => {
            fields.into_iter().map(|(key, value)| (key, private(value))).collect()
        }
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key.clone(), within(&key, value))).collect(),
        other => other,
    }
}

fn private(value: Value) -> Value {
    match value {
        Value::String(text) => json!(covered(text)),
        Value::Null => Value::Null,
        _ => json!(COVER),
    }
}

/// A list, which may be the words of a command.
fn list(name: &str, items: Vec<Value>) -> Value {
    let mut after_name = false;
    let one = |item: Value| match item {
        Value::String(text) if after_name => {
            after_name = false;
            json!(covered(text))
        }
        Value::String(text) => {
            after_name = names_a_secret(&text);
            within(name, Value::String(text))
        }
        other => within(name, other),
    };
    items.into_iter().map(one).collect()
}

/// A text, which may be a whole command.
fn words(text: &str) -> String {
    let mut after_name = false;
    let word = |word: &str| {
        let shown = if after_name && !word.is_empty() { covered(word.to_owned()) } else { assigned(word) };
        after_name = names_a_secret(word);
        shown
    };
    let shown: Vec<String> = text.split(' ').map(word).collect();
    secret::mask(&shown.join(" ")).into_owned()
}

/// Whether this is an option like `--password`, whose value comes next.
fn names_a_secret(word: &str) -> bool {
    word.starts_with('-') && !word.contains('=') && secret::is_secret_name(word)
}

/// `name=value` without the value of a secret; an address without what is private in it.
fn assigned(word: &str) -> String {
    match word.split_once('=') {
        Some((name, value)) if !name.contains("://") && secret::is_secret_name(name) => {
            format!("{name}={}", covered(value.to_owned()))
        }
        _ => address(word),
    }
}

/// An address without its user, query and fragment, wherever it stands in a word.
fn address(word: &str) -> String {
    let Some((before, rest)) = word.split_once("://") else { return word.to_owned() };
    let (rest, hidden) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], &rest[at..=at]),
        None => (rest, ""),
    };
    let host_ends = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(host_ends);
    let host = host.rsplit_once('@').map_or(host.to_owned(), |(_, host)| format!("{COVER}@{host}"));
    let cover = if hidden.is_empty() { "" } else { COVER };
    format!("{before}://{host}{path}{hidden}{cover}")
}

/// Nothing of it is seen, unless it is the name of a variable and nothing else.
fn covered(text: String) -> String {
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let pure = name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    if pure { text } else { COVER.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_covered_and_what_stands_for_them_is_not() {
        let config = json!({
            "budget_tokens": 1500,
            "servers": {"db": {
                "command": "serve --token abc --port 80",
                "args": ["--password", "hunter2", "--token=xyz", "--name", "db", "API_KEY=k", "--secret", "${S}"],
                "env": {"API_KEY": "abc", "OTHER": "${TOKEN}", "MIXED": "${A}literal", "PGPASS": "x", "N": 1},
                "headers": {"X-Auth": "abc", "Cookie": "a=b"},
                "url": "https://me:pw@example.org/mcp?api_key=abc",
            }},
        });
        let shown = json!({
            "budget_tokens": 1500,
            "servers": {"db": {
                "command": "serve --token … --port 80",
                "args": ["--password", "…", "--token=…", "--name", "db", "API_KEY=…", "--secret", "${S}"],
                "env": {"API_KEY": "…", "OTHER": "${TOKEN}", "MIXED": "…", "PGPASS": "…", "N": "…"},
                "headers": {"X-Auth": "…", "Cookie": "…"},
                "url": "https://…@example.org/mcp?…",
            }},
        });
        assert_eq!(veiled(config), shown);
    }

    #[test]
    fn an_address_in_a_message_loses_its_query() {
        let said = json!("error sending request for url (http://127.0.0.1:1/mcp?api_key=abc): refused");
        assert_eq!(veiled(said), json!("error sending request for url (http://127.0.0.1:1/mcp?… refused"));
        assert_eq!(veiled(json!("see https://example.org/a/b")), json!("see https://example.org/a/b"));
    }
}
