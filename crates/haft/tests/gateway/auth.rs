//! Who is let in.

use crate::Env;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_token_is_private_and_stays_the_same() {
    let env = Env::new();
    let first = env.serve();
    let file = env.data().join("gateway-token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first.token);
    let token = first.token.clone();
    drop(first);
    assert_eq!(env.serve().token, token);
}

#[test]
fn only_the_right_token_opens_anything() {
    let env = Env::new();
    let gateway = env.serve();
    let right = &gateway.token;
    let wrong = "x".repeat(right.len());
    let query = |token: &str| format!("/v1/tools?token={token}");
    let table: Vec<(String, Option<String>, u16)> = vec![
        ("/v1/tools".into(), None, 401),
        ("/v1/tools".into(), Some(format!("Bearer {right}")), 200),
        ("/v1/tools".into(), Some(format!("bearer {right}")), 200),
        (query(right), None, 200),
        ("/v1/tools".into(), Some(format!("Bearer {wrong}")), 401),
        (query(&wrong), None, 401),
        (query(""), None, 401),
        (format!("{}&token={wrong}", query(right)), None, 401),
        // A header that is there counts, even if the query is right.
        (query(right), Some(format!("Bearer {wrong}")), 401),
        (query(right), Some("Bearer".into()), 401),
        (query(right), Some(format!("Basic {right}")), 401),
        (query(right), Some(format!("Bearer  {right}")), 401),
    ];
    for (path, header, expected) in table {
        let headers: Vec<_> = header.iter().map(|value| ("Authorization", value.clone())).collect();
        let answer = gateway.server.ask("GET", &path, &headers, None);
        assert_eq!(answer.status, expected, "{path} {header:?} {answer:?}");
        if answer.status == 401 {
            assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"haft\""));
            assert_eq!(answer.json()["error"]["kind"], "unauthorized");
        }
        assert!(!answer.text().contains(right.as_str()), "a token is never echoed");
    }
}

#[test]
fn everything_but_what_is_public_needs_the_token() {
    let env = Env::new();
    let gateway = env.serve();
    for path in ["/", "/static/main.js", "/health", "/openapi.json"] {
        assert_eq!(gateway.server.ask("GET", path, &[], None).status, 200, "{path}");
    }
    for path in ["/v1/tools", "/v1/log", "/v1/events", "/metrics", "/ws"] {
        assert_eq!(gateway.server.ask("GET", path, &[], None).status, 401, "{path}");
    }
    assert_eq!(gateway.server.ask("POST", "/rpc", &[], Some("{}")).status, 401);
    assert_eq!(gateway.get("/v1/nothing").status, 404);
    assert_eq!(gateway.server.ask("DELETE", "/v1/tools", &gateway.bearer(), None).status, 405);
}

#[test]
fn failures_are_limited_and_the_right_token_still_counts() {
    let env = Env::new();
    let gateway = env.serve();
    let wrong = [("Authorization", "Bearer wrong".to_owned())];
    let statuses: Vec<u16> = (0..15).map(|_| gateway.server.ask("GET", "/v1/tools", &wrong, None).status).collect();
    assert_eq!(statuses[..10], [401; 10], "{statuses:?}");
    assert!(statuses[10..].contains(&429), "{statuses:?}");
    let late = gateway.server.ask("GET", "/v1/tools", &wrong, None);
    if late.status == 429 {
        assert!(late.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    }
    assert_eq!(gateway.get("/v1/tools").status, 200, "its owner is not locked out");
    let metrics = gateway.get("/metrics").text();
    assert!(metrics.contains("haft_auth_failures_total 1"), "{metrics}");
}

#[test]
fn another_host_or_origin_is_refused() {
    let env = Env::new();
    env.config("gateway: {hosts: [\"haft.example\"]}\n");
    let gateway = env.serve();
    let host = gateway.server.host.clone();
    let port = host.rsplit(':').next().unwrap();
    let local = format!("localhost:{port}");
    let table = [
        (host.clone(), None, 200),
        (local.clone(), None, 200),
        ("haft.example".to_owned(), None, 200),
        ("evil.example".to_owned(), None, 403),
        (format!("evil.example:{port}"), None, 403),
        ("127.0.0.1:1".to_owned(), None, 403),
        (host.clone(), Some(format!("http://{host}")), 200),
        (host.clone(), Some(format!("http://{local}")), 200),
        (host.clone(), Some("https://evil.example".to_owned()), 403),
        (host.clone(), Some("http://localhost:1".to_owned()), 403),
        (host.clone(), Some("null".to_owned()), 403),
        (host.clone(), Some(host.clone()), 403),
    ];
    for (host, origin, expected) in table {
        let mut headers = gateway.bearer();
        headers.push(("Host", host.clone()));
        headers.extend(origin.clone().map(|origin| ("Origin", origin)));
        for path in ["/v1/tools", "/", "/ws"] {
            let answer = gateway.server.ask("GET", path, &headers, None);
            let expected = if path == "/ws" && expected == 200 { 400 } else { expected };
            assert_eq!(answer.status, expected, "{path} {host} {origin:?} {}", answer.text());
        }
    }
    let mut twice = gateway.bearer();
    twice.extend([("Host", host.clone()), ("Host", host)]);
    assert_eq!(gateway.server.ask("GET", "/v1/tools", &twice, None).status, 400);
}

#[test]
fn every_answer_says_what_a_browser_may_do_with_it() {
    let env = Env::new();
    let gateway = env.serve();
    for path in ["/", "/static/main.js", "/v1/tools", "/nowhere", "/health"] {
        let answer = gateway.get(path);
        let csp = answer.header("content-security-policy").unwrap();
        assert!(csp.contains("default-src 'none'") && csp.contains("frame-ancestors 'none'"), "{csp}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
        let cache = if path == "/" || path.starts_with("/static") { "no-cache" } else { "no-store" };
        assert_eq!(answer.header("cache-control"), Some(cache), "{path}");
    }
    let page = gateway.get("/");
    let again = [("If-None-Match", page.header("etag").unwrap().to_owned())];
    assert_eq!(gateway.server.ask("GET", "/", &again, None).status, 304);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
}

#[test]
fn who_called_is_in_the_record() {
    let env = Env::new();
    let gateway = env.serve();
    let args = json!({"args": {"expression": "1"}});
    let mut headers = gateway.bearer();
    let plain = gateway.server.ask("POST", "/v1/tools/calc.eval/call", &headers, Some(&args.to_string())).json();
    headers.push(("Origin", format!("http://{}", gateway.server.host)));
    let page = gateway.server.ask("POST", "/v1/tools/calc.eval/call", &headers, Some(&args.to_string())).json();
    for (outcome, origin) in [(plain, "gateway"), (page, "page")] {
        let call = gateway.get(&format!("/v1/calls/{}", outcome["call_id"].as_str().unwrap())).json();
        assert_eq!(call["origin"], origin, "{call:#}");
    }
}
