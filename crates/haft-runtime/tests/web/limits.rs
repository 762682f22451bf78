//! How much may be asked for, whoever asks; and what the record says of it.

use super::server::{Answer, Server, ok, sends_on};
use super::{Stage, fault, loopback, process, roomy, run};
use haft_core::{Call, SessionId};
use haft_runtime::web::{Quota, WebSettings};
use haft_runtime::{Halt, Yes, new_call_id};
use serde_json::json;
use std::time::Duration;

#[test]
fn the_limits_hold_across_processes() {
    run(async {
        let server = Server::start(|_| ok("", "fine")).await;
        let web = WebSettings {
            allow_private: loopback(&[server.port()]),
            quota: Quota { session: 5, hour: 8, day: 100 },
            ..WebSettings::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let ask = async |session: &str| {
            let mut call = Call::new(new_call_id(), "probe.ask", json!({"url": server.url("/")}));
            call.session = SessionId::new(session).unwrap();
            // Each in a process of its own, as `haft call` is.
            process(dir.path(), web.clone()).call(call, &Yes, &Halt::new()).await
        };
        for _ in 0..5 {
            assert!(ask("one").await.success);
        }
        let outcome = ask("one").await;
        assert!(fault(&outcome).1.contains("the 5 web requests that this session may make in a day"), "{outcome:?}");
        for _ in 0..3 {
            assert!(ask("two").await.success);
        }
        let outcome = ask("two").await;
        assert!(fault(&outcome).1.contains("the 8 web requests that there may be in an hour"), "{outcome:?}");
        assert_eq!(server.heard().len(), 8);
    });
}

#[test]
fn a_request_that_is_sent_on_counts_each_time() {
    run(async {
        let server = Server::start(|request| match request.split(' ').nth(1).unwrap() {
            "/a" => sends_on(302, "/b"),
            "/b" => sends_on(302, "/c"),
            _ => ok("", "fine"),
        })
        .await;
        let quota = Quota { session: 2, ..Quota::default() };
        let stage =
            Stage::new(WebSettings { allow_private: loopback(&[server.port()]), quota, ..WebSettings::default() });
        let outcome = stage.get(&server.url("/a")).await;
        assert!(fault(&outcome).1.contains("are used up"), "{outcome:?}");
        assert_eq!(server.heard().len(), 2);
    });
}

#[test]
fn every_request_is_in_the_record_and_nothing_of_what_was_said() {
    run(async {
        let server = Server::start(|request| match request.split(' ').nth(1).unwrap() {
            "/gone" => sends_on(303, "/here?token=hidden-in-a-query"),
            "/broken" => Answer::Last(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhidden".to_vec()),
            _ => ok("x-secret: hidden-in-a-header\r\n", "hidden-in-a-body"),
        })
        .await;
        let stage = Stage::reaching(&[server.port()]);
        let body = json!({"url": server.url("/gone"), "method": "POST", "body": "hidden-in-what-is-sent"});
        assert!(stage.ask(body).await.success);
        assert!(!stage.get(&server.url("/broken")).await.success);
        let requests = stage.requests().await;
        let host = format!("127.0.0.1:{}", server.port());
        let seen: Vec<_> = requests
            .iter()
            .map(|body| {
                (body["method"].as_str(), body["status"].as_u64(), body["bytes"].as_u64(), body["error"].as_str())
            })
            .collect();
        assert_eq!(
            seen,
            [
                (Some("POST"), Some(303), Some(0), None),
                (Some("GET"), Some(200), Some(16), None),
                (Some("GET"), Some(200), Some(6), Some("upstream")),
            ]
        );
        assert!(requests.iter().all(|body| body["host"] == host && body["call"].is_string()), "{requests:?}");
        let all = serde_json::to_string(&requests).unwrap();
        assert!(!all.contains("hidden"), "{all}");
    });
}

#[test]
fn what_is_given_up_is_in_the_record() {
    run(async {
        let server = Server::start(|_| Answer::Nothing).await;
        let stage = Stage::reaching(&[server.port()]);
        let halt = Halt::new();
        let call = Call::new(new_call_id(), "probe.ask", json!({"url": server.url("/")}));
        let given_up = async {
            while server.heard().is_empty() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            halt.cancel();
        };
        let (outcome, ()) = tokio::join!(stage.haft.call(call, &Yes, &halt), given_up);
        assert_eq!(fault(&outcome).0, "cancelled", "{outcome:?}");
        let requests = stage.requests().await;
        assert_eq!((requests.len(), &requests[0]["error"]), (1, &json!("cancelled")), "{requests:?}");
    });
}

/// A server whose answers grow beyond what is small, and then trickle.
async fn trickling() -> Server {
    Server::start(|request| {
        if request.contains("/large") {
            return ok("", vec![b'x'; 5 << 20]);
        }
        let head = [&b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"[..], &vec![b'x'; 70 << 10]].concat();
        Answer::Endless(head, b"x".to_vec(), Duration::from_millis(10))
    })
    .await
}

#[test]
fn an_answer_that_trickles_is_given_up() {
    run(async {
        let server = trickling().await;
        let allow_private = loopback(&[server.port()]);
        let stage = Stage::new(WebSettings { allow_private, pace: Duration::from_millis(300), ..roomy() });
        let outcome = stage.get(&server.url("/")).await;
        let (kind, message) = fault(&outcome);
        assert!(kind == "timeout" && message.contains("sends too slowly: less than 256.0KB within 0.3 s"), "{message}");
    });
}

#[test]
fn slow_answers_of_one_session_do_not_keep_another_waiting() {
    run(async {
        let server = trickling().await;
        let stage = Stage::new(WebSettings { allow_private: loopback(&[server.port()]), ..roomy() });
        let halt = Halt::new();
        let ask = |session: &str, path: &str, halt: &Halt| {
            let mut call = Call::new(new_call_id(), "probe.ask", json!({"url": server.url(path)}));
            call.session = SessionId::new(session).unwrap();
            let (layer, until) = (&stage.haft, halt.clone());
            async move { layer.call(call, &Yes, &until).await }
        };
        // As many as there are turns: half of them are let through, and take all the room that one session has.
        let slow = futures_util::future::join_all((0..64).map(|_| ask("slow", "/", &halt)));
        let other = async {
            while server.heard().len() < 32 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let outcome = ask("other", "/large", &Halt::new()).await;
            halt.cancel();
            outcome
        };
        let (slow, other) = tokio::join!(slow, other);
        assert!(other.success, "{other:?}");
        assert_eq!(super::data(&other)["size"], json!(5 << 20));
        assert!(slow.iter().all(|outcome| fault(outcome).0 == "cancelled"), "{:?}", slow.first());
    });
}
