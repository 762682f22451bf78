//! What the schema lets in and what it refuses, and that the types know the same.

use super::super::Kind;
use super::*;
use serde_json::{Map, json};

const SMALL: &str = "\
name: scan
description: Scan
kind: command
version: 1
inputs: {schema: {type: object}}
outputs: {format: text}
exec:
  command:
    entrypoint: ./scan.sh
permissions: {network: false, fs: {read: [], write: []}}
approval: {required: false}
";

fn flaws(text: &str) -> Vec<String> {
    Manifest::read(text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn the_least_is_enough() {
    let read = Manifest::read(SMALL).unwrap();
    assert_eq!((read.kind, read.version, read.timeout_ms()), (Kind::Command, 1, 30_000));
    let again = Manifest::of(serde_json::to_value(&read).unwrap()).unwrap();
    assert_eq!(again, read);
    assert_eq!(Manifest::read(&SMALL.replace("version: 1", "version: 2.0")).unwrap().version, 2);
}

#[test]
fn no_place_goes_back_up_behind_a_name() {
    let with = |place: &str| Manifest::read(&SMALL.replace("write: []", &format!("write: [{place}]"))).is_ok();
    for place in ["sub", "./sub/deep/", "../beside", "../../far", "/tmp/x", "..x/y", "a/..b"] {
        assert!(with(place), "{place}");
    }
    for place in ["sub/..", "sub/../.git", "../a/../b", "/home/me/../you", "a/./../b", "a//.."] {
        assert!(!with(place), "{place}");
    }
    assert_eq!(
        flaws(&SMALL.replace("read: []", "read: [\"sub/..\"]")),
        ["10:43: permissions.fs.read[0]: goes back up behind a name; write the place itself"]
    );
}

#[test]
fn what_is_of_the_wrong_shape_is_told_with_its_place() {
    let with = |from: &str, to: &str| flaws(&SMALL.replace(from, to));
    assert_eq!(with("version: 1", "version: 0"), ["4:1: version: expected a number of at least 1, got number 0"]);
    assert_eq!(with("version: 1", "version: \"1\""), ["4:1: version: expected integer, got string \"1\""]);
    assert_eq!(with("version: 1\n", ""), ["1:1: version: is missing: an integer"]);
    assert_eq!(with("kind: command", "kind: http"), ["7:1: exec.http: is missing: `kind` is http"]);
    assert_eq!(
        with("    entrypoint", "    entrypiont"),
        [
            "9:5: exec.command.entrypiont: there is no such key (did you mean `entrypoint`?)",
            "8:3: exec.command.entrypoint: is missing: a string"
        ]
    );
    assert_eq!(
        with("approval:", "aproval: {}\napproval:")[0],
        "11:1: aproval: there is no such key (did you mean `approval`?)"
    );
    assert_eq!(
        with("name: scan", "name: sc.an"),
        ["1:1: name: a name is letters, digits, `_` and `-`, beginning with a letter; got string \"sc.an\""]
    );
    assert_eq!(
        with("network: false", "network: [a.test, \"https://b.test/\"]"),
        [
            "10:33: permissions.network[1]: `https://b.test/` is not a host rule: it has parts of a URL; write only the host, as in `b.test`"
        ]
    );
    assert_eq!(
        with("    entrypoint: ./scan.sh", "    entrypoint: x\n  http: {method: GET, url: \"https://a\"}"),
        ["7:1: exec: exactly one member, and it is `command`"]
    );
    let late = with("./scan.sh", "x\n    timeout_ms: 600001\n    exit_codes_ok: [0, x]");
    assert_eq!(late[0], "10:5: exec.command.timeout_ms: expected a number of at most 600000, got number 600001");
    assert_eq!(late[1], "11:24: exec.command.exit_codes_ok[1]: expected integer, got string \"x\"");
    assert_eq!(flaws(""), ["1:1: the file says nothing"]);
    assert_eq!(flaws("- a\n"), ["1:1: a manifest is `key: value` lines"]);
    assert_eq!(Manifest::of(json!({"name": 5})).unwrap_err()[0].line, 0);
}

/// A manifest in which everything is said that can be.
fn everything(kind: &str, exec: impl Into<Value>) -> Value {
    let exec = exec.into();
    json!({"name": "a", "description": "b", "kind": kind, "version": 2,
        "inputs": {"schema": {"type": "object"}}, "outputs": {"format": "json", "schema": {"type": "object"}},
        "exec": {kind: exec},
        "permissions": {"network": ["a.test"], "fs": {"read": ["a"], "write": ["b"]},
            "secrets": {"K": {"type": "string", "required": false, "description": "c"}}},
        "approval": {"required": true, "reason": "d"},
        "examples": [{"description": "e", "params": {"x": 1}, "expected_output": "f"}]})
}

fn all() -> Vec<Value> {
    vec![
        everything(
            "http",
            json!({"method": "GET", "url": "https://a.test/", "headers": {"A": "b"}, "query": {"q": "x"},
            "body": {}, "response": {"json_path": "a", "fields": [{"name": "a", "path": "b"}]}, "timeout_ms": 5}),
        ),
        everything(
            "command",
            json!({"entrypoint": "a", "args": ["b"], "env": {"A": "b"}, "stdin": "c", "cwd": ".",
            "stdout": {"format": "json"}, "exit_codes_ok": [0, 1], "timeout_ms": 5}),
        ),
        everything(
            "python",
            json!({"module": "a", "function": "b", "args": [1], "kwargs": {"c": 2}, "venv": "v",
            "cwd": ".", "return": "text", "timeout_ms": 5}),
        ),
        everything("mcp", json!({"server": "a", "tool": "b", "args": {"c": 1}})),
        everything("pipeline", json!({"steps": [{"id": "a", "tool": "b", "args": {"c": 1}}], "output": "x"})),
    ]
}

/// The keys that a schema knows, by where they stand, as far as the value goes along.
fn agree(schema: &Value, value: &Value, at: &str) {
    if let (Some(known), Some(map)) = (schema.get("properties").and_then(Value::as_object), value.as_object()) {
        let open = schema.get("additionalProperties") != Some(&json!(false));
        let names = |map: &Map<String, Value>| map.keys().cloned().collect::<std::collections::BTreeSet<_>>();
        assert!(open || at == "/exec" || names(known) == names(map), "{at}: {:?} {:?}", names(known), names(map));
        for (name, inner) in map {
            if let Some(known) = known.get(name) {
                agree(known, inner, &format!("{at}/{name}"));
            }
        }
    }
    if let (Some(each), Some(items)) = (schema.get("items"), value.as_array()) {
        for item in items {
            agree(each, item, &format!("{at}/-"));
        }
    }
    if let (Some(each), Some(map)) =
        (schema.get("additionalProperties").filter(|each| each.is_object()), value.as_object())
    {
        for item in map.values() {
            agree(each, item, &format!("{at}/*"));
        }
    }
}

#[test]
fn the_schema_and_the_types_know_the_same_keys() {
    for whole in all() {
        let read = Manifest::of(whole.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), whole, "the types keep everything that the schema lets in");
        agree(schema(), &whole, "");
    }
}

#[test]
fn the_schema_is_one_and_every_key_is_described() {
    fn described(schema: &Value, at: &str) {
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let here = format!("{at}/{name}");
            assert!(property["description"].as_str().is_some_and(|text| text.len() > 5), "{here} is not described");
            described(property, &here);
            property.get("items").into_iter().for_each(|items| described(items, &here));
            described(&property["additionalProperties"], &here);
        }
    }
    assert!(compiled().is_some() && schema()["$id"].is_string());
    described(schema(), "");
}
