//! A conversation from its first word to its last.

use crate::{Stage, facts, names, results, said, say, watch, who};
use haft_core::Origin;
use haft_core::agent::Block;
use haft_core::agent::pairs::check;
use haft_core::agent::turns::End;
use haft_runtime::agent::{Chat, Door, Purse, Told};
use haft_runtime::{Halt, Nobody, Yes};
use haft_stub::{Counted, Reply, Stub};
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc;

#[tokio::test]
async fn a_model_reads_changes_and_says_what_it_did() {
    let stage = Stage::says(vec![
        Reply::say("I look.").and_call("file_read", json!({"path": "a.txt"})),
        Reply::call("file_edit", json!({"path": "a.txt", "old_string": "one", "new_string": "two"})),
        Reply::say("It says two now."),
    ]);
    stage.file("a.txt", "one\n");
    let (ended, told) = stage.say("Make it two.").await;
    assert_eq!((ended.end.clone(), ended.text.as_str()), (End::Done, "It says two now."));
    assert_eq!((ended.turns, ended.calls, stage.read("a.txt").as_deref()), (3, 2, Some("two\n")));
    assert_eq!(stage.stub.faults(), Vec::<String>::new());
    let all = names(&told);
    for name in ["start", "turn", "content", "tool_input", "tool_start", "tool_end", "usage", "message", "done"] {
        assert!(all.iter().any(|one| one == name), "{name} in {all:?}");
    }
    // Three answers of 2175 tokens each, at a dollar a million.
    assert_eq!((ended.usage.output, ended.cost_micros), (150, Some(3 * 2175)));
    assert_eq!(check(&said(&stage.haft, "talk").await), Ok(()));
}

#[tokio::test]
async fn calls_of_one_answer_are_told_in_their_order_whichever_ends_first() {
    let slow = json!({"command": "sleep 0.3; echo slow"});
    let stage = Stage::says(vec![
        Reply::call("shell_exec", slow)
            .and_call("file_read", json!({"path": "a.txt"}))
            .and_call("calc_eval", json!({"expression": "6*7"})),
        Reply::say("Done."),
    ]);
    stage.file("a.txt", "first\n");
    let (ended, _) = stage.say("Go.").await;
    assert_eq!(ended.end, End::Done);
    let texts: Vec<String> = results(&stage.last()).into_iter().map(|(text, _)| text).collect();
    assert_eq!(texts.len(), 3);
    assert!(texts[0].contains("slow") && texts[1].contains("first") && texts[2].contains("42"), "{texts:?}");
}

#[tokio::test]
async fn what_a_person_refuses_is_told_and_nothing_happens() {
    let stage = Stage::says(vec![
        Reply::call("file_write", json!({"path": "b.txt", "content": "x"})),
        Reply::say("I could not."),
    ]);
    let (ended, _) = say(&stage.haft, who("talk"), "Write it.", &Nobody, &Halt::new()).await;
    assert_eq!((ended.end, stage.read("b.txt")), (End::Done, None));
    let [(text, failed)] = &results(&stage.last())[..] else { panic!("one result") };
    assert!(*failed && text.contains("approval_required"), "{text}");
}

#[tokio::test]
async fn what_is_said_meanwhile_is_heard_with_the_next_results() {
    let stage =
        Stage::says(vec![Reply::call("shell_exec", json!({"command": "sleep 0.4"})), Reply::say("As you like.")]);
    let (watch, _) = watch();
    let (say, meanwhile) = mpsc::unbounded_channel();
    let mut chat = Chat::open(&stage.haft, who("talk")).await.unwrap();
    let halt = Halt::new();
    let door = Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch, meanwhile: Some(meanwhile) };
    let words = |text: &str| vec![Block::Text { text: text.to_owned() }];
    let later = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        say.send(words("And be quick.")).unwrap();
    };
    let (ended, ()) = tokio::join!(chat.say(words("Wait."), door), later);
    assert_eq!(ended.unwrap().end, End::Done);
    assert!(stage.last().says("And be quick."), "{:#}", stage.last().body);
    assert_eq!(stage.stub.asked().len(), 2);
}

