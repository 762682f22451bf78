//! Children that are spoken to again, and heard late: what was said outlives them, their parent and the process.

use crate::{Stage, results, say, watch, who};
use haft_core::agent::turns::End;
use haft_core::agent::wire::Wire;
use haft_core::agent::{Block, pairs};
use haft_core::{Origin, SessionId};
use haft_runtime::agent::settings::Provider;
use haft_runtime::agent::{Chat, Door, Purse, tend};
use haft_runtime::{Haft, Halt, Yes};
use haft_stub::{Asked, Reply, Stub};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn is_child(asked: &Asked, task: &str) -> bool {
    asked.says(task) && !asked.says("You are the parent")
}

fn words(text: &str) -> Vec<Block> {
    vec![Block::Text { text: text.to_owned() }]
}

/// Says something while somebody tends those in the background, until they have ended.
async fn tended(layer: &Haft, text: &str) -> End {
    let (halt, over) = (Halt::new(), Halt::new());
    let mut chat = Chat::open(layer, who("talk")).await.unwrap();
    let door = Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch: watch().0, meanwhile: None };
    let said = async {
        let ended = chat.say(words(text), door).await.unwrap();
        let session = SessionId::new("talk").unwrap();
        let mut changes = layer.agents().changes();
        while layer.agents().any_running(&session) {
            changes.changed().await.unwrap();
        }
        over.cancel();
        ended.end
    };
    let (end, ()) = tokio::join!(said, tend(layer, Arc::new(Yes), &over));
    end
}

/// The id of a child, as its parent was told of it.
fn id(report: &str, before: &str) -> String {
    let rest = report.split(before).nth(1).unwrap_or_default();
    rest.split(['.', ' ', ')']).next().unwrap().to_owned()
}

#[tokio::test]
async fn what_a_child_says_after_its_parent_has_ended_is_told_the_next_time_and_once() {
    let stage = Stage::answers(|asked| match () {
        () if is_child(asked, "Take your time") => Reply::say("At last.").slow(Duration::from_millis(120)),
        () if asked.says("runs in the background") => Reply::say("I do not wait."),
        () => Reply::call("agent_spawn", json!({"name": "late", "task": "Take your time", "mode": "background"})),
    });
    assert_eq!(tended(&stage.haft, "You are the parent.").await, End::Done);
    assert!(!stage.last().says("has ended: "), "nobody was there to be told: {:#}", stage.last().body["messages"]);
    // Another process, as with `--resume`.
    let other = stage.another();
    for round in 0..2 {
        say(&other, who("talk"), "And now?", &Yes, &Halt::new()).await;
        let told = stage.last().body.to_string();
        let reports = told.matches("has ended: done").count();
        assert_eq!((reports, told.matches("At last.").count()), (1, 1), "{round}: {told}");
        assert!(told.find("At last.").unwrap() < told.find("And now?").unwrap(), "before what was said");
    }
    assert_eq!(other.store().reports(&SessionId::new("talk").unwrap()).await.unwrap(), []);
    assert_eq!(pairs::check(&crate::said(&other, "talk").await), Ok(()));
}

#[tokio::test]
async fn a_child_that_is_stopped_with_its_process_is_told_as_well() {
    let stage = Stage::answers(|asked| match () {
        () if is_child(asked, "Sleep") => Reply::call("shell_exec", json!({"command": "sleep 20"})),
        () if asked.says("runs in the background") => Reply::say("I go."),
        () => Reply::call("agent_spawn", json!({"name": "idle", "task": "Sleep", "mode": "background"})),
    });
    let (halt, over) = (Halt::new(), Halt::new());
    let mut chat = Chat::open(&stage.haft, who("talk")).await.unwrap();
    let door = Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch: watch().0, meanwhile: None };
    let said = async {
        chat.say(words("You are the parent."), door).await.unwrap();
        over.cancel();
    };
    tokio::join!(said, tend(&stage.haft, Arc::new(Yes), &over));
    say(&stage.another(), who("talk"), "And now?", &Yes, &Halt::new()).await;
    assert!(stage.last().says("has ended: it was cancelled"), "{:#}", stage.last().body);
}

