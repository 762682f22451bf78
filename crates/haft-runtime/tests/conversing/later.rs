//! What a child asks and somebody allows later, in another process: it happens as it would have happened to the child, or not
//! at all.

use crate::{Stage, results, say, who};
use haft_core::agent::turns::End;
use haft_core::approval::Decider;
use haft_core::pattern::ToolPattern;
use haft_core::policy::{Hooks, Policy};
use haft_core::{Call, ErrorKind, Outcome, SessionId};
use haft_runtime::agent::AgentSettings;
use haft_runtime::agent::settings::Role;
use haft_runtime::{Haft, Halt, Nobody, Settings, Workspace, Yes, new_call_id};
use haft_store::talks::NewTalk;
use haft_store::{Approval, ApprovalState, Store};
use haft_stub::{Reply, Stub};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The same project, where a person confirms what these tests ask.
fn asking(stage: &Stage, change: impl FnOnce(&mut AgentSettings)) -> Haft {
    let mut agent = (*stage.haft.settings().agent).clone();
    change(&mut agent);
    let confirm = ["tool.search", "memory.write", "file.write"].map(|name| ToolPattern::new(name).unwrap());
    let hooks = Hooks { confirm: confirm.into(), ..Hooks::default() };
    let policy = Policy { hooks, ..(**stage.haft.settings().policy()).clone() };
    let mut settings = Settings::with_policy(stage.dir.path().join("data"), Arc::new(policy));
    settings.agent = Arc::new(agent);
    let workspace = Workspace::new(&stage.dir.path().join("project")).unwrap();
    Haft::new(workspace, Store::open(&stage.dir.path().join("haft.db")).unwrap(), settings)
}

