//! Every route, as one table: the router is made from it, and a test holds it against `/openapi.json`.

use crate::gateway::Shared;
use crate::problem::Problem;
use crate::rest::{approvals, calls, log, status, tools, work};
use crate::{body, guard, mcp, page, rpc, socket, sse};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use http::StatusCode;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// Anybody who can reach it: nothing is told there that is not public.
    All,
    /// Whoever shows a token, agents included.
    Token,
    /// Whoever shows the owner's token, or for one approval that of its link.
    Owner,
}

struct Route {
    path: &'static str,
    whose: For,
    methods: MethodRouter<Shared>,
}

fn route(path: &'static str, whose: For, methods: MethodRouter<Shared>) -> Route {
    Route { path, whose, methods }
}

fn table() -> Vec<Route> {
    use For::{All, Owner, Token};
    vec![
        route("/", All, get(page::index)),
        route("/static/{name}", All, get(page::asset)),
        route("/health", All, get(status::health)),
        route("/openapi.json", All, get(status::openapi)),
        route("/v1/links/{code}", All, post(approvals::open_link)),
        route("/metrics", Owner, get(status::metrics)),
        route("/v1/status", Owner, get(status::status)),
        route("/v1/config", Owner, get(status::config)),
        route("/v1/sessions", Owner, get(status::sessions)),
        route("/v1/tools", Token, get(tools::list)),
        route("/v1/tools/{name}/call", Token, post(tools::call)),
        route("/v1/tools/{name}/explain", Token, post(tools::explain)),
        route("/v1/calls", Token, get(calls::list)),
        route("/v1/calls/{id}", Token, get(calls::one)),
        route("/v1/calls/{id}/cancel", Token, post(calls::cancel)),
        route("/v1/calls/{id}/undo", Owner, post(calls::undo)),
        route("/v1/calls/{id}/attachments/{name}", Token, get(calls::attachment)),
        route("/v1/calls/{id}/changes", Owner, get(calls::changes)),
        route("/v1/changes", Owner, get(calls::changing)),
        route("/v1/undo", Owner, post(calls::undo_selected)),
        route("/v1/approvals", Owner, get(approvals::list)),
        route("/v1/approvals/{id}", Owner, get(approvals::one).post(approvals::decide)),
        route("/v1/approvals/{id}/changes", Owner, get(approvals::changes)),
        route("/v1/approvals/{id}/edit", Owner, post(approvals::edit)),
        route("/v1/approvals/{id}/try", Owner, post(approvals::try_out)),
        route("/v1/approvals/{id}/link", Owner, post(approvals::link)),
        route("/v1/log", Owner, get(log::records)),
        route("/v1/log/verify", Owner, get(log::verify)),
        route("/v1/log/export", Owner, get(log::export)),
        route("/v1/runs", Owner, get(work::runs)),
        route("/v1/runs/{id}", Owner, get(work::run)),
        route("/v1/runs/{id}/cancel", Owner, post(work::cancel)),
        route("/v1/runs/{id}/settle", Owner, post(work::settle)),
        route("/v1/tasks", Owner, get(work::tasks)),
        route("/v1/workers", Owner, get(work::workers)),
        route("/v1/memory/search", Owner, get(work::search)),
        route("/v1/events", Token, get(sse::events)),
        route("/rpc", Token, post(rpc::post)),
        route("/ws", Token, get(socket::upgrade)),
    ]
}

/// The router, with the guard around it.
pub(crate) fn router(gateway: &Shared) -> Router {
    let (mut open, mut closed, mut reserved) = (Router::new(), Router::new(), Router::new());
    for Route { path, whose, methods } in table() {
        match whose {
            For::All => open = open.route(path, methods),
            For::Token => closed = closed.route(path, methods),
            For::Owner => reserved = reserved.route(path, methods),
        }
    }
    if let Some(servers) = gateway.options.mcp.clone() {
        let bounded = from_fn_with_state(Shared::clone(gateway), body::bounded);
        let served = Router::new().fallback(mcp::serve).with_state(servers);
        closed = closed.nest_service("/mcp", served.layer(bounded));
    }
    let inner = from_fn_with_state(Shared::clone(gateway), guard::inner);
    let owner = from_fn_with_state(Shared::clone(gateway), guard::owner);
    let outer = from_fn_with_state(Shared::clone(gateway), guard::outer);
    open.merge(closed.route_layer(inner))
        .merge(reserved.route_layer(owner))
        .fallback(nowhere)
        .method_not_allowed_fallback(otherwise)
        .layer(outer)
        .with_state(Shared::clone(gateway))
}

async fn nowhere() -> Problem {
    Problem::not_found("there is nothing here").hint("/openapi.json says what there is")
}

