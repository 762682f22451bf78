//! Each form by example, and laws over random schemas.

use super::*;
use crate::Schema;
use crate::schema::BadSchema;
use proptest::prelude::*;
use serde_json::Map;

fn spec() -> ToolSpec {
    ToolSpec::new("test.tool", "Does something").unwrap()
}

fn declared(provider: Provider, input: &Value) -> ToolDeclaration {
    provider.declare("test_tool", &spec(), input)
}

/// The schema that a provider is told, and whether it is strict.
fn told(provider: Provider, input: &Value) -> (Value, bool) {
    let value = declared(provider, input).value.unwrap();
    match provider {
        Provider::Anthropic => (value["input_schema"].clone(), false),
        Provider::OpenAi => (value["parameters"].clone(), value["strict"] == true),
        Provider::OpenAiChat => (value["function"]["parameters"].clone(), false),
        Provider::Gemini => (value["parameters"].clone(), false),
    }
}

fn gemini_property(property: &Value) -> Value {
    told(Provider::Gemini, &json!({"type": "object", "properties": {"p": property}})).0["properties"]["p"].clone()
}

fn obstacle(property: &Value) -> String {
    let schema = json!({"type": "object", "properties": {"p": property}});
    strict_form(&schema).unwrap_err().to_string()
}

#[test]
fn strict_form_requires_everything_and_makes_the_optional_nullable() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
        "path": {"type": "string"}, "limit": {"type": "integer", "default": 5}, "mode": {"type": "string", "enum": ["a"]}}});
    assert_eq!(
        strict_form(&schema).unwrap(),
        json!({"type": "object", "additionalProperties": false, "required": ["path", "limit", "mode"], "properties": {
            "path": {"type": "string"}, "limit": {"type": ["integer", "null"]},
            "mode": {"type": ["string", "null"], "enum": ["a", null]}}})
    );
}

#[test]
fn strict_form_closes_nested_objects_and_resolves_references() {
    let schema = json!({"type": "object", "required": ["edits"], "properties": {
        "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}}},
        "$defs": {"edit": {"type": "object", "properties": {"old": {"type": "string", "minLength": 1}}}}});
    assert_eq!(
        strict_form(&schema).unwrap(),
        json!({"type": "object", "additionalProperties": false, "required": ["edits"], "properties": {
            "edits": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["old"],
                "properties": {"old": {"type": ["string", "null"], "description": "Not empty."}}}}}})
    );
}

#[test]
fn schema_that_cannot_be_strict_says_why() {
    for (property, expected) in [
        (json!({"type": "object"}), "`p`: it takes properties of any name"),
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), "`p`: it takes properties of any name"),
        (json!({}), "`p`: it takes any value"),
        (json!({"type": "array"}), "`p`: its items may be anything"),
        (json!({"type": "array", "items": {"type": "array", "items": true}}), "`p[][]`: it takes any value"),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            "`p`: strict mode has no `uniqueItems`",
        ),
        (json!({"$ref": "#"}), "it refers to itself by `#`"),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
            "`p`: a value may fit more than one of its alternatives (`oneOf`)",
        ),
    ] {
        assert_eq!(obstacle(&property), expected, "{property}");
    }
}

#[test]
fn tool_with_an_open_object_inside_is_sent_without_strict() {
    let open = json!({"type": "object", "properties": {"schema": {"type": "object"}}});
    let declaration = declared(Provider::OpenAi, &open);
    assert_eq!(told(Provider::OpenAi, &open), (open.clone(), false));
    let note = &declaration.notes[0];
    assert_eq!(note.to_string(), "`test.tool` is not strict for openai: `schema`: it takes properties of any name");
    assert!(!note.kind.is_warning());
}

#[test]
fn alternatives_of_a_strict_schema_begin_differently() {
    let branch = |first: &str, kind: &str| json!({"type": "object", "required": ["kind"], "properties": {first: {"type": "string", "const": kind}, "kind": {"const": kind}}});
    let schema = |one: Value, other: Value| json!({"type": "object", "properties": {"p": {"anyOf": [one, other]}}});
    assert!(told(Provider::OpenAi, &schema(branch("a", "x"), branch("b", "y"))).1);
    assert!(told(Provider::OpenAi, &schema(branch("kind", "x"), branch("kind", "y"))).1);
    let name = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let more = json!({"type": "object", "properties": {"name": {"type": "string"}, "more": {"type": "string"}}});
    assert!(!told(Provider::OpenAi, &schema(name, more)).1);
}