/// A parent that does what it is told with its child, whose role and tools stay what they were.
fn counter() -> Stage {
    Stage::with(
        Stub::with(|asked| match () {
            () if is_child(asked, "Count to three") => match results(asked).len() {
                0 if asked.says("And four?") => Reply::call("file_write", json!({"path": "four.txt", "content": "4"}))
                    .and_call("shell_exec", json!({"command": "touch five.txt"})),
                _ if asked.says("And four?") => Reply::say("Four, after three."),
                _ => Reply::say("One, two, three."),
            },
            () if asked.says("Ask it again") && !asked.says("Four, after three.") => {
                let all = results(asked);
                let known = all.iter().find(|(text, _)| text.contains("counter (ended)"));
                match known {
                    Some((text, _)) => {
                        let id = text.split(' ').next().unwrap();
                        Reply::call("agent_control", json!({"action": "message", "id": id, "message": "And four?"}))
                    }
                    None => Reply::call("agent_control", json!({"action": "list"})),
                }
            }
            () if results(asked).is_empty() => Reply::call(
                "agent_spawn",
                json!({"agents": [{"name": "counter", "task": "Count to three", "tools": ["file.write"], "max_usd": 0.5}]}),
            ),
            () => Reply::say("Good."),
        }),
        |_| {},
    )
}

