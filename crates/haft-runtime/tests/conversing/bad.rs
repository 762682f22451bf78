//! Models that misbehave: each ends in a clear state, with the conversation intact.

use crate::{Stage, facts, names, results, said, say, who};
use haft_core::agent::pairs::check;
use haft_core::agent::turns::{End, FailureKind};
use haft_core::agent::wire::Wire;
use haft_runtime::agent::settings::Provider;
use haft_runtime::agent::{ModelRef, Told};
use haft_runtime::{Halt, Yes};
use haft_stub::{Counted, Reply, Stub, Trouble};
use serde_json::json;
use std::collections::BTreeMap;

async fn intact(stage: &Stage) {
    assert_eq!(check(&said(&stage.haft, "talk").await), Ok(()));
    assert_eq!(stage.stub.faults(), Vec::<String>::new());
}

#[tokio::test]
async fn a_stream_that_is_cut_is_asked_for_again() {
    let stage = Stage::says(vec![Reply::say("I will tell you all about it.").cut(420), Reply::say("All of it.")]);
    let (ended, told) = stage.say("Tell.").await;
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "All of it."));
    assert!(told.iter().any(|told| matches!(told, Told::Retry { .. })), "{:?}", names(&told));
    intact(&stage).await;
}

#[tokio::test]
async fn arguments_that_are_no_json_and_tools_that_are_none_are_told() {
    let stage = Stage::says(vec![
        Reply::default()
            .and_call_raw("file_read", "{\"path\": \"a.t")
            .and_call("no_such_tool", json!({}))
            .and_call("file_read", json!({"pth": 1})),
        Reply::say("I see."),
    ]);
    let (ended, _) = stage.say("Go.").await;
    assert_eq!(ended.end, End::Done);
    let told = results(&stage.last());
    assert!(told.iter().all(|(_, failed)| *failed), "{told:?}");
    assert!(told[0].0.contains("not a JSON object"), "{told:?}");
    assert!(told[1].0.contains("there is no tool"), "{told:?}");
    assert!(told[2].0.contains("invalid_input"), "{told:?}");
    intact(&stage).await;
}

#[tokio::test]
async fn five_hundred_calls_at_once_are_all_answered() {
    let many = (0..500)
        .fold(Reply::default(), |reply, n| reply.and_call("calc_eval", json!({"expression": format!("{n}+1")})));
    let stage = Stage::says(vec![many, Reply::say("Counted.")]);
    let (ended, _) = stage.say("Count.").await;
    assert_eq!((ended.end, ended.calls), (End::Done, 500));
    let told = results(&stage.last());
    assert_eq!(told.len(), 500);
    for (n, (text, failed)) in told.iter().enumerate() {
        assert!(!failed && text.contains(&(n + 1).to_string()), "{n}: {text}");
    }
    intact(&stage).await;
}

#[tokio::test]
async fn a_model_that_loops_is_told_and_then_stopped() {
    let stage = Stage::says(vec![Reply::call("file_read", json!({"path": "a.txt"})); 12]);
    stage.file("a.txt", "the same\n");
    let (ended, _) = stage.say("Go.").await;
    assert_eq!((ended.end, ended.calls), (End::Loop, 5));
    assert!(stage.last().says("Do something else"), "it was told");
    intact(&stage).await;
}

#[tokio::test]
async fn a_storm_of_refusals_is_waited_out() {
    let busy = |trouble| Reply::trouble(trouble).header("retry-after", "0");
    let stage = Stage::says(vec![
        busy(Trouble::Limited),
        busy(Trouble::Overloaded),
        busy(Trouble::Limited),
        Reply::say("There you are."),
    ]);
    let (ended, told) = stage.say("Go.").await;
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "There you are."));
    assert_eq!(told.iter().filter(|told| matches!(told, Told::Retry { .. })).count(), 3);
    intact(&stage).await;
}

#[tokio::test]
async fn a_model_that_stays_away_is_replaced_by_the_next_one() {
    let other = Stub::start(vec![Reply::say("I am the other one.")]);
    let url = other.base(haft_stub::Wire::Gemini);
    let away = Stub::with(|_| Reply::trouble(Trouble::BadKey));
    let stage = Stage::with(away, |settings| {
        let provider = Provider { wire: Wire::Gemini, url, keys: Vec::new(), headers: BTreeMap::new() };
        settings.providers.insert("other".to_owned(), provider);
        settings.models.push(ModelRef::parse("other/stub-2").unwrap());
    });
    let (ended, told) = stage.say("Go.").await;
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "I am the other one."));
    assert!(told.iter().any(|told| matches!(told, Told::Fallback { model, .. } if model == "other/stub-2")));
    intact(&stage).await;
}

#[tokio::test]
async fn a_key_that_is_revoked_in_the_middle_ends_it_and_nothing_is_lost() {
    let stage = Stage::says(vec![
        Reply::call("file_write", json!({"path": "a.txt", "content": "x"})),
        Reply::trouble(Trouble::BadKey),
        Reply::say("Back again."),
    ]);
    let (ended, _) = stage.say("Go.").await;
    let End::Failed(failure) = &ended.end else { panic!("{:?}", ended.end) };
    assert_eq!(failure.kind, FailureKind::Denied);
    assert_eq!(stage.read("a.txt").as_deref(), Some("x"));
    intact(&stage).await;
    let (ended, _) = stage.say("And now?").await;
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "Back again."));
    assert_eq!(results(&stage.last()).len(), 1, "it knows of its call");
    intact(&stage).await;
}

