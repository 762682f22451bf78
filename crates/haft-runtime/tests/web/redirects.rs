//! Being sent on: how often, where to, and with what.

use super::server::{Answer, Server, ok, sends_on};
use super::{Stage, data, fault, run};
use serde_json::json;

/// Sends on from `/n` to `/n+1`, and answers at `/end`.
fn chain(request: &str) -> Answer {
    let path = request.split(' ').nth(1).unwrap();
    match path[1..].parse::<u32>() {
        Ok(at) => sends_on(302, &format!("/{}", at + 1)),
        Err(_) => ok("", "here"),
    }
}

#[test]
fn five_hops_are_followed_and_no_sixth() {
    run(async {
        let server = Server::start(|request| match request.split(' ').nth(1).unwrap() {
            "/5" => ok("", "the end"),
            _ => chain(request),
        })
        .await;
        let stage = Stage::reaching(&[server.port()]);
        let outcome = stage.get(&server.url("/0")).await;
        assert_eq!((&data(&outcome)["hops"], &data(&outcome)["body"]), (&json!(5), &json!("the end")), "{outcome:?}");
        assert_eq!(data(&outcome)["url"], server.url("/5"), "where it came from in the end");
        let endless = Server::start(chain).await;
        let stage = Stage::reaching(&[endless.port()]);
        let outcome = stage.get(&endless.url("/0")).await;
        let (kind, why) = fault(&outcome);
        assert!(kind == "upstream" && why.contains("sent on more than 5 times"), "{outcome:?}");
        assert_eq!(endless.heard().len(), 6, "the last is not followed");
        assert_eq!(stage.requests().await.len(), 6, "and each is in the record");
    });
}

#[test]
fn circles_are_noticed_at_once() {
    run(async {
        let server = Server::start(|request| match request.split(' ').nth(1).unwrap() {
            "/a" => sends_on(301, "b"),
            "/b" => sends_on(308, "/a"),
            _ => sends_on(302, ""),
        })
        .await;
        let stage = Stage::reaching(&[server.port()]);
        for path in ["/a", "/self"] {
            let outcome = stage.get(&server.url(path)).await;
            assert!(fault(&outcome).1.contains("round in circles"), "{outcome:?}");
        }
        assert_eq!(server.heard().len(), 3);
    });
}

#[test]
fn no_redirect_leads_inward() {
    run(async {
        let secret = Server::start(|_| ok("", "the inner secret")).await;
        for (location, why) in [
            (format!("http://127.0.0.1:{}/", secret.port()), "is not a public address"),
            (format!("http://localhost:{}/", secret.port()), "is not a public address"),
            (format!("//127.1:{}/", secret.port()), "is not a public address"),
            (format!("http://0x7f000001:{}/", secret.port()), "is not a public address"),
            (format!("/\\127.0.0.1:{}/", secret.port()), "is not a public address"),
            (format!("http://[::ffff:7f00:1]:{}/", secret.port()), "is not a public address"),
            ("http://169.254.169.254/latest/meta-data/".to_owned(), "is not a public address"),
            ("http://metadata.google.internal/".to_owned(), "is not a public address"),
            ("http://[fd00:ec2::254]/".to_owned(), "is not a public address"),
            (format!("http://good.example@127.0.0.1:{}/", secret.port()), "user name or password"),
            ("file:///etc/passwd".to_owned(), "neither http nor https"),
            ("gopher://127.0.0.1:25/_HELO".to_owned(), "neither http nor https"),
            ("data:text/plain,hello".to_owned(), "neither http nor https"),
            ("http://".to_owned(), "is not a URL"),
        ] {
            let to = location.clone();
            let server = Server::start(move |_| sends_on(302, &to)).await;
            let stage = Stage::reaching(&[server.port()]);
            let outcome = stage.get(&server.url("/")).await;
            let (kind, said) = fault(&outcome);
            assert!(kind == "denied" && said.contains(why), "{location}: {outcome:?}");
        }
        assert_eq!(secret.connections(), 0);
    });
}

#[test]
fn another_origin_gets_neither_credentials_nor_body() {
    run(async {
        let other = Server::start(|_| ok("", "elsewhere")).await;
        let to = other.url("/there");
        let server = Server::start(move |_| sends_on(307, &to)).await;
        let stage = Stage::reaching(&[server.port(), other.port()]);
        let outcome = stage
            .ask(json!({"url": server.url("/"), "method": "POST", "body": "the body", "headers": {
                "authorization": "Bearer secret", "x-api-key": "secret", "cookie": "a=secret",
                "content-type": "text/plain", "accept": "text/html"}}))
            .await;
        assert_eq!(data(&outcome)["body"], "elsewhere", "{outcome:?}");
        let (first, then) = (server.heard().remove(0), other.heard().remove(0));
        assert!(first.starts_with("POST / ") && first.contains("Bearer secret") && first.ends_with("the body"));
        assert!(then.starts_with("GET /there ") && then.contains("accept: text/html"), "{then}");
        assert!(!then.contains("secret") && !then.contains("content-type") && !then.contains("the body"), "{then}");
        assert!(!then.contains("referer"), "{then}");
    });
}

#[test]
fn cookies_are_never_sent_back() {
    run(async {
        let server = Server::start(|request| match request.split(' ').nth(1).unwrap() {
            "/" => Answer::Bytes(
                b"HTTP/1.1 302 On\r\nset-cookie: id=7; Path=/\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n".to_vec(),
            ),
            _ => ok("set-cookie: id=8\r\n", "next"),
        })
        .await;
        let stage = Stage::reaching(&[server.port()]);
        stage.get(&server.url("/")).await;
        stage.get(&server.url("/again")).await;
        let heard = server.heard();
        assert_eq!(heard.len(), 3);
        assert!(heard.iter().all(|request| !request.to_lowercase().contains("cookie")), "{heard:?}");
    });
}
