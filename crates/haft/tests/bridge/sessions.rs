//! Sessions that use one server at the same time.

use axum::extract::{Json, State};
use axum::routing::post;
use haft::{Call, Haft, Halt, SessionId, Settings, Store, Workspace, new_call_id};
use haft_mcp::client::{Bridge, Learn, Reach, Server, oauth::Who};
use haft_runtime::Decider;
use haft_runtime::approver::{Approver, Question, Said};
use haft_runtime::{BoxFuture, Form, Written};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// Agrees, and gives its name when asked for it.
struct Named(&'static str);

impl Approver for Named {
    fn decider(&self) -> Decider {
        Decider::embedder(self.0)
    }
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Once))
    }
    fn elicit<'a>(&'a self, _: &'a Form) -> BoxFuture<'a, Written> {
        Box::pin(std::future::ready(Written::Answer(json!({ "name": self.0 }))))
    }
}

/// A server of the newest version whose tool asks for a name, once two have called it.
async fn answer(State(both): State<Arc<Barrier>>, Json(request): Json<Value>) -> Json<Value> {
    let params = &request["params"];
    let result = match request["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "asker", "version": "1"}}),
        "tools/list" => json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}),
        "tools/call" if params["inputResponses"].is_null() => {
            both.wait().await;
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let question = json!({"method": "elicitation/create",
                "params": {"message": "who?", "requestedSchema": schema}});
            json!({"resultType": "input_required", "requestState": "asked", "inputRequests": {"who": question}})
        }
        "tools/call" => {
            let name = params["inputResponses"]["who"]["content"]["name"].as_str().unwrap_or("nobody");
            json!({"resultType": "complete", "content": [{"type": "text", "text": name}]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "there is no such method"});
            return Json(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}));
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn each_session_is_asked_about_its_own_call() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().route("/mcp", post(answer)).with_state(Arc::new(Barrier::new(2)));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });

    let (data, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(&data.path().join("haft.db")).unwrap();
    let haft = Arc::new(Haft::new(Workspace::new(project.path()).unwrap(), store, Settings::new(data.path())));
    let server = Server::new("asker", Reach::Url { url, headers: BTreeMap::new(), who: Who::New }).unwrap();
    let bridge = Bridge::open(&haft, &[server], Learn::OnDemand, |_| {}).await.unwrap();
    bridge.start("asker").await.unwrap();

    let never = Halt::new();
    let call = |session: &str| {
        let mut call = Call::new(new_call_id(), "mcp:asker:ask", json!({}));
        call.session = SessionId::new(session).unwrap();
        call
    };
    let (first, second) = tokio::join!(
        haft.call(call("first"), &Named("anna"), &never),
        haft.call(call("second"), &Named("ben"), &never)
    );
    assert_eq!((first.error, second.error), (None, None));
    assert_eq!((super::unwrapped(&first.output).trim(), super::unwrapped(&second.output).trim()), ("anna", "ben"));
    bridge.close().await;
}
