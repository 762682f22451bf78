//! Calls that a person decides about: by the client's own form, or elsewhere.

use crate::{Client, Env, newest, text};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const SHORT: &str = "mcp: {wait_ms: 300}\n";
/// Time to read a form, and hardly more.
const READING: &str = "mcp: {wait_ms: 2500}\n";
const LONG: &str = "mcp: {wait_ms: 60000}\n";

fn write() -> Value {
    json!({"name": "file_write", "arguments": {"path": "a.txt", "content": "hello"}})
}

/// Waits until another process sees the question.
pub(crate) fn pending(env: &Env) -> String {
    for _ in 0..600 {
        let listed = env.json(&["approvals", "--json"]);
        if let Some(id) = listed[0]["id"].as_str() {
            return id.to_owned();
        }
        std::thread::yield_now();
    }
    panic!("nothing waits")
}

#[test]
fn without_anybody_to_ask_it_is_said_what_waits_and_where_to_decide() {
    let env = Env::with(SHORT);
    let result = env.connect().ask("tools/call", write())["result"].clone();
    let id = result["_meta"]["haft"]["call_id"].as_str().unwrap();
    assert!(result["isError"] == true && text(&result).contains(&format!("approval {id}")), "{result:#}");
    assert!(text(&result).contains("haft approvals"), "{result:#}");
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn a_call_that_waits_goes_on_when_another_process_approves() {
    let env = Env::with(LONG);
    let mut client = env.connect();
    let id = client.request("tools/call", write());
    let approval = pending(&env);
    assert!(env.run(&["approvals", "approve", &approval]).status.success());
    let result = client.answer(id)["result"].clone();
    assert_eq!((&result["isError"], &result["_meta"]["haft"]["call_id"]), (&json!(false), &json!(approval)));
    assert_eq!(std::fs::read_to_string(env.root().join("a.txt")).unwrap(), "hello");
}

#[test]
fn a_call_that_waits_ends_when_another_process_rejects() {
    let env = Env::with(LONG);
    let mut client = env.connect();
    let id = client.request("tools/call", write());
    let approval = pending(&env);
    assert!(env.run(&["approvals", "reject", &approval, "--message", "not now"]).status.success());
    let result = client.answer(id)["result"].clone();
    assert!(result["isError"] == true && text(&result).contains("not now"), "{result:#}");
}

/// Makes the call, hears the form, and answers it.
fn asked(env: &Env, answer: Value) -> (Value, Value) {
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let id = client.request("tools/call", write());
    let form = client.hear("elicitation/create");
    client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": answer}));
    (form["params"].clone(), client.answer(id)["result"].clone())
}

#[test]
fn the_person_behind_the_client_is_shown_what_would_happen_and_decides() {
    let env = Env::with(LONG);
    let (form, result) = asked(&env, json!({"action": "accept", "content": {"decision": "approve once"}}));
    let message = form["message"].as_str().unwrap();
    assert!(message.contains("a.txt") && message.contains("+hello"), "{message}");
    let first = message.lines().next().unwrap();
    assert!(first.starts_with("medium severity: ") && first.contains("a.txt"), "{message}");
    assert_eq!(form["requestedSchema"]["required"], json!(["decision"]));
    assert_eq!(form["requestedSchema"]["properties"].as_object().unwrap().len(), 1, "one choice and no more: {form:#}");
    assert_eq!(result["isError"], false, "{result:#}");
    assert_eq!(std::fs::read_to_string(env.root().join("a.txt")).unwrap(), "hello");
    assert_eq!(result["_meta"]["haft"]["verdict"]["by"], "elicitation by test-client");
}

#[test]
fn yes_for_the_session_holds_for_the_same_place_in_that_session_only() {
    let env = Env::with(LONG);
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let session = json!({"action": "accept", "content": {"decision": "approve for this session"}});
    let id = client.request("tools/call", write());
    let form = client.hear("elicitation/create");
    client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": session}));
    assert_eq!(client.answer(id)["result"]["isError"], false);

    // The same tool and the same file, with another content: nobody is asked.
    let second = client.call("file_write", json!({"path": "a.txt", "content": "again"}));
    assert_eq!(second["isError"], false, "{second:#}");
    assert_ne!(second["_meta"]["haft"]["verdict"]["by"], "elicitation by test-client", "{second:#}");
    assert_eq!(std::fs::read_to_string(env.root().join("a.txt")).unwrap(), "again");
    assert!(client.heard.iter().all(|message| message["method"] != "elicitation/create"), "{:#?}", client.heard);

    // Another file, and another session, are asked about.
    let mut other = env.connect_as(json!({"elicitation": {}}));
    for (client, path) in [(&mut client, "b.txt"), (&mut other, "a.txt")] {
        let arguments = json!({"path": path, "content": "not approved"});
        let id = client.request("tools/call", json!({"name": "file_write", "arguments": arguments}));
        let form = client.hear("elicitation/create");
        client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "decline"}}));
        let refused = client.answer(id)["result"].clone();
        assert!(refused["isError"] == true && text(&refused).contains("rejected"), "{refused:#}");
    }
    assert!(!env.root().join("b.txt").exists());
    assert_eq!(std::fs::read_to_string(env.root().join("a.txt")).unwrap(), "again");
}

