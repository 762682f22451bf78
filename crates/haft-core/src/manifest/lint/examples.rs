//! Schemas that are valid, and examples that fit them.

use super::super::answer::pattern;
use super::super::flaw::Flaw;
use super::super::{Example, Format, Manifest};
use crate::schema::{Schema, Violation, excess};
use serde_json::Value;

pub(super) fn check(manifest: &Manifest, flaws: &mut Vec<Flaw>) {
    if let Some(schema) = &manifest.outputs.schema {
        flaws.extend(compiled(schema, "/outputs/schema").err());
    }
    match compiled(&manifest.inputs.schema, "/inputs/schema") {
        Err(flaw) => flaws.push(flaw),
        Ok(schema) => {
            for (index, example) in manifest.examples.iter().enumerate() {
                inputs(&schema, example, index, flaws);
            }
        }
    }
    let promised = |example: &Example| example.expected_output.as_ref().and_then(Value::as_str).map(pattern);
    let unreadable = manifest.examples.iter().enumerate().filter(|(_, example)| promised(example) == Some(None));
    if manifest.outputs.format == Format::Json {
        flaws.extend(unreadable.map(|(index, _)| {
            let message = "is not JSON, and `outputs.format` is json";
            Flaw::warning("example", format!("/examples/{index}/expected_output"), message)
        }));
    }
}

fn compiled(schema: &Value, at: &str) -> Result<Schema, Flaw> {
    if let Some(why) = excess(schema) {
        return Err(Flaw::error("schema", at, format!("takes too much work to check: {why}")));
    }
    Schema::compile(schema).map_err(|bad| {
        let below = if bad.pointer == "/" { "" } else { &bad.pointer };
        Flaw::error(
            "schema",
            format!("{at}{below}"),
            format!("is not JSON Schema 2020-12: {}", crate::preview::cut(&bad.why, 200)),
        )
    })
}

fn inputs(schema: &Schema, example: &Example, index: usize, flaws: &mut Vec<Flaw>) {
    let mut params = Value::Object(example.params.clone());
    schema.prepare(&mut params);
    if schema.fits(&params) {
        return;
    }
    flaws.extend(schema.violations(&params).into_iter().map(|Violation { pointer, expected, found }| {
        let message = format!("does not fit `inputs.schema`: expected {expected}, got {found}");
        Flaw::error("example", format!("/examples/{index}/params{pointer}"), message)
    }));
}
