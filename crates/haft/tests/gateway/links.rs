//! Links that open one approval on another device, once.

use crate::Env;
use serde_json::json;

#[test]
fn a_link_opens_its_approval_once_and_nothing_else() {
    let env = Env::new();
    let gateway = env.serve_with(&["--links"]);
    let (id, other) = (gateway.ask_to_write("a.txt"), gateway.ask_to_write("b.txt"));
    let link = gateway.post(&format!("/v1/approvals/{id}/link"), json!({}));
    assert_eq!(link.status, 200, "{link:?}");
    let url = link.json()["url"].as_str().unwrap().to_owned();
    assert!(link.json()["qr"].as_str().unwrap().starts_with("<svg "));
    let (base, code) = url.split_once("#link=").unwrap();
    assert_eq!(base, format!("http://{}/", gateway.server.host));
    let open = || gateway.server.ask("POST", &format!("/v1/links/{code}"), &[], Some("{}"));
    let opened = open();
    assert_eq!((opened.status, opened.json()["approval"].as_str()), (200, Some(id.as_str())), "{opened:?}");
    assert_eq!(open().status, 401, "once");
    let token = format!("Bearer {}", opened.json()["token"].as_str().unwrap());
    let ask = |method: &str, path: &str, body: Option<&str>| {
        gateway.server.ask(method, path, &[("Authorization", token.clone())], body).status
    };
    assert_eq!(ask("GET", &format!("/v1/approvals/{id}"), None), 200);
    for path in [
        format!("/v1/approvals/{other}"),
        "/v1/approvals".into(),
        "/v1/tools".into(),
        "/v1/events".into(),
        "/v1/log".into(),
        format!("/v1/calls/{id}"),
    ] {
        assert_eq!(ask("GET", &path, None), 403, "{path}");
    }
    for path in [
        format!("/v1/approvals/{id}/edit"),
        format!("/v1/approvals/{id}/link"),
        format!("/v1/approvals/{other}"),
        "/rpc".into(),
    ] {
        assert_eq!(ask("POST", &path, Some("{}")), 403, "{path}");
    }
    for lasting in [r#"{"decision": "always", "pattern": "**"}"#, r#"{"decision": "session"}"#] {
        assert_eq!(ask("POST", &format!("/v1/approvals/{id}"), Some(lasting)), 403, "{lasting}");
    }
    assert_eq!(ask("POST", &format!("/v1/approvals/{id}"), Some(r#"{"decision": "once"}"#)), 200);
    assert_eq!(env.read("a.txt"), "hello");
    let approval = gateway.get(&format!("/v1/approvals/{id}")).json();
    assert_eq!(approval["approval"]["decided_by"], "link");
    assert_eq!(gateway.post(&format!("/v1/approvals/{id}/link"), json!({})).status, 409, "decided");
}

#[test]
fn without_the_operators_word_there_are_no_links() {
    let env = Env::new();
    let gateway = env.serve();
    let id = gateway.ask_to_write("a.txt");
    assert_eq!(gateway.post(&format!("/v1/approvals/{id}/link"), json!({})).status, 403);
    assert_eq!(gateway.server.ask("POST", "/v1/links/abc", &[], Some("{}")).status, 401);
}
