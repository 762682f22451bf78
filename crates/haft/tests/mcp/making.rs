//! Tools that agents make: proposed, looked at by a person, there, used, and taken back.

use crate::{Client, Env, text};
use serde_json::{Value, json};

const LONG: &str = "mcp: {wait_ms: 60000}\n";
const SHORT: &str = "mcp: {wait_ms: 300}\n";

fn definition() -> Value {
    json!({
        "description": "Double a number", "kind": "pipeline", "version": 1,
        "inputs": {"schema": {"type": "object", "additionalProperties": false, "required": ["x"],
            "properties": {"x": {"type": "integer"}}}},
        "outputs": {"format": "text"},
        "exec": {"pipeline": {"steps": [{"id": "twice", "tool": "calc.eval", "args": {"expression": "2*${x}"}}]}},
        "permissions": {"network": false, "fs": {"read": [], "write": []}, "secrets": {}},
        "approval": {"required": true, "reason": "Calculates"}
    })
}

fn proposal() -> Value {
    json!({"name": "tool_create", "arguments": {"name": "doubler", "definition": definition()}})
}

/// Makes a call that is asked about, approves it in the client's form, and gives what was shown and what came of it.
fn approved(client: &mut Client, params: Value) -> (String, Value) {
    let id = client.request("tools/call", params);
    let form = client.hear("elicitation/create");
    let answer = json!({"action": "accept", "content": {"decision": "approve once"}});
    client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": answer}));
    (form["params"]["message"].as_str().unwrap().to_owned(), client.answer(id)["result"].clone())
}

fn audit(env: &Env) -> Vec<String> {
    let text = std::fs::read_to_string(env.root().join(".haft/audit/tools.log")).unwrap_or_default();
    text.lines().map(|line| line.split_once("] ").unwrap().1.to_owned()).collect()
}

#[test]
fn from_a_proposal_to_its_use_and_back() {
    let env = Env::with(LONG);
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let (shown, made) = approved(&mut client, proposal());
    assert_eq!(made["isError"], false, "{made:#}");
    for part in ["reaches nobody", "gets no secrets", "calls calc.eval", "+name: doubler", "+  required: true"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.find("reaches nobody") < shown.find("+name: doubler"), "permissions on top: {shown}");
    client.hear("notifications/tools/list_changed");
    let listed = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let found = client.call("tool_list", json!({}));
    assert!(listed.to_string().contains("doubler") || text(&found).contains("doubler"), "{listed:#}");
    let (shown, used) = approved(&mut client, json!({"name": "doubler", "arguments": {"x": 21}}));
    assert!(shown.contains("Calculates"), "{shown}");
    assert!(used["isError"] == false && text(&used).contains("42"), "{used:#}");
    let lines = audit(&env);
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(lines[0].starts_with("TOOL_CREATED name=doubler creator="), "{lines:#?}");
    assert!(lines[0].ends_with("permissions={network:false,fs:{read:[],write:[]}}"), "{lines:#?}");
    assert!(lines[1].starts_with("TOOL_APPROVED name=doubler approver="), "{lines:#?}");
    assert_eq!(lines[2], "TOOL_EXECUTED name=doubler params={x:21} status=success");
    let said: Vec<Value> = env.records().into_iter().filter(|record| record["body"]["kind"] == "made").collect();
    assert_eq!(said.len(), 3, "{said:#?}");
    let call = made["_meta"]["haft"]["call_id"].as_str().unwrap();
    assert!(env.run(&["undo", call]).status.success());
    assert!(!env.root().join(".haft/tools/doubler/tool.yml").exists());
    let gone = client.ask("tools/call", json!({"name": "doubler", "arguments": {"x": 1}}));
    assert!(gone["error"]["message"].as_str().unwrap().contains("there is no tool `doubler`"), "{gone:#}");
}

#[test]
fn what_a_manifest_gives_is_not_promised() {
    let env = Env::with(LONG);
    let mut definition = definition();
    definition["outputs"] = json!({"format": "json", "schema": {"type": "object", "required": ["y"]}});
    let dir = env.root().join(".haft/tools/doubler");
    std::fs::create_dir_all(&dir).unwrap();
    definition["name"] = json!("doubler");
    definition["approval"] = json!({"required": false});
    // JSON is YAML.
    std::fs::write(dir.join("tool.yml"), definition.to_string()).unwrap();
    assert!(env.run(&["trust", "doubler", "--yes"]).status.success());
    let mut client = env.connect();
    let listed = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let tools = listed.as_array().unwrap();
    let doubler = tools.iter().find(|tool| tool["name"] == "doubler").unwrap();
    assert_eq!(doubler.get("outputSchema"), None, "a server that tells a schema has to keep to it");
    assert!(tools.iter().any(|tool| tool.get("outputSchema").is_some()));
    let used = client.call("doubler", json!({"x": 21}));
    assert!(used["isError"] == false && text(&used).contains("42"), "{used:#}");
}

