//! The memory tools on a stage: a real store, and a small table of word vectors where meaning is to count.

use super::*;
use crate::memory::{MemorySettings, table_file};
use crate::testing::Stage;
use haft_core::ErrorKind;
use serde_json::json;

fn act(stage: &Stage, name: &str, args: Value) -> Result<Reply, CallError> {
    let tool = all().into_iter().find(|tool| tool.spec().name.as_str() == name).unwrap();
    stage.act(&tool, args)
}

/// What a search finds, each as `namespace:line source`.
fn found(stage: &Stage, args: Value) -> Vec<String> {
    let data = act(stage, "memory.search", args).unwrap().data.unwrap();
    let line = |hit: &Value| {
        let score = hit["score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score));
        format!("{}:{} {}", hit["namespace"].as_str().unwrap(), hit["line"], hit["source"].as_str().unwrap())
    };
    data["results"].as_array().unwrap().iter().map(line).collect()
}

/// A stage with a table of word vectors in which `tea` and `ta` are alike.
fn with_table() -> Stage {
    let stage = Stage::new();
    let file = table_file(stage.data_dir());
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, crate::memory::small_table().to_bytes()).unwrap();
    stage
}

#[test]
fn what_is_written_is_read_and_found() {
    let stage = Stage::new();
    assert_eq!(act(&stage, "memory.read", json!({"namespace": "user"})).unwrap().text, "");
    let content = "# Me\n\nLikes strong tea.\nLives in Rome.\nHas two cats.\n";
    let reply = act(&stage, "memory.write", json!({"namespace": "user", "content": content})).unwrap();
    assert!(reply.undo.unwrap().available);
    assert_eq!(act(&stage, "memory.read", json!({"namespace": "user"})).unwrap().text, content);
    let data = act(&stage, "memory.search", json!({"query": "where does she live"})).unwrap().data.unwrap();
    let hit = &data["results"][0];
    assert_eq!((hit["line"].as_u64(), hit["content"].as_str()), (Some(4), Some("Lives in Rome.")));
    assert_eq!((hit["before"].as_str(), hit["after"].as_str()), (Some("Likes strong tea."), Some("Has two cats.")));
    assert!(found(&stage, json!({"query": "bicycle"})).is_empty());
}

#[test]
fn meaning_finds_what_words_do_not() {
    let stage = with_table();
    act(&stage, "memory.write", json!({"namespace": "a", "content": "tea\n"})).unwrap();
    act(&stage, "memory.write", json!({"namespace": "b", "content": "e\n"})).unwrap();
    assert_eq!(found(&stage, json!({"query": "ta"})), ["a:1 vector"]);
    assert_eq!(found(&stage, json!({"query": "tea"})), ["a:1 both"]);
    assert!(found(&stage, json!({"query": "ta", "keyword_only": true})).is_empty());
    let reply = act(&stage, "memory.reindex", json!({})).unwrap();
    assert_eq!(reply.data.unwrap(), json!({"pieces": 2, "model": "wordllama-l2-256/1"}));
    assert_eq!(found(&stage, json!({"query": "ta"})), ["a:1 vector"]);
}

#[test]
fn what_is_gone_is_not_found() {
    let stage = with_table();
    let write = |content: &str| act(&stage, "memory.write", json!({"namespace": "n", "content": content})).unwrap();
    write("tea\n\nzebra\n");
    assert_eq!(found(&stage, json!({"query": "zebra", "keyword_only": true})), ["n:3 keyword"]);
    write("tea\n");
    assert!(found(&stage, json!({"query": "zebra", "keyword_only": true})).is_empty());
    act(&stage, "memory.forget", json!({"namespace": "n"})).unwrap();
    assert!(found(&stage, json!({"query": "tea"})).is_empty());
    let again = act(&stage, "memory.forget", json!({"namespace": "n"})).unwrap_err();
    assert_eq!(again.kind, ErrorKind::NotFound);
    assert_eq!(act(&stage, "memory.list", json!({})).unwrap().text, "nothing is kept yet");
}

#[test]
fn notes_are_kept_once_with_tags_and_found_by_them() {
    let stage = Stage::new();
    let store = |content: &str, tags: Value| {
        let args = json!({"namespace": "knowledge", "content": content, "tags": tags});
        act(&stage, "memory.store", args).unwrap().data.unwrap()["changed"].as_bool().unwrap()
    };
    assert!(store("The build needs cmake.", json!(["#build", "Tools"])));
    assert!(!store("The build needs cmake.", json!(["tools"])));
    assert!(store("The build runs at night.", json!(["ops"])));
    assert_eq!(found(&stage, json!({"query": "build", "tags": ["tools"]})), ["knowledge:1 keyword"]);
    assert_eq!(found(&stage, json!({"query": "build", "since": "1h"})).len(), 2);
    assert!(found(&stage, json!({"query": "build", "until": "2020-01-01"})).is_empty());
    assert!(found(&stage, json!({"query": "build", "namespace": "other"})).is_empty());
    assert_eq!(found(&stage, json!({"query": "build", "namespace": "knowledge", "limit": 1})).len(), 1);
    let recalled = act(&stage, "memory.recall", json!({"namespace": "knowledge", "query": "cmake"})).unwrap();
    assert!(recalled.text.ends_with("The build needs cmake. #build #tools"), "{}", recalled.text);
    let all = act(&stage, "memory.recall", json!({"namespace": "knowledge"})).unwrap();
    assert_eq!(all.text.lines().count(), 2);
}

