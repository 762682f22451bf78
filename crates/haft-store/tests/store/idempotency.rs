//! Claims: an id is one call's, whoever sends it again, and what came of the call is kept for as long as the log says.

use crate::{Scene, wait};
use haft_core::approval::{Decider, Decision, Verdict};
use haft_core::record::{Digest, Kind};
use haft_core::{Call, CallError, CallId, ErrorKind, Outcome, ToolName};
use haft_store::{Approval, ApprovalState, Claim, ClaimedCall, Entry, RedactionScope, Store, Topic};
use serde_json::json;
use std::time::Duration;

const OWNER: &str = "owner-1";

fn id() -> CallId {
    CallId::chosen("mine-1").unwrap()
}

fn content() -> Digest {
    Digest::of(b"what is asked for")
}

fn claim(store: &Store, owner: &str) -> Claim {
    wait(store.claim_call(&id(), content(), owner)).unwrap()
}

fn standing(store: &Store) -> ClaimedCall {
    wait(store.claimed_call(&id(), content())).unwrap().unwrap()
}

fn verdict() -> Verdict {
    Verdict::new(Decision::Allow, "policy", "allowed")
}

fn success(output: &str) -> Outcome {
    Outcome::success(id(), &ToolName::new("file.write").unwrap(), output, verdict())
}

fn required() -> Outcome {
    Outcome::failure(
        id(),
        "file.write",
        CallError::new(ErrorKind::ApprovalRequired, "a person has to decide"),
        verdict(),
    )
}

/// Ends the claim, and waits until that is written.
fn end(store: &Store, outcome: &Outcome) {
    store.end_claim(OWNER, outcome);
    wait(store.flush()).unwrap();
}

fn ended(outcome: &Outcome) -> ClaimedCall {
    ClaimedCall::Ended(Box::new(outcome.clone()))
}

fn ask(store: &Store) {
    let call = Call::new(id(), "file.write", json!({"path": "a.txt"}));
    let approval = Approval {
        id: id().to_string(),
        state: ApprovalState::Pending,
        tool: "file.write".to_owned(),
        preview: "file.write: a.txt".to_owned(),
        reason: "it changes files".to_owned(),
        root: "/project".to_owned(),
        basis: "basis".to_owned(),
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
    };
    wait(store.ask(approval, &call)).unwrap();
}

#[test]
fn claimed_id_is_one_calls_and_its_outcome_outlives_the_process() {
    let scene = Scene::new();
    assert_eq!(claim(&scene.store, OWNER), Claim::New);
    assert_eq!(claim(&scene.store, OWNER), Claim::New, "what a lost connection undid is done again");
    assert_eq!(claim(&scene.store, "owner-2"), Claim::Known(ClaimedCall::Running));
    let other = wait(scene.store.claim_call(&id(), Digest::of(b"something else"), "owner-2")).unwrap();
    assert_eq!(other, Claim::Known(ClaimedCall::Differs));
    let outcome = success("written");
    end(&scene.store, &outcome);
    assert_eq!(claim(&scene.store, "owner-2"), Claim::Known(ended(&outcome)));
    end(&scene.store, &success("something else"));
    let scene = scene.restarted();
    assert_eq!(standing(&scene.store), ended(&outcome), "the first outcome stays");
    assert_eq!(wait(scene.store.claimed_call(&CallId::chosen("other").unwrap(), content())).unwrap(), None);
}

#[test]
fn who_waits_for_a_claimed_call_is_woken_by_its_end() {
    let scene = Scene::new();
    claim(&scene.store, OWNER);
    let mut changed = scene.store.changed(Topic::Calls);
    changed.mark_unchanged();
    scene.store.end_claim(OWNER, &success("written"));
    wait(async { tokio::time::timeout(Duration::from_mins(1), changed.changed()).await }).unwrap().unwrap();
    assert_eq!(standing(&scene.store), ended(&success("written")));
}

#[test]
fn claim_of_a_process_that_is_gone_is_interrupted_and_never_taken_over() {
    let scene = Scene::new();
    claim(&scene.store, OWNER);
    scene.tamper("UPDATE idempotency_keys SET lock = '00aa', process = 'h/00/1/1'");
    for owner in ["owner-2", "owner-3"] {
        assert_eq!(claim(&scene.store, owner), Claim::Known(ClaimedCall::Interrupted));
    }
}

