//! The agents' token: it makes calls, sees what became of them, and decides nothing.

use crate::client::{Answer, Stream};
use crate::{Env, Gateway};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// An agent with its token.
struct Agent<'g> {
    gateway: &'g Gateway,
    token: String,
}

impl<'g> Agent<'g> {
    fn of(env: &Env, gateway: &'g Gateway) -> Self {
        let token = std::fs::read_to_string(env.data().join("gateway-agent-token")).unwrap();
        Self { gateway, token }
    }

    /// Also says that it is the page, which counts for nothing.
    fn headers(&self) -> Vec<(&'static str, String)> {
        let origin = format!("http://{}", self.gateway.server.host);
        vec![("Authorization", format!("Bearer {}", self.token)), ("Origin", origin)]
    }

    fn get(&self, path: &str) -> Answer {
        self.gateway.server.ask("GET", path, &self.headers(), None)
    }

    fn post(&self, path: &str, body: Value) -> Answer {
        self.gateway.server.ask("POST", path, &self.headers(), Some(&body.to_string()))
    }

    fn rpc(&self, method: &str, params: Value) -> Value {
        self.post("/rpc", json!({"id": 1, "method": method, "params": params})).json()
    }
}

#[test]
fn an_agent_makes_calls_and_decides_nothing() {
    let env = Env::new();
    let gateway = env.serve_with(&["--links"]);
    let agent = Agent::of(&env, &gateway);
    let file = env.data().join("gateway-agent-token");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_ne!(agent.token, gateway.token);
    assert_eq!(agent.get("/v1/tools").status, 200);
    let write = json!({"args": {"path": "a.txt", "content": "x"}});
    let asked = agent.post("/v1/tools/file.write/call", write);
    assert_eq!(asked.status, 202, "{asked:?}");
    let id = asked.json()["call_id"].as_str().unwrap().to_owned();
    for path in [
        "/v1/approvals",
        "/v1/log",
        "/v1/log/export",
        "/v1/config",
        "/v1/status",
        "/v1/sessions",
        "/metrics",
        "/v1/runs",
        "/v1/runs/run-1",
        "/v1/tasks",
        "/v1/workers",
        "/v1/memory/search?q=key",
    ] {
        assert_eq!(agent.get(path).status, 403, "{path}");
    }
    for path in ["", "/edit", "/try", "/link"] {
        let path = format!("/v1/approvals/{id}{path}");
        assert_eq!(agent.post(&path, json!({"decision": "once"})).status, 403, "{path}");
    }
    assert_eq!(agent.post(&format!("/v1/calls/{id}/undo"), json!({})).status, 403);
    assert_eq!(agent.post("/v1/runs/run-1/cancel", json!({})).status, 403);
    assert_eq!(agent.post("/v1/runs/run-1/settle", json!({"step": "a", "how": "done"})).status, 403);
    for method in ["approvals.resolve", "approvals.list", "sessions.list", "sessions.delete"] {
        let said = agent.rpc(method, json!({"id": id, "decision": "once"}));
        assert_eq!(said["error"]["code"], -32003, "{method} {said:#}");
    }
    assert!(!env.root().join("a.txt").exists());
    assert!(![401, 403].contains(&agent.post("/mcp", json!({})).status), "it may speak MCP");
    let mut page = gateway.bearer();
    page.push(("Origin", format!("http://{}", gateway.server.host)));
    let path = format!("/v1/approvals/{id}");
    assert_eq!(gateway.server.ask("POST", &path, &page, Some(r#"{"decision": "once"}"#)).status, 200);
    assert_eq!(gateway.get(&path).json()["approval"]["decided_by"], "owner token", "whatever the headers say");
    assert_eq!(agent.get(&format!("/v1/calls/{id}")).json()["state"], "done", "it sees what became of it");
}

#[test]
fn an_agent_sees_its_own_calls_and_has_no_part_in_what_was_allowed_to_others() {
    let env = Env::new();
    let gateway = env.serve();
    let agent = Agent::of(&env, &gateway);
    let mut listener = gateway.server.connect();
    gateway.server.send(&mut listener, "GET", "/v1/events", &agent.headers(), None);
    let mut events = Stream::new(listener);
    let write = json!({"args": {"path": "a.txt", "content": "x"}, "session": "work"});
    let id = gateway.post("/v1/tools/file.write/call", write.clone()).json()["call_id"].as_str().unwrap().to_owned();
    assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "session"})).status, 200);
    std::fs::remove_file(env.root().join("a.txt")).unwrap();
    let asked = agent.post("/v1/tools/file.write/call", write);
    assert_eq!(asked.status, 202, "the session of that name is another: {asked:?}");
    let own = asked.json()["call_id"].as_str().unwrap().to_owned();
    assert_eq!(
        (agent.get(&format!("/v1/calls/{id}")).status, agent.get(&format!("/v1/calls/{own}")).status),
        (404, 200)
    );
    let listed = |path: &str| {
        let calls = agent.get(path).json()["calls"].as_array().unwrap().clone();
        calls.iter().map(|call| call["call_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((listed("/v1/calls"), listed("/v1/calls?session=work")), (vec![own.clone()], vec![own.clone()]));
    let told = events.next().unwrap();
    let about = told.data["call_id"].as_str().or(told.data["outcome"]["call_id"].as_str());
    assert_eq!(about, Some(own.as_str()), "the first that it hears is its own: {told:?}");
}