#[test]
fn notes_that_differ_in_anything_are_all_kept() {
    let stage = Stage::new();
    let notes = [
        ("export PATH=~/bin", json!([])),
        ("EXPORT path=~/bin", json!([])),
        ("export  PATH=~/bin", json!([])),
        ("export PATH=~/bin", json!(["shell"])),
        ("export PATH=~/bin", json!(["shell", "setup"])),
        ("if x:\n    y()", json!([])),
        ("if x:\n  y()", json!([])),
        ("if x: y()", json!([])),
    ];
    let store = |content: &str, tags: &Value| {
        let args = json!({"namespace": "n", "content": content, "tags": tags});
        act(&stage, "memory.store", args).unwrap().data.unwrap()["changed"] == true
    };
    for (content, tags) in &notes {
        assert!(store(content, tags), "{content} {tags}");
    }
    for (content, tags) in &notes {
        assert!(!store(content, tags), "{content} {tags}");
    }
    assert_eq!(act(&stage, "memory.read", json!({"namespace": "n"})).unwrap().text.matches("- [").count(), notes.len());
    assert_eq!(found(&stage, json!({"query": "path", "tags": ["setup"]})).len(), 1);
}

#[test]
fn secrets_and_odd_input_are_refused_with_words() {
    let stage = Stage::new();
    let key = format!("the key is ghp_{}", "a1B2".repeat(9));
    for tool in ["memory.store", "memory.write"] {
        let error = act(&stage, tool, json!({"namespace": "user", "content": key})).unwrap_err();
        assert!(error.message.contains("secret") && !error.message.contains("ghp_"), "{}", error.message);
    }
    for name in ["../x", "a/../b", "a\0b", "/etc", "a b", "~"] {
        let error = act(&stage, "memory.read", json!({"namespace": name})).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidInput, "{name}");
    }
    let error = act(&stage, "memory.write", json!({"namespace": "x", "content": "x".repeat(9 << 20)})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidInput);
    for args in [
        json!({"namespace": "x", "content": " \n"}),
        json!({"namespace": "x", "content": "y", "tags": ["a b"]}),
        json!({"namespace": "x", "content": "y", "tags": ["12"]}),
    ] {
        assert_eq!(act(&stage, "memory.store", args).unwrap_err().kind, ErrorKind::InvalidInput);
    }
    for args in [json!({"query": ""}), json!({"query": "x".repeat(9000)}), json!({"query": "x", "since": "soon"})] {
        assert_eq!(act(&stage, "memory.search", args).unwrap_err().kind, ErrorKind::InvalidInput);
    }
}

#[test]
fn no_question_is_an_error() {
    let stage = with_table();
    let content = "A crab \u{1f980} lives in \u{6771}\u{4eac}\u{90fd}.\n\nfoo_bar(\"x\") OR NOT near* ^a:b\n";
    act(&stage, "memory.write", json!({"namespace": "n", "content": content})).unwrap();
    for query in ["\"", "a OR", "NEAR(", "*", "col:", "-", "\0", "' ; DROP TABLE x", "\u{200d}", "((((", "AND AND"] {
        found(&stage, json!({"query": query}));
    }
    assert_eq!(found(&stage, json!({"query": "\u{1f980}", "keyword_only": true})), ["n:1 keyword"]);
    assert_eq!(found(&stage, json!({"query": "\u{4eac}\u{90fd}", "keyword_only": true})), ["n:1 keyword"]);
    assert_eq!(found(&stage, json!({"query": "fooBar", "keyword_only": true})), ["n:3 keyword"]);
    found(&stage, json!({"query": "word ".repeat(1600)}));
}

#[test]
fn all_together_have_a_limit() {
    let stage = Stage::new().remembering(MemorySettings { max_total_bytes: 100, ..MemorySettings::default() });
    let write = |name: &str| act(&stage, "memory.write", json!({"namespace": name, "content": "x".repeat(60)}));
    write("a").unwrap();
    let error = write("b").unwrap_err();
    assert!(error.message.contains("100B is the most"), "{}", error.message);
}

#[test]
fn a_long_document_is_looked_through_in_time() {
    let document = "- [2026-11-16 04:50Z] one #a\n  more #b\n\n- x #y #z\n# Head\nline #c\n".repeat(60_000);
    let note = haft_core::memory::Note { text: "one".to_owned(), tags: vec!["q".to_owned()], at_ms: 0 };
    let begun = std::time::Instant::now();
    assert!(!haft_core::memory::holds(&document, &note));
    assert!(!haft_core::memory::holds(&format!("- {}", "#a ".repeat(1 << 20)), &note));
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
