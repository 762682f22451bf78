//! Every adapter against answers of the shape that it gets, and against what it should not get.

use super::adapter::{Adapter, Ask, Hit, Range, Topic, Wanted, tidied};
use super::choice::{Chosen, choose};
use super::{Provider, SearchSettings, listed};
use serde_json::json;
use std::collections::HashMap;

fn ask(query: &str) -> Ask {
    Ask { query: query.to_owned(), max_results: 10, topic: Topic::General, time_range: None }
}

fn chosen(provider: Provider, url: Option<&str>, env: &[(&'static str, &str)]) -> Chosen {
    let env: HashMap<&str, &str> = env.iter().copied().collect();
    let settings =
        SearchSettings { provider: Some(provider), url: url.map(str::to_owned), ..SearchSettings::default() };
    choose(&settings, &|name| env.get(name).map(|value| (*value).to_owned())).unwrap()
}

fn adapter(provider: Provider) -> Adapter {
    let keys = [
        ("BRAVE_API_KEY", "brave-key"),
        ("TAVILY_API_KEY", "tavily-key"),
        ("GOOGLE_API_KEY", "google-key"),
        ("GOOGLE_CSE_ID", "engine"),
        ("BING_API_KEY", "bing-key"),
    ];
    let url = (provider == Provider::Searxng).then_some("http://127.0.0.1:8888/searx");
    chosen(provider, url, &keys).adapter
}

fn found(provider: Provider, body: &str) -> String {
    let hits = adapter(provider).parse(body.as_bytes()).unwrap();
    listed(&tidied(hits, 10))
}

fn sent(provider: Provider, ask: &Ask) -> String {
    let Wanted { target, post, credential, .. } = adapter(provider).wanted(ask).unwrap();
    let shown = format!("{target} {} {credential:?}", post.unwrap_or_default());
    assert!(!shown.contains("-key"), "{shown}");
    shown
}

#[test]
fn everybody_is_asked_in_their_own_words() {
    let news = Ask { topic: Topic::News, time_range: Some(Range::Week), max_results: 3, ..ask("rust & \"async\"") };
    let lines: Vec<String> = Provider::ALL
        .iter()
        .filter(|provider| **provider != Provider::Generic)
        .flat_map(|provider| [sent(*provider, &ask("a b")), sent(*provider, &news)])
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    https://api.search.brave.com/res/v1/web/search?q=a+b&count=10 null Some(Credential(https://api.search.brave.com))
    https://api.search.brave.com/res/v1/news/search?q=rust+%26+%22async%22&count=3&freshness=pw null Some(Credential(https://api.search.brave.com))
    https://api.tavily.com/search {"query":"a b","max_results":10,"topic":"general"} Some(Credential(https://api.tavily.com))
    https://api.tavily.com/search {"query":"rust & \"async\"","max_results":3,"topic":"news","time_range":"week"} Some(Credential(https://api.tavily.com))
    https://www.googleapis.com/customsearch/v1?cx=engine&q=a+b&num=10 null Some(Credential(https://www.googleapis.com))
    https://www.googleapis.com/customsearch/v1?cx=engine&q=rust+%26+%22async%22&num=3&dateRestrict=w1 null Some(Credential(https://www.googleapis.com))
    http://127.0.0.1:8888/searx/search?q=a+b&format=json&categories=general null None
    http://127.0.0.1:8888/searx/search?q=rust+%26+%22async%22&format=json&categories=news&time_range=week null None
    https://api.bing.microsoft.com/v7.0/search?q=a+b&count=10 null Some(Credential(https://api.bing.microsoft.com))
    https://api.bing.microsoft.com/v7.0/search?q=rust+%26+%22async%22&count=3&freshness=Week null Some(Credential(https://api.bing.microsoft.com))
    https://html.duckduckgo.com/html/?q=a+b null None
    https://html.duckduckgo.com/html/?q=rust+%26+%22async%22&df=w null None
    "#);
}

#[test]
fn the_recorded_answers_are_read() {
    insta::assert_snapshot!(found(Provider::Brave, include_str!("recorded/brave.json")), @r"
    1. Asynchronous Programming in Rust (2024-11-02T08:00:00)
       https://rust-lang.github.io/async-book/
       This book aims to be a comprehensive guide to using async & await.
    2. Tokio - An asynchronous Rust runtime
       https://tokio.rs/
       Tokio is a runtime for writing reliable asynchronous applications.
    ");
    insta::assert_snapshot!(found(Provider::Brave, include_str!("recorded/brave_news.json")), @r"
    1. Rust 1.95 released (2026-04-16T00:00:00)
       https://blog.rust-lang.org/rust-1-95
       The Rust team is happy to announce a new version.
    ");
    insta::assert_snapshot!(found(Provider::Tavily, include_str!("recorded/tavily.json")), @r"
    1. Async Book
       https://rust-lang.github.io/async-book/
       This book aims to be a guide to asynchronous programming.
    2. Rust in the news (Mon, 13 Apr 2026 09:30:00 GMT)
       https://news.example/rust
       Somebody wrote about it.
    ");
    insta::assert_snapshot!(found(Provider::Google, include_str!("recorded/google.json")), @r"
    1. Rust Programming Language
       https://www.rust-lang.org/
       A language empowering everyone to build reliable and efficient software.
    2. Rust news (2026-04-13T09:30:00Z)
       https://news.example/rust
       Apr 13, 2026 ... Rust again.
    ");
    insta::assert_snapshot!(found(Provider::Searxng, include_str!("recorded/searxng.json")), @r"
    1. Rust Programming Language
       https://www.rust-lang.org/
       A language empowering everyone.
    2. Rust (programming language) - Wikipedia (2026-01-02T00:00:00)
       https://en.wikipedia.org/wiki/Rust_(programming_language)
       Rust is a general-purpose programming language.
    ");
    insta::assert_snapshot!(found(Provider::Bing, include_str!("recorded/bing.json")), @r"
    1. Rust Programming Language
       https://www.rust-lang.org/
       A language empowering everyone.
    2. Rust news (2026-04-13T09:30:00.0000000)
       https://news.example/rust
       Rust again.
    ");
    insta::assert_snapshot!(found(Provider::Duckduckgo, include_str!("recorded/duckduckgo.html")), @r"
    1. Asynchronous Programming in Rust
       https://rust-lang.github.io/async-book/?a=1&b=2
       This book aims to be a guide to async's & await's uses.
    2. Tokio
       https://tokio.rs/
       A runtime <for> Rust.
    ");
    insta::assert_snapshot!(found(Provider::Duckduckgo, include_str!("recorded/duckduckgo_lite.html")), @r"
    1. Rust Programming Language
       https://www.rust-lang.org/
       A language empowering everyone.
    2. The Book
       https://doc.rust-lang.org/book/
    ");
}

#[test]
fn nothing_found_is_an_answer() {
    for (provider, body) in [
        (Provider::Brave, r#"{"type": "search", "query": {"original": "zzzz"}}"#),
        (Provider::Tavily, r#"{"query": "zzzz", "results": []}"#),
        (Provider::Google, r#"{"searchInformation": {"totalResults": "0"}}"#),
        (Provider::Searxng, r#"{"query": "zzzz", "results": []}"#),
        (Provider::Bing, r#"{"_type": "SearchResponse", "queryContext": {}}"#),
        (Provider::Duckduckgo, r#"<div class="no-results">No results found for zzzz</div>"#),
    ] {
        assert_eq!(found(provider, body), "No results", "{provider:?}");
    }
}

#[test]
fn what_is_no_answer_is_said_to_be_none() {
    for provider in Provider::ALL.into_iter().filter(|provider| *provider != Provider::Generic) {
        for (body, expected) in [
            ("", "it is"),
            ("{", "it is"),
            ("null", "there is no list"),
            (r#"{"results": 7, "web": {"results": {}}, "items": "x", "webPages": []}"#, "there is no list"),
            ("\u{0}\u{ffff}<<<", "it is"),
        ] {
            let error = adapter(provider).parse(body.as_bytes()).unwrap_err();
            assert!(error.contains(expected) || error.contains("not the page"), "{provider:?} {body}: {error}");
        }
        // Results that are not of the shape that was agreed are left out.
        let odd = r#"{"results": [7, {}, {"url": 5}, null], "web": {"results": []}, "items": [[]], "webPages": {"value": [""]}}"#;
        if provider != Provider::Duckduckgo {
            assert_eq!(adapter(provider).parse(odd.as_bytes()).unwrap(), [], "{provider:?}");
        }
    }
}

#[test]
fn a_captcha_is_told_from_an_empty_page() {
    let parse = |page: &str| adapter(Provider::Duckduckgo).parse(page.as_bytes());
    let asked = parse(include_str!("recorded/duckduckgo_captcha.html")).unwrap_err();
    assert_eq!(asked, "it wants to know whether a person asks, and shows a CAPTCHA");
    assert!(parse("<html></html>").unwrap_err().contains("empty"));
}

#[test]
fn hits_are_tidied() {
    let hit = |title: &str, url: &str| Hit {
        title: title.to_owned(),
        url: url.to_owned(),
        snippet: "a\n\n  b".to_owned(),
        published: Some(" ".to_owned()),
    };
    let hits = tidied(
        vec![
            hit("one", "https://a.test/"),
            hit("again", "https://A.test:443/"),
            hit("bad", "javascript:alert(1)"),
            hit("", "https://b.test/"),
            hit(&"long ".repeat(200), "https://c.test/"),
            hit("too many", "https://d.test/"),
        ],
        3,
    );
    assert_eq!(
        hits.iter().map(|hit| hit.url.as_str()).collect::<Vec<_>>(),
        ["https://a.test/", "https://b.test/", "https://c.test/"]
    );
    assert_eq!(
        (hits[0].snippet.as_str(), &hits[0].published, hits[1].title.as_str()),
        ("a b", &None, "https://b.test/")
    );
    assert!(hits[2].title.len() < 310 && hits[2].title.ends_with('…'));
}

#[test]
fn the_first_that_there_is_a_key_for_searches() {
    let name = |env: &[(&'static str, &'static str)]| {
        let env: HashMap<&str, &str> = env.iter().copied().collect();
        let lookup = |name: &str| env.get(name).map(|value| (*value).to_owned());
        choose(&SearchSettings::default(), &lookup).unwrap().adapter.name().to_owned()
    };
    assert_eq!(name(&[]), "duckduckgo");
    assert_eq!(name(&[("BRAVE_API_KEY", "")]), "duckduckgo", "empty is not set");
    assert_eq!(name(&[("GOOGLE_API_KEY", "k")]), "duckduckgo", "Google needs two");
    assert_eq!(name(&[("GOOGLE_API_KEY", "k"), ("GOOGLE_CSE_ID", "c"), ("BING_API_KEY", "k")]), "google");
    assert_eq!(name(&[("SEARXNG_URL", "http://127.0.0.1:1/"), ("BING_API_KEY", "k")]), "searxng");
    assert_eq!(name(&[("TAVILY_API_KEY", "k"), ("BRAVE_API_KEY", "k")]), "brave");
}

#[test]
fn a_missing_key_is_named_and_so_is_who_needs_none() {
    for (provider, variable) in [
        (Provider::Brave, "BRAVE_API_KEY"),
        (Provider::Tavily, "TAVILY_API_KEY"),
        (Provider::Google, "GOOGLE_CSE_ID"),
        (Provider::Searxng, "SEARXNG_URL"),
        (Provider::Bing, "BING_API_KEY"),
    ] {
        let settings = SearchSettings { provider: Some(provider), ..SearchSettings::default() };
        let Err(error) = choose(&settings, &|_| None) else { panic!("{provider:?}") };
        assert!(error.message.contains(variable), "{}", error.message);
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("duckduckgo needs no key")));
    }
    let own = SearchSettings {
        provider: Some(Provider::Brave),
        key_env: Some("MY_KEY".to_owned()),
        ..SearchSettings::default()
    };
    let Err(error) = choose(&own, &|_| None) else { panic!("it has no key") };
    assert!(error.message.contains("MY_KEY"), "{}", error.message);
}

#[test]
fn a_generic_one_is_asked_as_it_is_configured() {
    let settings = SearchSettings {
        provider: Some(Provider::Generic),
        url: Some("https://find.test/q/{query}?n={count}&t={topic}".to_owned()),
        key_env: Some("FIND_KEY".to_owned()),
        header: Some("X-Find".to_owned()),
        pointers: Some(super::Pointers {
            results: "/data".to_owned(),
            title: "/t".to_owned(),
            url: "/u".to_owned(),
            snippet: "/s/0".to_owned(),
            published: "/p".to_owned(),
        }),
        ..SearchSettings::default()
    };
    let chosen = choose(&settings, &|name| (name == "FIND_KEY").then(|| "s3cr3t-key".to_owned())).unwrap();
    let wanted = chosen.adapter.wanted(&ask("a/b c")).unwrap();
    assert_eq!(wanted.target.to_string(), "https://find.test/q/a%2Fb+c?n=10&t=general");
    let body = json!({"data": [{"t": "T", "u": "https://x.test/", "s": ["S"]}]}).to_string();
    assert_eq!(listed(&tidied(chosen.adapter.parse(body.as_bytes()).unwrap(), 5)), "1. T\n   https://x.test/\n   S");
    let Err(error) = choose(&SearchSettings { url: None, ..settings }, &|_| Some("k".to_owned())) else {
        panic!("it has no place")
    };
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("{query}")));
}
