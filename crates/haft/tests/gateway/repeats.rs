//! Calls that are sent again over HTTP, JSON-RPC and a WebSocket: by an id or a key of the caller's own, they are made once.

use crate::client::Answer;
use crate::{Env, Gateway, until};
use serde_json::{Value, json};

impl Gateway {
    /// Calls `file.write` under an idempotency key.
    fn write_with_key(&self, key: &str, content: &str, wait_ms: u64) -> Answer {
        let body = json!({"args": {"path": "a.txt", "content": content}, "wait_ms": wait_ms});
        let headers = [self.bearer(), vec![("Idempotency-Key", key.to_owned())]].concat();
        self.server.ask("POST", "/v1/tools/file.write/call", &headers, Some(&body.to_string()))
    }

    fn waiting(&self) -> String {
        until(|| self.get("/v1/approvals").json()["approvals"][0]["id"].as_str().map(str::to_owned))
    }

    fn invoke(&self, params: Value) -> Value {
        self.post("/rpc", json!({"jsonrpc": "2.0", "id": 1, "method": "tools.invoke", "params": params})).json()
    }
}

fn intents(gateway: &Gateway) -> usize {
    let log = gateway.get("/v1/log?kind=intent").json();
    log["records"].as_array().unwrap().len()
}

#[test]
fn requests_with_one_idempotency_key_are_one_call() {
    let env = Env::new();
    let gateway = env.serve();
    let key = "8e03978e-40d5-43dd-bc93-6894a57f9324";
    let first = std::thread::scope(|scope| {
        let sends = [0, 1].map(|_| scope.spawn(|| gateway.write_with_key(key, "one", 60_000)));
        let id = gateway.waiting();
        assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"})).status, 200);
        let both = sends.map(|send| send.join().unwrap());
        assert_eq!((both[0].status, both[1].status), (200, 200), "{both:?}");
        assert_eq!(both[0].json()["call_id"], both[1].json()["call_id"]);
        assert_eq!((&both[0].json()["success"], &both[1].json()["success"]), (&json!(true), &json!(true)));
        both[0].json()
    });
    env.file("a.txt", "mine");
    let quoted = gateway.write_with_key(&format!("\"{key}\""), "one", 0);
    assert_eq!((quoted.status, &quoted.json()["call_id"]), (200, &first["call_id"]), "{quoted:?}");
    let other = gateway.write_with_key(key, "two", 0);
    assert_eq!((other.status, &other.json()["error"]["kind"]), (409, &json!("conflict")), "{other:?}");
    // Whoever comes back after the gateway was started anew is known by the key as well.
    drop(gateway);
    let gateway = env.serve();
    let again = gateway.write_with_key(key, "one", 0).json();
    assert_eq!((&again["call_id"], &again["output"]), (&first["call_id"], &first["output"]));
    assert_eq!((env.read("a.txt").as_str(), intents(&gateway)), ("mine", 1));
    // Another key is another call.
    assert_eq!(gateway.write_with_key("other", "one", 0).status, 202);
}

#[test]
fn call_id_of_the_callers_own_names_the_call_everywhere() {
    let env = Env::new();
    let gateway = env.serve();
    let args = json!({"path": "a.txt", "content": "one"});
    let send = || gateway.post("/v1/tools/file.write/call", json!({"args": args, "call_id": "mine-1"}));
    let asked = send();
    assert_eq!((asked.status, &asked.json()["call_id"]), (202, &json!("mine-1")), "{asked:?}");
    assert_eq!(send().json()["error"]["kind"], "approval_required");
    assert_eq!(gateway.post("/v1/approvals/mine-1", json!({"decision": "once"})).status, 200);
    let ran = send();
    assert_eq!((ran.status, &ran.json()["success"]), (200, &json!(true)), "{ran:?}");
    assert_eq!(gateway.get("/v1/calls/mine-1").status, 200);
    let params = json!({"name": "file.write", "args": args, "call_id": "mine-1"});
    let by_rpc = gateway.invoke(params.clone());
    assert_eq!(by_rpc["result"]["call_id"], "mine-1", "{by_rpc:#}");
    assert_eq!(by_rpc["result"]["undo"], ran.json()["undo"]);
    let mut other = params;
    other["args"]["content"] = json!("two");
    assert_eq!(gateway.invoke(other)["error"]["code"], -32007, "a conflict is an error");
    // An agent's session is another one.
    let token = std::fs::read_to_string(env.data().join("gateway-agent-token")).unwrap();
    let headers = [("Authorization", format!("Bearer {token}"))];
    let body = json!({"args": args, "call_id": "mine-1"}).to_string();
    let agents = gateway.server.ask("POST", "/v1/tools/file.write/call", &headers, Some(&body));
    assert_eq!((agents.status, intents(&gateway)), (409, 1), "{agents:?}");
}

#[test]
fn name_that_cannot_be_one_is_refused_and_a_dry_run_makes_no_call() {
    let env = Env::new();
    let gateway = env.serve();
    let send = |body: Value| gateway.post("/v1/tools/calc.eval/call", body);
    let args = json!({"expression": "6 * 7"});
    let generated = send(json!({"args": args})).json()["call_id"].clone();
    for bad in [
        json!({"args": args, "call_id": generated}),
        json!({"args": args, "call_id": "a b"}),
        json!({"args": args, "call_id": "mine-1", "idempotency_key": "mine-1"}),
        json!({"args": args, "idempotency_key": ""}),
    ] {
        let refused = send(bad.clone());
        assert_eq!((refused.status, &refused.json()["error"]["kind"]), (400, &json!("invalid_input")), "{bad}");
    }
    let write = |dry_run: bool| {
        let args = json!({"path": "a.txt", "content": "one"});
        gateway.post("/v1/tools/file.write/call", json!({"args": args, "call_id": "mine-1", "dry_run": dry_run}))
    };
    assert_eq!((write(true).status, write(true).status), (200, 200));
    assert_eq!(write(false).status, 202, "a dry run has not used the id");
}
