//! Stores are taken elsewhere: to a server, back, and not by halves.

use crate::real::Database;
use crate::{Scene, wait};
use haft_core::record::Kind;
use haft_core::{Call, CallId};
use haft_store::{Approval, ApprovalState, CopyError, Entry, Mode, Store, copy};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A store with something in every kind of column.
fn filled(place: &Path, records: u32) -> Store {
    let store = Store::open(place).unwrap();
    for number in 0..records {
        let call = CallId::parse(&format!("01K00000000000000000{number:06}")).unwrap();
        let entry = Entry::new(Kind::Intent).call(&call).with("session", "s").with("text", "ünïcode \u{0}\n\"");
        store.record_later(entry);
    }
    wait(store.flush()).unwrap();
    let root = Path::new("/p");
    wait(store.trust(root, Some(haft_core::record::Digest::of(b"x")))).unwrap();
    let call: Call = serde_json::from_value(serde_json::json!({
        "id": "01K00000000000000000000000", "spoken": "file.write", "args": {"path": "a"}, "dialect": "haft",
        "session": "s", "caller": {}, "origin": "cli",
    }))
    .unwrap();
    assert!(wait(store.ask(question(), &call)).unwrap());
    store
}

fn question() -> Approval {
    Approval {
        id: "01K00000000000000000000000".to_owned(),
        state: ApprovalState::Pending,
        tool: "file.write".to_owned(),
        preview: "write".to_owned(),
        reason: "because".to_owned(),
        root: "/p".to_owned(),
        basis: "b".to_owned(),
        asked_ms: 0,
        decided_by: None,
        outcome: None,
        session: None,
        origin: None,
        caller: None,
        sources: vec!["web".to_owned()],
        host: None,
        consent: None,
        form: None,
        executed: Vec::new(),
        trial: None,
    }
}

fn quietly(_: &str, _: i64, _: i64) {}

#[test]
fn to_a_server_and_back_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (file, back) = (dir.path().join("a.db"), dir.path().join("b.db"));
    let store = filled(&file, 300);
    let Some(database) = Database::new() else { return };
    let server = PathBuf::from(database.address());
    let there = copy(&file, &server, &mut quietly).unwrap();
    let returned = copy(&server, &back, &mut quietly).unwrap();
    assert_eq!(there.head, wait(store.head()).unwrap());
    assert_eq!(there.head, returned.head);
    let sorted = |mut tables: Vec<(String, i64)>| {
        tables.sort();
        tables
    };
    assert_eq!(sorted(there.tables), sorted(returned.tables));
    let back = Store::open(&back).unwrap();
    assert_eq!(wait(back.approvals(true)).unwrap(), wait(store.approvals(true)).unwrap());
    assert_eq!(wait(back.records(0, 1000, None)).unwrap(), wait(store.records(0, 1000, None)).unwrap());
    // On the server the log goes on where it ended, and is searched by what it says.
    let moved = Store::open(&server).unwrap();
    let head = wait(moved.record(Entry::new(Kind::Intent), Mode::Durable)).unwrap();
    assert_eq!(head.seq, there.head.seq + 1);
    assert!(wait(moved.verify(Some(there.head))).unwrap().is_ok());
    let one = CallId::parse("01K00000000000000000000007").unwrap();
    assert_eq!(wait(moved.records(0, 10, Some(one))).unwrap().len(), 1);
    assert!(wait(moved.check()).unwrap().problems.is_empty());
}

#[test]
fn what_is_in_use_is_not_written_over() {
    let scene = Scene::new();
    wait(scene.store.record(Entry::new(Kind::Intent), Mode::Durable)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.db");
    drop(filled(&file, 3));
    let error = copy(&file, &scene.path(), &mut quietly).unwrap_err();
    assert!(matches!(&error, CopyError::Full { table, rows: 1, .. } if table == "journal"), "{error}");
    assert_eq!(wait(scene.store.head()).unwrap().seq, 1);
}

#[test]
fn who_is_cut_off_leaves_nothing_and_can_begin_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.db");
    let head = wait(filled(&file, 3000).head()).unwrap();
    let Some(database) = Database::new() else { return };
    let server = PathBuf::from(database.address());
    let mut cut = |table: &str, done: i64, _: i64| assert!(table != "journal" || done < 2000, "cut off");
    catch_unwind(AssertUnwindSafe(|| copy(&file, &server, &mut cut))).unwrap_err();
    assert_eq!(wait(Store::open(&server).unwrap().head()).unwrap().seq, 0, "as empty as before");
    assert_eq!(copy(&file, &server, &mut quietly).unwrap().head, head);
    assert_eq!(wait(Store::open(&file).unwrap().head()).unwrap(), head, "and the source is what it was");
}

#[test]
fn a_log_that_was_changed_is_not_carried_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.db");
    drop(filled(&file, 5));
    let raw = rusqlite::Connection::open(&file).unwrap();
    raw.execute("UPDATE journal SET text = replace(text, 'intent', 'undone') WHERE seq = 3", []).unwrap();
    let Some(database) = Database::new() else { return };
    let error = copy(&file, Path::new(&database.address()), &mut quietly).unwrap_err();
    assert!(matches!(error, CopyError::Broken { seq: 3, .. }), "{error}");
    let store = Store::open(&file).unwrap();
    let found = wait(store.check()).unwrap().problems;
    assert!(found[0].starts_with("the log is broken at record 3"), "{found:?}");
}

#[test]
fn an_older_or_newer_format_is_named() {
    let scene = Scene::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.db");
    drop(filled(&file, 1));
    let raw = rusqlite::Connection::open(&file).unwrap();
    raw.pragma_update(None, "user_version", 7).unwrap();
    let error = copy(&file, &scene.path(), &mut quietly).unwrap_err();
    assert!(matches!(error, CopyError::Older { found: 7, .. }), "{error}");
    scene.tamper("UPDATE haft_format SET version = 9999");
    let error = haft_store::bring_up_to_date(&scene.path()).unwrap_err();
    assert!(error.to_string().contains("written by a newer haft (format 9999"), "{error}");
    scene.database.tamper("UPDATE haft_format SET version = 9999");
}
