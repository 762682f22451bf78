//! JSON-RPC: over a WebSocket and by POST, in both forms.

use crate::{Env, Gateway, until};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::io::{Read, Write};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

pub(crate) struct Socket {
    runtime: tokio::runtime::Runtime,
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Gateway {
    pub(crate) fn socket(&self) -> Socket {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let url = format!("ws://{}/ws?token={}", self.server.host, self.token);
        let (stream, _) = runtime.block_on(connect_async(url)).unwrap();
        Socket { runtime, stream }
    }

    pub(crate) fn rpc(&self, body: Value) -> Value {
        let answer = self.post("/rpc", body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }
}

impl Socket {
    pub(crate) fn send(&mut self, value: Value) {
        self.say(Message::text(value.to_string()));
    }

    fn say(&mut self, message: Message) {
        self.runtime.block_on(self.stream.send(message)).unwrap();
    }

    pub(crate) fn next(&mut self) -> Value {
        loop {
            match self.runtime.block_on(self.stream.next()) {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("the socket ended: {other:?}"),
            }
        }
    }

    /// Everything up to the answer to this request.
    pub(crate) fn answered(&mut self, id: i64) -> (Vec<Value>, Value) {
        let mut events = Vec::new();
        loop {
            let value = self.next();
            if value["id"] == id && value.get("event").is_none() {
                return (events, value);
            }
            events.push(value);
        }
    }
}

#[test]
fn a_call_over_a_socket_is_told_from_its_start_to_its_end() {
    let env = Env::new();
    let gateway = env.serve();
    let mut socket = gateway.socket();
    socket.send(
        json!({"id": 7, "method": "tools.invoke", "params": {"name": "calc.eval", "args": {"expression": "6*7"}}}),
    );
    let (events, answer) = socket.answered(7);
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["tool_start", "tool_end", "done"]);
    assert!(events.iter().all(|event| event["id"] == 7 && event.get("jsonrpc").is_none()));
    assert_eq!((&answer["result"]["output"], answer.get("jsonrpc")), (&json!("42"), None));
}

#[test]
fn json_rpc_two_is_answered_in_kind() {
    let env = Env::new();
    let gateway = env.serve();
    let mut socket = gateway.socket();
    let invoke = json!({"jsonrpc": "2.0", "id": 1, "method": "tools.invoke", "params": {"tool": "calc.eval", "args": {"expression": "1"}}});
    socket.send(invoke);
    let (events, answer) = socket.answered(1);
    assert!(events.iter().all(|event| event["method"] == "event" && event["params"]["id"] == 1), "{events:?}");
    assert_eq!((&answer["jsonrpc"], &answer["result"]["output"]), (&json!("2.0"), &json!("1")));
    // A notification is not answered; the next answer is that of the next request.
    socket.send(json!({"jsonrpc": "2.0", "method": "system.health"}));
    socket.send(json!({"jsonrpc": "2.0", "id": 2, "method": "system.health"}));
    assert_eq!(socket.next()["id"], 2);
}

#[test]
fn every_method_answers() {
    let env = Env::new();
    let gateway = env.serve();
    let ask = |method: &str, params: Value| gateway.rpc(json!({"id": 1, "method": method, "params": params}));
    assert_eq!(ask("system.health", json!({}))["result"]["status"], "ok");
    assert!(ask("tools.list", json!({}))["result"]["tools"].as_array().unwrap().len() > 5);
    assert_eq!(ask("sessions.create", json!({"id": "mine"}))["result"], json!({"id": "mine", "created": true}));
    assert_eq!(ask("sessions.create", json!({"id": "mine"}))["result"]["created"], false);
    assert!(ask("sessions.create", json!({}))["result"]["id"].as_str().unwrap().starts_with("s-"));
    let call = json!({"name": "calc.eval", "args": {"expression": "2"}, "session": "mine"});
    assert_eq!(ask("tools.invoke", call)["result"]["output"], "2");
    let history = ask("sessions.history", json!({"session": "mine"}));
    assert_eq!(history["result"]["calls"][0]["preview"], "calc.eval: 2", "{history:#}");
    let sessions = ask("sessions.list", json!({}));
    assert!(sessions["result"]["sessions"].as_array().unwrap().iter().any(|session| session["id"] == "mine"));
    assert_eq!(ask("sessions.delete", json!({"session": "mine"}))["result"]["deleted"], true);
    let asked = ask("tools.invoke", json!({"name": "file.write", "args": {"path": "a.txt", "content": "x"}}));
    assert_eq!(asked["error"]["code"], -32004, "{asked:#}");
    let id = asked["error"]["data"]["error"]["details"]["approval_id"].as_str().unwrap();
    assert_eq!(ask("approvals.list", json!({}))["result"]["approvals"][0]["id"], id);
    let edited = ask("approvals.resolve", json!({"id": id, "args": {"path": "a.txt", "content": "y"}}));
    assert_eq!(edited["result"]["state"], "pending", "{edited:#}");
    assert_eq!(ask("approvals.resolve", json!({"id": id}))["error"]["code"], -32602);
    let done = ask("approvals.resolve", json!({"id": id, "decision": "once"}));
    assert_eq!((&done["result"]["success"], env.read("a.txt").as_str()), (&json!(true), "y"), "{done:#}");
    assert_eq!(ask("approvals.resolve", json!({"id": id, "decision": "once"}))["error"]["code"], -32007);
    assert_eq!(ask("agent.cancel", json!({"session": "mine"}))["result"]["cancelled"], json!([]));
    assert_eq!(ask("agent.send", json!({"text": "hi"}))["error"]["code"], -32001);
    assert_eq!(ask("no.such", json!({}))["error"]["code"], -32601);
    assert_eq!(ask("tools.invoke", json!({"args": {}}))["error"]["code"], -32602);
    assert_eq!(ask("tools.invoke", json!({"name": "no.such"}))["error"]["code"], -32602);
}

#[test]
fn a_batch_is_answered_together() {
    let env = Env::new();
    let gateway = env.serve();
    let one = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "system.health"});
    let batch = gateway.rpc(json!([one(1), {"jsonrpc": "2.0", "method": "system.health"}, one(2), 5]));
    let ids: Vec<&Value> = batch.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2), &Value::Null]);
    assert_eq!(batch[2]["error"]["code"], -32600);
    assert_eq!(gateway.rpc(json!([]))["error"]["code"], -32600);
    assert_eq!(gateway.rpc(json!(vec![one(1); 51]))["error"]["code"], -32600);
    let silent = gateway.post("/rpc", json!({"jsonrpc": "2.0", "method": "system.health"}));
    assert_eq!((silent.status, silent.body.len()), (204, 0));
    let garbage = gateway.server.ask("POST", "/rpc", &gateway.bearer(), Some("{"));
    assert_eq!(garbage.json()["error"]["code"], -32700);
}

