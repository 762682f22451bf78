//! Agents that work for an agent.

use crate::{Stage, names, results, say, watch, who};
use haft_core::agent::Block;
use haft_core::agent::turns::End;
use haft_core::outcome::Label;
use haft_core::{Origin, SessionId};
use haft_runtime::agent::{Chat, Door, Purse, Role, Told, tend};
use haft_runtime::{Halt, Yes};
use haft_stub::{Asked, Reply, Stub};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Whether a request is a child's: it was told a task, and not what its parent was told.
fn is_child(asked: &Asked, task: &str) -> bool {
    asked.says(task) && !asked.says("You are the parent")
}

#[tokio::test]
async fn children_run_at_once_and_report_in_the_order_they_were_asked() {
    let stage = Stage::answers(|asked| match () {
        () if is_child(asked, "Read the slow one") => match results(asked).len() {
            0 => Reply::call("file_read", json!({"path": "slow.txt"})).slow(Duration::from_millis(40)),
            _ => Reply::say("Slow says tortoise."),
        },
        () if is_child(asked, "Read the quick one") => match results(asked).len() {
            0 => Reply::call("file_read", json!({"path": "quick.txt"})),
            _ => Reply::say("Quick says hare."),
        },
        () if results(asked).is_empty() => Reply::call(
            "agent_spawn",
            json!({"agents": [
                {"name": "Slow One", "task": "Read the slow one", "role": "researcher"},
                {"name": "quick", "task": "Read the quick one"}]}),
        ),
        () => Reply::say("Both are read."),
    });
    stage.file("slow.txt", "tortoise\n");
    stage.file("quick.txt", "hare\n");
    let (ended, told) = stage.say("You are the parent. Have both read.").await;
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "Both are read."));
    let [(report, failed)] = &results(&stage.last())[..] else { panic!("one report") };
    assert_eq!(
        (report.as_str(), *failed),
        ("## slow-one\n\nSlow says tortoise.\n\n## quick\n\nQuick says hare.", false)
    );
    for name in ["subagent_start", "subagent_event", "subagent_end"] {
        assert!(names(&told).iter().any(|one| one == name), "{:?}", names(&told));
    }
    let children = stage.haft.store().talks("", Some("talk"), 10).await.unwrap();
    assert_eq!(children.len(), 2);
    assert!(children.iter().all(|child| child.state == "done" && child.turns == 2), "{children:?}");
    assert_eq!(stage.stub.faults(), Vec::<String>::new());
    // Both share the first part of what is sent with their parent, which the provider therefore knows.
    let systems: Vec<_> = stage.stub.asked().iter().map(|asked| asked.body["system"][0].clone()).collect();
    assert!(systems.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn a_child_never_has_more_than_its_parent_and_its_role() {
    let stage = Stage::with(
        Stub::with(|asked| match () {
            () if is_child(asked, "Try everything") => match results(asked).len() {
                0 => Reply::call("shell_exec", json!({"command": "touch shelled"}))
                    .and_call("file_write", json!({"path": "written", "content": "x"}))
                    .and_call("tool_call", json!({"name": "file.write", "args": {"path": "around", "content": "x"}}))
                    .and_call("agent_spawn", json!({"task": "Try everything", "role": "operator"}))
                    .and_call("file_read", json!({"path": "a.txt"})),
                _ => Reply::say("Tried."),
            },
            () if results(asked).is_empty() => {
                Reply::call("agent_spawn", json!({"task": "Try everything", "role": "looker"}))
            }
            () => Reply::say("Done."),
        }),
        |settings| {
            let role = Role {
                prompt: "You look and touch nothing.".to_owned(),
                deny: ["file.write", "file.edit", "file.batch", "group:runtime"].map(str::to_owned).to_vec(),
                ..Role::default()
            };
            settings.roles.insert("looker".to_owned(), role);
        },
    );
    stage.file("a.txt", "seen\n");
    let (ended, _) = stage.say("You are the parent. Let it try.").await;
    assert_eq!(ended.end, End::Done);
    let child = stage.stub.asked().into_iter().rfind(|asked| is_child(asked, "Try everything")).unwrap();
    let told = results(&child);
    assert_eq!(told.iter().map(|(_, failed)| *failed).collect::<Vec<_>>(), [true, true, true, true, false], "{told:?}");
    for gone in ["shelled", "written", "around"] {
        assert_eq!(stage.read(gone), None, "{gone}");
    }
    assert!(child.says("You look and touch nothing."));
    assert!(!child.tools().iter().any(|tool| tool == "shell_exec" || tool == "agent_spawn"), "{:?}", child.tools());
}

#[tokio::test]
async fn no_child_has_agents_of_others_however_deep_they_may_go() {
    let stage = Stage::with(
        Stub::with(|asked| match () {
            () if is_child(asked, "Hand it on") => match results(asked).len() {
                0 => Reply::call("tool_search", json!({"query": "claude code codex gemini external agent"})),
                _ => Reply::say("Looked."),
            },
            () => match results(asked).len() {
                0 => Reply::call("tool_search", json!({"query": "claude code codex gemini external agent"})),
                1 => Reply::call("agent_spawn", json!({"task": "Hand it on"})),
                _ => Reply::say("Done."),
            },
        }),
        |settings| settings.max_depth = 3,
    );
    stage.say("You are the parent.").await;
    let all = stage.stub.asked();
    let child = all.iter().rfind(|asked| is_child(asked, "Hand it on")).unwrap();
    let found = |told: &(String, bool)| told.0.contains("agent_delegate") || told.0.contains("agent.delegate");
    assert!(found(&results(&stage.last())[0]), "its parent has it");
    assert!(!found(&results(child)[0]), "{:?}", results(child));
    assert!(child.tools().iter().any(|tool| tool == "agent_spawn"), "it may have children of its own");
}

#[tokio::test]
async fn a_role_that_is_none_and_a_task_that_is_none_are_said() {
    let stage = Stage::answers(|asked| match results(asked).len() {
        0 => Reply::call("agent_spawn", json!({"task": "x", "role": "wizard"}))
            .and_call("agent_spawn", json!({"name": "idle"})),
        _ => Reply::say("Oh."),
    });
    stage.say("You are the parent.").await;
    let told = results(&stage.last());
    assert!(
        told[0].1 && told[0].0.contains("there is no role `wizard`") && told[0].0.contains("researcher"),
        "{told:?}"
    );
    assert!(told[1].1 && told[1].0.contains("`task` is missing"), "{told:?}");
}

#[tokio::test]
async fn a_childs_money_is_its_parents() {
    let stage = Stage::answers(|asked| match () {
        () if is_child(asked, "Spend") => {
            Reply::call("calc_eval", json!({"expression": format!("1+{}", asked.number)}))
        }
        () if results(asked).is_empty() => Reply::call(
            "agent_spawn",
            json!({"agents": [
            {"name": "a", "task": "Spend", "max_usd": 0.012}, {"name": "b", "task": "Spend", "max_usd": 0.012}]}),
        ),
        () => Reply::say("They did."),
    });
    let purse = Purse::new(Some(60_000));
    let mut rich = who("talk");
    rich.purse = Some(Arc::clone(&purse));
    let (ended, told) = say(&stage.haft, rich, "You are the parent.", &Yes, &Halt::new()).await;
    assert_eq!(ended.end, End::Done, "{:?}", names(&told));
    let spent: Vec<u64> = told
        .iter()
        .filter_map(|told| match told {
            Told::SubagentEnd { ended, .. } => ended.cost_micros,
            _ => None,
        })
        .collect();
    assert!(spent.len() == 2 && spent.iter().all(|spent| *spent > 0 && *spent <= 12_000), "{spent:?}");
    assert!(purse.spent() <= 60_000);
    assert_eq!(Some(purse.spent()), ended.cost_micros, "what its children cost, it cost");
    assert!(spent.iter().sum::<u64>() < purse.spent());
    assert!(results(&stage.last())[0].0.contains("no money left"), "{:?}", results(&stage.last()));
}

#[tokio::test]
async fn tokens_are_set_aside_before_they_are_used_and_shared_by_all() {
    let most = 40_000;
    let stage = Stage::with(
        Stub::with(|asked| match () {
            () if is_child(asked, "Count on") => {
                Reply::call("calc_eval", json!({"expression": format!("1+{}", asked.number)}))
            }
            () if results(asked).is_empty() => Reply::call(
                "agent_spawn",
                json!({"agents": [
                {"name": "a", "task": "Count on"}, {"name": "b", "task": "Count on"},
                {"name": "c", "task": "Count on", "max_tokens": 9_000}]}),
            ),
            () => Reply::say("They did."),
        }),
        |settings| settings.max_tokens = Some(most),
    );
    let (_, told) = stage.say("You are the parent.").await;
    let ends: Vec<(End, u64)> = told
        .iter()
        .filter_map(|told| match told {
            Told::SubagentEnd { ended, .. } => Some((ended.end.clone(), ended.usage.read() + ended.usage.output)),
            _ => None,
        })
        .collect();
    assert!(ends.len() == 3 && ends.iter().all(|(end, used)| *end == End::Tokens && *used > 0), "{ends:?}");
    assert!(ends.iter().any(|(_, used)| *used <= 9_000), "{ends:?}");
    // Each answer is counted as 2175 by the provider.
    let used = 2175 * u64::try_from(stage.stub.asked().len()).unwrap();
    assert!(used <= most && used > most / 2, "{used}");
}

#[tokio::test]
async fn what_a_child_heard_its_parent_has_heard() {
    let stage = Stage::answers(|asked| match () {
        () if is_child(asked, "Look outside") => match results(asked).len() {
            0 => Reply::call("file_read", json!({"path": "/etc/hostname"})),
            _ => Reply::say("I have seen it."),
        },
        () if results(asked).is_empty() => Reply::call("agent_spawn", json!({"task": "Look outside"})),
        () => Reply::say("Good."),
    });
    let (_, told) = stage.say("You are the parent.").await;
    let labels = told.iter().find_map(|told| match told {
        Told::ToolEnd { outcome, .. } if outcome.tool == "agent.spawn" => Some(outcome.labels.clone()),
        _ => None,
    });
    assert_eq!(labels, Some(vec![Label::Outside]));
}

#[tokio::test]
async fn one_in_the_background_is_listed_spoken_to_waited_for_and_stopped() {
    let stage = Stage::answers(|asked| {
        let told = results(asked);
        if is_child(asked, "Wait for a word") {
            return match told.len() {
                _ if asked.says("The word is abracadabra") => Reply::say("I heard it."),
                n if n < 40 => Reply::call("shell_exec", json!({"command": format!("sleep 0.1; echo {n}")})),
                _ => Reply::say("Nobody spoke."),
            };
        }
        if is_child(asked, "Wait for ever") {
            return Reply::call("shell_exec", json!({"command": format!("sleep 30; echo {}", told.len())}));
        }
        let id = |n: usize| told[n].0.split("as ").nth(1).and_then(|rest| rest.split('.').next()).unwrap().to_owned();
        match told.len() {
            0 => Reply::call("agent_spawn", json!({"name": "ears", "task": "Wait for a word", "mode": "background"}))
                .and_call("agent_spawn", json!({"name": "idle", "task": "Wait for ever", "mode": "background"})),
            2 => Reply::call("agent_control", json!({"action": "list"}))
                .and_call(
                    "agent_control",
                    json!({"action": "message", "id": id(0), "message": "The word is abracadabra"}),
                )
                .and_call("agent_control", json!({"action": "cancel", "id": id(1)})),
            5 => Reply::call("agent_control", json!({"action": "wait", "id": id(0)}))
                .and_call("agent_control", json!({"action": "wait", "id": id(1)})),
            _ => Reply::say("All are done."),
        }
    });
    let halt = Halt::new();
    let (watch, told) = watch();
    let mut chat = Chat::open(&stage.haft, who("talk")).await.unwrap();
    let door = Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch, meanwhile: None };
    let over = Halt::new();
    let tended = tend(&stage.haft, Arc::new(Yes), &over);
    let said = async {
        let ended = chat.say(vec![Block::Text { text: "You are the parent.".to_owned() }], door).await.unwrap();
        over.cancel();
        ended
    };
    let (ended, ()) = tokio::join!(said, tended);
    assert_eq!((ended.end, ended.text.as_str()), (End::Done, "All are done."));
    let all = results(&stage.stub.asked().into_iter().rfind(|asked| asked.says("You are the parent")).unwrap());
    assert!(all[2].0.contains("ears (running)") && all[2].0.contains("idle (running)"), "{all:?}");
    assert!(all[5].0.contains("I heard it."), "{all:?}");
    assert!(all[6].0.contains("cancelled"), "{all:?}");
    assert!(told.lock().unwrap().iter().any(|told| matches!(told, Told::SubagentEnd { .. })));
    assert!(!stage.haft.agents().any_running(&SessionId::new("talk").unwrap()));
}

