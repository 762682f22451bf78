//! Laws that hold for every input: verdicts, truncation, dialects, schemas.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod hosts;
mod manifests;

use haft_core::admit::{Checked, Facts, judge};
use haft_core::approval::{Chain, Decision, Question, Resolver, ResolverError, Vote};
use haft_core::dialect::Dialect;
use haft_core::shape::{Keep, Limits, truncate};
use haft_core::{Call, CallId, Policy, Schema, ToolSpec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A voice that always says the same.
#[derive(Debug, Clone)]
struct Fixed {
    name: String,
    priority: i32,
    says: Says,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    Allow,
    Ask,
    Deny,
    Errs,
    Panics,
}

impl Resolver for Fixed {
    fn name(&self) -> &str {
        &self.name
    }
    fn priority(&self) -> i32 {
        self.priority
    }
    fn resolve(&self, _: Question<'_>) -> Result<Vote, ResolverError> {
        match self.says {
            Says::Nothing => Ok(None),
            Says::Allow => Ok(Some((Decision::Allow, "yes".into()))),
            Says::Ask => Ok(Some((Decision::Ask, "hm".into()))),
            Says::Deny => Ok(Some((Decision::Deny, "no".into()))),
            Says::Errs => Err(ResolverError("broken".into())),
            Says::Panics => std::panic::resume_unwind(Box::new("broken")),
        }
    }
}

fn voice() -> impl Strategy<Value = Fixed> {
    let says = prop::sample::select(vec![Says::Nothing, Says::Allow, Says::Ask, Says::Deny, Says::Errs, Says::Panics]);
    ("[a-z]{1,4}", -10..1100_i32, says).prop_map(|(name, priority, says)| Fixed { name, priority, says })
}

fn decision(voices: &[Fixed]) -> Decision {
    let spec = ToolSpec::new("test.tool", "").unwrap().acts();
    let schema = Schema::compile(&spec.shapes.input).unwrap();
    let call = Call::new(CallId::new(0, 0), "test.tool", json!({}));
    let checked = Checked::new(call, Arc::new(spec), &schema, json!({}).into()).unwrap();
    let mut chain = Chain::default();
    for voice in voices {
        chain.add(Arc::new(voice.clone()));
    }
    judge(&checked, &Facts::default(), &Policy::default(), &chain).1.decision
}

proptest! {
    #[test]
    fn a_deny_never_loosens_a_verdict(voices in prop::collection::vec(voice(), 0..8), mut extra in voice()) {
        extra.says = Says::Deny;
        let before = decision(&voices);
        let after = decision(&[voices, vec![extra]].concat());
        prop_assert_eq!(after, Decision::Deny);
        prop_assert!(after >= before);
    }

    #[test]
    fn a_broken_voice_never_loosens_a_verdict(voices in prop::collection::vec(voice(), 0..8), mut extra in voice(), panics: bool) {
        extra.says = if panics { Says::Panics } else { Says::Errs };
        let before = decision(&voices);
        let after = decision(&[voices, vec![extra]].concat());
        prop_assert!(after >= before && after >= Decision::Ask, "{before:?} became {after:?}");
    }

    #[test]
    fn the_order_in_which_voices_join_does_not_matter(voices in prop::collection::vec(voice(), 0..6)) {
        let mut reversed = voices.clone();
        reversed.reverse();
        prop_assert_eq!(decision(&voices), decision(&reversed));
    }

    #[test]
    fn truncation_never_splits_a_character(text in "(\\PC|\n|日|é|👍🏽){0,300}", lines in 0..20_usize, bytes in 0..400_usize, keep in 0..3) {
        let keep = [Keep::Head, Keep::Tail, Keep::HeadAndTail][usize::try_from(keep).unwrap()];
        let cut = truncate(&text, Limits { lines, bytes, keep });
        if cut.hidden_bytes == 0 {
            prop_assert_eq!(&cut.text, &text);
        } else {
            let note = cut.text.lines().filter(|line| line.starts_with("[Output truncated - ")).count();
            prop_assert!(note >= 1, "{:?}", cut.text);
            prop_assert!(cut.hidden_bytes <= text.len());
            prop_assert!(cut.text.len() <= bytes + 80);
        }
    }

    #[test]
    fn a_dialect_survives_the_round_trip(seed: u64, number in 0..100_000_u32, text in "[a-zA-Z0-9 ./_$-]{1,20}", flag: bool) {
        for dialect in Dialect::ALL {
            for entry in dialect.entries() {
                let said = sample(entry.input_schema(), seed, number, &text, flag);
                let Ok(meant) = entry.to_canonical(said.clone()) else { continue };
                let mut expected = said;
                // Null and absent mean the same, and defaults may be filled in.
                expected.as_object_mut().unwrap().retain(|_, value| !value.is_null());
                let again = entry.to_spoken(&meant);
                for (name, value) in expected.as_object().unwrap() {
                    prop_assert_eq!(again.get(name), Some(value), "{} {}", entry.spoken(), name);
                }
            }
        }
    }

    #[test]
    fn preparing_arguments_twice_is_preparing_them_once(count in prop::option::of(0..9_u32), nested: bool) {
        let schema = Schema::compile(&json!({"type": "object", "properties": {
            "n": {"type": "integer", "default": 3}, "o": {"type": "object", "properties": {"x": {"type": "string", "default": "d"}}}}})).unwrap();
        let mut args = Map::new();
        if let Some(count) = count {
            args.insert("n".into(), json!(f64::from(count)));
        }
        if nested {
            args.insert("o".into(), json!({}));
        }
        let mut once = Value::Object(args);
        schema.prepare(&mut once);
        let mut twice = once.clone();
        schema.prepare(&mut twice);
        prop_assert_eq!(&once, &twice);
        prop_assert!(schema.violations(&once).is_empty());
    }
}

/// Arguments that fit a schema: every required property, and some of the others.
fn sample(schema: &Value, seed: u64, number: u32, text: &str, flag: bool) -> Value {
    let mut args = Map::new();
    for (index, (name, property)) in schema["properties"].as_object().unwrap().iter().enumerate() {
        let required = schema["required"].as_array().is_some_and(|list| list.iter().any(|item| item == name));
        if !required && seed >> (index % 60) & 1 == 0 {
            continue;
        }
        args.insert(name.clone(), value(property, number, text, flag));
    }
    Value::Object(args)
}

fn value(property: &Value, number: u32, text: &str, flag: bool) -> Value {
    if let Some(options) = property["enum"].as_array() {
        return options[number as usize % options.len()].clone();
    }
    let kind = match &property["type"] {
        Value::Array(_) if flag => return Value::Null,
        Value::Array(kinds) => kinds[0].clone(),
        kind => kind.clone(),
    };
    match kind.as_str().unwrap_or_default() {
        "integer" | "number" => json!(number.max(1)),
        "boolean" => json!(flag),
        "array" => json!([text]),
        "object" => json!({}),
        // Paths have to be absolute in one of the dialects, and may be in all.
        _ => json!(format!("/{text}")),
    }
}

/// Cases in the manner of the JSON Schema Test Suite: schema, instance, and whether it is valid.
#[test]
fn json_schema_2020_12_is_understood() {
    let cases = [
        (json!({"type": "integer"}), json!(1.0), true),
        (json!({"type": "integer"}), json!(1.5), false),
        (json!({"type": ["string", "null"]}), json!(null), true),
        (json!({"enum": [1, "a"]}), json!("a"), true),
        (json!({"enum": [1, "a"]}), json!("b"), false),
        (json!({"const": {"a": 1}}), json!({"a": 1}), true),
        (json!({"minimum": 3, "maximum": 5}), json!(6), false),
        (json!({"minLength": 2}), json!("日"), false),
        (json!({"pattern": "^a+$"}), json!("aab"), false),
        (json!({"required": ["a"]}), json!({}), false),
        (json!({"properties": {"a": {"type": "string"}}, "additionalProperties": false}), json!({"b": 1}), false),
        (json!({"patternProperties": {"^x-": {"type": "integer"}}}), json!({"x-a": "s"}), false),
        (json!({"prefixItems": [{"type": "integer"}], "items": false}), json!([1, 2]), false),
        (json!({"contains": {"const": 1}, "maxContains": 1}), json!([1, 1]), false),
        (json!({"uniqueItems": true}), json!([1, 1]), false),
        (json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]}), json!(3), false),
        (json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), json!(true), false),
        (json!({"not": {"type": "string"}}), json!("a"), false),
        (json!({"if": {"type": "string"}, "then": {"minLength": 2}}), json!("a"), false),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1}), false),
        (json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}), json!("s"), false),
        (json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}), json!({"b": 1}), false),
        (json!({"multipleOf": 0.01}), json!(0.07), true),
    ];
    for (schema, instance, valid) in cases {
        let found = Schema::compile(&schema).unwrap().violations(&instance);
        assert_eq!(found.is_empty(), valid, "{schema} {instance}: {found:?}");
        assert!(found.iter().all(|violation| !violation.expected.is_empty()), "{schema}: {found:?}");
    }
    assert!(Schema::compile(&json!({"type": "intger"})).is_err());
    assert!(Schema::compile(&json!({"$ref": "https://example.com/schema.json"})).is_err(), "nothing is ever fetched");
}
