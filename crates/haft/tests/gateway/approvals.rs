//! Deciding: from another connection, another process, with other arguments, after trying, once.

use crate::{Env, until};
use serde_json::{Value, json};

#[test]
fn a_call_that_waits_gets_the_outcome_of_its_approval() {
    let env = Env::new();
    let gateway = env.serve();
    std::thread::scope(|scope| {
        let body = json!({"args": {"path": "a.txt", "content": "hello"}, "wait_ms": 30_000});
        let waits = scope.spawn(|| gateway.post("/v1/tools/file.write/call", body));
        let id = until(|| {
            let list = gateway.get("/v1/approvals").json();
            list["approvals"][0]["id"].as_str().map(str::to_owned)
        });
        let shown = gateway.get(&format!("/v1/approvals/{id}")).json();
        assert_eq!((&shown["approval"]["state"], &shown["approval"]["origin"]), (&json!("pending"), &json!("gateway")));
        let question = &shown["question"];
        assert!(question["diff"].as_str().unwrap().contains("+hello"), "{question:#}");
        assert_eq!((&question["subject"], &question["can_try"]), (&json!("a.txt"), &json!(false)), "{question:#}");
        let decided = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
        assert_eq!((decided.status, &decided.json()["success"]), (200, &json!(true)), "{decided:?}");
        let outcome = waits.join().unwrap();
        assert_eq!((outcome.status, &outcome.json()["call_id"]), (200, &json!(id)), "{outcome:?}");
        assert_eq!(env.read("a.txt"), "hello");
        let again = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
        assert_eq!((again.status, again.json()["error"]["kind"].as_str()), (409, Some("conflict")));
    });
}

#[test]
fn a_rejection_reaches_the_one_who_waits_with_its_message() {
    let env = Env::new();
    let gateway = env.serve();
    std::thread::scope(|scope| {
        let body = json!({"args": {"path": "a.txt", "content": "hello"}, "wait_ms": 30_000});
        let waits = scope.spawn(|| gateway.post("/v1/tools/file.write/call", body));
        let id = until(|| gateway.get("/v1/approvals").json()["approvals"][0]["id"].as_str().map(str::to_owned));
        let said = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "reject", "message": "not there"}));
        assert_eq!((said.status, said.json()), (200, json!({"id": id, "state": "rejected"})));
        let outcome = waits.join().unwrap();
        assert_eq!((outcome.status, &outcome.json()["error"]["message"]), (403, &json!("not there")), "{outcome:?}");
    });
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn other_arguments_are_shown_before_they_are_approved() {
    let env = Env::new();
    let gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    let edit = |args: Value| gateway.post(&format!("/v1/approvals/{id}/edit"), json!({ "args": args }));
    let edited = edit(json!({"path": "b.txt", "content": "other\n"}));
    assert_eq!(edited.status, 200, "{edited:?}");
    assert!(edited.json()["question"]["diff"].as_str().unwrap().contains("+other"));
    assert_eq!(edited.json()["approval"]["preview"], "file.write: b.txt (6B)");
    assert_eq!(edit(json!({"path": 1})).status, 400);
    let done = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
    assert_eq!((done.status, env.read("b.txt").as_str()), (200, "other\n"), "{done:?}");
    assert!(!env.root().join("a.txt").exists());
    assert_eq!(edit(json!({"path": "c.txt", "content": "x"})).status, 409);
}

#[test]
fn always_is_for_a_pattern_and_session_for_the_session() {
    let env = Env::new();
    let gateway = env.serve();
    let decide = |id: &str, body: Value| gateway.post(&format!("/v1/approvals/{id}"), body);
    let id = gateway.ask_to_write("notes/a.md");
    assert_eq!(decide(&id, json!({"decision": "always"})).status, 400, "for what?");
    assert_eq!(decide(&id, json!({"decision": "always", "pattern": "**"})).status, 400, "too broad");
    assert_eq!(decide(&id, json!({"decision": "perhaps"})).status, 400);
    assert_eq!(decide(&id, json!({"decision": "always", "pattern": "notes/*"})).status, 200);
    let next = gateway.call("file.write", json!({"path": "notes/b.md", "content": "x"}));
    assert_eq!((next.status, next.json()["verdict"]["by"].as_str()), (200, Some("grant")), "{next:?}");
    let id = gateway.ask_to_write("other.md");
    assert_eq!(decide(&id, json!({"decision": "session"})).status, 200);
    std::fs::remove_file(env.root().join("other.md")).unwrap();
    assert_eq!(gateway.call("file.write", json!({"path": "other.md", "content": "x"})).status, 200);
}