#[test]
fn gemini_form_has_one_type_a_schema() {
    for (property, expected) in [
        (json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
        (
            json!({"type": ["string", "number", "boolean"], "description": "Taken as it is"}),
            json!({"anyOf": [{"type": "string", "description": "Taken as it is"}, {"type": "number"}, {"type": "boolean"}]}),
        ),
        (json!({"const": "x"}), json!({"type": "string", "enum": ["x"]})),
        (json!({"enum": ["a", null]}), json!({"type": "string", "enum": ["a"], "nullable": true})),
        (json!({"type": "integer", "enum": [1, 2]}), json!({"type": "integer", "description": "One of: 1, 2."})),
        (
            json!({"type": "string", "enum": ["", "a"]}),
            json!({"type": "string", "description": "One of: \"\", \"a\"."}),
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "null"}], "description": "A name", "default": null}),
            json!({"type": "string", "description": "A name", "nullable": true}),
        ),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}),
            json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}),
        ),
        (json!({"type": "string", "format": "uri"}), json!({"type": "string", "description": "Format: uri."})),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "description": "Takes properties of any name; each value: string."}),
        ),
    ] {
        assert_eq!(gemini_property(&property), expected, "{property}");
    }
}

#[test]
fn gemini_form_cuts_a_schema_that_refers_to_itself() {
    let tree = json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": {
        "type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}}});
    let (form, _) = told(Provider::Gemini, &tree);
    assert_eq!(form["properties"]["root"]["properties"]["name"], json!({"type": "string"}));
    assert!(form["properties"]["root"]["properties"]["next"]["anyOf"].is_array(), "{form}");
}

#[test]
fn alternatives_at_the_root_become_one_object() {
    let input = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    for provider in Provider::ALL {
        let (form, _) = told(provider, &input);
        assert!(form.get("oneOf").is_none() && form["properties"].get("b").is_some(), "{provider:?}: {form}");
        assert_eq!(form["description"], "Give exactly one of: `a`; `b`.", "{provider:?}");
    }
    let union = json!({"$ref": "#/$defs/both", "$defs": {"both": {"anyOf": [
        {"type": "object", "required": ["id", "x"], "properties": {"id": {"type": "string"}, "x": {"type": "string"}}},
        {"type": "object", "required": ["id", "y"], "properties": {"id": {"type": "string"}, "y": {"type": "string"}}}]}}});
    for provider in Provider::ALL {
        let (form, _) = told(provider, &union);
        let names: Vec<&String> = form["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["id", "x", "y"], "{provider:?}");
        assert_eq!(form["required"], json!(["id"]), "{provider:?}");
    }
}

#[test]
fn name_that_a_provider_refuses_leaves_out_the_parameter_or_the_tool() {
    let optional = json!({"type": "object", "properties": {"$top": {"type": "integer"}, "path": {"type": "string"}}});
    let declaration = declared(Provider::Anthropic, &optional);
    assert_eq!(declaration.value.unwrap()["input_schema"]["properties"], json!({"path": {"type": "string"}}));
    assert_eq!(
        declaration.notes[0].to_string(),
        "a parameter of `test.tool` is not offered to anthropic: `$top` has a name that the provider does not take"
    );
    let required = json!({"type": "object", "required": ["$top"], "properties": {"$top": {"type": "integer"}}});
    let declaration = declared(Provider::Gemini, &required);
    assert_eq!((declaration.value, declaration.notes[0].kind), (None, NoteKind::ToolLeftOut));
    assert!(declaration.notes[0].kind.is_warning());
}

#[test]
fn description_that_is_too_long_is_cut_after_a_sentence() {
    let spec = ToolSpec::new("test.tool", format!("{}. {}", "a".repeat(900), "b".repeat(900))).unwrap();
    let value = Provider::OpenAiChat.declare("test_tool", &spec, &json!({"type": "object"})).value.unwrap();
    assert_eq!(value["function"]["description"].as_str().map(str::len), Some(901));
    assert_eq!(Provider::OpenAi.declare("test_tool", &spec, &json!({"type": "object"})).notes.len(), 1);
}

#[test]
fn tools_beyond_what_a_request_takes_are_left_out() {
    let (spec, input) = (spec(), json!({"type": "object", "properties": {}}));
    let many = vec![Offered { name: "test_tool", spec: &spec, input: &input }; 130];
    let all = Provider::OpenAi.declare_all(many.clone());
    assert_eq!((all.tools.len(), all.notes.len()), (128, 2), "{:?}", all.notes.first());
    assert_eq!(Provider::Gemini.declare_all(many).tools.len(), 130);
}

#[test]
fn validator_names_each_rule_that_is_broken() {
    let strict = |parameters: Value| json!({"type": "function", "name": "t", "strict": true, "parameters": parameters});
    let broken = |parameters: Value| violations_of(Provider::OpenAi, &strict(parameters)).join("; ");
    let property = |property: Value| json!({"type": "object", "properties": {"p": property}, "required": ["p"], "additionalProperties": false});
    for (schema, expected) in [
        (json!({"type": "object", "properties": {}}), "an object is open (`additionalProperties` is not false)"),
        (
            property(json!({"type": "object"})),
            "at /properties/p: an object is open (`additionalProperties` is not false)",
        ),
        (property(json!({"type": "string", "minLength": 1})), "at /properties/p: `minLength` is not known"),
        (property(json!({"description": "x"})), "at /properties/p: it does not say of which type it is"),
        (
            property(json!({"type": "string", "pattern": "a(?=b)"})),
            "at /properties/p: the pattern uses lookaround or a backreference",
        ),
        (property(json!({"type": "array"})), "at /properties/p: a list does not say what its items are"),
    ] {
        assert_eq!(broken(schema.clone()), expected, "{schema}");
    }
    let gemini = |property: Value| {
        violations_of(
            Provider::Gemini,
            &json!({"name": "t", "parameters": {"type": "object", "properties": {"p": property}}}),
        )
        .join("; ")
    };
    for (schema, expected) in [
        (json!({"type": ["string", "null"]}), "at /properties/p: `type` is a list"),
        (json!({"type": "integer", "enum": [1]}), "at /properties/p: `enum` is for strings that are not empty"),
        (
            json!({"anyOf": [{"type": "string"}], "description": "x"}),
            "at /properties/p: `anyOf` must be the only keyword",
        ),
        (json!({"type": "string", "const": "x"}), "at /properties/p: `const` is not known"),
    ] {
        assert_eq!(gemini(schema.clone()), expected, "{schema}");
    }
    let deep = (0..11).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    assert!(broken(property(deep)).contains("deeper than 10 levels"));
    let wide: Value = (0..1_001).map(|n| json!(n.to_string())).collect();
    assert_eq!(
        broken(property(json!({"type": "string", "enum": wide}))),
        "it has 1001 values in enums, 1000 are allowed"
    );
}

fn violations_of(provider: Provider, declaration: &Value) -> Vec<String> {
    validator::violations(provider, declaration).iter().map(ToString::to_string).collect()
}

const NAMES: [&str; 5] = ["a", "b", "c", "long_name", "d-e"];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "minLength": 1, "maxLength": 8, "description": "A word"})),
        Just(json!({"type": "string", "pattern": "^[a-z]*$"})),
        Just(json!({"type": "integer", "minimum": 0, "maximum": 9, "default": 3})),
        Just(json!({"type": "number"})),
        Just(json!({"type": "boolean", "title": "Flag"})),
        Just(json!({"type": "null"})),
        Just(json!({"enum": ["x", "y", null]})),
        Just(json!({"type": "string", "enum": ["x", ""]})),
        Just(json!({"const": 7})),
        Just(json!({"type": ["string", "integer", "null"], "maxLength": 3})),
        Just(json!({})),
        Just(json!(true)),
        Just(json!({"type": "object"})),
        Just(json!({"type": "array"})),
        Just(json!({"$ref": "#/$defs/one"})),
        Just(json!({"$ref": "#/$defs/two", "description": "Another"})),
    ]
}