async fn otherwise() -> Problem {
    let message = "this is not asked for with that method";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_input", message).hint("/openapi.json says with which")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Gateway;
    use crate::options::{McpServers, Options, WhenGone};
    use crate::token::Token;
    use axum::body::Body;
    use haft_core::{Caller, Dialect, SessionId};
    use haft_mcp::server::NamedSession;
    use haft_runtime::{Haft, Settings, Workspace};
    use http::Request;
    use serde_json::Value;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;
    use tower::ServiceExt;

    /// Answers with its name, the session that the request names, and the size of what was sent.
    fn echo(name: &'static str) -> Router {
        Router::new().fallback(move |request: Request<Body>| async move {
            let session = request.extensions().get::<NamedSession>().map(|NamedSession(id)| id.to_string());
            let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
            format!("{name} {} {}", session.unwrap_or_default(), body.len())
        })
    }

    fn gateway(dir: &std::path::Path) -> Shared {
        let store = haft_store::Store::open(&dir.join("haft.db")).unwrap();
        let haft = Haft::new(Workspace::new(dir).unwrap(), store, Settings::new(dir.join("data")));
        let options = Options {
            listen: "127.0.0.1:4747".parse().unwrap(),
            token: Token::load_or_make(&dir.join("token")).unwrap(),
            agent_token: Token::load_or_make(&dir.join("agent-token")).unwrap(),
            hosts: Vec::new(),
            links: false,
            patience: Duration::ZERO,
            when_gone: WhenGone::Finish,
            tls: None,
            connections: 16,
            caller: Caller::default(),
            session: SessionId::default(),
            dialect: Dialect::Haft,
            config: Value::Null,
            confinement: Value::Null,
            servers: Arc::new(|| Value::Null),
            waiting: Arc::new(|_, _| {}),
            mcp: Some(McpServers { owner: echo("owner"), agents: echo("agents") }),
        };
        Gateway::new(Arc::new(haft), options)
    }

    #[tokio::test]
    async fn what_is_mounted_is_behind_the_same_guard_and_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let gateway = gateway(dir.path());
        let token = format!("Bearer {}", gateway.options.token.reveal());
        let ask = async |host: &str, token: &str, size: usize| {
            let request = Request::post("/mcp").header("host", host).header("authorization", token);
            let request = request.header("content-length", size).body(Body::from(vec![b' '; size])).unwrap();
            let response = router(&gateway).oneshot(request).await.unwrap();
            (response.status().as_u16(), axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap())
        };
        assert_eq!(ask("localhost:4747", &token, 5).await, (200, "owner  5".into()));
        assert_eq!(ask("localhost:4747", "Bearer x", 5).await.0, 401);
        assert_eq!(ask("evil.example", &token, 5).await.0, 403);
        assert_eq!(ask("localhost:4747", &token, body::BODY_MAX + 1).await.0, 413);
    }

    #[tokio::test]
    async fn token_decides_which_mcp_server_and_which_sessions_a_client_reaches() {
        let dir = tempfile::tempdir().unwrap();
        let gateway = gateway(dir.path());
        let (owner, agent) = (gateway.options.token.reveal(), gateway.options.agent_token.reveal());
        let ask = async |token: &str, query: &str, named: Option<&str>| {
            let request = Request::post(format!("/mcp{query}")).header("host", "localhost:4747");
            let request = request.header("authorization", format!("Bearer {token}"));
            let request = named.into_iter().fold(request, |request, name| request.header("Haft-Session", name));
            let response = router(&gateway).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            let status = response.status().as_u16();
            let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            (status, String::from_utf8(body.to_vec()).unwrap())
        };
        assert_eq!(ask(owner, "", None).await, (200, "owner  0".to_owned()));
        assert_eq!(ask(owner, "", Some("work")).await, (200, "owner work 0".to_owned()));
        assert_eq!(ask(owner, "?session=my%20work", None).await, (200, "owner my work 0".to_owned()));
        assert_eq!(ask(owner, "?session=work", Some("work")).await, (200, "owner work 0".to_owned()));
        assert_eq!(ask(agent, "", None).await, (200, "agents  0".to_owned()));
        assert_eq!(ask(agent, "", Some("work")).await, (200, "agents agent:work 0".to_owned()));
        assert_eq!(ask(agent, "?session=agent:work", None).await, (200, "agents agent:work 0".to_owned()));
        for (query, named) in
            [("?session=a", Some("b")), ("", Some("")), ("?session=%00", None), ("?session=a&session=a", None)]
        {
            let (status, problem) = ask(owner, query, named).await;
            assert_eq!(status, 400, "{query} {named:?}: {problem}");
        }
        assert_eq!(ask(owner, "", Some(&"x".repeat(129))).await.0, 400);
    }

    #[test]
    fn the_document_and_the_table_agree() {
        let document: Value = serde_json::from_str(status::OPENAPI).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        let described: BTreeSet<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let table = table();
        let mut routes: BTreeSet<&str> = table.iter().map(|route| route.path).collect();
        routes.insert("/mcp");
        assert_eq!(routes, described);
        for route in &table {
            let item = &document["paths"][route.path];
            for operation in ["get", "post"].iter().filter_map(|method| item.get(*method)) {
                let open = operation["security"] == serde_json::json!([]);
                assert_eq!(open, route.whose == For::All, "{}", route.path);
                assert!(operation["responses"].as_object().is_some_and(|all| !all.is_empty()), "{}", route.path);
                assert!(operation["operationId"].is_string() && operation["summary"].is_string(), "{}", route.path);
            }
            let method = |name: &str| item.get(name).is_some();
            let debug = format!("{:?}", route.methods);
            for (name, field) in [("get", "get: "), ("post", "post: ")] {
                let has = debug.split(field).nth(1).is_some_and(|rest| !rest.starts_with("None"));
                assert_eq!(has, method(name), "{name} {}", route.path);
            }
        }
    }
}
