//! Calls over plain HTTP: what they give, what is told of them later, and taking them back.

use crate::{Env, until};
use serde_json::{Value, json};

#[test]
fn a_call_gives_its_outcome_and_the_status_says_how_far_it_came() {
    let env = Env::new();
    let gateway = env.serve();
    let done = gateway.call("calc.eval", json!({"expression": "6 * 7"}));
    assert_eq!((done.status, done.json()["output"].as_str()), (200, Some("42")));
    let failed = gateway.call("file.read", json!({"path": "none.txt"}));
    assert_eq!((failed.status, failed.json()["error"]["kind"].as_str()), (200, Some("not_found")), "the tool ran");
    let bad = gateway.call("calc.eval", json!({"nothing": 1}));
    assert_eq!((bad.status, bad.json()["error"]["kind"].as_str()), (400, Some("invalid_input")));
    let unknown = gateway.call("no.such", json!({}));
    assert_eq!((unknown.status, unknown.json()["error"]["kind"].as_str()), (404, Some("unknown_tool")));
    let waits = gateway.call("file.write", json!({"path": "a.txt", "content": "x"}));
    assert_eq!((waits.status, waits.json()["error"]["kind"].as_str()), (202, Some("approval_required")));
    let tried = gateway
        .post("/v1/tools/file.write/call", json!({"args": {"path": "b.txt", "content": "x\n"}, "dry_run": true}));
    assert_eq!(tried.status, 200);
    assert!(tried.json()["data"]["diff"].as_str().unwrap().contains("+x"), "{tried:?}");
    assert!(!env.root().join("b.txt").exists());
}

#[test]
fn what_is_denied_is_403() {
    let env = Env::new();
    env.config("deny: [\"file.write\"]\n");
    let gateway = env.serve();
    let answer = gateway.call("file.write", json!({"path": "a.txt", "content": "x"}));
    assert_eq!((answer.status, answer.json()["error"]["kind"].as_str()), (403, Some("denied")), "{answer:?}");
    let tools = gateway.get("/v1/tools").json();
    let names: Vec<&str> = tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"file.read") && !names.contains(&"file.write"), "{names:?}");
}

#[test]
fn tools_for_a_provider_are_declared_as_on_the_command_line() {
    let env = Env::new();
    let gateway = env.serve();
    for provider in ["anthropic", "openai", "openai-chat", "gemini"] {
        let told = gateway.get(&format!("/v1/tools?provider={provider}")).json();
        let printed = env.run(&["tools", "--provider", provider]);
        assert!(printed.as_array().is_some_and(|tools| tools.len() > 50), "{provider}: {printed}");
        assert_eq!((&told["tools"], &told["provider"]), (&printed, &json!(provider)));
    }
    let notes = gateway.get("/v1/tools?provider=openai").json()["notes"].clone();
    let open = notes.as_array().unwrap().iter().find(|note| note["tool"] == "tool.call").unwrap().clone();
    assert_eq!(open["kind"], "not_strict");
    assert_eq!(gateway.get("/v1/tools?provider=nobody").status, 400);
}