#[test]
fn without_anybody_there_it_waits_and_is_applied_later() {
    let env = Env::with(SHORT);
    let mut client = env.connect();
    let waits = client.ask("tools/call", proposal())["result"].clone();
    let id = waits["_meta"]["haft"]["call_id"].as_str().unwrap();
    assert!(waits["isError"] == true && text(&waits).contains("haft approvals"), "{waits:#}");
    assert!(!env.root().join(".haft/tools").exists());
    let shown = env.run(&["approvals", "show", id]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("doubler"), "{shown:?}");
    let done = env.run(&["approvals", "approve", id]);
    assert!(done.status.success(), "{done:?}");
    let used = env.run(&["call", "doubler", "x:=4", "--yes"]);
    assert!(String::from_utf8_lossy(&used.stdout).contains('8'), "{used:?}");
    let created = audit(&env).iter().filter(|line| line.starts_with("TOOL_CREATED")).count();
    assert_eq!(created, 1, "{:?}", audit(&env));
}

#[test]
fn what_is_wrong_or_too_much_is_told_and_nobody_is_asked() {
    let env = Env::with(LONG);
    let mut client = env.connect();
    let mut wide = definition();
    wide["kind"] = json!("command");
    wide["exec"] = json!({"command": {"entrypoint": "curl", "args": ["https://example.com/${x}"]}});
    wide["permissions"]["network"] = json!(true);
    let mut wrong = definition();
    wrong["version"] = json!(0);
    wrong["approval"] = json!({"required": true});
    for (definition, word) in [(wide, "denied"), (wrong, "invalid_input")] {
        let result = client.call("tool_create", json!({"name": "doubler", "definition": definition}));
        assert!(result["isError"] == true && text(&result).contains(word), "{word}: {result:#}");
    }
    assert_eq!(env.json(&["approvals", "--json"]), json!([]));
    assert!(audit(&env).is_empty());
}

#[test]
fn a_session_makes_so_many_and_no_more_also_after_a_restart() {
    let env = Env::with("mcp: {wait_ms: 300}\nsecurity: {tools_per_session: 2}\n");
    let propose = |env: &Env, name: &str| {
        let args = json!({"name": name, "definition": definition()});
        let output = env.run(&["call", "tool.create", &args.to_string(), "--no-input", "--json"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["error"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(propose(&env, "one"), "approval_required");
    assert_eq!(propose(&env, "two"), "approval_required");
    assert_eq!(propose(&env, "three"), "denied");
    let other = env.run(&[
        "--session",
        "other",
        "call",
        "tool.create",
        &json!({"name": "x", "definition": definition()}).to_string(),
        "--no-input",
    ]);
    assert_eq!(other.status.code(), Some(4), "{other:?}");
}

#[test]
fn no_list_grant_or_level_lifts_the_look_at_a_proposal() {
    let config = "approval: {auto_approve: ['*'], level: yolo}\n";
    let env = Env::with(config);
    env.run(&["approvals", "grant", "tool.create", "**"]);
    let args = json!({"name": "doubler", "definition": definition()}).to_string();
    let output = env.run(&["call", "tool.create", &args, "--no-input"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
}

#[test]
fn its_maker_changes_it_with_a_higher_version_and_others_stay() {
    let env = Env::with("");
    let create = |version: u64, words: &str| {
        let mut definition = definition();
        definition["version"] = json!(version);
        definition["description"] = json!(words);
        let args = json!({"name": "doubler", "definition": definition}).to_string();
        env.run(&["call", "tool.create", &args, "--yes"])
    };
    assert!(create(1, "Double a number").status.success());
    assert_eq!(create(1, "Double it").status.code(), Some(1));
    let changed = create(2, "Double it");
    assert!(changed.status.success(), "{changed:?}");
    let file = env.root().join(".haft/tools/doubler/tool.yml");
    assert!(std::fs::read_to_string(&file).unwrap().contains("version: 2"));
    let text = std::fs::read_to_string(&file).unwrap().replace("Double it", "Double it by hand");
    std::fs::write(&file, text).unwrap();
    assert_eq!(create(3, "Mine").status.code(), Some(1), "a person has changed it since");
}

#[test]
fn glee_speaks_of_the_same_tools() {
    let env = Env::with("");
    let glee = |args: &[&str]| env.run(&[&["call", "--dialect", "glee", "--yes"], args].concat());
    let args = json!({"name": "doubler", "definition": definition()}).to_string();
    assert!(glee(&["glee_tool_create", &args]).status.success());
    let listed = glee(&["glee_tools_list"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed, json!([{"name": "doubler", "description": "Double a number"}]));
    let used = glee(&["glee_tool", &json!({"name": "doubler", "params": {"x": 5}}).to_string()]);
    assert!(String::from_utf8_lossy(&used.stdout).contains("10"), "{used:?}");
}

#[test]
fn skills_and_reflections_go_the_same_way() {
    let env = Env::with(LONG);
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let args = json!({"name": "run-tests", "description": "How tests run", "content": "Use make."});
    for (tool, path) in
        [("skill_create", ".haft/skills/run-tests/SKILL.md"), ("reflection_create", ".haft/reflections/run-tests.md")]
    {
        let (shown, result) = approved(&mut client, json!({"name": tool, "arguments": args}));
        assert!(shown.contains("+Use make."), "{shown}");
        assert_eq!(result["isError"], false, "{result:#}");
        let call = result["_meta"]["haft"]["call_id"].as_str().unwrap();
        assert!(env.root().join(path).exists());
        assert!(env.run(&["undo", call]).status.success());
        assert!(!env.root().join(path).exists());
    }
}
