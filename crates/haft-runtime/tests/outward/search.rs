//! Searching, end to end: a server that plays SearXNG, and what it may be reached for.

use super::server::{Server, ok};
use super::{Stage, kind, run};
use haft_core::outcome::Label;
use haft_runtime::tools::web::search::{Provider, SearchSettings};
use serde_json::json;

const ANSWER: &str = include_str!("../../src/tools/web/search/recorded/searxng.json");

fn named(provider: Provider, server: &Server) -> SearchSettings {
    SearchSettings { provider: Some(provider), url: Some(server.url("/")), ..SearchSettings::default() }
}

#[test]
fn a_searxng_that_the_user_names_is_asked_wherever_it_is() {
    run(async {
        let server = Server::saying(ANSWER);
        // Nothing on this machine may be reached but what the configuration names as the one who searches.
        let stage = Stage::with(&[], named(Provider::Searxng, &server));
        let outcome =
            stage.call("web.search", json!({"query": "rust & co", "time_range": "week", "max_results": 1})).await;
        assert!(outcome.success, "{outcome:?}");
        let found = "1. Rust Programming Language\n   https://www.rust-lang.org/\n   A language empowering everyone.";
        assert!(outcome.output.contains(&format!("\n{found}\n</untrusted mark=")), "{}", outcome.output);
        let data = outcome.data.unwrap();
        assert_eq!((&data["provider"], data["results"].as_array().unwrap().len()), (&json!("searxng"), 1));
        assert_eq!(outcome.labels, [Label::Untrusted]);
        let heard = server.heard();
        assert_eq!(heard[0].line, "GET /search?q=rust+%26+co&format=json&categories=general&time_range=week");
        assert_eq!(stage.asked(), 0, "a search only reads");
        let direct = stage.call("web.request", json!({"url": server.url("/")})).await;
        assert_eq!(kind(&direct), "denied", "it is open to searches alone");
    });
}

#[test]
fn a_search_is_not_sent_on_to_the_inside() {
    run(async {
        let hidden = Server::saying(ANSWER);
        let inside = hidden.url("/search");
        let server = Server::new(move |_| (302, vec![("location".to_owned(), inside.clone())], String::new()));
        let stage = Stage::with(&[], named(Provider::Searxng, &server));
        let outcome = stage.call("web.search", json!({"query": "x"})).await;
        assert_eq!((kind(&outcome), hidden.heard().len()), ("denied", 0), "{outcome:?}");
    });
}

#[test]
fn research_searches_and_reads_by_the_same_rules() {
    run(async {
        let (server, page) = (Server::saying(ANSWER), Server::saying("the page"));
        let stage = Stage::with(&[&page], named(Provider::Searxng, &server));
        let found = stage.call("web.research", json!({"action": "search", "query": "rust"})).await;
        assert!(found.success && found.output.contains("2. Rust (programming language)"), "{found:?}");
        let read = stage.call("web.research", json!({"action": "read", "url": page.url("/a")})).await;
        assert!(read.success && read.output.contains("the page"), "{read:?}");
        assert_eq!(read.labels, [Label::Untrusted]);
        let inside = stage.call("web.research", json!({"action": "read", "url": server.url("/")})).await;
        assert_eq!(kind(&inside), "denied", "{inside:?}");
        for odd in [json!({"action": "read"}), json!({"action": "search"}), json!({"action": "read", "query": "x"})] {
            assert_eq!(kind(&stage.call("web.research", odd.clone()).await), "invalid_input", "{odd}");
        }
        assert_eq!(stage.asked(), 0);
    });
}

#[test]
fn a_query_that_holds_a_key_is_asked_about() {
    run(async {
        let server = Server::saying(ANSWER);
        let stage = Stage::with(&[], named(Provider::Searxng, &server));
        for _ in 0..2 {
            assert!(stage.call("web.search", json!({"query": "AKIAIOSFODNN7EXAMPLE"})).await.success);
            assert_eq!(stage.asked(), 1);
        }
    });
}

#[test]
fn a_key_is_sent_and_never_shown() {
    run(async {
        // PATH is a variable that is always set; here it plays a key.
        let path = std::env::var("PATH").unwrap();
        let server = Server::new(|asked| {
            let said = json!({"error": {"message": format!("bad: {} {}", asked.line, asked.headers)}});
            (401, ok("").1, said.to_string())
        });
        for provider in [Provider::Brave, Provider::Tavily, Provider::Bing] {
            let mut settings = named(provider, &server);
            settings.key_env = Some("PATH".to_owned());
            let stage = Stage::with(&[], settings);
            let outcome = stage.call("web.search", json!({"query": "x"})).await;
            let error = outcome.error.clone().unwrap();
            assert!(error.message.contains("does not accept the key (401)"), "{error:?}");
            assert_eq!(error.hint.as_deref(), Some("check PATH"));
            assert!(server.heard()[0].headers.contains(&path), "{provider:?}: it is sent");
            let shown = format!("{}{}", serde_json::to_string(&outcome).unwrap(), stage.on_disk().await);
            assert!(!shown.contains(&path), "{provider:?}: {shown}");
        }
    });
}

#[test]
fn what_goes_wrong_is_said() {
    run(async {
        for (status, body, expected) in [
            (403, "", "searxng does not answer programs (403)"),
            (429, "", "searxng wants fewer requests (429)"),
            (500, "", "searxng does not answer (500)"),
            (200, "<html>", "the answer of searxng cannot be used: it is not JSON"),
        ] {
            let server = Server::new(move |_| (status, Vec::new(), body.to_owned()));
            let stage = Stage::with(&[], named(Provider::Searxng, &server));
            let outcome = stage.call("web.search", json!({"query": "x"})).await;
            assert_eq!(kind(&outcome), "upstream");
            assert_eq!(outcome.error.unwrap().message, expected);
        }
        let missing = SearchSettings {
            provider: Some(Provider::Tavily),
            key_env: Some("HAFT_TEST_NOT_SET".to_owned()),
            ..SearchSettings::default()
        };
        let outcome = Stage::with(&[], missing).call("web.search", json!({"query": "x"})).await;
        let error = outcome.error.unwrap();
        assert!(error.message.contains("HAFT_TEST_NOT_SET"), "{error:?}");
        assert!(error.hint.unwrap().contains("duckduckgo needs no key"));
    });
}