#[tokio::test]
async fn a_web_page_in_place_of_an_answer_is_said_to_be_one() {
    let stage = Stage::answers(|_| Reply::status(404, "<html><body>\u{1b}[31mnot here</body></html>"));
    let (ended, _) = stage.say("Go.").await;
    let End::Failed(failure) = &ended.end else { panic!("{:?}", ended.end) };
    assert!(!failure.message.contains('\u{1b}'), "{}", failure.message);
    intact(&stage).await;
}

#[tokio::test]
async fn what_is_too_much_is_made_shorter_and_kept_whole() {
    let script = |asked: &haft_stub::Asked| {
        if asked.says("too long to be sent whole") {
            return Reply::say("It was about the number 4711, and a.txt has been read.");
        }
        let full = Counted { input: 190_000, cache_read: 0, cache_write: 0, output: 10, thinking: 0 };
        match results(asked).len() {
            0 if !asked.says("number 4711") => {
                Reply::say("I read.").and_call("file_read", json!({"path": "a.txt"})).counted(full)
            }
            _ => Reply::say("Done with it."),
        }
    };
    let stage = Stage::answers(script);
    stage.file("a.txt", &"many words in here\n".repeat(2000));
    let (ended, told) = stage.say("Read it all.").await;
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "Done with it."));
    let Some(Told::Compacted { before, after }) = told.iter().find(|told| matches!(told, Told::Compacted { .. }))
    else {
        panic!("{:?}", names(&told))
    };
    assert!(after < before, "{before} {after}");
    let epochs = stage.haft.store().said(&haft_core::SessionId::new("talk").unwrap()).await.unwrap();
    assert_eq!(epochs.len(), 2);
    let whole = serde_json::to_string(&epochs[0]).unwrap();
    assert!(whole.matches("many words in here").count() > 500, "all that the model was told is kept");
    intact(&stage).await;
}

#[tokio::test]
async fn what_the_model_has_not_read_yet_is_the_last_to_go() {
    let full = Counted { input: 14_000, cache_read: 0, cache_write: 0, output: 10, thinking: 0 };
    let stub = Stub::start(vec![
        Reply::call("file_read", json!({"path": "a.txt"})),
        Reply::call("file_read", json!({"path": "b.txt"})).counted(full),
        Reply::say("Read."),
    ]);
    let stage = Stage::with(stub, |settings| {
        settings.facts.values_mut().for_each(|facts| facts.window = 16_384);
    });
    stage.file("a.txt", &"the first file has words\n".repeat(800));
    stage.file("b.txt", &"the second file has others\n".repeat(800));
    let (ended, told) = stage.say("Read both.").await;
    assert_eq!(ended.end, End::Done, "{:?}", names(&told));
    let last = results(&stage.last());
    assert!(last.last().unwrap().0.matches("the second file").count() > 500, "{}", last.last().unwrap().0.len());
    assert!(!stage.last().says("the first file has words\nthe first"), "what was read before made room");
}

#[tokio::test]
async fn a_provider_that_says_it_is_too_much_is_believed_once() {
    let stage = Stage::says(vec![
        Reply::call("file_read", json!({"path": "a.txt"})),
        Reply::trouble(Trouble::Overflow),
        Reply::say("It fits now."),
    ]);
    stage.file("a.txt", &"many words in here\n".repeat(2000));
    let (ended, _) = stage.say("Read it all.").await;
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "It fits now."));
    intact(&stage).await;
    let hopeless = Stage::answers(|_| Reply::trouble(Trouble::Overflow));
    let (ended, _) = hopeless.say("Hi.").await;
    assert_eq!(ended.end, End::Overflow);
    assert_eq!(facts().window, 200_000);
}

#[tokio::test]
async fn every_form_is_spoken_with_calls_and_results() {
    for (wire, spoken) in [
        (Wire::Responses, haft_stub::Wire::Responses),
        (Wire::Chat, haft_stub::Wire::Chat),
        (Wire::Gemini, haft_stub::Wire::Gemini),
    ] {
        let stub = Stub::start(vec![
            Reply::think("Let me see.").and_say("I look.").and_call("file_read", json!({"path": "a.txt"})),
            Reply::say("It says one."),
        ]);
        let url = stub.base(spoken);
        let stage = Stage::with(stub, |settings| {
            let provider = Provider { wire, url, keys: Vec::new(), headers: BTreeMap::new() };
            settings.providers.insert("stub".to_owned(), provider);
        });
        stage.file("a.txt", "one\n");
        let (ended, _) = say(&stage.haft, who("talk"), "What does it say?", &Yes, &Halt::new()).await;
        assert_eq!((ended.end, ended.text.as_str(), ended.calls), (End::Done, "It says one.", 1), "{wire:?}");
        assert!(stage.last().says("one"), "{wire:?}");
        intact(&stage).await;
    }
}
