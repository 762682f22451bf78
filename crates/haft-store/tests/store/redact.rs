//! What records say can be removed; the chain holds, says what was removed, and betrays whoever puts something else there.

use crate::{Scene, wait};
use haft_core::CallId;
use haft_core::record::Kind;
use haft_store::{Entry, Head, Redacted, RedactionScope, Store, Verified};

/// A text that has to be gone.
const SECRET: &str = "correct horse battery staple";

fn filled() -> Scene {
    let scene = Scene::new();
    for number in 0..4 {
        let call = CallId::new(number, 0);
        let intent = Entry::new(Kind::Intent).call(&call).with("tool", "shell.exec").with("args", SECRET);
        scene.store.record_later(intent);
        scene.store.record_later(Entry::new(Kind::Outcome).call(&call).with("success", true).with("error", SECRET));
    }
    wait(scene.store.flush()).unwrap();
    scene
}

fn verified(store: &Store, expected: Option<Head>) -> Result<Verified, String> {
    wait(store.verify(expected)).unwrap().map_err(|broken| format!("{}: {}", broken.seq, broken.why))
}

fn redact(scene: &Scene, scope: RedactionScope) -> Redacted {
    wait(scene.store.redact(scope, "ada", Some("a customer's data"))).unwrap()
}

#[test]
fn redacted_call_says_nothing_and_the_chain_holds() {
    let scene = filled();
    let before = wait(scene.store.head()).unwrap();
    let call = CallId::new(2, 0);
    let done = redact(&scene, RedactionScope::Call(call.clone()));
    assert_eq!((done.records, done.calls, done.open), (2, vec![call.clone()], false));
    let verified = verified(&scene.store, Some(before)).unwrap();
    assert_eq!((verified.head.seq, verified.redactions.len()), (9, 1));
    let said = &verified.redactions[0];
    assert_eq!((said.by.as_str(), said.why.as_deref(), said.records), ("ada", Some("a customer's data"), 2));
    assert_eq!(said.call.as_deref(), Some(call.as_str()));
    let records = wait(scene.store.records(0, 100, Some(call))).unwrap();
    assert_eq!(records.len(), 3, "the redaction is one of the call's records");
    assert_eq!((&records[0].body["tool"], &records[0].body["redacted"]), (&"shell.exec".into(), &true.into()));
    assert!(records[0].body.get("args").is_none() && records[1].body.get("error").is_none());
    let others = wait(scene.store.records(0, 100, Some(CallId::new(1, 0)))).unwrap();
    assert_eq!(others[0].body["args"], SECRET);
}

#[test]
fn altered_body_that_is_put_back_breaks_the_chain() {
    let scene = filled();
    scene.tamper("CREATE TABLE taken AS SELECT body, salt FROM journal WHERE seq = 5");
    redact(&scene, RedactionScope::Record(5));
    assert!(verified(&scene.store, None).is_ok());
    let put = |body: &str| {
        let sql = format!("UPDATE journal SET body = {body}, salt = (SELECT salt FROM taken) WHERE seq = 5");
        assert_eq!(scene.tamper(&sql), 1);
        verified(&scene.store, None).map(drop)
    };
    let altered = put("(SELECT replace(body, 'horse', 'mouse') FROM taken)").unwrap_err();
    assert!(altered.starts_with("5: what stands beside it"), "{altered}");
    assert_eq!(put("(SELECT body FROM taken)"), Ok(()), "what was recorded is what was recorded");
}

#[test]
fn redaction_cannot_be_claimed_without_a_record() {
    let scene = filled();
    redact(&scene, RedactionScope::Record(3));
    scene.tamper("UPDATE journal SET body = NULL, salt = NULL WHERE seq = 4");
    let why = verified(&scene.store, None).unwrap_err();
    assert!(why.starts_with("4: what it said is missing"), "{why}");
    let scene = filled();
    redact(&scene, RedactionScope::Record(3));
    scene.tamper("UPDATE journal SET text = replace(text, '[3,3]', '[3,4]') WHERE seq = 9");
    let why = verified(&scene.store, None).unwrap_err();
    assert!(why.starts_with("9: its text does not give its hash"), "{why}");
}

#[test]
fn open_calls_and_redactions_are_left_alone() {
    let scene = filled();
    let open = CallId::new(77, 0);
    let intent = Entry::new(Kind::Intent).call(&open).with("args", SECRET);
    wait(scene.store.open_call(&open, "shell.exec", intent)).unwrap();
    let done = redact(&scene, RedactionScope::Call(open.clone()));
    assert_eq!((done.records, done.open), (0, true));
    assert_eq!(redact(&scene, RedactionScope::Before(i64::MAX)).records, 8);
    assert_eq!(
        redact(&scene, RedactionScope::Before(i64::MAX)),
        Redacted::default(),
        "there is nothing left, and nothing is said"
    );
    let verified = verified(&scene.store, None).unwrap();
    assert_eq!((verified.head.seq, verified.redactions.len()), (10, 1));
}

#[test]
fn many_records_are_redacted_in_portions() {
    let scene = Scene::new();
    for number in 0..1300 {
        let entry = Entry::new(Kind::Approval).with("said", "asked");
        scene.store.record_later(if number % 2 == 0 { entry } else { entry.with("note", SECRET) });
    }
    wait(scene.store.flush()).unwrap();
    assert_eq!(redact(&scene, RedactionScope::Before(i64::MAX)).records, 650);
    assert!(verified(&scene.store, None).is_ok());
}