/// A parent that asks for these agents, each of which makes one call.
fn stage(orders: Value, (tool, args): (&'static str, Value)) -> Stage {
    let stub = Stub::with(move |asked| {
        let done = results(asked).len();
        match () {
            () if asked.says("You are the parent") && done == 0 => {
                Reply::call("agent_spawn", json!({"agents": orders}))
            }
            () if asked.says("Have it done") && done == 0 => {
                Reply::call("agent_spawn", json!({"agents": [{"name": "inner", "task": "Do it"}]}))
            }
            () if asked.says("Do it") && done == 0 => Reply::call(tool, args.clone()),
            () => Reply::say("Good."),
        }
    });
    Stage::with(stub, |settings| settings.max_depth = 3)
}

/// What waits when nobody was there to answer.
async fn waiting(haft: &Haft) -> Vec<Approval> {
    let (ended, _) = say(haft, who("talk"), "You are the parent.", &Nobody, &Halt::new()).await;
    assert_eq!(ended.end, End::Done);
    haft.flush().await.unwrap();
    haft.store().approvals(true).await.unwrap()
}

async fn call(haft: &Haft, tool: &str, args: Value) -> Outcome {
    haft.call(Call::new(new_call_id(), tool, args), &Yes, &Halt::new()).await
}

#[tokio::test]
async fn a_later_yes_keeps_to_the_memory_of_who_asked() {
    let orders = json!([{"task": "Do it", "isolated_memory": true}, {"task": "Do it"}]);
    let stage = stage(orders, ("memory_write", json!({"namespace": "user", "content": "likes coffee"})));
    let here = asking(&stage, |_| {});
    assert!(call(&here, "memory.write", json!({"namespace": "user", "content": "likes tea"})).await.success);
    let asked = waiting(&here).await;
    let there = asking(&stage, |_| {});
    let orders = |session: &str| {
        let (store, session) = (there.store().clone(), SessionId::new(session).unwrap());
        async move { store.talk(&session).await.unwrap().unwrap().asked.unwrap() }
    };
    let mut own = None;
    for one in &asked {
        if orders(one.session.as_deref().unwrap()).await.contains(r#""isolated_memory":true"#) {
            own = Some(one);
        }
    }
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_ne!(asked[0].basis, asked[1].basis, "another room is another question");
    let done = there.approve(&own.unwrap().id, &Decider::embedder("me"), &Halt::new()).await.unwrap();
    assert!(done.success, "{done:?}");
    let kept = call(&there, "memory.read", json!({"namespace": "user"})).await;
    assert!(kept.output.contains("tea") && !kept.output.contains("coffee"), "{kept:?}");
}

#[tokio::test]
async fn a_later_yes_is_behind_the_gates_of_who_asked() {
    for orders in [
        json!([{"task": "Do it", "tools": ["tool_search", "file.list"]}]),
        json!([{"task": "Have it done", "tools": ["agent.spawn", "tool.search", "file.list"]}]),
    ] {
        let stage = stage(orders, ("tool_search", json!({"query": "list or write files"})));
        let asked = waiting(&asking(&stage, |_| {})).await;
        assert_eq!(asked.len(), 1, "{:?}", results(&stage.last()));
        let there = asking(&stage, |_| {});
        assert!(there.look_at(&asked[0].id, &Decider::embedder("test")).await.unwrap().is_some());
        let done = there.approve(&asked[0].id, &Decider::embedder("me"), &Halt::new()).await.unwrap();
        let found = format!("{} {:?}", done.output, done.data);
        assert!(done.success && found.contains("file.list") && !found.contains("file.write"), "{done:?}");
    }
}

#[tokio::test]
async fn what_is_allowed_later_goes_by_the_role_as_it_is_then() {
    let orders = json!([{"task": "Do it", "role": "scribe"}]);
    let stage = stage(orders, ("file_write", json!({"path": "new.txt", "content": "new\n"})));
    let role =
        |tools: &[&str]| Role { tools: Some(tools.iter().map(ToString::to_string).collect()), ..Role::default() };
    let with = |tools: &[&str]| BTreeMap::from([("scribe".to_owned(), role(tools))]);
    let asked = waiting(&asking(&stage, |settings| settings.roles = with(&["file.*"]))).await;
    let id = asked[0].id.as_str();
    let none = asking(&stage, |_| {});
    let refused = none.approve(id, &Decider::embedder("me"), &Halt::new()).await.unwrap_err();
    assert!(refused.message.contains("there is no role `scribe`"), "{refused:?}");
    assert_eq!(none.store().approval(id).await.unwrap().unwrap().state, ApprovalState::Pending);
    assert!(
        none.look_at(id, &Decider::embedder("test")).await.is_err()
            && none.try_waiting(id, &Decider::embedder("test"), &Halt::new()).await.is_err()
    );
    assert!(none.amend(id, &Decider::embedder("me"), json!({"path": "new.txt", "content": "other\n"})).await.is_err());
    let less = asking(&stage, |settings| settings.roles = with(&["file.read"]));
    let denied = less.approve(id, &Decider::embedder("me"), &Halt::new()).await;
    assert!(!denied.is_ok_and(|outcome| outcome.success));
    assert_eq!(stage.read("new.txt"), None);
}

#[tokio::test]
async fn a_call_of_a_forgotten_agent_is_not_made() {
    let stage = stage(json!([{"task": "Do it"}]), ("file_write", json!({"path": "new.txt", "content": "new\n"})));
    let here = asking(&stage, |_| {});
    let asked = waiting(&here).await.remove(0);
    let forgotten = call(&here, "session.delete", json!({"session": asked.session})).await;
    assert!(forgotten.success, "{forgotten:?}");
    assert_eq!(here.store().approvals(true).await.unwrap(), []);
    let refused = here.approve(&asked.id, &Decider::embedder("me"), &Halt::new()).await.unwrap_err();
    assert!(refused.message.contains("its session was deleted"), "{refused:?}");
    assert!(here.look_at(&asked.id, &Decider::embedder("test")).await.unwrap().is_none(), "it can still be looked up");
    assert_eq!(stage.read("new.txt"), None);
}

#[tokio::test]
async fn an_agent_of_which_nobody_knows_enough_is_not_the_project() {
    let stage = Stage::says(Vec::new());
    let here = asking(&stage, |_| {});
    let talk = |session: &str, above: Option<&str>, asked: Option<&str>| NewTalk {
        session: SessionId::new(session).unwrap(),
        root: String::new(),
        title: String::new(),
        above: above.map(str::to_owned),
        role: None,
        mode: "sync",
        place: None,
        asked: asked.map(str::to_owned),
    };
    let order = Some(r#"{"task":"x"}"#);
    for new in [
        talk("agent-round", Some("agent-round"), order),
        talk("agent-silent", Some("talk"), None),
        talk("agent-later", Some("talk"), Some(r#"{"task":"x","fence":true}"#)),
        talk("agent-alone", None, order),
        talk("agent-below", Some("agent-gone"), order),
    ] {
        here.store().open_talk(new, "me".to_owned()).await.unwrap();
    }
    for session in ["agent-gone", "agent-round", "agent-silent", "agent-later", "agent-alone", "agent-below"] {
        let args = json!({"path": "new.txt", "content": "new\n"});
        let session = SessionId::new(session).unwrap();
        let asked = Call { session, ..Call::new(new_call_id(), "file.write", args) };
        let id = asked.id.clone();
        let outcome = here.call(asked, &Nobody, &Halt::new()).await;
        assert_eq!(outcome.error.unwrap().kind, ErrorKind::ApprovalRequired);
        let refused = here.approve(id.as_str(), &Decider::embedder("me"), &Halt::new()).await.unwrap_err();
        assert!(refused.message.contains("not enough is known"), "{refused:?}");
        assert_eq!(stage.read("new.txt"), None);
        here.reject(id.as_str(), &Decider::embedder("me"), "no").await.unwrap();
    }
}