#[tokio::test]
async fn a_child_that_has_ended_goes_on_from_what_was_said_also_in_another_process() {
    for elsewhere in [false, true] {
        let stage = counter();
        stage.say("You are the parent.").await;
        let other = stage.another();
        let haft = if elsewhere { &other } else { &stage.haft };
        let mut again = who("talk");
        let purse = Purse::new(Some(900_000));
        again.purse = Some(Arc::clone(&purse));
        let (ended, _) = say(haft, again, "Ask it again.", &Yes, &Halt::new()).await;
        assert_eq!(ended.end, End::Done, "{elsewhere}: {:?}", results(&stage.last()));
        let told = results(&stage.last());
        assert!(told.last().unwrap().0.contains("Four, after three."), "{elsewhere}: {told:?}");
        let child = stage.stub.asked().into_iter().rfind(|asked| is_child(asked, "Count to three")).unwrap();
        assert!(child.says("One, two, three."), "it knows what it said");
        let did = results(&child);
        assert_eq!(did.iter().map(|(_, failed)| *failed).collect::<Vec<_>>(), [false, true], "the same gates: {did:?}");
        assert_eq!((stage.read("four.txt").as_deref(), stage.read("five.txt")), (Some("4"), None));
        let children = haft.store().talks("", Some("talk"), 10).await.unwrap();
        assert_eq!((children.len(), children[0].turns), (1, 3), "one conversation");
        assert_eq!(Some(purse.spent()), ended.cost_micros, "it spends what its parent has");
        assert_eq!(stage.stub.faults(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_child_on_a_copy_goes_on_there() {
    let stage = Stage::answers(|asked| {
        let told = results(asked);
        match () {
            () if is_child(asked, "Write it down") => match told.len() {
                0 => Reply::call("file_write", json!({"path": "one.txt", "content": "1"})),
                1 if asked.says("And two") => Reply::call("shell_exec", json!({"command": "cp one.txt two.txt"})),
                _ => Reply::say("Written."),
            },
            () if told.is_empty() => {
                Reply::call("agent_spawn", json!({"name": "clerk", "task": "Write it down", "mode": "worktree"}))
            }
            () if told.len() == 1 => {
                let id = id(&told[0].0, "with the id ");
                Reply::call("agent_control", json!({"action": "message", "id": id, "message": "And two."}))
            }
            () => Reply::say("Good."),
        }
    });
    crate::worktrees::repository(&stage);
    stage.say("You are the parent.").await;
    let told = results(&stage.last());
    assert!(!told[1].1 && told[1].0.contains("one.txt") && told[1].0.contains("two.txt"), "{told:?}");
    assert_eq!((stage.read("one.txt"), stage.read("two.txt")), (None, None));
}

/// The beginning of what is sent: the tools as they are, and the parts of the system prompt.
fn beginning(asked: &Asked) -> (String, Vec<String>) {
    let parts = match asked.body["system"].as_array() {
        Some(parts) => parts.iter().map(|part| part["text"].as_str().unwrap().to_owned()).collect(),
        None => vec![asked.body["messages"][0]["content"].as_str().unwrap().to_owned()],
    };
    (asked.body["tools"].to_string(), parts)
}

#[tokio::test]
async fn what_a_child_is_sent_begins_as_its_parents_does() {
    for (wire, own) in [(Wire::Anthropic, haft_stub::Wire::Anthropic), (Wire::Chat, haft_stub::Wire::Chat)] {
        let stub = Stub::with(|asked| {
            let said = asked.body.to_string();
            match () {
                () if is_child(asked, "Say hello") && said.contains("not available here") => Reply::say("Hello."),
                () if is_child(asked, "Say hello") => Reply::call("agent_spawn", json!({"task": "x"})),
                () if said.contains("Hello.") => Reply::say("It did."),
                () if said.contains("web_fetch") => Reply::call(
                    "agent_spawn",
                    json!({"agents": [{"task": "Say hello", "instructions": "Be brief."}, {"task": "Say hello", "mode": "worktree"}]}),
                ),
                () => Reply::call("tool_search", json!({"query": "fetch a web page"})),
            }
        });
        let url = stub.base(own);
        let stage = Stage::with(stub, |settings| {
            let provider = Provider { wire, url, keys: Vec::new(), headers: BTreeMap::new() };
            settings.providers.insert("stub".to_owned(), provider);
            settings.instructions = vec!["Speak plainly.".to_owned()];
        });
        crate::worktrees::repository(&stage);
        let (ended, _) = stage.say("You are the parent.").await;
        assert_eq!(ended.end, End::Done, "{wire:?}");
        let asked = stage.stub.asked();
        let parent = asked.iter().rfind(|asked| asked.says("You are the parent")).map(beginning).unwrap();
        assert!(parent.0.contains("web_fetch"), "{wire:?}: what it has found, too");
        let children: Vec<&Asked> = asked.iter().filter(|asked| is_child(asked, "Say hello")).collect();
        assert_eq!(children.len(), 4, "{wire:?}");
        for child in children {
            let (tools, parts) = beginning(child);
            assert_eq!(tools, parent.0, "{wire:?}");
            match wire {
                Wire::Anthropic => assert_eq!(parts[..parent.1.len()], parent.1),
                _ => assert!(parts[0].starts_with(&parent.1[0]), "{parts:?}"),
            }
            assert!(parts.last().unwrap().contains("You work for another agent"), "{parts:?}");
        }
        let all: Value = asked.iter().map(|asked| asked.body.clone()).collect();
        assert!(all.to_string().contains("Be brief."), "its own comes after that");
        assert_eq!(stage.stub.faults(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_a_child_keeps_for_itself_nobody_else_finds() {
    let note = |text: &str| json!({"namespace": "plans", "content": text});
    let find = || json!({"query": "treasure"});
    let looks = move |reply: Reply| {
        reply
            .and_call("memory_search", find())
            .and_call("memory_list", json!({}))
            .and_call("memory_read", json!({"namespace": "plans"}))
    };
    let stage = Stage::answers(move |asked| {
        let done = results(asked).len();
        match () {
            () if is_child(asked, "Hide it") => match done {
                0 => looks(Reply::call("memory_store", note("The treasure is under the oak"))),
                _ => Reply::say("Hidden."),
            },
            () if is_child(asked, "Seek it") && done == 0 => looks(Reply::default()),
            () if is_child(asked, "Seek it") => Reply::say("Sought."),
            () => match done {
                0 => Reply::call("memory_store", note("The treasure of the parent")),
                1 => Reply::call("agent_spawn", json!({"agents": [{"task": "Hide it", "isolated_memory": true}]})),
                2 => Reply::call(
                    "agent_spawn",
                    json!({"agents": [{"task": "Seek it", "isolated_memory": true}, {"task": "Seek it"}]}),
                ),
                3 => looks(Reply::call("memory_read", json!({"namespace": "agent-own/x/plans"}))),
                _ => Reply::say("Good."),
            },
        }
    });
    stage.say("You are the parent.").await;
    let asked = stage.stub.asked();
    let of = |task: &'static str| asked.iter().filter(move |asked| is_child(asked, task) && !results(asked).is_empty());
    let text = |asked: &Asked| results(asked).iter().map(|(text, _)| text.clone()).collect::<Vec<_>>().join("|");
    let hidden = of("Hide it").map(text).collect::<String>();
    assert!(hidden.matches("under the oak").count() >= 2 && !hidden.contains("of the parent"), "{hidden}");
    assert!(hidden.contains("kept in plans") && !hidden.contains("agent-own"), "it has names of its own: {hidden}");
    let sought: Vec<String> = of("Seek it").map(text).collect();
    assert_eq!(sought.len(), 2);
    assert!(sought.iter().all(|found| !found.contains("oak")), "{sought:?}");
    assert_eq!(sought.iter().filter(|found| found.contains("of the parent")).count(), 1, "one shares: {sought:?}");
    let parents = results(&stage.last());
    assert!(parents[3].1 && parents[3].0.contains("keep for themselves"), "{parents:?}");
    let parents = parents[4..].iter().map(|(text, _)| text.as_str()).collect::<String>();
    assert!(
        parents.contains("of the parent") && !parents.contains("oak") && !parents.contains("agent-own"),
        "{parents}"
    );
    assert_eq!(stage.stub.faults(), Vec::<String>::new());
}
