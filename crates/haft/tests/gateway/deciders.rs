//! Who may decide by way of the gateway: REST, JSON-RPC, a WebSocket, a link, the command line, and MCP in both of its
//! eras, with the owner's token and with the agents'. What the agents' token says decides nothing.

use crate::client::Stream;
use crate::{Env, Gateway};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a person takes to read a form, at the least.
const READING_TIME: Duration = Duration::from_secs(1);

/// Whose token is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Holder {
    Owner,
    Agent,
}

/// Which protocol an MCP client speaks.
#[derive(Debug, Clone, Copy)]
enum Era {
    /// The server puts requests of its own.
    Requests,
    /// The client comes back with answers.
    Rounds,
    /// The client looks after a task.
    Tasks,
}

/// The path and body of a request that answers the question of this id.
type AnswerRequest<'r> = &'r dyn Fn(&str) -> (String, Value);

/// What came of a call over MCP.
#[derive(Debug)]
struct Called {
    /// The forms that the client was given.
    forms: usize,
    text: String,
}

/// A program that holds a token.
struct Program<'g> {
    gateway: &'g Gateway,
    token: String,
}

impl<'g> Program<'g> {
    fn new(env: &Env, gateway: &'g Gateway, holder: Holder) -> Self {
        let token = match holder {
            Holder::Owner => gateway.token.clone(),
            Holder::Agent => std::fs::read_to_string(env.data().join("gateway-agent-token")).unwrap(),
        };
        Self { gateway, token }
    }

    fn headers(&self, more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("Authorization", format!("Bearer {}", self.token)),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ];
        headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        headers
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.gateway.server.ask("POST", path, &self.headers(&[]), Some(&body.to_string()));
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Makes a call over MCP as a client that answers each form with this.
    fn call(&self, era: Era, (tool, args): (&str, Value), answer: &Value) -> Called {
        match era {
            Era::Requests => self.call_by_requests(tool, args, answer),
            Era::Rounds => self.call_in_rounds((tool, args), answer, json!({"elicitation": {}})),
            Era::Tasks => {
                let tasks = json!({"io.modelcontextprotocol/tasks": {}});
                self.call_in_rounds((tool, args), answer, json!({"elicitation": {}, "extensions": tasks}))
            }
        }
    }

