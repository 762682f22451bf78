//! What was said outlives the process that it was said in.

use crate::{Stage, said, say, watch, who};
use haft_core::Origin;
use haft_core::agent::pairs::{check, mend};
use haft_core::agent::turns::End;
use haft_core::agent::{Block, Role};
use haft_runtime::agent::{Chat, Door};
use haft_runtime::{Halt, Yes};
use haft_stub::Reply;
use serde_json::json;
use std::time::Duration;

fn words(text: &str) -> Vec<Block> {
    vec![Block::Text { text: text.to_owned() }]
}

#[tokio::test]
async fn another_process_goes_on_where_the_first_one_left() {
    let stage = Stage::says(vec![
        Reply::think("Hm.").and_say("I look.").and_call("tool_search", json!({"query": "fetch a web page"})),
        Reply::say("Found."),
        Reply::say("Still known."),
    ]);
    stage.say("Find it.").await;
    let other = stage.another();
    let (ended, _) = say(&other, who("talk"), "What was it?", &Yes, &Halt::new()).await;
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "Still known."));
    let asked = stage.last();
    assert!(asked.says("Find it.") && asked.says("Found."), "{:#}", asked.body);
    assert!(asked.tools().contains(&"web_fetch".to_owned()), "what was found is told again");
    assert_eq!(stage.stub.faults(), Vec::<String>::new());
    let talk = other.store().talk(&haft_core::SessionId::new("talk").unwrap()).await.unwrap().unwrap();
    assert_eq!((talk.title.as_str(), talk.state.as_str(), talk.calls, talk.turns), ("Find it.", "done", 1, 3));
    assert_eq!(talk.cost_micros, Some(3 * 2175));
}

#[tokio::test]
async fn a_call_is_written_down_before_it_is_made() {
    let stage = Stage::says(vec![
        Reply::say("I sleep.").and_call("shell_exec", json!({"command": "touch begun; sleep 3"})),
        Reply::say("I know."),
    ]);
    let (watch, _) = watch();
    let mut chat = Chat::open(&stage.haft, who("talk")).await.unwrap();
    let halt = Halt::new();
    let door = Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch, meanwhile: None };
    // The process goes away in the middle of the call.
    let dropped = tokio::time::timeout(Duration::from_millis(1200), chat.say(words("Sleep."), door)).await;
    assert!(dropped.is_err(), "it was still at it");
    let kept = said(&stage.haft, "talk").await;
    assert_eq!(kept.last().unwrap().role, Role::Assistant);
    assert_eq!(kept.last().unwrap().uses().count(), 1, "the call is known");
    assert_eq!(check(&mend(kept)), Ok(()));
    let (ended, _) = say(&stage.another(), who("talk"), "Are you there?", &Yes, &Halt::new()).await;
    assert_eq!(ended.end, End::Done);
    assert!(stage.last().says("cut off before it ended"), "{:#}", stage.last().body);
    assert_eq!(stage.stub.faults(), Vec::<String>::new());
}

#[tokio::test]
async fn two_cannot_go_on_with_one_conversation() {
    let stage = Stage::says(vec![
        Reply::call("shell_exec", json!({"command": "sleep 0.5"})),
        Reply::say("Mine."),
        Reply::say("Yours."),
    ]);
    let (watch, _) = watch();
    let mut first = Chat::open(&stage.haft, who("talk")).await.unwrap();
    let halt = Halt::new();
    let door = Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch, meanwhile: None };
    let other = stage.another();
    let takes = async {
        tokio::time::sleep(Duration::from_millis(250)).await;
        say(&other, who("talk"), "I go on.", &Yes, &Halt::new()).await
    };
    let (lost, (ended, _)) = tokio::join!(first.say(words("Go."), door), takes);
    let error = lost.unwrap_err();
    assert!(error.message.contains("somebody else goes on"), "{error:?}");
    assert_eq!(ended.end, End::Done);
    assert_eq!(check(&said(&other, "talk").await), Ok(()));
}
