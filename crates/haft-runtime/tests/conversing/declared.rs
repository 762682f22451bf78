//! What a model is told of the tools, and what comes back from one that is held to a strict schema.

use crate::{Stage, names};
use haft_core::ToolSpec;
use haft_core::agent::turns::End;
use haft_core::agent::wire::Wire;
use haft_runtime::agent::Told;
use haft_runtime::{Blocking, Reply as ToolReply};
use haft_stub::{Reply, Stub};
use serde_json::{Value, json};

/// A conversation on this wire in which all tools are told.
fn stage(wire: Wire, stub_wire: haft_stub::Wire, script: Vec<Reply>) -> Stage {
    let stub = Stub::start(script);
    let url = stub.base(stub_wire);
    Stage::with(stub, |settings| {
        settings.defer_above = (usize::MAX, usize::MAX);
        for provider in settings.providers.values_mut() {
            (provider.wire, provider.url) = (wire, url.clone());
        }
    })
}

/// A tool that gives back what it was given.
fn register_echo(stage: &Stage, name: &str, input: Value) {
    let spec = ToolSpec::new(name, "Returns its arguments").unwrap().input(input);
    let echo = Blocking::tool(spec, |scene| Ok(ToolReply::text(scene.args().to_string())));
    stage.haft.registry().register(echo).unwrap();
}

#[tokio::test]
async fn nulls_for_optional_parameters_are_dropped_before_validation_however_deep() {
    let edit = json!({"type": "object", "required": ["text"], "properties": {
        "text": {"type": "string"}, "mode": {"enum": ["a", "b"]}, "line": {"$ref": "#/$defs/line"},
        "note": {"type": ["string", "null"]}}});
    let input = json!({"type": "object", "additionalProperties": false, "required": ["edits"], "properties": {
        "edits": {"type": "array", "items": edit}, "dry": {"type": "boolean"},
        "at": {"anyOf": [{"type": "object", "properties": {"row": {"type": "integer"}}}, {"type": "string"}]}},
        "$defs": {"line": {"type": "integer", "minimum": 1}}});
    let args = json!({"dry": null, "at": {"row": null}, "edits": [
        {"text": "x", "mode": null, "line": null, "note": null}, {"text": "y", "mode": "a", "line": 2, "note": "n"}]});
    let stage =
        stage(Wire::Responses, haft_stub::Wire::Responses, vec![Reply::call("test_echo", args), Reply::say("Done.")]);
    register_echo(&stage, "test.echo", input);
    let (ended, _) = stage.say("Go.").await;
    assert_eq!((ended.end, stage.stub.faults()), (End::Done, Vec::new()));
    let tools = stage.stub.asked()[0].body["tools"].clone();
    let echo = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "test_echo").unwrap();
    assert_eq!(echo["strict"], true);
    let expected =
        json!({"at": {}, "edits": [{"text": "x", "note": null}, {"text": "y", "mode": "a", "line": 2, "note": "n"}]});
    let output = stage.last().body["input"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["type"] == "function_call_output")
        .unwrap()["output"]
        .clone();
    assert_eq!(serde_json::from_str::<Value>(output.as_str().unwrap()).unwrap(), expected);
}

#[tokio::test]
async fn all_tools_are_told_on_every_wire_and_none_is_refused() {
    for (wire, stub_wire) in [
        (Wire::Anthropic, haft_stub::Wire::Anthropic),
        (Wire::Responses, haft_stub::Wire::Responses),
        (Wire::Chat, haft_stub::Wire::Chat),
        (Wire::Gemini, haft_stub::Wire::Gemini),
    ] {
        let stage = stage(wire, stub_wire, vec![Reply::say("Done.")]);
        let (ended, told) = stage.say("Go.").await;
        assert_eq!((ended.end, stage.stub.faults()), (End::Done, Vec::new()), "{wire:?}");
        assert!(stage.last().tools().len() > 50 && !names(&told).contains(&"warning".to_owned()), "{wire:?}");
    }
}

#[tokio::test]
async fn tool_that_the_provider_cannot_take_is_left_out_with_one_warning() {
    let stage = stage(
        Wire::Anthropic,
        haft_stub::Wire::Anthropic,
        vec![Reply::call("calc_eval", json!({"expression": "1"})), Reply::say("Done.")],
    );
    register_echo(
        &stage,
        "test.odata",
        json!({"type": "object", "required": ["$top"], "properties": {"$top": {"type": "integer"}}}),
    );
    let (ended, told) = stage.say("Go.").await;
    assert_eq!((ended.end, stage.stub.faults()), (End::Done, Vec::new()));
    assert!(!stage.last().tools().contains(&"test_odata".to_owned()));
    let warnings: Vec<&String> = told
        .iter()
        .filter_map(|told| match told {
            Told::Warning { message } => Some(message),
            _ => None,
        })
        .collect();
    assert_eq!(
        warnings,
        ["`test.odata` is not offered to anthropic: its parameter `$top` has a name that the provider does not take"]
    );
}
