//! Who is asked before something is sent, and what is remembered of the answer.

use super::server::{Server, ok};
use super::{Stage, kind, run};
use serde_json::json;

#[test]
fn reading_is_free_and_the_first_write_to_a_host_asks() {
    run(async {
        let (one, other) = (Server::saying("one"), Server::saying("other"));
        let stage = Stage::reaching(&[&one, &other]);
        for method in ["GET", "HEAD", "OPTIONS"] {
            let outcome = stage.call("web.request", json!({"url": one.url("/"), "method": method})).await;
            assert!(outcome.success, "{method}: {outcome:?}");
        }
        assert_eq!(stage.asked(), 0, "reading");
        let post = |url: String| json!({"url": url, "method": "POST", "body": {"a": 1}});
        assert!(stage.call("web.request", post(one.url("/a"))).await.success);
        assert_eq!(stage.asked(), 1, "the first write");
        assert!(stage.call("web.request", post(one.url("/b?c=d"))).await.success);
        assert!(stage.call("web.request", json!({"url": one.url("/a"), "method": "DELETE"})).await.success);
        assert_eq!(stage.asked(), 0, "the same host");
        assert!(stage.call("web.request", post(other.url("/a"))).await.success);
        assert_eq!(stage.asked(), 1, "another host");
        assert!(stage.call_in("second", "web.request", post(one.url("/a"))).await.success);
        assert_eq!(stage.asked(), 1, "another session");
        let heard = one.heard();
        let write = heard.iter().find(|asked| asked.line == "POST /a").unwrap();
        assert_eq!(write.body, r#"{"a":1}"#);
        assert!(write.headers.contains("content-type: application/json"), "{}", write.headers);
    });
}

#[test]
fn a_first_deletion_asks_too() {
    run(async {
        let server = Server::saying("gone");
        let stage = Stage::reaching(&[&server]);
        assert!(stage.call("web.request", json!({"url": server.url("/a"), "method": "DELETE"})).await.success);
        assert_eq!(stage.asked(), 1);
    });
}

#[test]
fn a_doubt_asks_every_time() {
    run(async {
        let server = Server::saying("ok");
        let stage = Stage::reaching(&[&server]);
        let key = "AKIAIOSFODNN7EXAMPLE";
        assert!(
            stage.call("web.request", json!({"url": server.url("/"), "method": "POST", "body": "x"})).await.success
        );
        assert_eq!(stage.asked(), 1, "the host is known now");
        let encoded = "c2VjcmV0IHN0dWZmIHRoYXQgbm9ib2R5IHNob3VsZCBzZWUgYXQgYWxsISE5OTk4ODg3Nzc";
        for args in [
            json!({"url": server.url("/"), "method": "POST", "body": format!("key={key}")}),
            json!({"url": server.url("/"), "method": "POST", "body": {"deep": [{"er": key}]}}),
            json!({"url": server.url("/"), "method": "POST", "body": {key: 1}}),
            json!({"url": server.url("/"), "headers": {"X-Data": key}}),
            json!({"url": server.url(&format!("/?d={encoded}"))}),
            json!({"url": server.url(&format!("/?q={}", "word+".repeat(200)))}),
        ] {
            for _ in 0..2 {
                let outcome = stage.call("web.request", args.clone()).await;
                assert!(outcome.success, "{outcome:?}");
                assert_eq!(stage.asked(), 1, "{args}");
            }
        }
    });
}

#[test]
fn what_must_not_be_sent_is_refused_before_anybody_is_asked() {
    run(async {
        let (server, hidden) = (Server::saying("ok"), Server::saying("inside"));
        let stage = Stage::reaching(&[&server]);
        for (args, expected) in [
            (json!({"url": server.url("/"), "headers": {"X-A": "b\r\nX-C: d"}}), "invalid_input"),
            (json!({"url": server.url("/"), "headers": {"X-A": "b\u{0}"}}), "invalid_input"),
            (json!({"url": server.url("/"), "headers": {"X A": "b"}}), "invalid_input"),
            (json!({"url": server.url("/"), "headers": {"Host": "evil.test"}}), "invalid_input"),
            (json!({"url": server.url("/"), "headers": {"X-A": 7}}), "invalid_input"),
            (json!({"url": server.url("/"), "method": "TRACE"}), "invalid_input"),
            (json!({"url": server.url("/"), "body": "carried out"}), "invalid_input"),
            (json!({"url": server.url("/"), "timeout_ms": 120_001}), "invalid_input"),
            (json!({"url": "ftp://a.test/"}), "invalid_input"),
            (json!({"url": hidden.url("/")}), "denied"),
            (json!({"url": hidden.url("/"), "method": "POST"}), "denied"),
        ] {
            let outcome = stage.call("web.request", args.clone()).await;
            assert_eq!(kind(&outcome), expected, "{args}: {outcome:?}");
        }
        assert_eq!((stage.asked(), server.heard().len(), hidden.heard().len()), (0, 0, 0));
    });
}

#[test]
fn what_is_sent_and_what_comes_back_is_not_written_down() {
    run(async {
        let server = Server::new(|_| {
            let headers =
                [("set-cookie", "session=cookie-secret"), ("x-api-token", "token-secret"), ("x-plain", "seen")];
            (200, headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(), "answer-text".to_owned())
        });
        let stage = Stage::reaching(&[&server]);
        let headers = json!({"Authorization": "own-secret", "Cookie": "id=own-cookie", "Accept": "text/plain"});
        let args = json!({"url": server.url("/a"), "method": "PUT", "headers": headers, "body": "body-secret"});
        let outcome = stage.call("web.request", args).await;
        assert!(outcome.success && outcome.output.contains("x-plain: seen"), "{outcome:?}");
        let shown = serde_json::to_string(&outcome).unwrap();
        let asked = stage.person.asked.lock().unwrap().join(" ");
        let log = stage.on_disk().await;
        for secret in ["cookie-secret", "token-secret", "own-secret", "own-cookie", "body-secret"] {
            for (place, text) in [("outcome", &shown), ("question", &asked), ("log", &log)] {
                assert!(!text.contains(secret), "{secret} in the {place}: {text}");
            }
        }
        assert!(!log.contains("answer-text") && log.contains("text/plain"), "{log}");
        assert!(server.heard()[0].headers.contains("authorization: own-secret"), "but it is sent");
    });
}

#[test]
fn a_failure_shows_its_body_and_is_from_outside() {
    run(async {
        let server = Server::new(|_| (422, ok("").1, r#"{"why": "too small"}"#.to_owned()));
        let stage = Stage::reaching(&[&server]);
        let outcome = stage.call("web.request", json!({"url": server.url("/")})).await;
        assert_eq!(kind(&outcome), "upstream");
        assert!(outcome.output.contains("too small"), "{outcome:?}");
        assert_eq!(outcome.labels, [haft_core::outcome::Label::Untrusted]);
        assert_eq!(outcome.data.unwrap()["status"], 422);
    });
}
