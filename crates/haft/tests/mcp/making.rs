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
    let proposes = params["name"].as_str().unwrap().ends_with("_create");
    let id = client.request("tools/call", params);
    let form = client.hear("elicitation/create");
    let answers = form["params"]["requestedSchema"]["properties"]["decision"]["enum"].as_array().unwrap();
    assert_eq!(answers.len(), if proposes { 2 } else { 3 }, "a yes to a proposal is for nothing else: {form:#}");
    let answer = json!({"action": "accept", "content": {"decision": "approve once"}});
    client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": answer}));
    (form["params"]["message"].as_str().unwrap().to_owned(), client.answer(id)["result"].clone())
}

/// Proposes something from the command line, where nobody is, and has a person approve it. Gives the proposal's outcome if
/// it was refused, and what came of it otherwise.
fn proposed(env: &Env, args: &Value) -> Value {
    let waits = env.json(&["call", "tool.create", &args.to_string(), "--no-input", "--json"]);
    match waits["error"]["details"]["approval_id"].as_str() {
        Some(id) => env.json(&["approvals", "approve", "--yes", id, "--json"]),
        None => waits,
    }
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
    let done = env.run(&["approvals", "approve", "--yes", id]);
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
fn a_yes_for_one_version_is_for_no_other() {
    let env = Env::with("");
    let create = |version: u64| {
        let mut definition = definition();
        definition["version"] = json!(version);
        proposed(&env, &json!({"name": "doubler", "definition": definition}))
    };
    let call = || env.run(&["call", "doubler", "x:=4", "--no-input"]).status.code();
    assert_eq!(create(1)["success"], true);
    assert_eq!(call(), Some(4));
    assert!(env.run(&["approvals", "grant", "doubler", "**"]).status.success());
    assert_eq!(call(), Some(0));
    assert_eq!(create(2)["success"], true);
    assert_eq!(call(), Some(4));
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
        proposed(&env, &json!({"name": "doubler", "definition": definition}))
    };
    assert_eq!(create(1, "Double a number")["success"], true);
    assert_eq!(create(1, "Double it")["error"]["kind"], "conflict");
    let changed = create(2, "Double it");
    assert_eq!(changed["success"], true, "{changed:#}");
    let file = env.root().join(".haft/tools/doubler/tool.yml");
    assert!(std::fs::read_to_string(&file).unwrap().contains("version: 2"));
    let text = std::fs::read_to_string(&file).unwrap().replace("Double it", "Double it by hand");
    std::fs::write(&file, text).unwrap();
    assert_eq!(create(3, "Mine")["error"]["kind"], "conflict", "a person has changed it since");
}

#[test]
fn what_a_person_edited_beside_it_is_theirs() {
    let env = Env::with("");
    let create = |version: u64, files: Value| {
        let mut definition = definition();
        definition["version"] = json!(version);
        proposed(&env, &json!({"name": "doubler", "definition": definition, "files": files}))
    };
    assert_eq!(create(1, json!({"run.sh": "one\n", "old.txt": "old\n"}))["success"], true);
    assert_eq!(create(2, json!({"run.sh": "two\n", "old.txt": "old\n"}))["success"], true);
    let at = |name: &str| env.root().join(".haft/tools/doubler").join(name);
    std::fs::write(at("run.sh"), "two\n# mine\n").unwrap();
    for files in [json!({"run.sh": "three\n", "old.txt": "old\n"}), json!({"old.txt": "old\n"})] {
        let refused = create(3, files);
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains("run.sh is there already, and is not as an agent made it"), "{said}");
    }
    assert!(std::fs::read_to_string(at("run.sh")).unwrap().ends_with("# mine\n"));
    std::fs::write(at("run.sh"), "two\n").unwrap();
    std::fs::write(at("notes.md"), "a person's\n").unwrap();
    assert_eq!(create(3, json!({"run.sh": "three\n"}))["error"]["kind"], "conflict", "what they added, too");
    std::fs::remove_file(at("notes.md")).unwrap();
    assert_eq!(create(3, json!({"run.sh": "three\n"}))["success"], true);
    assert!(!at("old.txt").exists());
}