#[test]
fn a_no_is_a_no_and_a_closed_form_is_no_answer() {
    for (answer, word) in [
        (json!({"action": "accept", "content": {"decision": "reject"}}), "rejected"),
        (json!({"action": "decline"}), "rejected"),
        (json!({"action": "cancel"}), "approval_required"),
        (json!({"action": "accept", "content": {"decision": "whatever"}}), "approval_required"),
    ] {
        let env = Env::with(READING);
        let (_, result) = asked(&env, answer);
        assert!(result["isError"] == true && text(&result).contains(word), "{word}: {result:#}");
        assert!(!env.root().join("a.txt").exists());
    }
}

#[test]
fn instant_answer_is_not_a_person_and_question_stays_in_inbox() {
    for answer in [
        json!({"action": "accept", "content": {"decision": "approve once"}}),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ] {
        let env = Env::with(SHORT);
        let mut client = env.connect_as(json!({"elicitation": {}}));
        let id = client.request("tools/call", write());
        // A yes or no is asked for once more: a person is slower the second time.
        let forms = if answer["action"] == "cancel" { 1 } else { 2 };
        for _ in 0..forms {
            let form = client.hear("elicitation/create");
            client.send_instantly(json!({"jsonrpc": "2.0", "id": form["id"], "result": answer}));
        }
        let result = client.answer(id)["result"].clone();
        assert!(client.heard.iter().all(|message| message["method"] != "elicitation/create"), "{:#?}", client.heard);
        let waits = pending(&env);
        assert!(result["isError"] == true && text(&result).contains(&format!("approval {waits}")), "{result:#}");
        assert!(!env.root().join("a.txt").exists());
        assert!(env.run(&["approvals", "approve", &waits]).status.success());
        assert_eq!(std::fs::read_to_string(env.root().join("a.txt")).unwrap(), "hello");
    }
}

#[test]
fn person_who_was_too_fast_is_asked_again() {
    let env = Env::with(LONG);
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let id = client.request("tools/call", write());
    let yes = json!({"action": "accept", "content": {"decision": "approve once"}});
    let form = client.hear("elicitation/create");
    client.send_instantly(json!({"jsonrpc": "2.0", "id": form["id"], "result": yes}));
    let again = client.hear("elicitation/create");
    assert!(again["params"]["message"].as_str().unwrap().ends_with("came faster than a person can read."), "{again:#}");
    assert!(!env.root().join("a.txt").exists());
    client.send(json!({"jsonrpc": "2.0", "id": again["id"], "result": yes}));
    assert_eq!(client.answer(id)["result"]["isError"], false);
    assert_eq!(std::fs::read_to_string(env.root().join("a.txt")).unwrap(), "hello");
}

#[test]
fn client_that_says_it_is_headless_is_not_asked() {
    let env = Env::with(SHORT);
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let mut params = write();
    params["_meta"] = json!({"x-codex-turn-metadata": {"turn_trigger": "exec"}});
    let result = client.ask("tools/call", params)["result"].clone();
    assert!(client.heard.is_empty(), "{:#?}", client.heard);
    assert!(text(&result).contains(&format!("approval {}", pending(&env))), "{result:#}");
}

