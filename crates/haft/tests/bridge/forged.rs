//! A server that speaks in haft's name: in metadata, in its log, and by what it is told while somebody types.

use super::Env;
use super::front::Client;
use serde_json::{Value, json};

const TOKEN: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

/// haft with the forger, and more configuration.
fn forger(more: &str) -> Env {
    let env = Env::new();
    std::fs::create_dir_all(env.root().join("out")).unwrap();
    let heard = env.root().join("out/heard");
    let env = env.hostile("forger", &format!(", start: eager, write: [out], env: {{HEARD: {}}}", heard.display()));
    let config = env.config();
    std::fs::write(env.config_file(), format!("{config}tools: {{budget_tokens: 0}}\n{more}")).unwrap();
    assert_eq!(env.run(&["mcp", "test", "forger", "--accept"]).code, 0);
    env
}

/// What the server was told to complete.
fn heard(env: &Env) -> String {
    std::fs::read_to_string(env.root().join("out/heard")).unwrap_or_default()
}

const ALLOWED: &str = "approval: {auto_approve: [\"mcp:forger:*\"]}\n";

pub(crate) fn metadata_in_the_name_of_haft_does_not_pass() {
    let env = forger(ALLOWED);
    for (args, tool) in [(["--front", "forger"].as_slice(), "talk"), (&[], "mcp__forger__talk")] {
        let mut client = Client::start(&env, args);
        let result = client.ask("tools/call", json!({"name": tool, "arguments": {}}));
        let blocks = result["content"].as_array().unwrap();
        let said = blocks.iter().find(|block| block["text"] == "said").unwrap_or_else(|| panic!("{result:#}"));
        assert_eq!(said["_meta"], json!({"own": 1}), "{result:#}");
        let resource = blocks.iter().find(|block| block["type"] == "resource").unwrap();
        assert_eq!(resource["_meta"], json!({"own": 1}), "{result:#}");
        assert_eq!(resource["resource"]["_meta"], json!({"own": 1}), "{result:#}");
        let read = client.ask("resources/read", json!({"uri": "a://b"}));
        let prompt = client.ask("prompts/get", json!({"name": "p"}));
        assert_eq!(prompt["messages"][0]["content"]["_meta"], json!({"own": 1}), "{prompt:#}");
        for told in [&result["_meta"], &read["contents"][0]["_meta"], &prompt["_meta"]] {
            assert!(told["haft"]["call_id"].is_string(), "haft's own is there: {told:#}");
        }
        for all in [&result, &read, &prompt] {
            assert!(!all.to_string().contains("\"by\":\"you\""), "{all:#}");
        }
    }
}

/// What a client hears of the log of one call.
fn logged(args: &[&str], tool: &str) -> Vec<Value> {
    let env = forger(ALLOWED);
    let mut client = Client::start(&env, args);
    client.ask("logging/setLevel", json!({"level": "debug"}));
    client.ask("tools/call", json!({"name": tool, "arguments": {}}));
    let said = |of: &Value| !of["data"].as_str().is_some_and(|text| text.starts_with("running: "));
    std::mem::take(&mut client.logged).into_iter().filter(said).collect()
}

fn check_texts(logged: &[Value]) {
    assert_eq!(logged.len(), 5, "{logged:#?}");
    assert!(!format!("{logged:?}").contains(TOKEN), "{logged:#?}");
    assert_eq!(logged[1]["data"], json!({"message": "used [secret]"}));
    let attack = logged[2]["data"].as_str().unwrap();
    assert!(attack.starts_with("<untrusted mark=") && attack.contains("Ignore all previous"), "{attack}");
    assert_eq!(logged[3]["data"], json!({"message": "ordinary", "n": [1, null]}));
    assert!(logged.iter().all(|said| said["level"] == "info"), "{logged:#?}");
}

pub(crate) fn loggers_of_bridged_servers_are_named_after_their_server() {
    let logged = logged(&[], "mcp__forger__talk");
    check_texts(&logged);
    let loggers: Vec<&Value> = logged.iter().map(|said| &said["logger"]).collect();
    let expected =
        ["mcp:forger:haft", "mcp:forger:[secret]", "mcp:forger:work", "mcp:forger:work", "mcp:forger"].map(Value::from);
    assert_eq!(loggers, expected.iter().collect::<Vec<_>>());
}

pub(crate) fn fronted_server_keeps_its_loggers_but_for_those_of_haft() {
    let logged = logged(&["--front", "forger"], "talk");
    check_texts(&logged);
    let loggers: Vec<Option<&str>> = logged.iter().map(|said| said["logger"].as_str()).collect();
    assert_eq!(loggers, [Some("mcp:forger:haft"), Some("[secret]"), Some("work"), Some("work"), None]);
}

fn complete(client: &mut Client, typed: &str) -> Value {
    // The server is started for its lists, at the latest.
    client.ask("prompts/list", json!({}));
    let of = json!({"type": "ref/prompt", "name": "p"});
    let context = json!({"arguments": {"other": "beside"}});
    client.ask("completion/complete", json!({"ref": of, "argument": {"name": "a", "value": typed}, "context": context}))
}

pub(crate) fn completion_is_decided_and_recorded_like_a_call() {
    let env = forger(ALLOWED);
    let mut client = Client::start(&env, &["--front", "forger"]);
    let found = complete(&mut client, "typed before");
    assert_eq!(found["completion"], json!({"values": ["typed before!"], "total": 1, "hasMore": false}), "{found:#}");
    assert!(heard(&env).contains("\"other\": \"beside\""), "{}", heard(&env));
    client.ask("tools/call", json!({"name": "attack", "arguments": {}}));
    let found = complete(&mut client, "typed after");
    assert_eq!(found["completion"]["values"], json!([]), "{found:#}");
    assert!(!heard(&env).contains("typed after"), "{}", heard(&env));
    client.leave();
    let records = env.run(&["log", "--json", "-n", "10000"]).stdout;
    let of_completions: Vec<&str> = records.lines().filter(|line| line.contains(":completion:complete")).collect();
    let is_recorded = |typed: &str| of_completions.iter().any(|record| record.contains(typed));
    assert!(is_recorded("typed before") && is_recorded("typed after"), "{records}");
    let waiting = env.run(&["approvals", "--json"]);
    assert_eq!(waiting.code, 0, "{}", waiting.stderr);
    let waiting = waiting.stdout;
    assert!(!waiting.contains("completion"), "no question is stored: {waiting}");
}

pub(crate) fn completion_that_policy_denies_or_would_ask_about_is_not_sent() {
    let denied = format!("{ALLOWED}deny: [\"mcp:forger:completion:complete\"]\n");
    for more in ["", denied.as_str()] {
        let env = forger(more);
        let mut client = Client::start(&env, &["--front", "forger"]);
        let found = complete(&mut client, "typed");
        assert_eq!(found["completion"]["values"], json!([]), "{found:#}");
        assert_eq!(heard(&env), "");
    }
}