#[tokio::test]
async fn money_is_set_aside_before_it_is_spent() {
    let script = || vec![Reply::call("calc_eval", json!({"expression": "1+1"})); 9];
    let stage = Stage::says(script());
    // Room for an answer or two: each reads about 2 200 tokens and may write 4 000.
    let purse = Purse::new(Some(8_000));
    let mut poor = who("poor");
    poor.purse = Some(purse.clone());
    let (ended, _) = say(&stage.haft, poor, "Spend it.", &Yes, &Halt::new()).await;
    assert_eq!(ended.end, End::Funds);
    assert!(purse.spent() <= 8_000 && purse.spent() > 0, "{}", purse.spent());
    assert_eq!(purse.left(), Some(8_000 - purse.spent()), "nothing stays set aside");
    let asked = stage.stub.asked();
    let least = asked.iter().map(|asked| asked.body["max_tokens"].as_u64().unwrap()).min().unwrap();
    assert!(least < u64::from(facts().max_output), "it is asked for less when there is less");
}

#[tokio::test]
async fn limits_of_turns_and_tokens_end_it_and_it_can_go_on() {
    let stage = Stage::with(Stub::start(vec![Reply::call("calc_eval", json!({"expression": "1+1"})); 2]), |settings| {
        settings.max_turns = 2;
    });
    let (ended, _) = stage.say("Go.").await;
    assert_eq!((ended.end, ended.turns), (End::Turns, 2));
    assert_eq!(check(&said(&stage.haft, "talk").await), Ok(()));
    let (ended, _) = stage.say("Go on.").await;
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "The script is over."));
    let mut little = who("little");
    little.max_tokens = Some(1);
    let (ended, _) = say(&stage.haft, little, "Go.", &Yes, &Halt::new()).await;
    assert_eq!((ended.end, ended.turns), (End::Tokens, 0), "nobody reads all that for one");
    let asked = stage.stub.asked().len();
    let mut enough = who("enough");
    enough.max_tokens = Some(5_000);
    let (ended, _) = say(&stage.haft, enough, "Go.", &Yes, &Halt::new()).await;
    assert_eq!(ended.end, End::Done);
    let most = stage.stub.asked()[asked].body["max_tokens"].as_u64().unwrap();
    assert!(most < u64::from(facts().max_output), "it is asked for less when there is less: {most}");
}

#[tokio::test]
async fn whenever_it_is_cancelled_it_can_go_on() {
    for after in [0, 40, 120, 250] {
        let stage = Stage::answers(|asked| {
            if asked.says("Go on.") {
                return Reply::say("Gone on.");
            }
            let late = json!({"command": "sleep 5; touch late"});
            Reply::say("I wait.").and_call("shell_exec", late).slow(Duration::from_millis(5))
        });
        let halt = Halt::new();
        let stop = async {
            tokio::time::sleep(Duration::from_millis(after)).await;
            halt.cancel();
        };
        let ((ended, _), ()) = tokio::join!(say(&stage.haft, who("talk"), "Go.", &Yes, &halt), stop);
        assert_eq!(ended.end, End::Cancelled, "{after}");
        assert!(ended.duration_ms < 4000, "{after}: {}", ended.duration_ms);
        assert_eq!(check(&said(&stage.haft, "talk").await), Ok(()), "{after}");
        let (ended, _) = stage.say("Go on.").await;
        assert_eq!(ended.end, End::Done, "{after}");
        assert_eq!(stage.stub.faults(), Vec::<String>::new(), "{after}");
        assert_eq!(stage.read("late"), None);
    }
}

#[tokio::test]
async fn a_call_begins_while_the_model_still_speaks() {
    let slow = Reply::call("file_read", json!({"path": "a.txt"}))
        .and_say("and so on ".repeat(30))
        .slow(Duration::from_millis(30));
    let stage = Stage::says(vec![slow, Reply::say("Done.")]);
    stage.file("a.txt", "one\n");
    let (_, told) = stage.say("Go.").await;
    let place = |wanted: &str| names(&told).iter().position(|name| name == wanted).unwrap();
    let last_word = names(&told).iter().rposition(|name| name == "content").unwrap();
    assert!(place("tool_end") < last_word, "{:?}", names(&told));
}