#[test]
fn a_request_that_makes_no_sense_is_told_so() {
    let env = Env::new();
    let gateway = env.serve();
    let send = |path: &str, body: &str| gateway.server.ask("POST", path, &gateway.bearer(), Some(body));
    for (path, body) in [
        ("/v1/tools/calc.eval/call", "{"),
        ("/v1/tools/calc.eval/call", "[]"),
        ("/v1/tools/calc.eval/call", r#"{"arguments": {}}"#),
        ("/v1/tools/calc.eval/call", r#"{"args": {"expression": "1"}, "dialect": "klingon"}"#),
        ("/v1/tools/calc.eval/call", "{\"args\": {\"expression\": \"1\"}, \"session\": \"a\\nb\"}"),
        ("/v1/tools/calc.eval/explain", r#"{"args": 1}"#),
    ] {
        let answer = send(path, body);
        assert_eq!(answer.status, 400, "{path} {body} {}", answer.text());
        assert_eq!(answer.json()["error"]["kind"], "invalid_input", "{body}");
    }
    assert_eq!(gateway.get("/v1/log?limit=many").status, 400);
    for path in ["/v1/calls/nothing", "/v1/calls/a%2Fb", "/v1/approvals/nothing", "/v1/calls/nothing/changes"] {
        assert_eq!(gateway.get(path).status, 404, "{path}");
    }
}

#[test]
fn a_call_is_found_again_with_its_records_and_taken_back() {
    let env = Env::new();
    env.file("a.txt", "before");
    let gateway = env.serve();
    gateway.call("file.read", json!({"path": "a.txt"}));
    let id = gateway.ask_to_write("a.txt");
    let done = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
    assert_eq!((done.status, env.read("a.txt").as_str()), (200, "hello"), "{done:?}");
    let call = gateway.get(&format!("/v1/calls/{id}")).json();
    assert_eq!(
        (&call["state"], &call["tool"], &call["outcome"]["success"]),
        (&json!("done"), &json!("file.write"), &json!(true)),
        "{call:#}"
    );
    assert_eq!(call["undo"]["available"], true);
    let kinds: Vec<&str> =
        call["records"].as_array().unwrap().iter().filter_map(|it| it["body"]["kind"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"approval"), "{kinds:?}");
    assert!(kinds.contains(&"refused") && kinds.contains(&"intent") && kinds.ends_with(&["outcome"]), "{kinds:?}");
    let changes = gateway.get(&format!("/v1/calls/{id}/changes")).json();
    assert!(changes["diff"].as_str().unwrap().contains("+hello"), "{changes:#}");
    let undone = gateway.post(&format!("/v1/calls/{id}/undo"), json!({}));
    assert_eq!((undone.status, env.read("a.txt").as_str()), (200, "before"), "{undone:?}");
    assert_eq!(gateway.get(&format!("/v1/calls/{id}")).json()["state"], "undone");
    assert_eq!(gateway.post(&format!("/v1/calls/{id}/undo"), json!({})).status, 409);
}

#[test]
fn the_latest_calls_come_first_whichever_process_made_them() {
    let env = Env::new();
    let gateway = env.serve();
    gateway.post("/v1/tools/calc.eval/call", json!({"args": {"expression": "1"}, "session": "mine"}));
    env.run(&["call", "calc.eval", r#"{"expression": "2"}"#, "--json"]);
    gateway.call("calc.eval", json!({"expression": "1 +"}));
    let waits = gateway.ask_to_write("b.txt");
    let calls = gateway.get("/v1/calls?limit=10").json()["calls"].clone();
    let told: Vec<(&str, &str, &str)> = calls
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            (call["preview"].as_str().unwrap(), call["state"].as_str().unwrap(), call["origin"].as_str().unwrap_or(""))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("file.write: b.txt (5B)", "waiting", ""),
            ("calc.eval: 1 +", "failed", "gateway"),
            ("calc.eval: 2", "done", "cli"),
            ("calc.eval: 1", "done", "gateway"),
        ]
    );
    assert_eq!(calls[0]["call_id"], waits.as_str());
    let mine = gateway.get("/v1/calls?session=mine").json();
    assert_eq!(mine["calls"].as_array().unwrap().len(), 1, "{mine:#}");
    let sessions = gateway.get("/v1/sessions").json();
    assert!(sessions["sessions"].as_array().unwrap().iter().any(|session| session["id"] == "mine"));
}

#[test]
fn the_log_is_read_searched_checked_and_taken_away() {
    let env = Env::new();
    let gateway = env.serve();
    for number in 0..5 {
        gateway.call("calc.eval", json!({"expression": format!("{number} + 1000")}));
    }
    let latest = gateway.get("/v1/log?limit=2").json();
    let head = latest["head"]["seq"].as_i64().unwrap();
    assert_eq!(latest["records"][0]["seq"], head, "the latest comes first");
    let since = gateway.get("/v1/log?after=0&limit=3").json();
    let numbers: Vec<i64> = since["records"].as_array().unwrap().iter().map(|it| it["seq"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let found = gateway.get("/v1/log?kind=intent&q=3+%2B+1000").json();
    assert_eq!(found["records"].as_array().unwrap().len(), 1, "{found:#}");
    let call = found["records"][0]["body"]["call"].as_str().unwrap();
    let of_call = gateway.get(&format!("/v1/log?call={call}")).json();
    assert_eq!(of_call["records"].as_array().unwrap().len(), 2);
    let verified = gateway.get("/v1/log/verify").json();
    assert_eq!((&verified["ok"], &verified["head"]["seq"]), (&json!(true), &json!(head)));
    let export = gateway.get("/v1/log/export");
    let lines: Vec<Value> = export.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(i64::try_from(lines.len()).unwrap(), head);
    assert_eq!(lines[0]["seq"], 1);
}

#[test]
fn what_would_happen_is_explained_without_doing_it() {
    let env = Env::new();
    let gateway = env.serve();
    let args = json!({"args": {"path": "a.txt", "content": "x\n"}});
    let explained = gateway.post("/v1/tools/file.write/explain", args).json();
    assert_eq!((&explained["tool"], &explained["verdict"]["decision"]), (&json!("file.write"), &json!("ask")));
    assert!(explained["diff"].as_str().unwrap().contains("+x") && explained["votes"].is_array());
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn a_dialect_is_spoken_at_this_door_too() {
    let env = Env::new();
    env.file("a.txt", "one\n");
    let gateway = env.serve();
    let tools = gateway.get("/v1/tools?dialect=nodyn").json();
    assert_eq!(tools["dialect"], "nodyn");
    assert!(!tools["tools"].as_array().unwrap().is_empty());
    assert_eq!(gateway.get("/v1/tools?dialect=none").status, 400);
}

/// Calls of one session that have effects run one after the other; those of different sessions do not wait for each
/// other. A call that waits for a person holds nobody up.
#[test]
fn a_session_is_a_line_and_sessions_are_apart() {
    let env = Env::new();
    env.config("approval: {auto_approve: [\"file.write\"]}\n");
    let gateway = env.serve();
    let write = |session: &str, number: usize| {
        let args = json!({"path": format!("{session}/{number}.txt"), "content": "x"});
        gateway.post("/v1/tools/file.write/call", json!({"args": args, "session": session}))
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = ["one", "two", "three"]
            .into_iter()
            .flat_map(|session| (0..8).map(move |number| (session, number)))
            .map(|(session, number)| scope.spawn(move || write(session, number).status))
            .collect();
        for one in all {
            assert_eq!(one.join().unwrap(), 200);
        }
    });
    let log = gateway.get("/v1/log?after=0&limit=2000").json();
    for session in ["one", "two", "three"] {
        let mut open = 0;
        for record in log["records"].as_array().unwrap() {
            let body = &record["body"];
            let named = |name: &str| body["undo"]["files"].to_string().contains(name) || body["session"] == name;
            match body["kind"].as_str() {
                Some("intent") if body["session"] == session => open += 1,
                Some("outcome") if named(session) => open -= 1,
                _ => {}
            }
            assert!(open <= 1, "two at once in session {session}");
        }
        assert_eq!(open, 0);
    }
}

#[test]
fn configuration_and_state_are_shown() {
    let env = Env::new();
    env.config("deny: [\"process.*\"]\n");
    let gateway = env.serve();
    let config = gateway.get("/v1/config").json();
    assert_eq!(config["config"]["deny"][0], "process.*", "{config:#}");
    assert_eq!(config["origins"]["deny"], json!(["user"]), "{config:#}");
    assert!(config["sources"][0]["path"].as_str().unwrap().ends_with("config.yml"), "{config:#}");
    assert!(config["confinement"]["confinement"]["found"].is_string(), "{config:#}");
    gateway.ask_to_write("a.txt");
    let status = gateway.get("/v1/status").json();
    assert_eq!((&status["approvals_pending"], &status["links"]), (&json!(1), &json!(false)));
    assert_eq!(status["root"], env.root().canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn what_happened_is_counted() {
    let env = Env::new();
    let gateway = env.serve();
    gateway.call("calc.eval", json!({"expression": "1"}));
    gateway.call("nobody.knows.this", json!({}));
    gateway.ask_to_write("a.txt");
    // What is counted, and connections that were closed, are noted a moment later.
    let noted = |text: &String| text.contains("approval_required") && text.contains("haft_connections 1\n");
    let text = until(|| Some(gateway.get("/metrics").text()).filter(noted));
    for line in [
        "haft_calls_total{family=\"calc\",outcome=\"success\"} 1",
        "haft_calls_total{family=\"unknown\",outcome=\"unknown_tool\"} 1",
        "haft_calls_total{family=\"file\",outcome=\"approval_required\"} 1",
        "haft_approvals_pending 1",
        "haft_connections 1",
        "haft_call_duration_seconds_count 3",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn selected_calls_are_listed_and_taken_back() {
    let env = Env::new();
    let gateway = env.serve();
    let write = |session: &str, path: &str| {
        let body = json!({"args": {"path": path, "content": "new"}, "session": session});
        let asked = gateway.post("/v1/tools/file.write/call", body).json();
        let id = asked["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
        assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"})).status, 200);
        id
    };
    let (first, second, _) = (write("x", "x1"), write("x", "x2"), write("y", "y1"));
    env.file("x2", "theirs");
    let listed = gateway.get("/v1/changes?session=x").json();
    let ids: Vec<&Value> = listed["calls"].as_array().unwrap().iter().map(|call| &call["call_id"]).collect();
    assert_eq!(ids, [&json!(second), &json!(first)], "{listed:#}");
    assert_eq!((&listed["calls"][0]["tool"], &listed["calls"][0]["files"]), (&json!("file.write"), &json!(["x2"])));
    let undone = gateway.post("/v1/undo", json!({"session": "x", "last": true}));
    assert_eq!(undone.status, 200, "{undone:?}");
    let undone = undone.json();
    assert_eq!(undone["undone"][0]["undone"], json!(first), "{undone:#}");
    assert_eq!(undone["passed_over"][0]["call_id"], json!(second), "{undone:#}");
    assert!(undone["passed_over"][0]["reason"].as_str().unwrap().contains("changed since: x2"), "{undone:#}");
    assert_eq!(["x1", "x2", "y1"].map(|name| env.root().join(name).exists()), [false, true, true]);
    assert_eq!(gateway.post("/v1/undo", json!({"session": "x"})).status, 400, "that selects too much by mistake");
    assert_eq!(gateway.post("/v1/undo", json!({"turn": 1})).status, 400, "of which session?");
    let all = gateway.post("/v1/undo", json!({"since": "1h"})).json();
    assert_eq!((all["undone"].as_array().unwrap().len(), env.root().join("y1").exists()), (1, false), "{all:#}");
}