#[test]
fn what_has_changed_since_it_was_shown_is_not_approved() {
    let env = Env::new();
    let gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    gateway.get(&format!("/v1/approvals/{id}"));
    env.file("a.txt", "somebody was here");
    let late = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
    assert_eq!(late.status, 409, "{late:?}");
    assert_eq!(env.read("a.txt"), "somebody was here");
}

#[test]
fn one_basis_is_sent_and_deciding_with_it_works() {
    let env = Env::new();
    let gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    let shown = gateway.get(&format!("/v1/approvals/{id}"));
    assert_eq!(shown.text().matches("\"basis\"").count(), 1, "{}", shown.text());
    assert!(!gateway.get("/v1/approvals").text().contains("basis"), "what is listed cannot be decided by");
    let basis = shown.json()["question"]["basis"].clone();
    let done = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once", "basis": basis}));
    assert_eq!((done.status, env.read("a.txt").as_str()), (200, "hello"), "{done:?}");
}

#[test]
fn deciding_with_another_basis_is_told_what_changed() {
    let env = Env::new();
    let gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    let path = format!("/v1/approvals/{id}");
    let decide = |basis: &Value| {
        let late = gateway.post(&path, json!({"decision": "once", "basis": basis}));
        assert_eq!((late.status, late.json()["error"]["kind"].as_str()), (409, Some("conflict")), "{late:?}");
        late.json()["error"]["message"].as_str().unwrap().to_owned()
    };
    let first = gateway.get(&path).json()["question"]["basis"].clone();
    let unknown = decide(&json!("0000"));
    assert!(unknown.contains("matches no version of"), "{unknown}");
    assert!(!unknown.contains("edited"), "nothing was: {unknown}");
    let edited = gateway.post(&format!("{path}/edit"), json!({"args": {"path": "a.txt", "content": "other"}}));
    let second = edited.json()["question"]["basis"].clone();
    assert!(decide(&first).contains("its arguments were edited"));
    env.file("a.txt", "somebody was here");
    let late = decide(&second);
    assert!(late.contains("because the files changed") && !late.contains("edited"), "{late}");
    assert_eq!(env.read("a.txt"), "somebody was here");
    let third = gateway.get(&path).json()["question"]["basis"].clone();
    let rejected = gateway.post(&path, json!({"decision": "reject", "basis": third}));
    assert_eq!(rejected.status, 200, "{rejected:?}");
}

