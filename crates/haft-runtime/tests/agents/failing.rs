//! How models fail, in every provider's words.

use super::*;
use haft_core::agent::turns::FailureKind;
use haft_stub::{Reply, Trouble};

/// The failure that a reply is.
async fn failure(reply: Reply, wire: (Wire, haft_stub::Wire)) -> Failure {
    let stub = Stub::start(vec![reply]);
    let failure = ask(&model(&stub, wire).await).await.result.unwrap_err();
    assert!(!format!("{failure:?}").contains(KEY), "{failure:?}");
    assert!(failure.message.starts_with("stub/stub-1") && !failure.message.contains('\u{1b}'), "{failure:?}");
    failure
}

#[tokio::test]
async fn every_providers_words_mean_one_of_few_things() {
    for wire in WIRES {
        let kind = |trouble| async move { failure(Reply::trouble(trouble), wire).await.kind };
        let google = wire.0 == Wire::Gemini;
        let later = google.then_some(34_075);
        assert_eq!(kind(Trouble::Limited).await, FailureKind::Busy(later), "{wire:?}");
        assert_eq!(kind(Trouble::Overloaded).await, FailureKind::Busy(None), "{wire:?}");
        assert_eq!(kind(Trouble::BadKey).await, FailureKind::Denied, "{wire:?}");
        assert_eq!(kind(Trouble::NoMoney).await, FailureKind::Denied, "{wire:?}");
        assert_eq!(kind(Trouble::Overflow).await, FailureKind::Overflow, "{wire:?}");
        assert_eq!(kind(Trouble::NoModel).await, FailureKind::Invalid, "{wire:?}");
        assert_eq!(kind(Trouble::Wrong).await, FailureKind::Invalid, "{wire:?}");
        assert_eq!(kind(Trouble::Broken).await, FailureKind::Away, "{wire:?}");
    }
}

#[tokio::test]
async fn the_same_words_in_the_middle_of_a_stream_mean_the_same() {
    for wire in WIRES {
        for (trouble, expected) in [
            (Trouble::Overloaded, FailureKind::Busy(None)),
            (Trouble::Limited, FailureKind::Busy(None)),
            (Trouble::Overflow, FailureKind::Overflow),
            (Trouble::Broken, FailureKind::Away),
            (Trouble::BadKey, FailureKind::Denied),
        ] {
            let reply = Reply::say("I").and_call("file_read", json!({"path": "a"})).and_break(trouble);
            let stub = Stub::start(vec![reply]);
            let told = ask(&model(&stub, wire).await).await;
            let kind = told.result.unwrap_err().kind;
            assert_eq!(kind, expected, "{wire:?} {trouble:?}");
            // What was whole before is told; Chat does not say that a call is whole until the next thing.
            assert_eq!(told.calls.len(), usize::from(wire.0 != Wire::Chat), "{wire:?} {trouble:?}");
        }
    }
}

