//! Answers of every kind, and above all of the wrong kind.

use super::server::{Answer, Server, ok};
use super::{Stage, data, fault, run};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

async fn answered(script: impl Fn(&str) -> Answer + Send + Sync + 'static, more: Value) -> haft_core::Outcome {
    let server = Server::start(script).await;
    let stage = Stage::reaching(&[server.port()]);
    let mut args = json!({"url": server.url("/")});
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    stage.ask(args).await
}

fn bytes(text: &str) -> Answer {
    Answer::Last(text.as_bytes().to_vec())
}

#[test]
fn what_has_no_body_is_whole() {
    run(async {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 5000\r\ncontent-encoding: gzip\r\n\r\n";
        let outcome = answered(move |_| bytes(head), json!({"method": "HEAD"})).await;
        assert_eq!((&data(&outcome)["status"], &data(&outcome)["size"]), (&json!(200), &json!(0)), "{outcome:?}");
        for (status, head) in [
            (204, "HTTP/1.1 204 None\r\n\r\n"),
            (304, "HTTP/1.1 304 Same\r\ncontent-length: 5000\r\ncontent-encoding: gzip\r\n\r\n"),
            (200, "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n"),
        ] {
            let outcome = answered(move |_| bytes(head), json!({})).await;
            assert_eq!((&data(&outcome)["status"], &data(&outcome)["size"]), (&json!(status), &json!(0)));
        }
        let outcome = answered(|_| bytes("HTTP/1.1 302 On\r\ncontent-length: 0\r\n\r\n"), json!({})).await;
        assert_eq!(data(&outcome)["status"], 302, "one that points nowhere is an answer");
    });
}

#[test]
fn an_endless_body_is_cut_and_let_go() {
    run(async {
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let piece = [b"1000\r\n".to_vec(), vec![b'x'; 4096], b"\r\n".to_vec()].concat();
        let script = move |_: &str| Answer::Endless(head.clone(), piece.clone(), Duration::ZERO);
        let outcome = answered(script, json!({"bytes": 500_000})).await;
        assert_eq!((&data(&outcome)["size"], &data(&outcome)["cut"]), (&json!(500_000), &json!(true)), "{outcome:?}");
        let head = b"HTTP/1.1 200 OK\r\nx-long: ".to_vec();
        let script = move |_: &str| Answer::Endless(head.clone(), vec![b'x'; 4096], Duration::ZERO);
        let outcome = answered(script, json!({})).await;
        assert_eq!(fault(&outcome).0, "upstream", "a head without an end: {outcome:?}");
        let many = "x: y\r\n".repeat(5000);
        let outcome = answered(move |_| bytes(&format!("HTTP/1.1 200 OK\r\n{many}\r\n")), json!({})).await;
        assert_eq!(fault(&outcome).0, "upstream", "very many headers: {outcome:?}");
    });
}

#[test]
fn a_slow_answer_ends_with_its_time() {
    run(async {
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let script = move |_: &str| Answer::Endless(head.clone(), b"1\r\nx\r\n".to_vec(), Duration::from_millis(20));
        let server = Server::start(script).await;
        let mute = Server::start(|_| Answer::Nothing).await;
        let stage = Stage::reaching(&[server.port(), mute.port()]);
        for url in [server.url("/"), mute.url("/")] {
            let outcome = stage.ask(json!({"url": url, "timeout_ms": 300})).await;
            let (kind, why) = fault(&outcome);
            assert!(kind == "timeout" && why.contains("within 0.3 s"), "{outcome:?}");
        }
        let requests = stage.requests().await;
        assert_eq!((&requests[0]["status"], &requests[0]["error"]), (&json!(200), &json!("timeout")), "{requests:?}");
        assert!(requests[0]["bytes"].as_u64().unwrap() > 0 && requests[1]["error"] == "timeout", "{requests:?}");
    });
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_bomb_is_cut_and_not_unpacked() {
    run(async {
        let once = gzip(&vec![0; 50 << 20]);
        let (single, twice) = (once.clone(), gzip(&once));
        let outcome = answered(move |_| ok("content-encoding: gzip\r\n", &single), json!({"bytes": 1_000_000})).await;
        assert_eq!((&data(&outcome)["size"], &data(&outcome)["cut"]), (&json!(1_000_000), &json!(true)), "{outcome:?}");
        // Encoded twice and saying so is not what was asked for.
        let outcome = answered(move |_| ok("content-encoding: gzip, gzip\r\n", &twice), json!({})).await;
        assert!(fault(&outcome).1.contains("which was not asked for"), "{outcome:?}");
    });
}

#[test]
fn what_is_encoded_is_decoded_or_refused() {
    run(async {
        let (whole, broken) = (gzip(b"hello"), gzip(b"hello"));
        let outcome = answered(move |_| ok("content-encoding: GZIP\r\n", &whole), json!({})).await;
        assert_eq!(data(&outcome)["body"], "hello", "{outcome:?}");
        let outcome = answered(move |_| ok("content-encoding: gzip\r\n", &broken[..12]), json!({})).await;
        assert!(fault(&outcome).1.contains("cannot be decoded"), "{outcome:?}");
        for coding in ["br", "zstd", "compress", "nonsense"] {
            let outcome = answered(move |_| ok(&format!("content-encoding: {coding}\r\n"), "x"), json!({})).await;
            assert!(fault(&outcome).1.contains(coding), "{outcome:?}");
        }
        let heads = "content-encoding: gzip\r\ncontent-encoding: identity\r\n";
        let outcome = answered(move |_| ok(heads, "x"), json!({})).await;
        assert!(fault(&outcome).1.contains("not asked for"), "two that contradict each other: {outcome:?}");
    });
}

#[test]
fn broken_framing_is_an_error_and_never_a_part() {
    run(async {
        for broken in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello",
            "HTTP/1.1 999999 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
            "HTTP/1.1 200 OK\r\nbad\0name: x\r\n\r\n",
            "SSH-2.0-OpenSSH_9.6\r\n",
            "",
        ] {
            let outcome = answered(move |_| bytes(broken), json!({})).await;
            let (kind, why) = fault(&outcome);
            assert!(kind == "upstream" && why.contains("http://127.0.0.1:"), "{broken:?}: {outcome:?}");
        }
        // More than was said belongs to nobody.
        let longer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello and more";
        let outcome = answered(move |_| bytes(longer), json!({})).await;
        assert_eq!(data(&outcome)["body"], "hello", "{outcome:?}");
    });
}