fn object_of(inner: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let properties = proptest::collection::btree_map(prop::sample::select(&NAMES[..]), inner.clone(), 0..4);
    let open = prop_oneof![4 => Just(None), 4 => Just(Some(json!(false))), 1 => Just(Some(json!(true))), 1 => inner.prop_map(Some)];
    (properties, any::<[bool; 5]>(), open).prop_map(|(properties, needed, open)| {
        let required: Vec<&str> = NAMES
            .iter()
            .zip(needed)
            .filter(|(name, needed)| *needed && properties.contains_key(*name))
            .map(|(name, _)| *name)
            .collect();
        let properties: Map<String, Value> =
            properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        if let Some(open) = open {
            schema["additionalProperties"] = open;
        }
        schema
    })
}

fn schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            3 => object_of(inner.clone().boxed()),
            2 => inner.clone().prop_map(|items| json!({"type": "array", "items": items, "maxItems": 3})),
            1 => proptest::collection::vec(inner.clone(), 1..4).prop_map(|all| json!({"anyOf": all})),
            1 => proptest::collection::vec(inner.clone(), 1..4).prop_map(|all| json!({"oneOf": all, "description": "Either"})),
            1 => proptest::collection::vec(inner, 1..3).prop_map(|all| json!({"allOf": all})),
        ]
    })
}

fn root() -> impl Strategy<Value = Value> {
    (prop_oneof![8 => object_of(schema().boxed()).boxed(), 1 => schema().boxed()], schema(), schema()).prop_map(
        |(root, one, two)| {
            let mut root = if root.is_object() { root } else { json!({}) };
            root["$defs"] = json!({"one": one, "two": two});
            root
        },
    )
}