#[test]
fn what_is_no_request_is_answered_and_the_socket_lives_on() {
    let env = Env::new();
    let gateway = env.serve();
    let mut socket = gateway.socket();
    for bad in ["", "{", "[]", "1", "{\"id\":\"x\",\"method\":\"y\"}", "{\"id\":1}", "\u{0}"] {
        socket.say(Message::text(bad));
        let code = socket.next()["error"]["code"].as_i64().unwrap();
        assert!([-32700, -32600].contains(&code), "{bad}: {code}");
    }
    socket.say(Message::binary(b"\xff\xfe".to_vec()));
    assert_eq!(socket.next()["error"]["code"], -32700);
    socket.say(Message::binary(br#"{"id":3,"method":"system.health"}"#.to_vec()));
    assert_eq!(socket.next()["result"]["status"], "ok");
}

#[test]
fn malformed_frames_end_their_socket_and_nothing_else() {
    let env = Env::new();
    let gateway = env.serve();
    let mut bystander = gateway.socket();
    let long_ping = [&b"\x89\xfe\x00\xff\0\0\0\0"[..], &[0; 255]].concat();
    let frames: [&[u8]; 5] = [
        // Not masked; a reserved opcode; a close of one byte; text that is not UTF-8; a ping that is too long.
        b"\x81\x02hi",
        b"\x83\x80\0\0\0\0",
        b"\x88\x81\0\0\0\0x",
        b"\x81\x82\0\0\0\0\xff\xfe",
        &long_ping,
    ];
    for frame in frames {
        let mut stream = gateway.server.connect();
        let mut headers = gateway.bearer();
        headers.extend([
            ("Upgrade", "websocket".to_owned()),
            ("Connection", "Upgrade".to_owned()),
            ("Sec-WebSocket-Version", "13".to_owned()),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==".to_owned()),
        ]);
        gateway.server.send(&mut stream, "GET", "/ws", &headers, None);
        stream.write_all(frame).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        let begun = std::time::Instant::now();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        assert!(begun.elapsed().as_secs() < 8, "{frame:?} {}", String::from_utf8_lossy(&heard));
        assert!(heard.starts_with(b"HTTP/1.1 101"), "{frame:?}: {}", String::from_utf8_lossy(&heard));
    }
    bystander.send(json!({"id": 1, "method": "system.health"}));
    assert_eq!(bystander.next()["id"], 1);
    until(|| gateway.get("/metrics").text().contains("haft_websockets 1\n").then_some(()));
}

#[test]
fn a_message_that_is_too_large_ends_the_socket() {
    let env = Env::new();
    let gateway = env.serve();
    let mut socket = gateway.socket();
    let large = json!({"id": 1, "method": "tools.invoke", "params": {"name": "x".repeat(2 << 20)}}).to_string();
    let _ = socket.runtime.block_on(socket.stream.send(Message::text(large)));
    let end = socket.runtime.block_on(socket.stream.next());
    assert!(!matches!(end, Some(Ok(Message::Text(_)))), "{end:?}");
    assert_eq!(gateway.get("/health").status, 200);
}

#[test]
fn a_socket_has_only_so_many_calls_at_once() {
    let env = Env::new();
    let gateway = env.serve();
    let mut socket = gateway.socket();
    for id in 0..70 {
        let args = json!({"path": format!("{id}.txt"), "content": "x"});
        socket.send(json!({"id": id, "method": "tools.invoke", "params": {"name": "file.write", "args": args, "wait_ms": 60_000, "session": format!("s{id}")}}));
    }
    let (_, busy) = socket.answered(64);
    assert_eq!(busy["error"]["code"], -32000, "{busy}");
    let waiting = until(|| {
        let list = gateway.get("/v1/approvals").json()["approvals"].as_array().unwrap().len();
        (list == 64).then_some(list)
    });
    assert_eq!(waiting, 64);
}

/// Requests on one socket are worked on at once, but a session's calls with effects run in the order they were sent.
#[test]
fn calls_of_a_session_run_in_the_order_they_were_sent() {
    let env = Env::new();
    env.config("approval: {auto_approve: [\"file.write\"]}\n");
    let gateway = env.serve();
    let mut socket = gateway.socket();
    for id in 0..40 {
        let args = json!({"path": format!("{id}.txt"), "content": "x"});
        socket.send(json!({"id": id, "method": "tools.invoke", "params": {"name": "file.write", "args": args}}));
    }
    let mut started = Vec::new();
    let mut answered = 0;
    while answered < 40 {
        let value = socket.next();
        match value["event"].as_str() {
            Some("tool_start") => started.push(value["id"].as_i64().unwrap()),
            Some(_) => {}
            None => answered += 1,
        }
    }
    assert_eq!(started, (0..40).collect::<Vec<_>>());
}

#[test]
fn a_waiting_call_of_a_socket_is_approved_from_elsewhere() {
    let env = Env::new();
    let gateway = env.serve();
    let mut socket = gateway.socket();
    let args = json!({"path": "a.txt", "content": "x"});
    socket.send(
        json!({"id": 1, "method": "tools.invoke", "params": {"name": "file.write", "args": args, "wait_ms": 60_000}}),
    );
    let asked = socket.next();
    assert_eq!(asked["event"], "approval", "{asked}");
    let id = asked["data"]["call_id"].as_str().unwrap().to_owned();
    until(|| (gateway.get(&format!("/v1/approvals/{id}")).status == 200).then_some(()));
    assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"})).status, 200);
    let (events, answer) = socket.answered(1);
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert!(
        names.contains(&"decided") && names.contains(&"tool_start") && names.ends_with(&["tool_end", "done"]),
        "{names:?}"
    );
    assert_eq!(answer["result"]["success"], true);
    // The session's calls can be cancelled together.
    let args = json!({"path": "b.txt", "content": "x"});
    socket.send(json!({"id": 2, "method": "tools.invoke", "params": {"name": "file.write", "args": args, "wait_ms": 60_000, "session": "mine"}}));
    while socket.next()["event"] != "approval" {}
    socket.send(json!({"id": 3, "method": "agent.cancel", "params": {"session": "mine"}}));
    let mut left = vec![2, 3];
    while !left.is_empty() {
        let value = socket.next();
        if value.get("event").is_some() {
            continue;
        }
        left.retain(|id| value["id"] != *id);
        match value["id"].as_i64() {
            Some(2) => assert_eq!(value["result"]["error"]["kind"], "cancelled", "{value}"),
            _ => assert_eq!(value["result"]["cancelled"].as_array().unwrap().len(), 1, "{value}"),
        }
    }
}