#[tokio::test]
async fn without_anybody_to_tend_it_nothing_runs_in_the_background() {
    let stage = Stage::answers(|asked| match results(asked).len() {
        0 => Reply::call("agent_spawn", json!({"task": "x", "mode": "background"})),
        _ => Reply::say("I see."),
    });
    stage.say("You are the parent.").await;
    let told = results(&stage.last());
    assert!(told[0].1 && told[0].0.contains("use the mode sync"), "{told:?}");
}

#[tokio::test]
async fn stopping_a_parent_stops_its_children() {
    let stage = Stage::answers(|asked| match () {
        () if is_child(asked, "Sleep long") => Reply::call("shell_exec", json!({"command": "sleep 20"})),
        () => Reply::call("agent_spawn", json!({"task": "Sleep long"})),
    });
    let halt = Halt::new();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        halt.cancel();
    };
    let ((ended, _), ()) = tokio::join!(say(&stage.haft, who("talk"), "You are the parent.", &Yes, &halt), stop);
    assert_eq!(ended.end, End::Cancelled);
    assert!(ended.duration_ms < 8000, "{}", ended.duration_ms);
    assert!(!stage.haft.agents().any_running(&SessionId::new("talk").unwrap()));
}

#[tokio::test]
async fn a_step_that_is_a_prompt_is_done_by_an_agent_within_the_runs_money() {
    let stage = Stage::answers(|asked| match () {
        () if asked.says("Name the colour of blue") => Reply::say("azure"),
        () => Reply::say("second"),
    });
    let plan = json!({"budget": {"usd": 0.01}, "steps": [
        {"id": "name", "prompt": "Name the colour of blue"},
        {"id": "note", "tool": "file.write", "args": {"path": "colour.txt", "content": "{{name.output}}"}},
        {"id": "last", "prompt": "Say second after {{note.output}}"}]});
    let call = haft_core::Call::new(haft_runtime::new_call_id(), "pipeline.run", plan);
    let outcome = stage.haft.call(call, &Yes, &Halt::new()).await;
    assert!(outcome.success, "{outcome:?}");
    let text = stage.read("colour.txt").unwrap();
    assert!(text.contains("azure"), "{text}");
    let asked = stage.stub.asked();
    assert_eq!(asked.len(), 2);
    assert!(
        asked.iter().all(|asked| !asked.tools().contains(&"shell_exec".to_owned())),
        "a shell that nobody asked for"
    );
}