/// A value that fits a strict form.
fn value_of(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(branches) = schema["anyOf"].as_array() {
        return proptest::strategy::Union::new(branches.iter().map(value_of)).boxed();
    }
    if let Some(values) = schema["enum"].as_array() {
        return prop::sample::select(values.clone()).boxed();
    }
    if let Some(value) = schema.get("const") {
        return Just(value.clone()).boxed();
    }
    let kinds: Vec<String> = match &schema["type"] {
        Value::String(kind) => vec![kind.clone()],
        kinds => kinds.as_array().unwrap().iter().map(|kind| kind.as_str().unwrap().to_owned()).collect(),
    };
    proptest::strategy::Union::new(kinds.iter().map(|kind| match kind.as_str() {
        "string" => prop::sample::select(vec![json!("x"), json!("word"), json!("y")]).boxed(),
        "integer" => (0_i64..9).prop_map(Value::from).boxed(),
        "number" => prop::sample::select(vec![json!(1.5), json!(7)]).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "null" => Just(Value::Null).boxed(),
        "array" => proptest::collection::vec(value_of(&schema["items"]), 0..3).prop_map(Value::from).boxed(),
        _ => {
            let properties = schema["properties"].as_object().unwrap();
            let each: Vec<BoxedStrategy<(String, Value)>> = properties
                .iter()
                .map(|(name, property)| {
                    let name = name.clone();
                    value_of(property).prop_map(move |value| (name.clone(), value)).boxed()
                })
                .collect();
            each.prop_map(|all| all.into_iter().collect::<Map<_, _>>().into()).boxed()
        }
    }))
    .boxed()
}

/// A schema without the lengths of texts, of which strict mode is told in words.
fn without_lengths(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => object
            .iter()
            .filter(|(keyword, _)| !matches!(keyword.as_str(), "minLength" | "maxLength"))
            .map(|(keyword, value)| (keyword.clone(), without_lengths(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(list) => list.iter().map(without_lengths).collect(),
        other => other.clone(),
    }
}

fn compiled(schema: &Value) -> Result<Schema, BadSchema> {
    Schema::compile(schema)
}

#[test]
fn fixed_value_that_its_list_does_not_have_is_not_strict() {
    let of = |value: Value| {
        let part = json!({"allOf": [{"enum": ["x", "y", null]}, {"const": value}]});
        strict_form(&json!({"type": "object", "properties": {"a": part}, "required": []}))
    };
    assert!(of(json!(7)).is_err());
    let form = of(json!("x")).unwrap();
    assert_eq!(form["properties"]["a"]["enum"], json!(["x", null]), "{form}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_form_passes_the_validator_or_says_why_not(input in root()) {
        prop_assume!(compiled(&input).is_ok());
        for provider in Provider::ALL {
            let declaration = declared(provider, &input);
            let left_out = declaration.notes.iter().find(|note| note.kind == NoteKind::ToolLeftOut);
            prop_assert_eq!(declaration.value.is_none(), left_out.is_some());
            if let Some(value) = &declaration.value {
                prop_assert_eq!(violations_of(provider, value), Vec::<String>::new(), "{}", value);
            }
            if let Some(note) = left_out {
                // The forms leave nothing for the validator to find.
                let known = ["does not take", "not an object", "grows too large"].iter().any(|why| note.reason.contains(why));
                prop_assert!(known, "{note}: {input}");
            }
            let strict = declaration.value.is_some_and(|value| value["strict"] == true);
            let told = declaration.notes.iter().any(|note| note.kind == NoteKind::NotStrict);
            prop_assert!(provider != Provider::OpenAi || strict != told);
        }
    }

    #[test]
    fn strict_arguments_without_nulls_satisfy_the_schema(
        (input, form, value) in root()
            .prop_filter_map("it has a strict form", |input| {
                compiled(&input).ok()?;
                let form = strict_form(&input).ok()?;
                Some((input, form))
            })
            .prop_flat_map(|(input, form)| {
                let values = value_of(&form);
                (Just(input), Just(form), values)
            })
    ) {
        prop_assume!(compiled(&form).unwrap().fits(&value));
        let schema = compiled(&without_lengths(&input)).unwrap();
        let mut args = value.clone();
        schema.prepare(&mut args);
        prop_assert!(schema.fits(&args), "{value} became {args}\n{form}\n{input}\n{:?}", schema.violations(&args));
        // The portable form takes what the schema takes.
        for provider in [Provider::Anthropic, Provider::OpenAiChat] {
            let declaration = declared(provider, &without_lengths(&input));
            if declaration.notes.is_empty() {
                let (told, _) = told(provider, &without_lengths(&input));
                prop_assert!(compiled(&told).unwrap().fits(&args), "{args} does not fit {told}");
            }
        }
    }
}