    fn call_by_requests(&self, tool: &str, args: Value, answer: &Value) -> Called {
        let server = &self.gateway.server;
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "owner token", "version": "1"}}});
        let opened = server.ask("POST", "/mcp", &self.headers(&[]), Some(&hello.to_string()));
        let session = opened.header("mcp-session-id").unwrap_or_else(|| panic!("no session: {opened:?}")).to_owned();
        let headers = self.headers(&[("Mcp-Session-Id", &session), ("MCP-Protocol-Version", "2025-11-25")]);
        let say = |message: Value| server.ask("POST", "/mcp", &headers, Some(&message.to_string()));
        say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let call =
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": args}});
        let mut connection = server.connect();
        server.send(&mut connection, "POST", "/mcp", &headers, Some(&call.to_string()));
        let (mut stream, mut forms) = (Stream::new(connection), 0);
        loop {
            let block = stream.block().unwrap_or_else(|| panic!("the stream ended without an answer"));
            for message in messages(&block) {
                if message["method"] == "elicitation/create" {
                    forms += 1;
                    std::thread::sleep(READING_TIME);
                    say(json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}));
                } else if message["id"] == 2 {
                    return Called { forms, text: message["result"]["content"].to_string() };
                }
            }
        }
    }

    fn newest(&self, method: &str, name: &str, params: Value, capabilities: &Value) -> Value {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "owner token", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers =
            self.headers(&[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", name)]);
        let said = self.gateway.server.ask("POST", "/mcp", &headers, Some(&body.to_string())).text();
        let answer = serde_json::from_str(&said).ok().or_else(|| messages(&said).pop());
        answer.unwrap_or_else(|| panic!("no answer to {method}: {said}"))
    }

    fn call_in_rounds(&self, (tool, args): (&str, Value), answer: &Value, able: Value) -> Called {
        let mut params = json!({"name": tool, "arguments": args});
        // A client may try to answer what it is not asked.
        params["inputResponses"] = json!({"approval": answer, "form": answer});
        let (mut forms, mut result) = (0, self.newest("tools/call", tool, params.clone(), &able)["result"].clone());
        while result["resultType"] == "input_required" {
            forms += 1;
            std::thread::sleep(READING_TIME);
            params["inputResponses"] = answers(&result["inputRequests"], answer);
            params["requestState"] = result["requestState"].clone();
            result = self.newest("tools/call", tool, params.clone(), &able)["result"].clone();
        }
        if result["resultType"] == "task" {
            let task = result["taskId"].as_str().unwrap().to_owned();
            let about = |method: &str, more: Value| {
                let mut params = json!({"taskId": task});
                params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                self.newest(method, &task, params, &able)
            };
            // As soon as it asks; one that asks nobody says in words what it waits for.
            let mut state = about("tasks/get", json!({}))["result"].clone();
            while state["status"] == "input_required" {
                forms += 1;
                std::thread::sleep(READING_TIME);
                about("tasks/update", json!({"inputResponses": answers(&state["inputRequests"], answer)}));
                state = about("tasks/get", json!({}))["result"].clone();
            }
            while state["status"] == "working" && forms > 0 {
                state = about("tasks/get", json!({}))["result"].clone();
            }
            result = if state["status"] == "completed" { state["result"].clone() } else { state };
        }
        Called { forms, text: result.to_string() }
    }
}

fn answers(requests: &Value, answer: &Value) -> Value {
    requests
        .as_object()
        .unwrap()
        .keys()
        .map(|key| (key.clone(), answer.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The messages of an event stream.
fn messages(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

fn approve_once() -> Value {
    json!({"action": "accept", "content": {"decision": "approve once"}})
}

fn write() -> (&'static str, Value) {
    ("file_write", json!({"path": "a.txt", "content": "x"}))
}

/// The kinds of identity that the log has for what was said of a question.
fn logged(env: &Env, id: &str, said: &str) -> Vec<String> {
    let output = env.command(&["log", "--json", "-n", "10000"]).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].clone());
    let about = records.filter(|body| body["call"] == id && body["said"] == said);
    about.map(|body| body["decider"]["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

const SHORT: &str = "mcp: {wait_ms: 200}\ntools: {budget_tokens: 0}\n";

#[test]
fn agent_over_mcp_is_not_asked_for_its_own_approval_in_any_version() {
    for era in [Era::Requests, Era::Rounds] {
        for by_way in [false, true] {
            let env = Env::new();
            env.config(SHORT);
            let gateway = env.serve();
            let agent = Program::new(&env, &gateway, Holder::Agent);
            let (tool, args) = write();
            let call = if by_way { ("tool_call", json!({"name": tool, "args": args})) } else { (tool, args) };
            let called = agent.call(era, call, &approve_once());
            let waiting = gateway.get("/v1/approvals").json();
            let id = waiting["approvals"][0]["id"].as_str().unwrap_or_else(|| panic!("{era:?} {called:?}")).to_owned();
            assert_eq!(called.forms, 0, "{era:?} {called:?}");
            assert!(called.text.contains(&format!("approval {id}")), "the model is told what waits: {called:?}");
            assert!(called.text.contains(&format!("/#/inbox/{id}")), "and where: {called:?}");
            assert!(!env.root().join("a.txt").exists(), "{era:?}");
            assert_eq!(waiting["approvals"][0]["state"], "pending");
        }
    }
}

#[test]
fn task_of_an_agent_waits_for_a_person_and_does_not_ask_the_agent() {
    let env = Env::new();
    env.config(SHORT);
    let gateway = env.serve();
    let agent = Program::new(&env, &gateway, Holder::Agent);
    std::thread::scope(|scope| {
        let called = scope.spawn(|| agent.call(Era::Tasks, write(), &approve_once()));
        let id = crate::until(|| {
            let waiting = gateway.get("/v1/approvals").json();
            waiting["approvals"][0]["id"].as_str().map(str::to_owned)
        });
        assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"})).status, 200);
        let called = called.join().unwrap();
        assert_eq!(called.forms, 0, "{called:?}");
        assert_eq!(logged(&env, &id, "approved"), ["owner_token"]);
    });
    assert_eq!(env.read("a.txt"), "x");
}

#[test]
fn owner_over_mcp_approves_in_every_version_and_the_log_names_the_identity() {
    for era in [Era::Requests, Era::Rounds, Era::Tasks] {
        let env = Env::new();
        env.config("mcp: {wait_ms: 20000}\ntools: {budget_tokens: 0}\n");
        let gateway = env.serve();
        let called = Program::new(&env, &gateway, Holder::Owner).call(era, write(), &approve_once());
        assert_eq!((called.forms, env.read("a.txt").as_str()), (1, "x"), "{era:?} {called:?}");
        let all = gateway.get("/v1/approvals?all=true").json();
        let id = all["approvals"][0]["id"].as_str().unwrap();
        assert_eq!(logged(&env, id, "approved"), ["owner_client"], "{era:?}");
    }
}

#[test]
fn what_a_tool_asks_of_a_person_reaches_the_owner_and_no_agent() {
    let question = || ("user_ask", json!({"question": "Which?", "options": ["mine", "yours"]}));
    let answer = json!({"action": "accept", "content": {"answer": "mine"}});
    for era in [Era::Requests, Era::Rounds] {
        for (holder, forms) in [(Holder::Owner, 1), (Holder::Agent, 0)] {
            let env = Env::new();
            env.config(SHORT);
            if holder == Holder::Owner {
                env.config("mcp: {wait_ms: 20000}\ntools: {budget_tokens: 0}\n");
            }
            let gateway = env.serve();
            let called = Program::new(&env, &gateway, holder).call(era, question(), &answer);
            assert_eq!(
                (called.forms, called.text.contains("mine")),
                (forms, forms == 1),
                "{era:?} {holder:?} {called:?}"
            );
        }
    }
}

#[test]
fn form_of_an_agents_call_is_filled_in_by_the_owner_in_the_inbox() {
    let env = Env::new();
    env.config("mcp: {wait_ms: 30000}\ntools: {budget_tokens: 0}\n");
    let gateway = env.serve();
    let agent = Program::new(&env, &gateway, Holder::Agent);
    let question = ("user_ask", json!({"question": "Which?", "options": ["mine", "yours"]}));
    let answer = json!({"action": "accept", "content": {"answer": "mine"}});
    std::thread::scope(|scope| {
        let called = scope.spawn(|| agent.call(Era::Requests, question, &answer));
        let id = crate::until(|| {
            let waiting = gateway.get("/v1/approvals").json();
            waiting["approvals"][0]["id"].as_str().map(str::to_owned)
        });
        let path = format!("/v1/approvals/{id}");
        let decision = |word: &str| json!({"decision": "answer", "answer": {"answer": word}});
        assert_eq!(agent.post(&path, &decision("mine")).0, 403);
        assert_eq!(gateway.post(&path, decision("yours")).status, 200);
        let called = called.join().unwrap();
        assert!(called.forms == 0 && called.text.contains("yours"), "{called:?}");
        assert_eq!(
            (logged(&env, &id, "refused"), logged(&env, &id, "answered")),
            (vec!["agent_token".to_owned()], vec!["owner_token".to_owned()])
        );
    });
}

#[test]
fn every_door_of_the_gateway_refuses_the_agents_token_and_takes_the_owners() {
    let rpc = |id: &str| json!({"id": 7, "method": "approvals.resolve", "params": {"id": id, "decision": "once"}});
    let amended = |id: &str| json!({"id": 7, "method": "approvals.resolve", "params": {"id": id, "args": {"path": "b.txt", "content": "y"}}});
    let doors: [(&str, AnswerRequest<'_>); 7] = [
        ("REST, once", &|id| (format!("/v1/approvals/{id}"), json!({"decision": "once"}))),
        ("REST, session", &|id| (format!("/v1/approvals/{id}"), json!({"decision": "session"}))),
        ("REST, always", &|id| (format!("/v1/approvals/{id}"), json!({"decision": "always", "pattern": "a.txt"}))),
        ("REST, reject", &|id| (format!("/v1/approvals/{id}"), json!({"decision": "reject"}))),
        ("REST, edit", &|id| (format!("/v1/approvals/{id}/edit"), json!({"args": {"path": "b.txt", "content": "y"}}))),
        ("JSON-RPC", &|id| ("/rpc".to_owned(), rpc(id))),
        ("JSON-RPC, edit", &|id| ("/rpc".to_owned(), amended(id))),
    ];
    for (door, request) in doors {
        let env = Env::new();
        let gateway = env.serve();
        let id = gateway.ask_to_write("a.txt");
        let (path, body) = request(&id);
        let before = gateway.get(&format!("/v1/approvals/{id}")).json();
        let (status, said) = Program::new(&env, &gateway, Holder::Agent).post(&path, &body);
        assert!(status == 403 || said["error"]["code"] == -32003, "{door}: {status} {said:#}");
        let after = gateway.get(&format!("/v1/approvals/{id}")).json();
        assert_eq!(after, before, "{door}");
        assert_eq!(logged(&env, &id, "refused"), ["agent_token"], "{door}");
        let (status, said) = Program::new(&env, &gateway, Holder::Owner).post(&path, &body);
        assert!(status == 200 && said["error"].is_null(), "{door}: {status} {said:#}");
        let said = ["approved", "rejected", "amended"].map(|said| logged(&env, &id, said)).concat();
        assert_eq!(said, ["owner_token"], "{door}");
    }
}

/// What is only for those who decide: what a yes is for, what it would do, and a link to it.
#[test]
fn agents_token_is_shown_no_question_and_changes_nothing_of_it() {
    let env = Env::new();
    let gateway = env.serve_with(&["--links"]);
    let id = gateway.ask_to_write("a.txt");
    std::fs::write(env.root().join("a.txt"), "of a person").unwrap();
    let agent = Program::new(&env, &gateway, Holder::Agent);
    for path in ["try", "link", "edit"] {
        let (status, said) = agent.post(&format!("/v1/approvals/{id}/{path}"), &json!({"args": {"path": "b.txt"}}));
        assert_eq!(status, 403, "{path}: {said:#}");
    }
    for path in ["/v1/approvals".to_owned(), format!("/v1/approvals/{id}")] {
        let answer = gateway.server.ask("GET", &path, &agent.headers(&[]), None);
        assert_eq!(answer.status, 403, "{path}");
    }
    let refused = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
    assert_eq!(refused.status, 409, "nobody who may decide has looked at it since it changed");
    assert_eq!(env.read("a.txt"), "of a person");
}

#[test]
fn socket_of_an_agent_decides_nothing() {
    let env = Env::new();
    let mut gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    let owner = gateway.token.clone();
    gateway.token = std::fs::read_to_string(env.data().join("gateway-agent-token")).unwrap();
    let mut socket = gateway.socket();
    socket.send(json!({"id": 1, "method": "approvals.resolve", "params": {"id": id, "decision": "once"}}));
    assert_eq!(socket.answered(1).1["error"]["code"], -32003);
    gateway.token = owner;
    let mut socket = gateway.socket();
    socket.send(json!({"id": 1, "method": "approvals.resolve", "params": {"id": id, "decision": "once"}}));
    assert_eq!(socket.answered(1).1["result"]["success"], true);
    assert_eq!(
        (logged(&env, &id, "refused"), logged(&env, &id, "approved")),
        (vec!["agent_token".to_owned()], vec!["owner_token".to_owned()])
    );
}

#[test]
fn link_decides_its_own_approval_once_and_no_other() {
    let env = Env::new();
    let gateway = env.serve_with(&["--links"]);
    let (id, other) = (gateway.ask_to_write("a.txt"), gateway.ask_to_write("b.txt"));
    let url = gateway.post(&format!("/v1/approvals/{id}/link"), json!({})).json()["url"].as_str().unwrap().to_owned();
    let code = url.split_once("#link=").unwrap().1;
    let opened = gateway.server.ask("POST", &format!("/v1/links/{code}"), &[], Some("{}")).json();
    let link = Program { gateway: &gateway, token: opened["token"].as_str().unwrap().to_owned() };
    for (path, decision) in [(&other, "once"), (&id, "session")] {
        assert_eq!(link.post(&format!("/v1/approvals/{path}"), &json!({"decision": decision})).0, 403, "{decision}");
    }
    assert_eq!(link.post(&format!("/v1/approvals/{id}"), &json!({"decision": "once"})).0, 200);
    assert_eq!(logged(&env, &id, "approved"), ["link"]);
}

#[test]
fn command_line_decides_for_its_user_and_not_for_an_agent_that_runs_it() {
    let env = Env::new();
    let gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    let run = |args: &[&str], mark: Option<(&str, &str)>| {
        let mut command = env.command(args);
        command.envs(mark);
        command.output().unwrap()
    };
    let words: [&[&str]; 3] = [&["approve"], &["reject"], &["grant", "file.write", "**/*.txt"]];
    for mark in ["CLAUDECODE", "GEMINI_CLI", "CODEX_THREAD_ID"] {
        for words in words {
            let id = if words.len() == 1 { vec![id.as_str()] } else { Vec::new() };
            let refused = run(&[&["approvals"], words, &id].concat(), Some((mark, "1")));
            assert_eq!(refused.status.code(), Some(3), "{mark} {words:?} {refused:?}");
        }
        let refused = run(&["call", "file.write", r#"{"path": "c.txt", "content": "x"}"#, "--yes"], Some((mark, "1")));
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        let others: [&[&str]; 5] = [
            &["trust", "--yes"],
            &["serve", "--print-url"],
            &["mcp", "add", "x", "--", "true"],
            &["mcp", "remove", "x"],
            &["store", "prune", "--older-than", "30d"],
        ];
        for words in others {
            let refused = run(words, Some((mark, "1")));
            assert_eq!(refused.status.code(), Some(3), "{mark} {words:?} {refused:?}");
        }
    }
    assert!(!env.root().join("a.txt").exists() && !env.root().join("c.txt").exists());
    assert_eq!(logged(&env, &id, "refused"), vec!["agent_program"; 6]);
    assert_eq!(run(&["approvals", "approve", &id], None).status.code(), Some(0));
    assert_eq!(logged(&env, &id, "approved"), ["command_line"]);
}

/// A program that haft runs for an agent's call is no person, however it clears its environment.
#[test]
fn command_below_a_call_of_haft_decides_nothing() {
    let env = Env::new();
    let (haft, home) = (env!("CARGO_BIN_EXE_haft"), env.dir.path().join("home"));
    let (said, wanted) = (env.dir.path().join("said"), env.dir.path().join("wanted"));
    // A hook is a program that haft starts without confining it.
    let text = format!(
        "unset CLAUDECODE; cd '{}'; HOME='{}' '{haft}' approvals approve \"$(cat '{}')\" > '{said}' 2>&1; echo $? >> '{said}'",
        env.root().display(),
        home.display(),
        wanted.display(),
        said = said.display(),
    );
    let hook = format!("{{tools: [calc.eval], command: [/bin/sh, -c, {}], timeout_ms: 60000}}", json!(text));
    env.config(&format!("hooks: {{before: [{hook}]}}\n"));
    let gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    std::fs::write(wanted, &id).unwrap();
    gateway.call("calc.eval", json!({"expression": "1"}));
    let said = std::fs::read_to_string(&said).unwrap();
    assert!(said.contains("decides nothing") && said.trim_end().ends_with('3'), "{said}");
    assert!(!env.root().join("a.txt").exists());
    assert_eq!(logged(&env, &id, "refused"), ["agent_program"]);
}
