//! What people decide is kept, and counts once.

use crate::{Scene, wait};
use haft_core::approval::Decider;
use haft_core::approval::{Decision, Verdict};
use haft_core::grant::{Grant, GrantScope};
use haft_core::record::Digest;
use haft_core::{Call, CallId, Outcome, SessionId, ToolName};
use haft_store::{Approval, ApprovalState, Pin, Sighting, Store};
use std::path::Path;
use std::time::Duration;

fn unanswered(call: &Call) -> Approval {
    Approval {
        id: call.id.to_string(),
        state: ApprovalState::Pending,
        tool: "file.write".into(),
        preview: "file.write: a".into(),
        reason: "it writes".into(),
        root: "/p".into(),
        basis: "b".into(),
        asked_ms: 0,
        decided_by: None,
        outcome: None,
        session: None,
        origin: None,
        caller: None,
        sources: Vec::new(),
        host: None,
        consent: None,
        form: None,
        executed: Vec::new(),
        trial: None,
    }
}

fn ask(scene: &Scene) -> String {
    let call = Call::new(CallId::new(7, 7), "file.write", serde_json::json!({"path": "a"}));
    wait(scene.store.ask(unanswered(&call), &call)).unwrap();
    call.id.to_string()
}

#[test]
fn an_approval_is_given_exactly_once_however_many_try() {
    let scene = Scene::new();
    let id = ask(&scene);
    let path = scene.path();
    let calls: Vec<_> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..10)
            .map(|number| {
                let (path, id) = (&path, &id);
                scope.spawn(move || {
                    let by = Decider::embedder(format!("p{number}"));
                    wait(Store::open(path).unwrap().approve(id, &by, "b")).unwrap()
                })
            })
            .collect();
        tries.into_iter().filter_map(|attempt| attempt.join().unwrap()).collect()
    });
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].args["path"], "a");
    assert!(!wait(scene.store.reject(&id, &Decider::embedder("late"), "")).unwrap());
    // Once decided, the arguments are no longer kept.
    let look = |db: &haft_store::Db<'_>| db.one("SELECT call FROM approvals", &[], |row| row.get::<Option<String>>(0));
    let kept = wait(scene.store.run(haft_store::Mode::Read, look)).unwrap();
    assert_eq!(kept, None);
}

#[test]
fn approval_of_an_observed_call_is_found_only_as_long_as_it_holds() {
    let scene = Scene::new();
    let session = SessionId::new("claude-s").unwrap();
    let call = Call {
        session: session.clone(),
        origin: haft_core::Origin::Hook,
        ..Call::new(CallId::new(7, 7), "claude:Bash", serde_json::json!({"command": "make"}))
    };
    let approval = Approval {
        id: call.id.to_string(),
        session: Some(session.to_string()),
        origin: Some("hook".into()),
        ..unanswered(&call)
    };
    wait(scene.store.ask(approval, &call)).unwrap();
    let found = |holds| wait(scene.store.observed_question(&session, "b", holds)).unwrap().is_some();
    assert!(found(Duration::ZERO), "what waits does not end");
    wait(scene.store.approve(call.id.as_str(), &Decider::embedder("a person"), "b")).unwrap().unwrap();
    assert!(found(Duration::from_mins(10)));
    std::thread::sleep(Duration::from_millis(5));
    assert!(!found(Duration::from_millis(1)));
}

#[test]
fn a_question_survives_a_restart() {
    let scene = Scene::new();
    let id = ask(&scene);
    let scene = scene.restarted();
    let store = &scene.store;
    let waiting = wait(store.approvals(true)).unwrap();
    assert_eq!(waiting.iter().map(|approval| approval.id.as_str()).collect::<Vec<_>>(), [id.as_str()]);
}

fn grant(uses_left: Option<u32>, expires_ms: Option<i64>) -> Grant {
    let tool = ToolName::new("file.write").unwrap();
    let scope = GrantScope::Guarded;
    Grant { id: "g-1".into(), tool, pattern: "a".into(), session: None, uses_left, expires_ms, scope, executed: None }
}