#[tokio::test]
async fn a_status_goes_before_words() {
    let says = |kind: &str, message: &str| format!(r#"{{"error":{{"type":"{kind}","message":"{message}"}}}}"#);
    let tokens = || says("rate_limit_error", "Too many tokens, please wait");
    for wire in WIRES {
        for (status, body, expected) in [
            (429, tokens(), FailureKind::Busy(Some(7000))),
            (503, says("api_error", "the context window is unavailable"), FailureKind::Busy(Some(7000))),
            (529, tokens(), FailureKind::Busy(Some(7000))),
            (429, says("insufficient_quota", "You exceeded your current quota"), FailureKind::Denied),
            (401, tokens(), FailureKind::Denied),
            (403, says("x", "maximum context length"), FailureKind::Denied),
            (400, tokens(), FailureKind::Overflow),
            (413, says("x", "rate limit"), FailureKind::Overflow),
            (422, says("x", "This model's maximum context length is 4096"), FailureKind::Overflow),
            (500, says("x", "the request exceeds the available context size"), FailureKind::Overflow),
            (404, tokens(), FailureKind::Invalid),
            (502, tokens(), FailureKind::Away),
        ] {
            let reply = Reply::status(status, body.clone()).header("retry-after", "7");
            assert_eq!(failure(reply, wire).await.kind, expected, "{wire:?} {status} {body}");
        }
        // In a stream there is no status: what says that it is busy goes before what may mean an overflow.
        let streamed = |body: String| Reply::status(200, body).header("content-type", "application/json");
        assert_eq!(failure(streamed(tokens()), wire).await.kind, FailureKind::Busy(None), "{wire:?}");
        let overflow = streamed(says("invalid_request_error", "prompt is too long: 9 tokens"));
        assert_eq!(failure(overflow, wire).await.kind, FailureKind::Overflow, "{wire:?}");
        let quota = streamed(says("insufficient_quota", "Rate limit: no quota is left"));
        assert_eq!(failure(quota, wire).await.kind, FailureKind::Denied, "{wire:?}");
    }
}

#[tokio::test]
async fn a_server_says_when_to_come_again() {
    let busy = |name: &'static str, value: &'static str| async move {
        failure(Reply::trouble(Trouble::Limited).header(name, value), WIRES[0]).await.kind
    };
    assert_eq!(busy("retry-after", "7").await, FailureKind::Busy(Some(7000)));
    assert_eq!(busy("retry-after-ms", "250").await, FailureKind::Busy(Some(250)));
    assert_eq!(busy("retry-after", "nonsense").await, FailureKind::Busy(None));
    assert_eq!(busy("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT").await, FailureKind::Busy(Some(0)));
}

#[tokio::test]
async fn statuses_without_words_speak_for_themselves() {
    for (status, expected) in [
        (400, FailureKind::Invalid),
        (401, FailureKind::Denied),
        (402, FailureKind::Denied),
        (403, FailureKind::Denied),
        (404, FailureKind::Invalid),
        (408, FailureKind::Away),
        (413, FailureKind::Overflow),
        (422, FailureKind::Invalid),
        (429, FailureKind::Busy(None)),
        (500, FailureKind::Away),
        (502, FailureKind::Away),
        (503, FailureKind::Busy(None)),
        (529, FailureKind::Busy(None)),
    ] {
        for wire in WIRES {
            assert_eq!(failure(Reply::status(status, ""), wire).await.kind, expected, "{status} {wire:?}");
        }
    }
}

#[tokio::test]
async fn other_servers_have_other_places_for_their_words() {
    for (status, body, expected, words) in [
        (404, r#"{"error":"model 'x' not found, try pulling it first"}"#, FailureKind::Invalid, "try pulling it first"),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            FailureKind::Overflow,
            "4096",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
            FailureKind::Overflow,
            "available context",
        ),
        (422, r#"{"detail":"Input should be a valid list"}"#, FailureKind::Invalid, "valid list"),
        (
            402,
            r#"{"error":{"code":402,"message":"Insufficient credits"}}"#,
            FailureKind::Denied,
            "Insufficient credits",
        ),
        (
            413,
            r#"{"error":{"message":"Request too large for model on tokens per minute (TPM): Limit 6000, Requested 7000","type":"tokens","code":"rate_limit_exceeded"}}"#,
            FailureKind::Overflow,
            "7000",
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"Quota","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"2s"}]}}]"#,
            FailureKind::Busy(Some(2000)),
            "Quota",
        ),
        (200, r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#, FailureKind::Busy(None), "Overloaded"),
        (200, r#"{"id":"x","choices":[{"message":{"content":"whole"}}]}"#, FailureKind::Odd, "no answer"),
    ] {
        let failure = failure(Reply::status(status, body).header("content-type", "application/json"), WIRES[2]).await;
        assert_eq!(failure.kind, expected, "{body}");
        assert!(failure.message.contains(words), "{failure:?}");
    }
}

#[tokio::test]
async fn a_web_page_is_no_answer_and_is_not_shown_as_it_is() {
    for wire in WIRES {
        let page = failure(Reply::html(), wire).await;
        assert_eq!(page.kind, FailureKind::Odd, "{wire:?}");
        assert!(page.message.contains("a web page came") && page.message.len() < 400, "{page:?}");
        let unsaid = Reply::status(200, "<html><body>Sign in</body></html>");
        assert_eq!(failure(unsaid, wire).await.kind, FailureKind::Odd, "{wire:?}: nothing says what it is");
        let missing = Reply::status(404, "<html>Not Found</html>");
        assert_eq!(failure(missing, wire).await.kind, FailureKind::Odd, "{wire:?}");
        let gateway = Reply::status(502, "<html>Bad Gateway</html>");
        assert_eq!(failure(gateway, wire).await.kind, FailureKind::Away, "{wire:?}");
        let nonsense = Reply::status(200, "data: <html>\n\n").header("content-type", "text/event-stream");
        assert_eq!(failure(nonsense, wire).await.kind, FailureKind::Odd, "{wire:?}");
        let empty = Reply::status(200, "").header("content-type", "text/event-stream");
        assert_eq!(failure(empty, wire).await.kind, FailureKind::Away, "{wire:?}");
    }
}

#[tokio::test]
async fn silence_is_given_up() {
    for wire in WIRES {
        for reply in [Reply::hang(), Reply::say("I begin.").stall(150)] {
            let begun = std::time::Instant::now();
            let failure = failure(reply, wire).await;
            assert_eq!(failure.kind, FailureKind::Away, "{wire:?}");
            assert!(failure.message.contains("nothing for 0.4 s"), "{failure:?}");
            assert!(begun.elapsed() < Duration::from_secs(3), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn somebody_who_is_not_there_is_away() {
    let url = {
        let stub = Stub::start(vec![]);
        stub.base(haft_stub::Wire::Chat)
    };
    let models = models(&[("gone", provider(Wire::Chat, url))]);
    let model = models.get(&ModelRef::parse("gone/m").unwrap()).await.unwrap();
    let failure = ask(&model).await.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Away);
    assert!(failure.message.contains("nobody listens"), "{failure:?}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Stub::with(|_| Reply::say("Stolen."));
    let to = format!("{}/v1/messages", elsewhere.url());
    for status in [301, 302, 303, 307, 308] {
        let reply = Reply::status(status, "").header("location", &to);
        assert_eq!(failure(reply, WIRES[0]).await.kind, FailureKind::Invalid);
    }
    assert_eq!(elsewhere.heard().len(), 0, "nobody was sent there");
}

#[tokio::test]
async fn a_key_is_never_shown_even_if_the_server_does() {
    let key = KEY.to_owned();
    let bodies = [
        format!(r#"{{"error":{{"message":"Incorrect API key provided: {key}","type":"invalid_api_key"}}}}"#),
        format!("<html>your key was {key}</html>"),
        format!("{}{key}", "x".repeat(270)),
        format!("data: {}{key}\n\n", "x".repeat(60)),
        format!("data: {{\"error\":{{\"message\":\"{key}\"}}}}\n\n"),
        format!("{{\"error\":\"{}{key}\"}}", "x".repeat(280)),
    ];
    for body in bodies {
        for status in [200, 400, 401, 500] {
            for wire in WIRES {
                let told = failure(Reply::status(status, body.clone()), wire).await.message;
                assert!(!told.contains(&KEY[..16]), "{status} {told}");
            }
        }
    }
    let stub = Stub::start(vec![Reply::trouble(Trouble::BadKey)]);
    let told = ask(&model(&stub, WIRES[0]).await).await.result.unwrap_err();
    assert!(told.message.contains("STUB_MODEL_KEY"), "it is named: {told:?}");
}

#[tokio::test]
async fn a_key_that_is_revoked_in_mid_run_is_said_to_be() {
    let stub = Stub::start(vec![Reply::say("Still good."), Reply::trouble(Trouble::BadKey)]);
    let model = model(&stub, WIRES[0]).await;
    assert_eq!(ask(&model).await.result, Ok(()));
    let failure = ask(&model).await.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert!(failure.message.contains("STUB_MODEL_KEY") && failure.message.contains("invalid x-api-key"), "{failure:?}");
}

#[tokio::test]
async fn a_key_is_not_sent_in_the_open_nor_where_it_is_not_bound_to() {
    let stub = Stub::start(vec![]);
    let open = models(&[("open", provider(Wire::Chat, "http://models.example/v1".to_owned()))]);
    let model = open.get(&ModelRef::parse("open/m").unwrap()).await.unwrap();
    let failure = ask(&model).await.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert!(failure.message.contains("without encryption"), "{failure:?}");

    let source = SecretSource {
        command: Some(vec!["/bin/echo".to_owned(), KEY.to_owned()]),
        hosts: vec!["api.anthropic.com".parse().unwrap()],
    };
    let secrets = Arc::new(Secrets::new(None, BTreeMap::from([("STUB_MODEL_KEY".to_owned(), source)])));
    let providers = BTreeMap::from([("stub".to_owned(), provider(Wire::Chat, stub.base(haft_stub::Wire::Chat)))]);
    let settings = Arc::new(AgentSettings { providers, ..AgentSettings::default() });
    let bound = Models::new(settings, secrets, Carrier::Own);
    let model = bound.get(&ModelRef::parse("stub/m").unwrap()).await.unwrap();
    let failure = ask(&model).await.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert!(failure.message.contains("bound to"), "{failure:?}");
    assert_eq!(stub.heard().len(), 0);
}