#[test]
fn effect_that_does_not_fit_a_form_can_be_rejected_there_but_not_approved() {
    for (decision, expected) in [("approve once", "approval_required"), ("reject", "rejected")] {
        let env = Env::with(READING);
        let mut client = env.connect_as(json!({"elicitation": {}}));
        let content: String = (0..2000).map(|line| format!("line number {line}\n")).collect();
        let write = json!({"name": "file_write", "arguments": {"path": "a.txt", "content": content}});
        let id = client.request("tools/call", write);
        let form = client.hear("elicitation/create");
        let message = form["params"]["message"].as_str().unwrap();
        let waits = pending(&env);
        let second = message.lines().nth(1).unwrap();
        assert_eq!(
            second,
            format!("Too long to approve here. All 2000 lines: haft approvals show {waits}"),
            "{message}"
        );
        assert_eq!(
            form["params"]["requestedSchema"]["properties"]["decision"]["enum"],
            json!(["decide later", "reject"])
        );
        let answer = json!({"action": "accept", "content": {"decision": decision}});
        client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": answer}));
        let result = client.answer(id)["result"].clone();
        assert!(result["isError"] == true && text(&result).contains(expected), "{result:#}");
        assert!(!env.root().join("a.txt").exists());
    }
}

#[test]
fn page_of_a_running_gateway_is_named_where_a_question_waits() {
    let env = Env::with(SHORT);
    let mut serve = env.command(&["serve", "--listen", "127.0.0.1:0", "--print-url"]);
    let mut serve = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(serve.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let page = line.split('#').next().unwrap();
    let result = env.connect().ask("tools/call", write())["result"].clone();
    let waits = pending(&env);
    assert!(text(&result).contains(&format!("A person decides at {page}#/inbox/{waits} or with")), "{result:#}");
    let _ = serve.kill();
    let _ = serve.wait();
    let result = env.connect().ask("tools/call", write())["result"].clone();
    assert!(text(&result).contains("A person decides with `haft approvals approve"), "{result:#}");
}

#[test]
fn client_that_goes_while_asked_leaves_no_question_behind() {
    let env = Env::with(LONG);
    let mut client = env.connect_as(json!({"elicitation": {}}));
    client.request("tools/call", write());
    client.hear("elicitation/create");
    pending(&env);
    assert_eq!(client.leave(), 0);
    assert_eq!(env.json(&["approvals", "--json"]), json!([]));
    assert!(env.records().iter().any(|record| record["body"]["error"]["kind"] == "cancelled"));
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn second_answer_to_a_form_is_ignored() {
    let env = Env::with(LONG);
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let id = client.request("tools/call", write());
    let form = client.hear("elicitation/create");
    client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "decline"}}));
    let yes = json!({"action": "accept", "content": {"decision": "approve once"}});
    client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": yes}));
    let result = client.answer(id)["result"].clone();
    assert!(result["isError"] == true && text(&result).contains("rejected"), "{result:#}");
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn late_answer_decides_nothing_and_question_stays_in_inbox() {
    let env = Env::with(SHORT);
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let id = client.request("tools/call", write());
    let form = client.hear("elicitation/create");
    let result = client.answer(id)["result"].clone();
    assert!(text(&result).contains("approval_required"), "{result:#}");
    let yes = json!({"action": "accept", "content": {"decision": "approve once"}});
    client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": yes}));
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert!(!env.root().join("a.txt").exists());
    assert!(env.run(&["approvals", "approve", &pending(&env)]).status.success());
}

