//! Edits of many texts, and their way back.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const JSON: FileFormat = FileFormat::Json;
const TOML: FileFormat = FileFormat::Toml;
const YAML: FileFormat = FileFormat::Yaml;

fn edits() -> Vec<ConfigEdit> {
    vec![
        ConfigEdit::set(&["servers", "haft"], json!({"command": "haft", "args": ["mcp"]})),
        ConfigEdit::include(&["permissions", "deny"], vec!["Bash".into(), "Read".into()]),
        ConfigEdit::set(&["mode"], "strict".into()),
    ]
}

/// Texts in many layouts come back as they were when the edits are taken out again, because only lines of haft's change.
#[test]
fn taking_edits_back_restores_the_layout() {
    let texts = [
        (JSON, "{\n  \"a\": 1\n}\n"),
        (JSON, "{\"a\": 1, \"b\": [1, 2]}"),
        (JSON, "{\n\t// mine\n\t\"a\": 1, // first\n\t\"servers\": {\n\t\t\"b\": {}\n\t}, /* end */\n}\n"),
        (
            JSON,
            "{\r\n    \"permissions\": {\r\n        \"deny\": [\r\n            \"X\"\r\n        ]\r\n    }\r\n}\r\n",
        ),
        (JSON, "{\"permissions\": {\"deny\": [\"X\"]}}\n"),
        (TOML, "# mine\na = 1 # one\n\n[b]\nc = [1, 2]\n"),
        (TOML, "a = 1\n[servers.other]\ncommand = \"x\"\n\n[permissions]\ndeny = [\"X\"] # theirs\n"),
        (YAML, "# mine\na: 1\nservers:\n  other:\n    x: 1\n\n# about b\nb: [1]\n"),
        (YAML, "servers:\n    other: {x: 1}\na: |\n  servers:\n    haft: no\n"),
    ];
    for (format, text) in texts {
        let (new, applied) = apply(format, text, &edits()).unwrap_or_else(|why| panic!("{why}: {text}"));
        assert_eq!((new.contains("haft"), applied.len()), (true, 3), "{new}");
        for comment in ["mine", "// first", "/* end */", "# one", "# theirs", "# about b"] {
            assert!(!text.contains(comment) || new.contains(comment), "{comment} is lost:\n{new}");
        }
        let (again, none) = apply(format, &new, &edits()).unwrap();
        assert_eq!((again.as_str(), none.len()), (new.as_str(), 0), "twice is once");
        let (back, left) = take_back(format, &new, &applied).unwrap_or_else(|why| panic!("{why}: {new}"));
        assert_eq!((back.as_str(), left.len()), (text, 0), "from {new}");
    }
}

#[test]
fn values_changed_since_are_left_and_named() {
    let cases = [
        (JSON, "{\"mode\": \"lax\"}\n", "{\"mode\": \"mine\"}\n"),
        (TOML, "mode = \"lax\"\n", "mode = \"mine\"\n"),
        (YAML, "mode: lax\n", "mode: \"mine\"\n"),
    ];
    for (format, text, expected) in cases {
        let (new, applied) = apply(format, text, &edits()).unwrap();
        let (back, left) = take_back(format, &new.replace("strict", "mine"), &applied).unwrap();
        assert_eq!((back.as_str(), left), (expected, vec!["mode".to_owned()]));
    }
}

#[test]
fn lists_that_were_there_keep_their_values() {
    let text = "{\"permissions\": {\"deny\": [\"Read\", \"X\"]}}";
    let (new, applied) = apply(JSON, text, &edits()[1..2]).unwrap();
    assert_eq!(new, "{\"permissions\": {\"deny\": [\"Read\", \"X\", \"Bash\"]}}");
    assert_eq!(take_back(JSON, &new, &applied).unwrap().0, text);
}

#[test]
fn text_that_is_no_json_is_refused_with_its_line() {
    for (text, why) in [
        ("{\n  \"a\": 1\n  \"b\": 2\n}", "no comma between two values (line 3)"),
        ("{\"a\": }", "line 1"),
        ("{\"a\": 1} x", "more text after the end"),
        ("{\"a\": 1", "ends too early"),
        ("{\"a\" 1}", "no `:`"),
        ("{/* a", "comment that does not end"),
        ("{\"a\": 1, \"a\": 2}", "`a` twice"),
        ("3", "not a JSON object"),
    ] {
        let refused = read(JSON, text).unwrap_err().to_string();
        assert!(refused.contains(why), "{text}: {refused}");
    }
}

/// Any JSON value with names and texts that need quoting.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"/*]{1,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever a JSON file says and however it is laid out, edits change nothing else and can be taken back.
    #[test]
    fn json_edits_change_nothing_else(value in any_value(), pretty in any::<bool>()) {
        let value = json!({"theirs": value});
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let (new, applied) = apply(JSON, &text, &edits()).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Value>(&new).unwrap()["theirs"], &value["theirs"]);
        prop_assert_eq!(take_back(JSON, &new, &applied).unwrap().0, text);
    }
}