#[test]
fn id_of_a_call_that_nobody_claimed_is_taken() {
    let scene = Scene::new();
    wait(async {
        scene.store.record_later(Entry::new(Kind::Intent).call(&id()).with("tool", "file.write"));
        scene.store.flush().await.unwrap();
    });
    assert_eq!(claim(&scene.store, OWNER), Claim::Taken);
    // A dry run has an outcome and no intent: it made no call.
    let dry = CallId::chosen("mine-2").unwrap();
    wait(async {
        scene.store.record_later(Entry::new(Kind::Outcome).call(&dry).with("dry_run", true));
        scene.store.flush().await.unwrap();
    });
    assert_eq!(wait(scene.store.claim_call(&dry, content(), OWNER)).unwrap(), Claim::New);
}

#[test]
fn claimed_call_that_is_asked_about_stands_where_its_question_stands() {
    let scene = Scene::new();
    let by = Decider::embedder("tester");
    claim(&scene.store, OWNER);
    ask(&scene.store);
    assert_eq!(standing(&scene.store), ClaimedCall::Waiting(None), "its door waits");
    end(&scene.store, &required());
    assert_eq!(standing(&scene.store), ClaimedCall::Waiting(Some(Box::new(required()))));
    assert!(wait(scene.store.approve(id().as_str(), &by, "basis")).unwrap().is_some());
    assert_eq!(standing(&scene.store), ClaimedCall::Running);
    wait(scene.store.open_call(&id(), "file.write", Entry::new(Kind::Intent).call(&id()))).unwrap();
    assert_eq!(standing(&scene.store), ClaimedCall::Running);
    scene.tamper("UPDATE open_calls SET lock = '00aa', process = 'h/00/1/1'");
    assert_eq!(standing(&scene.store), ClaimedCall::Interrupted, "the process that approved it is gone");
    assert_eq!(wait(scene.store.take_interrupted()).unwrap().len(), 1);
    assert_eq!(standing(&scene.store), ClaimedCall::Interrupted, "it is recorded, and nobody makes the call any more");
    scene.store.end_approved_claim(&success("written"));
    wait(scene.store.flush()).unwrap();
    assert_eq!(standing(&scene.store), ended(&success("written")));
}

#[test]
fn rejected_question_is_the_answer_of_its_claimed_call() {
    let scene = Scene::new();
    claim(&scene.store, OWNER);
    ask(&scene.store);
    end(&scene.store, &required());
    assert!(wait(scene.store.reject(id().as_str(), &Decider::embedder("tester"), "not there")).unwrap());
    assert_eq!(standing(&scene.store), ClaimedCall::Rejected("not there".to_owned()));
}

#[test]
fn redaction_and_retention_remove_the_outcome_and_keep_the_claim() {
    for scope in [RedactionScope::Call(id()), RedactionScope::Before(i64::MAX)] {
        let scene = Scene::new();
        claim(&scene.store, OWNER);
        let intent = Entry::new(Kind::Intent).call(&id()).with("tool", "file.write").with("args", "correct horse");
        scene.store.record_later(intent);
        end(&scene.store, &success("correct horse"));
        wait(scene.store.redact(scope, "ada", None)).unwrap();
        assert_eq!(claim(&scene.store, "owner-2"), Claim::Known(ClaimedCall::Redacted));
        let sql = "SELECT 1 FROM idempotency_keys WHERE outcome IS NULL AND digest IS NULL";
        let rows = scene.tamper(&format!("UPDATE idempotency_keys SET owner = 'x' WHERE EXISTS ({sql})"));
        assert_eq!(rows, 1, "nothing of it is left");
    }
}

#[test]
fn large_outcome_is_kept_in_part_and_says_where_the_rest_is() {
    let scene = Scene::new();
    claim(&scene.store, OWNER);
    let mut outcome = success(&format!("AKIAIOSFODNN7EXAMPLE {}", "ä".repeat(300_000)));
    outcome.data = Some(json!({"all": "x".repeat(300_000)}));
    end(&scene.store, &outcome);
    let ClaimedCall::Ended(kept) = standing(&scene.store) else { unreachable!("it has ended") };
    assert!(serde_json::to_string(&kept).unwrap().len() < 256 << 10);
    assert!(kept.truncated && kept.success && kept.data.is_none() && !kept.output.contains("AKIA"));
    assert!(kept.warnings[0].contains("`haft log mine-1`"), "{:?}", kept.warnings);
}
