//! A conversation that is opened again goes on as it was: with its model, its effort, its budget and what it has cost.

use crate::{Stage, say, watch, who};
use haft_core::agent::Block;
use haft_core::agent::turns::End;
use haft_core::agent::wire::Effort;
use haft_core::{Origin, SessionId};
use haft_runtime::agent::{Chat, Door, ModelRef, Purse, Told, Who};
use haft_runtime::{Halt, Yes};
use haft_stub::{Counted, Reply, Stub};
use serde_json::json;
use std::time::Duration;

/// Nothing is said of how it is to go on.
fn plain() -> Who {
    Who { purse: None, ..who("talk") }
}

fn costs(reply: Reply) -> Reply {
    reply.counted(Counted { input: 100_000, cache_read: 0, cache_write: 0, output: 0, thinking: 0 })
}

#[tokio::test]
async fn it_goes_on_with_what_was_chosen_for_it() {
    let stage = Stage::with(
        Stub::with(|asked| match asked.number {
            0 => costs(Reply::call("shell_exec", json!({"command": "sleep 60"}))),
            _ => costs(Reply::call("calc_eval", json!({"expression": format!("{}+1", asked.number)}))),
        }),
        |settings| {
            let other = ModelRef::parse("stub/stub-2").unwrap();
            settings.facts.insert(other, crate::facts());
        },
    );
    let chosen = Who {
        models: vec![ModelRef::parse("stub/stub-2").unwrap()],
        effort: Some(Effort::High),
        purse: Some(Purse::new(Some(250_000))),
        max_turns: Some(7),
        ..who("talk")
    };
    // The process goes away in the middle of a call; what its answer cost is known by then.
    let mut chat = Chat::open(&stage.haft, chosen).await.unwrap();
    let halt = Halt::new();
    let door = Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch: watch().0, meanwhile: None };
    let session = SessionId::new("talk").unwrap();
    let paid = async {
        while stage.haft.store().talk(&session).await.unwrap().is_none_or(|talk| talk.cost_micros.is_none()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        ended = chat.say(vec![Block::Text { text: "Go.".to_owned() }], door) => panic!("it ended: {ended:?}"),
        paid = tokio::time::timeout(Duration::from_mins(2), paid) => paid.unwrap(),
    }
    drop(chat);
    let first = stage.last();
    let (ended, told) = say(&stage.another(), plain(), "Go on.", &Yes, &Halt::new()).await;
    let asked = stage.stub.asked();
    assert_eq!((first.model().as_str(), asked[1].model().as_str()), ("stub-2", "stub-2"));
    assert_eq!(asked[1].body["thinking"], asked[0].body["thinking"]);
    assert_eq!(asked[1].body["thinking"]["type"], "enabled", "{:#}", asked[1].body);
    // Two more answers at a tenth of a dollar each are one too many.
    assert_eq!((ended.end, asked.len()), (End::Funds, 2), "the budget is what was left of it");
    let total = told.iter().rev().find_map(|told| match told {
        Told::Usage { cost_micros, .. } => *cost_micros,
        _ => None,
    });
    assert_eq!(total, Some(200_000), "what it cost before is part of what it cost");
    let chat = Chat::open(&stage.haft, plain()).await.unwrap();
    assert_eq!((chat.who().max_turns, chat.model().unwrap().to_string().as_str()), (Some(7), "stub/stub-2"));
    drop(chat);
    let richer = Who { purse: Some(Purse::new(Some(250_000))), effort: Some(Effort::Low), ..who("talk") };
    let (ended, _) = say(&stage.another(), richer, "Go on.", &Yes, &Halt::new()).await;
    let asked = stage.stub.asked();
    assert_eq!((ended.end, asked.len()), (End::Funds, 4), "another budget is a new one");
    assert_ne!(asked[3].body["thinking"], asked[0].body["thinking"], "{:#}", asked[3].body);
}
