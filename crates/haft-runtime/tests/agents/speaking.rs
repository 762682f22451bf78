//! What models say, in every form.

use super::*;
use haft_core::agent::Role;
use haft_stub::{Counted, Reply};

fn busy_reply() -> Reply {
    let counted = Counted { input: 100, cache_read: 2000, cache_write: 0, output: 89, thinking: 12 };
    Reply::think("First I look at what there is.")
        .and_say("I read ä file, and „another“ 🙂 one.")
        .and_call("file_read", json!({"path": "a.txt", "text": "quote \" and \\ and ü"}))
        .and_call("file_read", json!({"path": "b.txt"}))
        .and_call("system_info", json!({}))
        .counted(counted)
}

#[tokio::test]
async fn every_provider_is_understood_from_end_to_end() {
    for wire in WIRES {
        let stub = Stub::start(vec![busy_reply(), Reply::say("Done.")]);
        let model = model(&stub, wire).await;
        let told = ask(&model).await;
        assert_eq!(told.result, Ok(()), "{wire:?}");
        assert_eq!(told.message.text(), "I read ä file, and „another“ 🙂 one.", "{wire:?}");
        assert!(
            matches!(&told.message.blocks[0], Block::Thinking { text, .. } if text.starts_with("First")),
            "{wire:?}"
        );
        assert_eq!(told.calls, ["file_read", "file_read", "system_info"], "{wire:?}");
        let inputs: Vec<_> = told.message.uses().map(|(_, _, input)| input.clone()).collect();
        assert_eq!(inputs[0]["text"], "quote \" and \\ and ü", "{wire:?}");
        assert_eq!((&inputs[1], &inputs[2]), (&json!({"path": "b.txt"}), &json!({})), "{wire:?}");
        assert_eq!((told.usage.read(), told.usage.cache_read, told.usage.output), (2100, 2000, 89), "{wire:?}");
        assert_eq!(told.stop, Some(Stop::Calls), "{wire:?}");

        // The provider takes back what it said, with results in whichever order.
        let results = told.message.uses().map(|(id, ..)| Block::result(id, "gave", false));
        let results = Message { role: Role::User, blocks: results.collect() };
        let again = ask_with(&model, &[Message::user("Go."), told.message.clone(), results]).await;
        assert_eq!((again.result, again.message.text()), (Ok(()), "Done.".to_owned()), "{wire:?}");
        assert_eq!((again.stop, stub.faults()), (Some(Stop::End), Vec::new()), "{wire:?}");
        let asked = stub.asked();
        assert_eq!(asked[0].tools(), ["file_read"], "{wire:?}");
        assert_eq!((asked[0].model().as_str(), asked.len()), ("stub-1", 2), "{wire:?}");
    }
}

#[tokio::test]
async fn a_history_that_no_provider_takes_is_said_to_be_none() {
    for wire in WIRES {
        let stub = Stub::start(vec![]);
        let model = model(&stub, wire).await;
        let call = Block::Use { id: "c1".into(), name: "file_read".into(), input: json!({}), mark: None };
        let history = [Message::user("Go."), Message { role: Role::Assistant, blocks: vec![call] }];
        let failure = ask_with(&model, &history).await.result.unwrap_err();
        assert_eq!(failure.kind, haft_core::agent::turns::FailureKind::Invalid, "{wire:?}");
        assert_eq!(stub.faults().len(), 1, "{wire:?}");
    }
}

#[tokio::test]
async fn keys_go_into_the_header_that_is_meant_for_them() {
    let stub = Stub::with(|_| Reply::say("Yes."));
    let vertex = provider(Wire::Gemini, stub.vertex());
    let mut all: Vec<(&str, Provider)> = vec![("vertex", vertex)];
    let names = ["anthropic", "responses", "chat", "gemini"];
    for (name, (wire, spoken)) in names.into_iter().zip(WIRES) {
        all.push((name, provider(wire, stub.base(spoken))));
    }
    let models = models(&all);
    for (name, path, header, value) in [
        ("anthropic", "/v1/messages", "x-api-key", KEY.to_owned()),
        ("responses", "/v1/responses", "authorization", format!("Bearer {KEY}")),
        ("chat", "/v1/chat/completions", "authorization", format!("Bearer {KEY}")),
        ("gemini", "/v1beta/models/stub-1:streamGenerateContent?alt=sse", "x-goog-api-key", KEY.to_owned()),
        (
            "vertex",
            "/v1/projects/p/locations/us-central1/publishers/google/models/stub-1:streamGenerateContent?alt=sse",
            "authorization",
            format!("Bearer {KEY}"),
        ),
    ] {
        let model = models.get(&ModelRef::parse(&format!("{name}/stub-1")).unwrap()).await.unwrap();
        assert_eq!(ask(&model).await.result, Ok(()), "{name}");
        let asked = stub.asked().pop().unwrap();
        assert_eq!((asked.path.as_str(), asked.headers.get(header)), (path, Some(&value)), "{name}");
        let held = asked.headers.values().filter(|value| value.contains(KEY)).count();
        assert_eq!((held, asked.says(KEY)), (1, false), "{name}");
        assert_eq!(asked.headers.contains_key("anthropic-version"), name == "anthropic");
    }
}

