//! `haft mcp` in the hands of the official SDKs.

use crate::tour::{Client, judge, plan};
use crate::{Env, HAFT};
use serde_json::json;

fn tour(client: Client) {
    let env = Env::new();
    let Some(came) = client.carry_out(&env, plan(json!({ "stdio": [HAFT, "mcp"] }))) else { return };
    judge(&env, client, &came);
}

#[test]
fn the_python_sdk_drives_it_in_the_newest_protocol_it_can() {
    tour(Client::Python("auto"));
}

#[test]
fn the_python_sdk_drives_it_with_a_handshake() {
    tour(Client::Python("legacy"));
}

#[test]
fn the_python_sdk_of_the_generation_before_drives_it() {
    tour(Client::Python1);
}

#[test]
fn the_typescript_sdk_drives_it() {
    tour(Client::TypeScript);
}

#[test]
fn a_client_that_cannot_ask_is_told_where_to_decide() {
    let env = Env::new();
    std::fs::create_dir_all(env.dir.path().join("home/.config/haft")).unwrap();
    let mut plan = plan(json!({ "stdio": [HAFT, "mcp"] }));
    plan["calls"] = json!([{ "tool": "file_write", "args": { "path": "made.txt", "content": "x" } }]);
    plan.as_object_mut().unwrap().remove("answer");
    let Some(came) = Client::TypeScript.carry_out(&env, plan) else { return };
    let call = &came["calls"][0];
    assert_eq!(call["error"], true, "{came:#}");
    assert!(call["text"].as_str().unwrap().contains("haft approvals"), "{came:#}");
    assert!(!env.root().join("made.txt").exists());
}