#[test]
fn an_approval_of_another_process_is_decided_here() {
    let env = Env::new();
    let gateway = env.serve();
    let outcome = env.run(&["call", "file.write", r#"{"path": "a.txt", "content": "x"}"#, "--no-input", "--json"]);
    let id = outcome["error"]["details"]["approval_id"].as_str().unwrap();
    let listed = gateway.get("/v1/approvals").json();
    assert_eq!((&listed["approvals"][0]["id"], &listed["approvals"][0]["origin"]), (&json!(id), &json!("cli")));
    assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"})).status, 200);
    assert_eq!(env.read("a.txt"), "x");
    assert_eq!(gateway.get("/v1/approvals").json()["approvals"], json!([]));
    let all = gateway.get("/v1/approvals?all=true").json();
    assert_eq!(
        (&all["approvals"][0]["state"], &all["approvals"][0]["decided_by"]),
        (&json!("done"), &json!("owner token"))
    );
}

#[test]
fn an_approval_of_another_project_is_counted_and_not_decided() {
    let env = Env::new();
    let elsewhere = env.dir.path().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let gateway = env.serve();
    let args = r#"{"path": "a.txt", "content": "x"}"#;
    let outcome = env.run(&["call", "file.write", args, "--no-input", "--json", "--root", elsewhere.to_str().unwrap()]);
    let id = outcome["error"]["details"]["approval_id"].as_str().unwrap();
    let listed = gateway.get("/v1/approvals").json();
    assert_eq!((&listed["approvals"], &listed["elsewhere"]), (&json!([]), &json!(1)));
    let shown = gateway.get(&format!("/v1/approvals/{id}")).json();
    assert!(shown["approval"].is_object() && shown.get("question").is_none());
    assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"})).status, 409);
}

#[test]
fn a_command_is_tried_before_it_is_approved() {
    let env = Env::new();
    let confined = env.run(&["doctor", "--json"]).to_string().contains("\"found\":\"full: ");
    if !confined {
        eprintln!("SKIPPED: this machine does not confine fully; see `haft doctor`");
        return;
    }
    let gateway = env.serve();
    let asked = gateway.call("shell.exec", json!({"command": "echo tried > a.txt; echo said"}));
    assert_eq!(asked.status, 202, "{asked:?}");
    let id = asked.json()["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
    assert_eq!(gateway.get(&format!("/v1/approvals/{id}")).json()["question"]["can_try"], true);
    let tried = gateway.post(&format!("/v1/approvals/{id}/try"), json!({}));
    assert_eq!(tried.status, 200, "{tried:?}");
    let question = &tried.json()["question"];
    assert!(question["diff"].as_str().unwrap().contains("+tried"), "{question:#}");
    assert!(question["tried"].as_str().unwrap().contains("said"), "{question:#}");
    assert!(!env.root().join("a.txt").exists());
    let done = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
    assert_eq!((done.status, env.read("a.txt").as_str()), (200, "tried\n"), "{done:?}");
}

#[test]
fn question_lists_the_files_that_a_command_runs_and_an_answer_is_for_their_bytes() {
    let env = Env::new();
    let gateway = env.serve();
    let script = env.root().join("build.sh");
    std::fs::write(&script, "echo one > a.txt\n").unwrap();
    let asked = gateway.call("shell.exec", json!({"command": "sh build.sh"}));
    assert_eq!(asked.status, 202, "{asked:?}");
    let id = asked.json()["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
    let shown = gateway.get(&format!("/v1/approvals/{id}")).json();
    let file = &shown["question"]["executed"]["files"][0];
    assert_eq!(
        (file["path"].as_str(), file["sha256"].as_str().map(str::len)),
        (Some("build.sh"), Some(64)),
        "{shown:#}"
    );
    std::fs::write(&script, "echo two > a.txt\n").unwrap();
    let done =
        gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once", "basis": shown["question"]["basis"]}));
    assert_eq!(done.status, 409, "{done:?}");
    assert!(done.text().contains("./build.sh (sha256 ") && !env.root().join("a.txt").exists(), "{done:?}");
}

#[test]
fn page_that_loads_itself_again_does_not_move_what_a_terminal_approves() {
    let env = Env::new();
    let gateway = env.serve();
    let script = env.file("build.sh", "echo one > a.txt\n");
    let asked = gateway.call("shell.exec", json!({"command": "sh build.sh"}));
    let id = asked.json()["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/approvals/{id}");
    let terminal = |args: &[&str]| env.command(args).output().unwrap();
    assert!(terminal(&["approvals", "show", &id]).status.success());
    std::fs::write(&script, "echo two > a.txt\n").unwrap();
    for _ in 0..2 {
        let shown = gateway.get(&path).json();
        let reason = shown["approval"]["reason"].as_str().unwrap();
        assert!(reason.contains("changed since it was asked: ./build.sh"), "{shown:#}");
    }
    let refused = terminal(&["approvals", "approve", &id]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("is no longer what was asked about"), "{said}");
    let unnamed = gateway.post(&path, json!({"decision": "once"}));
    assert_eq!((unnamed.status, env.root().join("a.txt").exists()), (409, false), "{unnamed:?}");
    // An answer that names what the page shows is for that.
    let basis = gateway.get(&path).json()["question"]["basis"].clone();
    let done = gateway.post(&path, json!({"decision": "once", "basis": basis}));
    assert_eq!((done.status, env.read("a.txt").as_str()), (200, "two\n"), "{done:?}");
}

#[test]
fn terminal_that_shows_a_changed_question_approves_that() {
    let env = Env::new();
    let gateway = env.serve();
    let script = env.file("build.sh", "echo one > a.txt\n");
    let asked = gateway.call("shell.exec", json!({"command": "sh build.sh"}));
    let id = asked.json()["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
    std::fs::write(&script, "echo two > a.txt\n").unwrap();
    let terminal = |args: &[&str]| assert!(env.command(args).status().unwrap().success(), "{args:?}");
    terminal(&["approvals", "show", &id]);
    terminal(&["approvals", "approve", &id]);
    assert_eq!(env.read("a.txt"), "two\n");
}

#[test]
fn what_other_arguments_are_answered_with_over_rpc_is_what_an_answer_names() {
    let env = Env::new();
    let gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    let resolve = |mut params: Value| {
        params["id"] = json!(id);
        gateway.post("/rpc", json!({"id": 1, "method": "approvals.resolve", "params": params})).json()
    };
    let amended = resolve(json!({"args": {"path": "a.txt", "content": "other"}}));
    let basis = &amended["result"]["question"]["basis"];
    assert!(basis.is_string(), "{amended:#}");
    let done = resolve(json!({"decision": "once", "basis": basis}));
    assert_eq!((&done["result"]["success"], env.read("a.txt").as_str()), (&json!(true), "other"), "{done:#}");
}

#[test]
fn a_question_waits_in_the_inbox_and_is_answered_over_http_and_rpc() {
    let env = Env::new();
    let gateway = env.serve();
    let waits = || until(|| gateway.get("/v1/approvals").json()["approvals"][0]["id"].as_str().map(str::to_owned));
    let ask = || {
        let args =
            json!({"questions": [{"question": "Which?", "options": ["a", "b"]}, {"question": "Go?", "confirm": true}]});
        gateway.post("/v1/tools/user.ask/call", json!({"args": args, "wait_ms": 30_000}))
    };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(ask);
        let id = waits();
        let shown = gateway.get(&format!("/v1/approvals/{id}")).json();
        assert_eq!(shown["approval"]["form"]["schema"]["required"], json!(["q1", "q2"]), "{shown:#}");
        let say = |body: Value| gateway.post(&format!("/v1/approvals/{id}"), body);
        assert_eq!(say(json!({"decision": "once"})).status, 400);
        assert_eq!(say(json!({"decision": "answer"})).status, 400);
        let wrong = say(json!({"decision": "answer", "answer": {"q1": "c", "q2": true}}));
        assert_eq!(wrong.status, 400, "{wrong:?}");
        let said = say(json!({"decision": "answer", "answer": {"q1": "b", "q2": false}}));
        assert_eq!((said.status, &said.json()["state"]), (200, &json!("answered")), "{said:?}");
        assert_eq!(waiting.join().unwrap().json()["output"], "Which?: b\nGo?: no");
    });
    std::thread::scope(|scope| {
        let waiting = scope.spawn(ask);
        let params = json!({"id": waits(), "answer": {"q1": "a", "q2": true}});
        let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "approvals.resolve", "params": params});
        assert_eq!(gateway.post("/rpc", rpc).json()["result"]["state"], "answered");
        assert_eq!(waiting.join().unwrap().json()["output"], "Which?: a\nGo?: yes");
    });
    let unasked = gateway.call("user.ask", json!({"question": "Why?"}));
    assert_eq!(unasked.json()["data"], json!({"answered": false}), "{unasked:?}");
}

/// Fills an ignored directory, and changes a source file.
const INSTALL: &str = "mkdir node_modules; n=0; \
     while [ $n -lt 250 ]; do echo module $n > node_modules/$n.js; n=$((n+1)); done; echo two >> src.py";

#[test]
fn source_is_shown_before_ignored_directories_which_can_be_opened() {
    let env = Env::new();
    let confined = env.run(&["doctor", "--json"]).to_string().contains("\"found\":\"full: ");
    if !confined {
        eprintln!("SKIPPED: this machine does not confine fully; see `haft doctor`");
        return;
    }
    env.file(".gitignore", "node_modules/\n");
    env.file("src.py", "one\n");
    let gateway = env.serve();
    let asked = gateway.call("shell.exec", json!({ "command": INSTALL }));
    let id = asked.json()["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
    let opened = |what: &str, path: &str| gateway.get(&format!("/v1/{what}/{id}/changes?path={path}"));
    assert_eq!(opened("approvals", "node_modules").status, 404, "it was not tried");
    let question = gateway.post(&format!("/v1/approvals/{id}/try"), json!({})).json()["question"].clone();
    let is_ranked = |shown: &Value| {
        let lines: Vec<&str> = shown["diff"].as_str().unwrap().lines().collect();
        assert_eq!(lines[0], "# modified src.py", "{shown:#}");
        assert!(lines[1].starts_with("# ignored node_modules/: 250 files (250 added), "), "{shown:#}");
        assert_eq!(shown["ranked"]["paths"].as_array().unwrap().len(), 1, "{shown:#}");
        assert_eq!(shown["ranked"]["folded"][0]["files"], 250, "{shown:#}");
    };
    is_ranked(&question);
    is_ranked(&gateway.get(&format!("/v1/approvals/{id}")).json()["question"]);
    let all = opened("approvals", "node_modules").json();
    assert_eq!(all["ranked"]["paths"].as_array().unwrap().len(), 250, "{all:#}");
    assert!(all["diff"].as_str().unwrap().contains("+module 10\n"), "{all:#}");
    let done = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
    assert_eq!((done.status, &done.json()["undo"]["files"][0]), (200, &json!("src.py")), "{done:?}");
    is_ranked(&gateway.get(&format!("/v1/calls/{id}/changes")).json());
    assert_eq!(opened("calls", "node_modules").json()["ranked"]["paths"].as_array().unwrap().len(), 250);
}
