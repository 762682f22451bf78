//! The shape of a manifest: the published JSON Schema is the one place that says it, for editors and for us.

use super::Manifest;
use super::flaw::Flaw;
use super::secrets::misplaced;
use super::written::{self, Written};
use crate::host::HostRule;
use crate::schema::{Schema, Violation};
use serde_json::Value;
use std::sync::LazyLock;

/// The published schema, as text.
pub const SCHEMA: &str = include_str!("tool.schema.json");

/// The published schema, as a value.
pub fn schema() -> &'static Value {
    static SOURCE: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(SCHEMA).unwrap_or_default());
    &SOURCE
}

/// The published schema, compiled. None only if this program was built with a broken one.
fn compiled() -> Option<&'static Schema> {
    static COMPILED: LazyLock<Option<Schema>> = LazyLock::new(|| Schema::compile(schema()).ok());
    COMPILED.as_ref()
}

impl Manifest {
    /// Reads a manifest. Everything of the wrong shape is told, each with its place.
    pub fn read(text: &str) -> Result<Self, Vec<Flaw>> {
        let value = written::parse(text).map_err(|flaw| vec![flaw])?;
        let written = Written::new(text);
        Self::of(value).map_err(|flaws| flaws.into_iter().map(|flaw| written.placed(flaw)).collect())
    }

    /// The same from a value that was never text: its flaws have no places.
    pub fn of(mut value: Value) -> Result<Self, Vec<Flaw>> {
        let schema = compiled().ok_or_else(|| vec![Flaw::error("shape", "", "the schema of manifests is broken")])?;
        let flaws = if schema.fits(&value) {
            strange_hosts(&value).into_iter().chain(misplaced(&value)).chain(winding(&value)).collect()
        } else {
            misshapen(schema, &value)
        };
        if !flaws.is_empty() {
            return Err(flaws);
        }
        // `1.0` is a whole number to a schema, and not to a type.
        schema.prepare(&mut value);
        serde_json::from_value(value).map_err(|error| vec![Flaw::error("shape", "", error.to_string())])
    }
}

/// Places that go back up behind a name: where that leads depends on what the name is when somebody looks.
fn winding(value: &Value) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    for list in ["/permissions/fs/read", "/permissions/fs/write"] {
        let places = value.pointer(list).and_then(Value::as_array).into_iter().flatten();
        for (index, place) in places.enumerate() {
            let parts = place.as_str().unwrap_or_default().split('/').filter(|part| !matches!(*part, "" | "."));
            if parts.skip_while(|part| *part == "..").any(|part| part == "..") {
                let message = "goes back up behind a name; write the place itself";
                flaws.push(Flaw::error("permissions-path", format!("{list}/{index}"), message));
            }
        }
    }
    flaws
}

/// What a schema cannot say of hosts.
fn strange_hosts(value: &Value) -> Vec<Flaw> {
    let hosts = value.pointer("/permissions/network").and_then(Value::as_array).into_iter().flatten();
    let check = |(index, host): (usize, &Value)| {
        let fault = host.as_str().unwrap_or_default().parse::<HostRule>().err()?;
        Some(Flaw::error("shape", format!("/permissions/network/{index}"), fault.to_string()))
    };
    hosts.enumerate().filter_map(check).collect()
}

/// Everything of the wrong shape.
fn misshapen(schema: &Schema, value: &Value) -> Vec<Flaw> {
    if !value.is_object() {
        let message = if value.is_null() { "the file says nothing" } else { "a manifest is `key: value` lines" };
        return vec![Flaw::error("shape", "", message)];
    }
    let flaws: Vec<Flaw> = schema.violations(value).into_iter().map(|violation| worded(violation, value)).collect();
    // Whatever made it unfit is told, even if nobody can say what.
    if flaws.is_empty() { vec![Flaw::error("shape", "", "it does not fit the schema of manifests")] } else { flaws }
}

/// A violation in the words of somebody who writes manifests.
fn worded(violation: Violation, value: &Value) -> Flaw {
    let Violation { pointer, expected, found } = violation;
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    if let Some(why) = expected.strip_prefix("no such property ") {
        return Flaw::error("unknown-key", pointer, format!("there is no such key {why}"));
    }
    if found == "nothing" {
        let message = match pointer.strip_prefix("/exec/") {
            Some(member) if member == kind => format!("is missing: `kind` is {kind}"),
            _ if expected == "a value" => "is missing".to_owned(),
            _ => format!("is missing: {} {expected}", article(&expected)),
        };
        return Flaw::error("missing", pointer, message);
    }
    let message = match (pointer.as_str(), expected.split(':').next().unwrap_or_default()) {
        ("/name", "text that matches \"^[A-Za-z][A-Za-z0-9_-]*$\"") => {
            format!("a name is letters, digits, `_` and `-`, beginning with a letter; got {found}")
        }
        ("/exec/http/url", start) if start.starts_with("text that matches") => {
            format!("a URL begins with https:// or http:// and a host; got {found}")
        }
        ("/exec", "maxProperties" | "minProperties") => {
            format!("exactly one member, and it is `{kind}`")
        }
        _ => format!("expected {expected}, got {found}"),
    };
    Flaw::error("shape", pointer, message)
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests;
