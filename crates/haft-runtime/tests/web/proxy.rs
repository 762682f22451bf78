//! The environment's proxy: used when the configuration says so, and only then.

use super::server::{Answer, Server, ok};
use super::{Stage, alone, data, fault, loopback, part, passes, roomy, run};
use haft_runtime::http::Carrier;
use haft_runtime::web::WebSettings;

#[test]
fn a_proxy_is_used_only_if_that_is_configured() {
    if part().is_some() {
        return run(with_a_proxy_in_the_environment());
    }
    run(async {
        let proxy = Server::start(|request| {
            // Whoever wants a tunnel is told apart from whoever wants a page.
            if request.starts_with("CONNECT ") {
                Answer::Last(b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n".to_vec())
            } else {
                ok("", "by way of the proxy")
            }
        })
        .await;
        let mut command = alone(&[], "proxy::a_proxy_is_used_only_if_that_is_configured");
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
            command.env(name, format!("http://user:pass@127.0.0.1:{}", proxy.port()));
        }
        for name in ["NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(name);
        }
        tokio::task::spawn_blocking(move || passes(command)).await.unwrap();
        let heard = proxy.heard();
        assert!(
            heard[0].starts_with("GET http://host-that-only-the-proxy-knows.invalid/page HTTP/1.1\r\n"),
            "{heard:?}"
        );
        assert!(heard[0].to_lowercase().contains("proxy-authorization: basic dxnlcjpwyxnz"), "{heard:?}");
        assert!(heard[1].starts_with("CONNECT host-that-only-the-proxy-knows.invalid:443 "), "{heard:?}");
        assert_eq!(heard.len(), 2, "nothing else went by way of it: {heard:?}");
    });
}

async fn with_a_proxy_in_the_environment() {
    let server = Server::start(|_| ok("", "directly")).await;
    let private = loopback(&[server.port()]);
    let without = Stage::new(WebSettings { allow_private: private.clone(), ..roomy() });
    assert_eq!(data(&without.get(&server.url("/")).await)["body"], "directly");
    // What is not known here is not left to the proxy, which may know it as something inside.
    let careful = Stage::new(WebSettings { carrier: Carrier::Environment, ..roomy() });
    let outcome = careful.get("http://host-that-only-the-proxy-knows.invalid/page").await;
    let (kind, message) = fault(&outcome);
    assert!(kind == "denied" && message.contains("cannot be checked"), "{kind}: {message}");
    let with = Stage::new(WebSettings { carrier: Carrier::Trusted, ..roomy() });
    let outcome = with.get("http://host-that-only-the-proxy-knows.invalid/page").await;
    assert_eq!(data(&outcome)["body"], "by way of the proxy", "{outcome:?}");
    let outcome = with.get("https://host-that-only-the-proxy-knows.invalid/page").await;
    assert_eq!(fault(&outcome).0, "upstream", "{outcome:?}");
    // The rules are the same: a proxy is not asked to go inside.
    for url in ["http://127.0.0.1/", "http://169.254.169.254/", "http://localhost/", "http://metadata.google.internal/"]
    {
        assert_eq!(fault(&with.get(url).await).0, "denied", "{url}");
    }
}