#[tokio::test]
async fn many_tools_are_found_and_then_told() {
    let stage = Stage::answers(|asked| match asked.number {
        0 => Reply::call("tool_search", json!({"query": "fetch a web page"})),
        1 => Reply::call("tool_search", json!({"query": "evaluate arithmetic"})),
        _ => Reply::say("Found."),
    });
    let (ended, told) = stage.say("Find what fetches.").await;
    assert_eq!(ended.end, End::Done);
    let asked = stage.stub.asked();
    let (first, second, third) = (asked[0].tools(), asked[1].tools(), asked[2].tools());
    assert!(first.len() <= 10 && first.contains(&"tool_search".to_owned()), "{first:?}");
    assert!(!first.contains(&"web_fetch".to_owned()) && second.contains(&"web_fetch".to_owned()), "{second:?}");
    assert_eq!(first[..], second[..first.len()], "what was told stays in its place");
    assert_eq!(second[..], third[..second.len()], "what was found, too");
    assert!(third.contains(&"calc_eval".to_owned()), "{third:?}");
    let Told::Start { deferred, .. } = &told[0] else { panic!("it starts") };
    assert!(*deferred > 20, "{deferred}");
}

#[tokio::test]
async fn what_is_sent_while_nothing_was_said_is_small() {
    let stage = Stage::says(vec![Reply::say("Hello.")]);
    stage.say("Hi.").await;
    let body = stage.last().body;
    let text = format!("{}{}", body["system"], body["tools"]);
    let tokens = tiktoken_rs::o200k_base().unwrap().encode_with_special_tokens(&text).len();
    assert!(tokens <= 2_500, "{tokens} tokens");
}

#[tokio::test]
async fn the_cache_is_counted_and_the_first_parts_stay() {
    let known = Counted { input: 10, cache_read: 3000, cache_write: 5, output: 20, thinking: 0 };
    let stage = Stage::says(vec![
        Reply::call("calc_eval", json!({"expression": "1+1"})).counted(known),
        Reply::say("Two.").counted(known),
    ]);
    let (ended, _) = stage.say("Add.").await;
    assert_eq!((ended.usage.cache_read, ended.usage.input), (6000, 20));
    let asked = stage.stub.asked();
    assert_eq!(asked[0].body["tools"], asked[1].body["tools"]);
    assert_eq!(asked[0].body["system"], asked[1].body["system"]);
    assert_eq!(asked[0].body["system"][0]["cache_control"]["type"], "ephemeral");
}

#[tokio::test]
async fn where_money_is_limited_a_model_of_unknown_price_is_not_asked() {
    let stage = Stage::with(Stub::start(vec![Reply::say("Hi.")]), |settings| {
        settings.facts.values_mut().for_each(|facts| facts.price = None);
    });
    let mut poor = who("poor");
    poor.purse = Some(Purse::new(Some(1)));
    let mut chat = Chat::open(&stage.haft, poor).await.unwrap();
    let (halt, (watch, _)) = (Halt::new(), watch());
    let door = Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch, meanwhile: None };
    let error = chat.say(vec![Block::Text { text: "Hi.".to_owned() }], door).await.unwrap_err();
    assert!(error.message.contains("nobody knows what stub/stub-1 costs"), "{error:?}");
    assert!(stage.stub.asked().is_empty());
}

#[tokio::test]
async fn what_a_child_reports_uses_up_what_is_left_and_a_person_begins_anew() {
    let stage = Stage::with(
        Stub::with(|asked| Reply::call("calc_eval", json!({"expression": format!("1+{}", asked.number)}))),
        |settings| settings.max_turns = 3,
    );
    let mut chat = Chat::open(&stage.haft, who("talk")).await.unwrap();
    let halt = Halt::new();
    let door = || Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch: watch().0, meanwhile: None };
    let words = |text: &str| vec![Block::Text { text: text.to_owned() }];
    assert_eq!(chat.say(words("Go."), door()).await.unwrap().turns, 3);
    assert_eq!(chat.hear(words("[A report.]"), door()).await.unwrap().turns, 0, "nothing is left");
    assert_eq!(chat.say(words("Go on."), door()).await.unwrap().turns, 3);
}