#[tokio::test]
async fn a_models_name_leads_nowhere_else() {
    let stub = Stub::with(|_| Reply::say("Yes."));
    let models = models(&[("g", provider(Wire::Gemini, stub.base(haft_stub::Wire::Gemini)))]);
    let model = models.get(&ModelRef::parse("g/../../evil?key=1#x").unwrap()).await.unwrap();
    let _ = ask(&model).await;
    let path = stub.heard().pop().unwrap().path;
    assert_eq!(path, "/v1beta/models/..%2F..%2Fevil%3Fkey%3D1%23x:streamGenerateContent?alt=sse");
}

/// Every byte for the shortest form, and every few for the others: what is cut is never taken for whole, and what was
/// whole before the cut was told.
#[tokio::test]
async fn a_connection_that_is_cut_anywhere_is_never_taken_for_the_end() {
    for wire in WIRES {
        let reply = Reply::say("I read it.").and_call("file_read", json!({"path": "a.txt"}));
        let stub = Stub::start(vec![reply.clone()]);
        let whole = ask(&model(&stub, wire).await).await;
        assert_eq!(whole.result, Ok(()), "{wire:?}");
        let cutting = Stub::with(move |asked| reply.clone().in_pieces(97).cut(asked.number * 13));
        let model = model(&cutting, wire).await;
        let (mut cuts, mut calls) = (0, 0);
        loop {
            let told = ask(&model).await;
            if told.result.is_ok() {
                // Ids are new each time.
                let said = |told: &Told| (told.message.text(), told.calls.clone(), told.stop);
                assert_eq!(said(&told), said(&whole), "{wire:?} at {cuts}");
                break;
            }
            let failure = told.result.unwrap_err();
            assert_eq!(failure.kind, haft_core::agent::turns::FailureKind::Away, "{wire:?} at {cuts}: {failure:?}");
            assert!(told.calls.len() >= calls && told.stop.is_none(), "{wire:?} at {cuts}");
            (cuts, calls) = (cuts + 1, told.calls.len());
            assert!(cuts < 2000, "{wire:?}");
        }
        assert!(cuts > 20, "{wire:?}: {cuts}");
    }
}

#[tokio::test]
async fn bytes_may_come_one_by_one_and_slowly() {
    for wire in WIRES {
        let slow = Reply::say("One. Two. Three.").slow(Duration::from_millis(15)).in_pieces(1);
        let stub = Stub::start(vec![slow]);
        let told = ask(&model(&stub, wire).await).await;
        assert_eq!((told.result, told.message.text()), (Ok(()), "One. Two. Three.".to_owned()), "{wire:?}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_are_told_as_they_are() {
    for wire in WIRES {
        let stub = Stub::start(vec![Reply::say("Now.").and_call_raw("file_read", "{\"path\": \"a")]);
        let told = ask(&model(&stub, wire).await).await;
        assert_eq!(told.result, Ok(()), "{wire:?}");
        let input = told.message.uses().map(|(_, _, input)| input.clone()).next();
        // Google never passes such a call on.
        let expected = (wire.0 != Wire::Gemini).then(|| json!("{\"path\": \"a"));
        assert_eq!(input, expected, "{wire:?}");
    }
}

#[tokio::test]
async fn prompts_are_counted_by_whoever_counts() {
    for wire in WIRES {
        let stub = Stub::start(vec![]);
        let model = model(&stub, wire).await;
        let (history, system) = ([Message::user("Count this, please.")], ["You are haft.".to_owned()]);
        let prompt = Request {
            model: "stub-1",
            system: &system,
            tools: &[],
            history: &history,
            max_output: 100,
            effort: None,
            native_search: false,
            scribe: &Scribe::default(),
        };
        let counted = model.count(&prompt).await;
        assert_eq!(counted.exact, wire.0 != Wire::Chat, "{wire:?}");
        assert!(counted.tokens > 3 && counted.tokens < 200, "{wire:?}: {counted:?}");
        for asked in stub.heard() {
            let told = asked.body.to_string();
            assert!(!told.contains("max_output") && !told.contains("\"stream\""), "{wire:?}: {told}");
        }
    }
}

#[tokio::test]
async fn what_nobody_hears_is_not_waited_for() {
    let stub = Stub::start(vec![Reply::say("word ".repeat(2000)).slow(Duration::from_millis(5))]);
    let model = model(&stub, WIRES[0]).await;
    let (history, (sender, heard)) = ([Message::user("Go.")], mpsc::channel(1));
    let prompt = Request {
        model: "stub-1",
        system: &[],
        tools: &[],
        history: &history,
        max_output: 100,
        effort: None,
        native_search: false,
        scribe: &Scribe::default(),
    };
    drop(heard);
    let ended = tokio::time::timeout(Duration::from_secs(2), model.ask(&prompt, "s", sender)).await;
    assert_eq!(ended.unwrap(), Ok(()));
}
