//! Tools about tools: what is called by way of another tool is the call that is meant.

use super::{Person, Stage, call, free, kind, run};
use haft_core::SessionId;
use haft_runtime::Said;
use serde_json::{Value, json};

fn names(found: &Value) -> Vec<&str> {
    found["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn a_call_by_way_of_another_is_decided_as_itself() {
    run(async {
        let stage = Stage::new();
        let nobody = Person::saying(Said::Nobody);
        let inner = json!({"name": "calc.eval", "args": {"expression": "6 * 7"}});
        let outcome = stage.here.call(call("tool.call", inner), &nobody, &free()).await;
        assert_eq!((outcome.tool.as_str(), outcome.output.as_str()), ("calc.eval", "42"), "{outcome:?}");
        let inner = json!({"name": "file_write", "args": {"path": "a.txt", "content": "secret words"}});
        let outcome = stage.here.call(call("tool_call", inner), &nobody, &free()).await;
        assert_eq!((outcome.tool.as_str(), kind(&outcome)), ("file.write", "approval_required"), "{outcome:?}");
        stage.here.flush().await.unwrap();
        let records = stage.here.store().records(0, 100, None).await.unwrap();
        assert!(!serde_json::to_string(&records).unwrap().contains("secret words"), "a body is a body there, too");
    });
}

#[test]
fn what_names_no_tool_is_refused() {
    run(async {
        let stage = Stage::new();
        let nobody = Person::saying(Said::Nobody);
        for (args, expected) in [
            (json!({}), "invalid_input"),
            (json!({"name": 7}), "invalid_input"),
            (json!({"name": "no.such"}), "unknown_tool"),
            (json!({"name": "calc.eval", "args": "6 * 7"}), "invalid_input"),
            (json!({"name": "tool.call", "args": {"name": "calc.eval"}}), "invalid_input"),
        ] {
            let outcome = stage.here.call(call("tool.call", args.clone()), &nobody, &free()).await;
            assert_eq!(kind(&outcome), expected, "{args}: {outcome:?}");
        }
    });
}

#[test]
fn a_tool_is_found_by_what_it_does() {
    run(async {
        let stage = Stage::new();
        let nobody = Person::saying(Said::Nobody);
        for (query, first) in [
            ("file_read", "file.read"),
            ("read a file", "file.read"),
            ("search text in files", "file.grep"),
            ("run a command", "shell.exec"),
            ("calculate arithmetic", "calc.eval"),
        ] {
            let outcome = stage.here.call(call("tool.search", json!({"query": query})), &nobody, &free()).await;
            let data = outcome.data.clone().unwrap();
            assert_eq!(names(&data).first(), Some(&first), "{query}: {:?}", names(&data));
        }
        let none = stage.here.call(call("tool.search", json!({"query": "zzzz"})), &nobody, &free()).await;
        assert!(none.success && none.output.starts_with("No tool fits"), "{none:?}");
    });
}

#[test]
fn what_a_conversation_finds_is_kept_in_the_order_it_was_found() {
    run(async {
        let stage = Stage::new();
        let nobody = Person::saying(Said::Nobody);
        let search = |session: &str, query: &str, limit: usize| {
            let mut call = call("tool.search", json!({"query": query, "limit": limit}));
            call.session = SessionId::new(session).unwrap();
            call
        };
        let data = stage.here.call(search("one", "calc.eval", 1), &nobody, &free()).await.data.unwrap();
        assert_eq!(data["activated"], json!(["calc.eval"]));
        for query in ["file.read", "calc.eval", "shell.exec"] {
            stage.here.call(search("one", query, 1), &nobody, &free()).await;
        }
        stage.here.call(search("other", "file.write", 1), &nobody, &free()).await;
        let active = |session: &str| {
            let names = stage.here.active().of(&SessionId::new(session).unwrap());
            names.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(active("one"), ["calc.eval", "file.read", "shell.exec"]);
        assert_eq!(active("other"), ["file.write"]);
        assert!(active("third").is_empty());
    });
}

#[test]
fn a_program_that_cannot_start_itself_says_so_of_scripts() {
    run(async {
        let stage = Stage::new();
        let nobody = Person::saying(Said::Nobody);
        let outcome = stage.here.call(call("tool.script", json!({"code": "return 1"})), &nobody, &free()).await;
        let error = outcome.error.unwrap();
        assert!(error.message.contains("this program cannot become one") && error.hint.is_some(), "{error:?}");
    });
}
