//! What is told and refused before a manifest's request leaves, and what calls of calls come to.

use super::manifests::{asks, call, pipeline, with, with_secrets};
use super::server::{Server, ok};
use super::{fault, part, run};
use haft_core::Call;
use haft_runtime::{Approver, BoxFuture, Decider, Halt, Question, Said, new_call_id};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn a_secret_does_not_travel_in_the_open_nor_in_a_url() {
    if part().is_none() {
        return with_secrets("asked::a_secret_does_not_travel_in_the_open_nor_in_a_url");
    }
    run(async {
        let server = Server::start(|_| ok("", "{}")).await;
        let plain = |name: &str, url: &str, host: &str| {
            let permissions = json!({"network": [host], "fs": {"read": [], "write": []},
                "secrets": {"API_TOKEN": {"type": "string", "required": true}}});
            asks(
                &server,
                name,
                json!({"url": url, "headers": {"X": "${API_TOKEN}"}}),
                json!({"permissions": permissions}),
            )
        };
        let own = format!("127.0.0.1:{}", server.port());
        let stage = with(&[
            plain("open", "http://example.com/", "example.com"),
            plain("ported", "http://example.com:80/", "example.com:80"),
            plain("path", &server.url("/${API_TOKEN}"), &own),
            plain("inline", &server.url("/?k=${API_TOKEN}"), &own),
            plain("near", &server.url("/near"), &own),
        ]);
        for (tool, kind, why) in [
            ("open", "denied", "the secret `API_TOKEN` is not sent to example.com:80 without encryption"),
            ("ported", "denied", "the secret `API_TOKEN` is not sent to example.com:80 without encryption"),
            ("path", "invalid_input", "exec.http.url: holds the secret `API_TOKEN`"),
            ("inline", "invalid_input", "exec.http.url: holds the secret `API_TOKEN`"),
        ] {
            let outcome = call(&stage.haft, tool, json!({})).await;
            let (got, said) = fault(&outcome);
            assert!(got == kind && said.contains(why), "{tool}: {outcome:?}");
            assert!(!serde_json::to_string(&outcome).unwrap().contains("hunter2"), "{outcome:?}");
        }
        assert_eq!(server.connections(), 0);
        assert!(call(&stage.haft, "near", json!({})).await.success, "a service of one's own is named with its port");
    });
}

#[test]
fn what_a_call_sets_off_is_counted_as_a_whole() {
    run(async {
        let many = |name: &str, tool: &str, count: usize| {
            let steps: Vec<Value> = (0..count).map(|at| json!({"id": format!("s{at}"), "tool": tool})).collect();
            pipeline(name, json!(steps), Value::Null)
        };
        let stage = with(&[many("inner", "count", 20), many("outer", "inner", 5), many("fits", "inner", 3)]);
        let counted = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let spec = haft_core::ToolSpec::new("count", "Count.").unwrap().input(json!({"type": "object"}));
        let count = Arc::clone(&counted);
        let tool = haft_runtime::Blocking::tool(spec, move |_: &haft_runtime::Scene| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(haft_runtime::Reply::text("counted"))
        });
        stage.haft.registry().register(tool).unwrap();
        assert!(call(&stage.haft, "fits", json!({})).await.success);
        assert_eq!(counted.swap(0, std::sync::atomic::Ordering::SeqCst), 60);
        let outcome = call(&stage.haft, "outer", json!({})).await;
        assert!(fault(&outcome).1.contains("at most 64 others in all"), "{outcome:?}");
        // Of the 64, four were calls of `inner`.
        assert_eq!(counted.load(std::sync::atomic::Ordering::SeqCst), 60);
        assert!(call(&stage.haft, "fits", json!({})).await.success, "the next call is counted by itself");
    });
}

/// Says yes, and keeps what it was asked.
#[derive(Default)]
struct Asked(std::sync::Mutex<Vec<String>>);

impl Approver for Asked {
    fn decider(&self) -> Decider {
        Decider::embedder("asked")
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        self.0.lock().unwrap().push(question.preview.clone());
        Box::pin(async { Said::Once })
    }
}

#[test]
fn whoever_is_asked_sees_the_request_and_is_not_asked_for_nothing() {
    if part().is_none() {
        return with_secrets("asked::whoever_is_asked_sees_the_request_and_is_not_asked_for_nothing");
    }
    run(async {
        let server = Server::start(|_| ok("", "{}")).await;
        let tool = |name: &str, secret: &str| {
            let permissions = json!({"network": [format!("127.0.0.1:{}", server.port())],
                "fs": {"read": [], "write": []}, "secrets": {secret: {"type": "string"}}});
            let http = json!({"url": server.url("/x"), "query": {"key": format!("${{{secret}}}"), "q": "${id}"}});
            asks(
                &server,
                name,
                http,
                json!({"permissions": permissions, "approval": {"required": true, "reason": "r"}}),
            )
        };
        let stage = with(&[tool("has", "OTHER_TOKEN"), tool("lacks", "NO_SUCH_TOKEN")]);
        let asked = Asked::default();
        let call = |tool: &str, args: Value| Call::new(new_call_id(), tool, args);
        assert!(stage.haft.call(call("has", json!({"id": "a"})), &asked, &Halt::new()).await.success);
        let port = server.port();
        assert_eq!(
            *asked.0.lock().unwrap(),
            [format!(
                "has: GET http://127.0.0.1:{port}/x?q=a&key=<OTHER_TOKEN> with the secret OTHER_TOKEN; count=10, id=\"a\""
            )]
        );
        let outcome = stage.haft.call(call("lacks", json!({})), &asked, &Halt::new()).await;
        let (kind, said) = fault(&outcome);
        assert!(kind == "not_found" && said.contains("`NO_SUCH_TOKEN` is declared and nowhere"), "{outcome:?}");
        assert_eq!(asked.0.lock().unwrap().len(), 1, "nobody is asked about what cannot run");
        let explained = stage.haft.explain(call("lacks", json!({}))).await.unwrap();
        assert!(explained.problem.is_some_and(|problem| problem.contains("NO_SUCH_TOKEN")));
    });
}

#[test]
fn a_broken_edit_is_told_with_what_the_last_good_version_gave() {
    run(async {
        let server = Server::start(|_| ok("", "{}")).await;
        let stage = with(&[asks(&server, "kept", json!({}), json!({}))]);
        assert_eq!(call(&stage.haft, "kept", json!({})).await.warnings, Vec::<String>::new());
        std::fs::write(stage.dir.path().join("tools/kept/tool.yml"), "name: [").unwrap();
        let outcome = call(&stage.haft, "kept", json!({})).await;
        let warning = outcome.warnings.first().map(String::as_str).unwrap_or_default();
        assert!(outcome.success && warning.contains("kept/tool.yml:1:"), "{outcome:?}");
        assert!(warning.ends_with("; the last good version of it ran"), "{warning}");
    });
}