#[test]
fn what_answers_everything_approves_no_proposal() {
    let env = Env::with("");
    let args = json!({"name": "doubler", "definition": definition()}).to_string();
    let waits = env.json(&["call", "tool.create", &args, "--yes", "--json"]);
    let said = waits["error"]["message"].as_str().unwrap();
    assert!(waits["error"]["kind"] == "approval_required" && said.ends_with("--yes approves no proposal"), "{waits:#}");
    assert!(waits["error"]["hint"].as_str().unwrap().contains("haft approvals approve"), "{waits:#}");
    assert!(!env.root().join(".haft/tools").exists());
    let id = waits["error"]["details"]["approval_id"].as_str().unwrap();
    assert_eq!(env.json(&["approvals", "approve", "--yes", id, "--json"])["success"], true);
    let batch = env.file(
        "batch.jsonl",
        json!({"tool": "skill.create", "args": {"name": "s", "description": "d", "content": "c"}}).to_string(),
    );
    let outcome = env.json(&["batch", "-y", batch.to_str().unwrap()]);
    assert_eq!(outcome["error"]["kind"], "approval_required", "{outcome:#}");
}

#[test]
fn what_is_rejected_at_once_waits_for_nobody() {
    let env = Env::with("security: {tools_per_session: 1}\n");
    for round in 0..4 {
        let mut client = env.connect_as(json!({"elicitation": {}}));
        let id = client.request("tools/call", proposal());
        let form = client.hear("elicitation/create");
        client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "decline"}}));
        let said = client.answer(id)["result"].clone();
        assert!(said["isError"] == true && !text(&said).contains("wait for a decision"), "{round}: {said:#}");
    }
}

#[test]
fn no_session_id_makes_room_for_more_questions() {
    let env = Env::with("security: {tools_per_session: 1}\n");
    let propose = |at: usize, agent: &str| {
        let args = json!({"name": format!("tool{at}"), "definition": definition()}).to_string();
        let (session, agent) = (format!("session-{at}"), format!("--agent={agent}"));
        env.json(&["--session", &session, "call", "tool.create", &args, "--no-input", "--json", &agent])
    };
    let kind = |outcome: &Value| outcome["error"]["kind"].as_str().unwrap().to_owned();
    assert_eq!(kind(&propose(0, "one")), "approval_required");
    assert_eq!(kind(&propose(1, "one")), "approval_required");
    let third = propose(2, "one");
    assert_eq!(kind(&third), "denied");
    assert_eq!(third["error"]["message"], "2 proposals of this agent wait for a decision here already");
    assert_eq!(kind(&propose(3, "two")), "approval_required");
    assert_eq!(kind(&propose(4, "three")), "approval_required");
    assert_eq!(propose(5, "four")["error"]["message"], "4 proposals wait for a decision in this project already");
    let waiting = env.json(&["approvals", "--json"]);
    let id = waiting[0]["id"].as_str().unwrap();
    assert!(env.run(&["approvals", "reject", id]).status.success());
    assert_eq!(kind(&propose(6, "four")), "approval_required", "what is decided makes room");
}

#[test]
fn glee_speaks_of_the_same_tools() {
    let env = Env::with("");
    let glee = |args: &[&str]| env.run(&[&["call", "--dialect", "glee", "--yes"], args].concat());
    let args = json!({"name": "doubler", "definition": definition()}).to_string();
    let waits = glee(&["glee_tool_create", &args, "--json"]);
    let waits: Value = serde_json::from_slice(&waits.stdout).unwrap();
    let id = waits["error"]["details"]["approval_id"].as_str().unwrap();
    assert!(env.run(&["approvals", "approve", "--yes", id]).status.success());
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
