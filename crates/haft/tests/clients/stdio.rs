//! `haft mcp` in the hands of the official SDKs.

use crate::run::within;
use crate::tour::{Client, judge, plan};
use crate::{Env, HAFT};
use serde_json::{Value, json};

fn tour(client: Client) {
    let env = Env::new();
    let came = client.carry_out(&env, plan(json!({ "stdio": [HAFT, "mcp"] })));
    judge(&env, client, &came);
}

pub(crate) fn the_python_sdk_drives_it_in_the_newest_protocol_it_can() {
    tour(Client::Python("auto"));
}

pub(crate) fn the_python_sdk_drives_it_with_a_handshake() {
    tour(Client::Python("legacy"));
}

pub(crate) fn the_python_sdk_of_the_generation_before_drives_it() {
    tour(Client::Python1);
}

pub(crate) fn the_typescript_sdk_drives_it() {
    tour(Client::TypeScript);
}

pub(crate) fn a_client_that_cannot_ask_is_told_where_to_decide() {
    let env = Env::new();
    env.config("mcp: { wait_ms: 300 }\n");
    let mut plan = plan(json!({ "stdio": [HAFT, "mcp"] }));
    plan["calls"] = json!([{ "tool": "file_write", "args": { "path": "made.txt", "content": "x" } }]);
    plan.as_object_mut().unwrap().remove("answer");
    let came = Client::TypeScript.carry_out(&env, plan);
    let call = &came["calls"][0];
    assert_eq!(call["error"], true, "{came:#}");
    assert!(call["text"].as_str().unwrap().contains("haft approvals"), "{came:#}");
    assert!(!env.root().join("made.txt").exists());
}

/// What is told of fits the budget, and is what `haft tools --cost` says; the rest is found and called all the same.
pub(crate) fn the_budget_holds_and_hides_nothing() {
    let env = Env::thrifty();
    let calls = json!([
        { "tool": "tool_search", "args": { "query": "calculator" } },
        { "tool": "tool_call", "args": { "name": "calc.eval", "args": { "expression": "6*7" } } },
    ]);
    let plan = json!({ "stdio": [HAFT, "mcp"], "calls": calls });
    let came = Client::Python1.carry_out(&env, plan);
    let told: Vec<&str> = came["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    let cost = within(30, &mut env.command(HAFT, &["tools", "--cost", "--json"]));
    let cost: Value = serde_json::from_str(&cost.stdout).unwrap();
    let tools = cost["tools"].as_array().unwrap();
    let mut listed: Vec<String> = tools
        .iter()
        .filter(|tool| tool["listed"] == true)
        .map(|tool| tool["name"].as_str().unwrap().replace('.', "_"))
        .collect();
    listed.sort();
    assert_eq!(told, listed);
    assert!(listed.len() < tools.len(), "everything fits, so nothing is tested: {cost:#}");
    assert!(cost["listed"]["mcp"].as_u64().unwrap() <= cost["budget_tokens"].as_u64().unwrap(), "{cost:#}");
    assert!(came["calls"][0]["text"].as_str().unwrap().contains("calc"), "{came:#}");
    assert!(came["calls"][1]["text"].as_str().unwrap().contains("42"), "{came:#}");
}

pub(crate) fn list_is_wrapped_in_structured_content() {
    const LISTING: &str = "name: listing\ndescription: List the releases.\nkind: command\nversion: 1\n\
        inputs: {schema: {type: object}}\noutputs: {format: json}\n\
        exec: {command: {entrypoint: echo, args: ['[{\"release\":\"one\"}]'], stdout: {format: json}}}\n\
        permissions: {network: false, fs: {read: [], write: []}}\napproval: {required: false}\n";
    for client in [Client::Python("auto"), Client::Python1, Client::PythonOld, Client::TypeScript] {
        let env = Env::new();
        let dir = env.home().join(".config/haft/tools/listing");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("tool.yml"), LISTING).unwrap();
        let plan = json!({ "stdio": [HAFT, "mcp"], "calls": [{ "tool": "listing", "args": {} }] });
        let came = client.carry_out(&env, plan);
        assert_eq!(came["calls"][0]["data"], json!({ "items": [{ "release": "one" }] }), "{client:?}: {came:#}");
        assert!(came["calls"][0]["text"].as_str().unwrap().contains("\"release\": \"one\""), "{client:?}: {came:#}");
    }
}