#[test]
fn a_grant_is_used_up_and_every_use_is_recorded() {
    let scene = Scene::new();
    let root = Path::new("/p");
    wait(scene.store.grant(root, grant(Some(2), None))).unwrap();
    let used: Vec<bool> = (0..3).map(|n| wait(scene.store.use_grant("g-1", &CallId::new(n, 0))).unwrap()).collect();
    assert_eq!(used, [true, true, false]);
    let said: Vec<String> = wait(scene.store.records(0, 10, None))
        .unwrap()
        .iter()
        .map(|r| r.body["said"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(said, ["given", "approved", "approved", "exhausted"]);
    assert!(wait(scene.store.grants(Path::new("/other"), None)).unwrap().is_empty(), "a grant belongs to a project");
}

#[test]
fn an_expired_grant_is_no_grant() {
    let scene = Scene::new();
    wait(scene.store.grant(Path::new("/p"), grant(None, Some(1)))).unwrap();
    assert!(!wait(scene.store.use_grant("g-1", &CallId::new(0, 0))).unwrap());
    assert!(wait(scene.store.revoke("g-1")).unwrap());
    assert!(!wait(scene.store.revoke("g-1")).unwrap());
}

#[test]
fn a_partial_look_does_not_make_one_forget_the_whole() {
    let scene = Scene::new();
    let (session, path) = (SessionId::default(), Path::new("/p/a"));
    let digest = Some(haft_core::record::Digest::of(b"x"));
    let note = |digest, whole| {
        scene.store.note_sighting(session.clone(), path.to_owned(), Sighting { digest, size: 1, mtime_ns: 1, whole });
    };
    let whole = || scene.store.sighting_blocking(&session, path).unwrap().unwrap().whole;
    note(digest, true);
    note(digest, false);
    assert!(whole(), "the same content, seen in part, is still known whole");
    note(Some(haft_core::record::Digest::of(b"y")), false);
    assert!(!whole(), "other content, seen in part, is not");
}

#[test]
fn a_deleted_session_is_forgotten_but_its_records_stay() {
    let scene = Scene::new();
    scene.store.touch_session(&SessionId::default());
    wait(scene.store.flush()).unwrap();
    assert_eq!(wait(scene.store.sessions()).unwrap()[0].calls, 1);
    assert!(wait(scene.store.delete_session(SessionId::default())).unwrap());
    assert!(wait(scene.store.sessions()).unwrap().is_empty());
    assert_eq!(wait(scene.store.head()).unwrap().seq, 1);
}

#[test]
fn what_is_kept_of_an_outcome_is_bounded_and_has_no_secrets() {
    let verdict = Verdict::new(Decision::Allow, "person", "yes");
    let mut outcome =
        Outcome::success(CallId::new(7, 7), &ToolName::new("file.write").unwrap(), "ä".repeat(1 << 20), verdict);
    outcome.data = Some(serde_json::json!({"key": ["AKIAABCDEFGHIJKLMNOP"]}));
    let finish = |outcome: &Outcome| {
        let scene = Scene::new();
        let id = ask(&scene);
        wait(scene.store.approve(&id, &Decider::embedder("person"), "b")).unwrap().unwrap();
        wait(scene.store.finish_approval(&id, &Decider::embedder("somebody else"), outcome)).unwrap();
        assert_eq!(
            wait(scene.store.approval(&id)).unwrap().unwrap().outcome,
            None,
            "only who approved it has an outcome"
        );
        wait(scene.store.finish_approval(&id, &Decider::embedder("person"), outcome)).unwrap();
        wait(scene.store.approval(&id)).unwrap().unwrap().outcome.unwrap()
    };
    let kept = finish(&outcome);
    assert_eq!((kept["output"].as_str().unwrap().len(), &kept["truncated"]), (256 << 10, &true.into()));
    assert_eq!(kept["data"]["key"][0], "[secret]");
    outcome.data = Some("x".repeat(1 << 20).into());
    let kept = finish(&outcome);
    assert!(kept.get("data").is_none() && kept["warnings"].to_string().contains("too large to be kept"), "{kept}");
}

#[test]
fn every_change_of_what_was_accepted_is_seen_whatever_the_clock_says() {
    let scene = Scene::new();
    let pin = |tool: &str, text: &str| Pin {
        tool: tool.to_owned(),
        digest: Digest::of(text.as_bytes()),
        declaration: serde_json::json!({}),
    };
    let as_of = || wait(scene.store.pins_as_of()).unwrap();
    let mut seen = vec![as_of()];
    let mut changed = |what: &str| {
        let now = as_of();
        assert!(!seen.contains(&now), "{what}");
        assert_eq!(as_of(), now, "looking changes nothing");
        seen.push(now);
    };
    wait(scene.store.pin("s", vec![pin("a", "1"), pin("b", "1")])).unwrap();
    changed("made");
    // As if the clock had been set back since.
    scene.tamper("UPDATE pins SET at_ms = 9000000000000000 WHERE tool = 'b'");
    changed("altered by hand");
    wait(scene.store.pin("s", vec![pin("a", "2")])).unwrap();
    changed("replaced");
    wait(Store::open(&scene.path()).unwrap().unpin_tools("s", vec!["a".to_owned()])).unwrap();
    changed("forgotten by another process");
    wait(scene.store.pin("s", vec![pin("a", "1")])).unwrap();
    changed("made again");
    wait(scene.store.unpin("s")).unwrap();
    changed("all forgotten");
}
