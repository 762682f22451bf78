//! Memory with a model behind an address: who is asked, what happens when that fails, and when it is another.

use super::server::{Answer, Asked, Server, ok};
use super::{Stage, run};
use haft_core::Outcome;
use haft_core::SessionId;
use haft_core::outcome::{Label, Source};
use haft_runtime::media::Endpoint;
use haft_runtime::memory::Embeddings;
use haft_runtime::tools::web::search::SearchSettings;
use serde_json::{Value, json};

/// A model to which drinks are alike and everything else is something else.
fn model(asked: &Asked) -> Answer {
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    let drink = |text: &str| ["tea", "coffee", "drink"].iter().any(|word| text.contains(word));
    let vector = |text: &Value| if drink(text.as_str().unwrap()) { json!([1.0, 0.1]) } else { json!([0.0, 1.0]) };
    let data: Vec<Value> =
        body["input"].as_array().unwrap().iter().map(|text| json!({"embedding": vector(text)})).collect();
    ok(&json!({"data": data}).to_string())
}

fn stage(server: &Server, name: &str) -> Stage {
    let mut stage = Stage::reaching(&[]);
    let mut settings = Stage::settings(stage.dir.path(), &[], SearchSettings::default());
    let endpoint = Endpoint { url: server.url("/v1"), model: name.to_owned(), key_env: None };
    settings.memory.embeddings = Embeddings::Endpoint(endpoint);
    stage.haft = Stage::layer_with(stage.dir.path(), settings);
    stage
}

fn found(outcome: &Outcome) -> Vec<String> {
    let data = outcome.data.as_ref().unwrap();
    let line = |hit: &Value| format!("{} {}", hit["content"].as_str().unwrap(), hit["source"].as_str().unwrap());
    data["results"].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn a_model_that_the_user_names_gives_meaning() {
    run(async {
        let server = Server::new(model);
        let stage = stage(&server, "m");
        let wrote = stage
            .call("memory.write", json!({"namespace": "user", "content": "likes tea\n\n# Other\nrides a bicycle\n"}))
            .await;
        assert!(wrote.success, "{wrote:?}");
        assert_eq!(stage.asked(), 1, "a person is asked about what is kept");
        let outcome = stage.call("memory.search", json!({"query": "what to drink"})).await;
        assert_eq!(found(&outcome), ["likes tea vector"], "{outcome:?}");
        let heard = server.heard();
        assert_eq!(heard[0].line, "POST /v1/embeddings");
        assert_eq!(heard.len(), 2, "the pieces once, and the question");
        stage.call("memory.search", json!({"query": "coffee"})).await;
        assert_eq!(server.heard().len(), 1, "the question alone");
        let words = stage.call("memory.search", json!({"query": "bicycle", "keyword_only": true})).await;
        assert_eq!((found(&words).len(), server.heard().len()), (1, 0));
    });
}

#[test]
fn without_the_model_words_count_and_it_is_said() {
    run(async {
        let server = Server::new(|_| (500, Vec::new(), "out of order".to_owned()));
        let stage = stage(&server, "m");
        stage.call("memory.write", json!({"namespace": "user", "content": "likes tea"})).await;
        for _ in 0..2 {
            let outcome = stage.call("memory.search", json!({"query": "tea"})).await;
            assert_eq!(found(&outcome), ["likes tea keyword"]);
            assert!(outcome.warnings[0].contains("words alone counted"), "{:?}", outcome.warnings);
        }
        assert_eq!(server.heard().len(), 1, "who failed is left alone for a while");
    });
}

#[test]
fn another_model_makes_all_vectors_anew() {
    run(async {
        let server = Server::new(model);
        let mut stage = stage(&server, "one");
        stage.call("memory.write", json!({"namespace": "user", "content": "likes tea"})).await;
        assert_eq!(found(&stage.call("memory.search", json!({"query": "coffee"})).await).len(), 1);
        server.heard();
        let mut settings = Stage::settings(stage.dir.path(), &[], SearchSettings::default());
        let endpoint = Endpoint { url: server.url("/v1"), model: "two".to_owned(), key_env: None };
        settings.memory.embeddings = Embeddings::Endpoint(endpoint);
        stage.haft = Stage::layer_with(stage.dir.path(), settings);
        assert_eq!(found(&stage.call("memory.search", json!({"query": "coffee"})).await).len(), 1);
        let bodies: String = server.heard().into_iter().map(|asked| asked.body).collect();
        assert!(bodies.contains("likes tea") && bodies.contains("\"two\""), "{bodies}");
    });
}

#[test]
fn a_strangers_words_stay_a_strangers_and_changes_are_taken_back() {
    run(async {
        let server = Server::new(model);
        let stage = stage(&server, "m");
        stage.call("memory.store", json!({"namespace": "user", "content": "mine"})).await;
        let own = stage.call("memory.read", json!({"namespace": "user"})).await;
        assert!(own.labels.is_empty() && own.output.contains("mine"), "{own:?}");
        let source = Source { label: Label::Untrusted, tool: "web.fetch".to_owned() };
        stage.haft.store().note_heard(&SessionId::default(), vec![source]);
        let wrote = stage.call("memory.store", json!({"namespace": "user", "content": "theirs"})).await;
        let read = stage.call_in("another", "memory.read", json!({"namespace": "user"})).await;
        assert_eq!(read.labels, [Label::Untrusted]);
        assert!(wrote.undo.as_ref().unwrap().available);
        let (id, undo) = stage.haft.undo(&wrote.call_id).await.unwrap();
        assert_eq!(undo.files, ["memory user"]);
        assert!(!stage.call("memory.read", json!({"namespace": "user"})).await.output.contains("theirs"));
        stage.haft.undo(&id).await.unwrap();
        let error = stage.haft.undo(&wrote.call_id).await.unwrap_err();
        assert_eq!(error.kind.as_str(), "not_found", "{}", error.message);
        assert!(stage.call("memory.search", json!({"query": "theirs"})).await.labels.contains(&Label::Untrusted));
    });
}