#[test]
fn client_is_told_while_a_call_waits_for_approval() {
    let env = Env::with("mcp: {wait_ms: 7000}\n");
    let mut client = env.connect();
    let mut params = write();
    params["_meta"] = json!({"progressToken": "mine"});
    let id = client.request("tools/call", params);
    let first = client.hear("notifications/progress");
    let message = first["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("waiting for approval ") && message.contains("a.txt"), "{first:#}");
    let second = client.hear("notifications/progress");
    assert!(second["params"]["message"].as_str().unwrap().ends_with("s)"), "{second:#}");
    assert!(second["params"]["progress"].as_f64() > first["params"]["progress"].as_f64(), "{second:#}");
    client.answer(id);
}

#[test]
fn elicitation_can_be_turned_off() {
    let env = Env::with("mcp: {wait_ms: 100, elicitation: false}\n");
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let result = client.ask("tools/call", write())["result"].clone();
    assert!(text(&result).contains("approval_required"), "{result:#}");
    assert!(client.heard.is_empty());
}

/// The same in the newest version: the question comes with the answer.
fn first_round(client: &mut Client) -> (Value, Value) {
    let mut params = write();
    params["_meta"] = newest(json!({"elicitation": {}}));
    let answer = client.ask("tools/call", params.clone());
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer:#}");
    let message = answer["result"]["inputRequests"]["approval"]["params"]["message"].as_str().unwrap();
    assert!(message.contains("+hello"), "{message}");
    params["requestState"] = answer["result"]["requestState"].clone();
    (params, answer)
}

#[test]
fn in_the_newest_version_the_question_comes_with_the_answer() {
    let env = Env::with(LONG);
    let mut client = env.spawn(&[]);
    let (mut params, _) = first_round(&mut client);
    params["inputResponses"] = json!({"approval": {"action": "accept", "content": {"decision": "approve once"}}});
    let done = client.ask("tools/call", params.clone());
    assert_eq!(done["result"]["isError"], false, "{done:#}");
    assert_eq!(std::fs::read_to_string(env.root().join("a.txt")).unwrap(), "hello");
    let again = client.ask("tools/call", params);
    assert_eq!(again["error"]["code"], -32602, "an answer counts once: {again:#}");
}

#[test]
fn in_the_newest_version_a_state_that_was_made_up_decides_nothing() {
    let env = Env::with(LONG);
    let mut client = env.spawn(&[]);
    let (mut params, _) = first_round(&mut client);
    let state = params["requestState"].as_str().unwrap().to_owned();
    params["inputResponses"] = json!({"approval": {"action": "accept", "content": {"decision": "approve once"}}});
    for forged in [state.split('.').next().unwrap().to_owned(), format!("{state}0"), String::new()] {
        params["requestState"] = forged.into();
        assert_eq!(client.ask("tools/call", params.clone())["error"]["code"], -32602);
    }
    assert!(!env.root().join("a.txt").exists());
    params["requestState"] = state.into();
    params["inputResponses"] = json!({"approval": {"action": "decline"}});
    let refused = client.ask("tools/call", params);
    assert!(text(&refused["result"]).contains("rejected"), "{refused:#}");
}

#[test]
fn in_the_newest_version_somebody_elses_decision_counts_too() {
    let env = Env::with(LONG);
    let mut client = env.spawn(&[]);
    let (mut params, _) = first_round(&mut client);
    assert!(env.run(&["approvals", "approve", &pending(&env)]).status.success());
    params["inputResponses"] = json!({"approval": {"action": "accept", "content": {"decision": "approve once"}}});
    let done = client.ask("tools/call", params);
    assert_eq!(done["result"]["isError"], false, "it ran once, and this came of it: {done:#}");
}

#[test]
fn in_the_newest_version_a_client_that_goes_leaves_no_question_behind() {
    let env = Env::with(LONG);
    let mut client = env.spawn(&[]);
    first_round(&mut client);
    pending(&env);
    assert_eq!(client.leave(), 0);
    assert_eq!(env.json(&["approvals", "--json"]), json!([]));
    assert!(env.records().iter().any(|record| record["body"]["error"]["kind"] == "cancelled"));
}

fn which() -> Value {
    json!({"name": "user_ask", "arguments": {"question": "Which?", "options": ["a", "b"], "multiple": true}})
}

#[test]
fn a_question_of_the_models_is_a_form_of_the_clients() {
    let env = Env::with(LONG);
    let mut client = env.connect_as(json!({"elicitation": {}}));
    let id = client.request("tools/call", which());
    let form = client.hear("elicitation/create");
    assert_eq!(form["params"]["requestedSchema"]["properties"]["answer"]["items"]["enum"], json!(["a", "b"]));
    assert!(form["params"]["message"].as_str().unwrap().ends_with("asks: Which?"), "{form:#}");
    client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result":
        {"action": "accept", "content": {"answer": ["b"]}}}));
    let result = client.answer(id)["result"].clone();
    assert_eq!((&result["isError"], text(&result)), (&json!(false), "b"), "{result:#}");
    assert_eq!(env.json(&["approvals", "--json"]), json!([]), "it does not wait anywhere else any more");
    let id = client.request("tools/call", which());
    let form = client.hear("elicitation/create");
    client.send(json!({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "decline"}}));
    let result = client.answer(id)["result"].clone();
    assert!(result["isError"] == false && text(&result).contains("declined"), "{result:#}");
}

#[test]
fn a_question_that_no_client_can_show_is_answered_from_another_process() {
    let env = Env::with(LONG);
    let mut client = env.connect();
    let id = client.request("tools/call", which());
    let waits = pending(&env);
    let shown = String::from_utf8(env.run(&["approvals", "show", &waits]).stdout).unwrap();
    assert!(shown.contains("some of: a | b") && shown.contains(&format!("answer {waits} answer=…")), "{shown}");
    let wrong = env.run(&["approvals", "answer", &waits, "answer=c"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    assert!(env.run(&["approvals", "answer", &waits, "a,b"]).status.success());
    let result = client.answer(id)["result"].clone();
    assert_eq!(text(&result), "a, b", "{result:#}");
}
