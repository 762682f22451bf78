//! Every version of the protocol that clients speak.

use crate::{Env, newest, text};
use serde_json::{Value, json};

#[test]
fn every_version_with_a_handshake_is_spoken() {
    let env = Env::new();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = env.spawn(&[]);
        let agreed = client.initialize(version, json!({}));
        assert_eq!(agreed["protocolVersion"], version);
        assert_eq!(agreed["serverInfo"]["name"], "haft");
        for able in ["tools", "resources", "prompts", "completions", "logging"] {
            assert!(agreed["capabilities"].get(able).is_some(), "{version}: {able}");
        }
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
        let result = client.call("calc_eval", json!({"expression": "6*7"}));
        assert!(text(&result).contains("42"), "{result:#}");
        assert_eq!(result.get("resultType"), None, "older clients do not know it");
        assert_eq!(client.leave(), 0);
    }
}

#[test]
fn a_version_that_nobody_knows_gets_the_newest_with_a_handshake() {
    let mut client = Env::new().spawn(&[]);
    assert_eq!(client.initialize("2099-01-01", json!({}))["protocolVersion"], "2025-11-25");
}

#[test]
fn the_newest_version_needs_no_handshake() {
    let env = Env::new();
    let mut client = env.spawn(&[]);
    let found = client.ask("server/discover", json!({"_meta": newest(json!({}))}));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&Value::from("2026-07-28")), "{found:#}");
    let params = json!({"_meta": newest(json!({})), "name": "calc_eval", "arguments": {"expression": "6*7"}});
    let answer = client.ask("tools/call", params);
    assert!(text(&answer["result"]).contains("42"), "{answer:#}");
    assert_eq!(answer["result"]["resultType"], "complete");
    let bare = client.ask("tools/list", json!({}));
    assert_eq!(bare["error"]["code"], -32602, "every request says its version: {bare:#}");
}

#[test]
fn what_comes_before_the_beginning_ends_nothing() {
    let mut client = Env::new().spawn(&[]);
    client.notify("notifications/initialized", json!({}));
    client.send(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(client.ask("tools/list", json!({}))["error"]["code"], -32602);
    assert_eq!(client.initialize("2025-06-18", json!({}))["protocolVersion"], "2025-06-18");
}

#[test]
fn a_client_that_says_nothing_ends_it_quietly() {
    let mut client = Env::new().spawn(&[]);
    assert_eq!(client.leave(), 0);
}
