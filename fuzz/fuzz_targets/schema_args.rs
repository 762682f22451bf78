//! Arguments of every kind against schemas that between them use what tools use: preparing never panics
//! and twice is as good as once; checking never panics and refuses exactly what has violations.
#![no_main]

use haft_core::{Schema, ToolName};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const SOURCES: &[&str] = &[
    r#"{"type":"object","properties":{},"additionalProperties":false}"#,
    r#"{"type":"object","required":["path"],"additionalProperties":false,"properties":{
        "path":{"type":"string","minLength":1},"offset":{"type":"integer","minimum":1,"default":1},
        "limit":{"type":"integer","minimum":1,"maximum":2000},"encoding":{"enum":["utf8","base64"],"default":"utf8"}}}"#,
    r##"{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object",
        "required":["name"],"properties":{"name":{"type":"string","default":"leaf"},
        "weight":{"type":"integer","default":2.0},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}"##,
    r#"{"type":"object","required":["a","b"],"properties":{"a":{"type":["string","null"]},
        "b":{"type":["integer","null"],"default":null},"c":{"type":"string","default":null}}}"#,
    r#"{"type":"object","allOf":[{"properties":{"x":{"type":"number","default":1}}},
        {"properties":{"y":{"type":"string","pattern":"^[a-z]*$"}},"required":["y"]}],"unevaluatedProperties":false}"#,
    r#"{"type":"object","properties":{"when":{"type":"string","format":"date-time"},
        "a/b~c":{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3,"uniqueItems":true},
        "one":{"oneOf":[{"type":"integer"},{"type":"string","maxLength":3}]},"k":{"const":{"deep":[1]}}},
        "patternProperties":{"^x-":{"type":"boolean"}},"additionalProperties":{"type":"string"}}"#,
    "true",
    "false",
];

static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let compiled = SOURCES.iter().filter_map(|text| Schema::compile(&serde_json::from_str(text).ok()?).ok());
    let compiled: Vec<Schema> = compiled.collect();
    assert_eq!(compiled.len(), SOURCES.len(), "every schema of the set compiles");
    compiled
});

fuzz_target!(|data: &[u8]| {
    // Too few bytes to make arguments of is not a finding.
    let _ = attempt(&mut Unstructured::new(data));
});

fn attempt(u: &mut Unstructured<'_>) -> Result<()> {
    let schema = u.choose(&SCHEMAS)?;
    let mut once = haft_fuzz::arguments(schema.source(), u)?;
    schema.prepare(&mut once);
    let mut twice = once.clone();
    schema.prepare(&mut twice);
    assert_eq!(once, twice, "prepare is idempotent");

    let violations = schema.violations(&once);
    if let Ok(name) = ToolName::new("fuzz.target") {
        assert_eq!(schema.check(&name, &once).is_ok(), violations.is_empty(), "{violations:?}");
    }
    Ok(())
}