#[test]
fn headers_cannot_smuggle_another_request() {
    run(async {
        let server = Server::start(|_| ok("", "fine")).await;
        let stage = Stage::reaching(&[server.port()]);
        for (name, value) in [
            ("x-a", "b\r\nhost: evil.example"),
            ("x-a", "b\ncookie: c"),
            ("x-a", "b\rc"),
            ("x-a", "b\0c"),
            ("x-a\r\nhost", "evil.example"),
            ("x a", "b"),
            ("x-a:", "b"),
            ("", "b"),
            ("x-a", "b\u{10a}c"),
            ("x-\u{10d}", "b"),
        ] {
            let outcome = stage.ask(json!({"url": server.url("/"), "headers": {name: value}})).await;
            let (kind, why) = fault(&outcome);
            assert!(kind == "invalid_input" && why.contains("cannot be sent"), "{name:?}: {outcome:?}");
        }
        for own in ["Host", "content-length", "Transfer-Encoding", "connection", "upgrade", "Proxy-Authorization", "TE"]
        {
            let outcome = stage.ask(json!({"url": server.url("/"), "headers": {own: "x"}})).await;
            assert!(fault(&outcome).1.contains("set by haft itself"), "{outcome:?}");
        }
        let many: Value = (0..65).map(|at| (format!("x-{at}"), json!("y"))).collect::<serde_json::Map<_, _>>().into();
        for headers in [many, json!({"x-long": "y".repeat(40_000)})] {
            let outcome = stage.ask(json!({"url": server.url("/"), "headers": headers})).await;
            assert!(fault(&outcome).1.contains("more than 64 headers"), "{outcome:?}");
        }
        for method in ["GET / HTTP/1.1\r\nx: y", "CONNECT", "TRACE", ""] {
            let outcome = stage.ask(json!({"url": server.url("/"), "method": method})).await;
            assert_eq!(fault(&outcome).0, "invalid_input", "{method:?}: {outcome:?}");
        }
        assert_eq!(server.heard().len(), 0);
    });
}

#[test]
fn a_connection_is_used_again() {
    run(async {
        let server = Server::start(|_| ok("", "fine")).await;
        let stage = Stage::reaching(&[server.port()]);
        for _ in 0..20 {
            assert!(stage.get(&server.url("/")).await.success);
        }
        assert_eq!(server.heard().len(), 20);
        // A connection goes back a moment after its answer; who asks sooner may need a second one.
        assert!(server.connections() <= 4, "{}", server.connections());
    });
}

#[test]
fn who_cannot_be_reached_is_said_with_the_reason() {
    run(async {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let stage = Stage::reaching(&[closed]);
        let outcome = stage.get(&format!("http://127.0.0.1:{closed}/")).await;
        let (kind, why) = fault(&outcome);
        assert!(kind == "upstream" && why.contains("nobody listens at that port"), "{outcome:?}");
        let outcome = stage.get("http://no-such-name.invalid/").await;
        let (kind, why) = fault(&outcome);
        assert!(kind == "upstream" && why.contains("`no-such-name.invalid` has no address"), "{outcome:?}");
        assert!(outcome.error.unwrap().hint.is_some());
    });
}
