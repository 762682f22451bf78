//! Whatever comes in has a defined answer, and none ends the server or makes it grow.

use crate::{Client, Env, text};
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

#[test]
fn what_is_no_message_is_answered_and_ends_nothing() {
    let mut client = Env::new().connect();
    for (line, code, id) in [
        ("{", -32700, Value::Null),
        ("not json", -32700, Value::Null),
        ("\u{7}", -32700, Value::Null),
        ("42", -32600, Value::Null),
        ("null", -32600, Value::Null),
        ("{}", -32600, Value::Null),
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, -32600, json!(7)),
        (r#"{"id":"x","method":"ping"}"#, -32600, json!("x")),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":8,"method":"no/such"}"#, -32601, json!(8)),
        (r#"{"jsonrpc":"2.0","id":8,"method":"tools/call"}"#, -32602, json!(8)),
        (r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":3}}"#, -32602, json!(8)),
        (r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"x","arguments":[1]}}"#, -32602, json!(8)),
        (r#"{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{}}"#, -32602, json!(8)),
        (r#"{"jsonrpc":"2.0","id":8,"method":"prompts/get","params":{"name":"none"}}"#, -32602, json!(8)),
        (r#"{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"loud"}}"#, -32602, json!(8)),
    ] {
        client.line(line);
        let answer = client.wait(line, |message| message.get("error").is_some());
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
    }
    for ignored in ["", "   ", "\r", r#"{"jsonrpc":"2.0","method":"notifications/whatever","params":{"a":1}}"#] {
        client.line(ignored);
    }
    client.send(json!({"jsonrpc": "2.0", "id": 4711, "result": {"unasked": true}}));
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert!(client.heard.is_empty(), "{:#?}", client.heard);
}

#[test]
fn deep_nesting_is_refused() {
    let mut client = Env::new().connect();
    client.line(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    assert_eq!(client.wait("a refusal", |message| message.get("error").is_some())["error"]["code"], -32700);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_line_without_end_is_refused_and_not_kept() {
    let mut client = Env::new().connect();
    let piece = "x".repeat(1 << 20);
    let stdin = client.stdin.as_mut().unwrap();
    for _ in 0..40 {
        stdin.write_all(piece.as_bytes()).unwrap();
    }
    stdin.write_all(b"\n").unwrap();
    let refused = client.wait("a refusal", |message| message.get("error").is_some());
    assert!(refused["error"]["message"].as_str().unwrap().contains("16 MiB"), "{refused}");
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let peak = status(&client, "VmHWM");
    assert!(peak < 120_000, "{peak} kB");
}

#[test]
fn an_id_in_use_is_not_used_twice() {
    let mut client = Env::new().connect();
    let slow = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call",
        "params": {"name": "calc_eval", "arguments": {"expression": "1", "delay_ms": 300}}});
    client.send(slow.clone());
    client.send(slow);
    assert_eq!(client.wait("a refusal", |message| message.get("error").is_some())["error"]["code"], -32600);
    assert!(text(&client.answer(77)["result"]).contains('1'));
}

/// A figure of the server's process, in kB.
fn status(client: &Client, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn ten_thousand_calls_at_once_are_all_answered_in_bounded_memory() {
    const CALLS: i64 = 10_000;
    let mut client = Env::new().connect();
    client.call("calc_eval", json!({"expression": "1"}));
    let idle = status(&client, "VmRSS");
    let mut stdin = client.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in 1..=CALLS {
            let call = json!({"jsonrpc": "2.0", "id": 100_000 + id, "method": "tools/call",
                "params": {"name": "calc_eval", "arguments": {"expression": format!("{id}+1")}}});
            writeln!(stdin, "{call}").unwrap();
        }
        stdin
    });
    for _ in 0..CALLS {
        let answer = client.lines.recv_timeout(crate::PATIENCE).unwrap();
        let expected = (answer["id"].as_i64().unwrap() - 100_000 + 1).to_string();
        assert!(text(&answer["result"]).contains(&expected), "{answer}");
    }
    client.stdin = Some(writer.join().unwrap());
    let grown = status(&client, "VmHWM").saturating_sub(idle);
    assert!(grown < 60_000, "it grew by {grown} kB");
    assert_eq!(client.leave(), 0);
}

#[test]
fn a_client_that_does_not_read_is_not_listened_to() {
    let env = Env::new();
    let mut child = env.command(&["mcp"]);
    let mut child = child.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let pid = child.id();
    let writer = std::thread::spawn(move || {
        // It blocks when nobody reads any more, and fails when the server has gone.
        while stdin.write_all(b"not a message\n").is_ok() {}
    });
    let begun = Instant::now();
    let mut last = 0;
    // Until it stops growing: two looks in a row with the same size.
    loop {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let size: u64 =
            text.lines().find(|l| l.starts_with("VmRSS")).unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
        if size == last && begun.elapsed() > Duration::from_secs(2) || begun.elapsed() > Duration::from_secs(10) {
            break;
        }
        last = size;
        std::thread::park_timeout(Duration::from_millis(200));
    }
    assert!(last < 100_000, "{last} kB");
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
}

/// Goes in the middle of a call, and gives what the log says of it.
fn gone_midway(config: &str) -> Vec<Value> {
    let env = Env::with(config);
    let mut client = env.connect();
    client.request(
        "tools/call",
        json!({"name": "calc_eval", "arguments": {"expression": "1", "delay_ms": 1500},
        "_meta": {"progressToken": 1}}),
    );
    client.hear("notifications/progress");
    assert_eq!(client.leave(), 0);
    env.records().into_iter().map(|record| record["body"].clone()).filter(|body| body["tool"] == "calc.eval").collect()
}

#[test]
fn a_call_whose_client_has_gone_is_cancelled_or_finished_as_configured() {
    let cancelled = gone_midway("mcp: {on_disconnect: cancel}\n");
    assert!(cancelled.iter().any(|body| body["error"]["kind"] == "cancelled"), "{cancelled:#?}");
    let finished = gone_midway("mcp: {on_disconnect: finish}\n");
    assert!(finished.iter().any(|body| body["success"] == true), "{finished:#?}");
}

#[test]
fn it_ends_cleanly_when_told_to() {
    let env = Env::new();
    let mut client = env.connect();
    let pid = rustix::process::Pid::from_raw(i32::try_from(client.child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(client.child.wait().unwrap().code(), Some(0));
}

#[test]
fn stdin_and_stdout_may_be_files() {
    let env = Env::new();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "file", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
        {"name": "calc_eval", "arguments": {"expression": "6*7"}}});
    let input = env.file("in.jsonl", format!("{hello}\n{call}"));
    let output = env.dir.path().join("out.jsonl");
    let mut command = env.command(&["mcp"]);
    command.stdin(std::fs::File::open(input).unwrap()).stdout(std::fs::File::create(&output).unwrap());
    // At the end of the file the client has gone, and what it asked before is cancelled or finished.
    assert!(command.status().unwrap().success());
    let said = std::fs::read_to_string(output).unwrap();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(lines[1]["id"], 2);
}
