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

#[test]
fn what_the_newest_version_has_no_more_is_not_there() {
    let mut client = Env::new().spawn(&[]);
    for (method, params) in [
        ("logging/setLevel", json!({"level": "info"})),
        ("logging/setLevel", json!({})),
        ("resources/subscribe", json!({"uri": "haft://log"})),
        ("resources/unsubscribe", json!({})),
    ] {
        let mut params = params;
        params["_meta"] = newest(json!({}));
        assert_eq!(client.ask(method, params)["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn the_version_that_has_batches_answers_them_together() {
    let mut client = Env::new().spawn(&[]);
    client.initialize("2025-03-26", json!({}));
    let call = |id: i64, expression: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "calc_eval", "arguments": {"expression": expression, "delay_ms": 50}}})
    };
    let ping = json!({"jsonrpc": "2.0", "id": 12, "method": "ping"});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    client.send(json!([call(11, "6*7"), ping, notice, 3]));
    let answers = client.wait("the answers", Value::is_array);
    let mut ids: Vec<i64> = answers.as_array().unwrap().iter().filter_map(|one| one["id"].as_i64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [11, 12], "{answers:#}");
    assert!(answers.as_array().unwrap().iter().any(|one| one["error"]["code"] == -32600), "{answers:#}");
    client.send(json!([call(21, "1"), call(22, "2"), {"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 21}}]));
    let answers = client.wait("the answers", Value::is_array);
    assert_eq!((answers.as_array().unwrap().len(), &answers[0]["id"]), (1, &json!(22)), "{answers:#}");
    for wrong in [json!([]), Value::Array(vec![json!({"jsonrpc": "2.0", "id": 31, "method": "ping"}); 101])] {
        client.send(wrong);
        assert_eq!(client.wait("a refusal", |one| one.get("error").is_some())["error"]["code"], -32600);
    }
    client.send(json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]));
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert!(client.heard.is_empty(), "what holds no request has no answer: {:#?}", client.heard);
}
