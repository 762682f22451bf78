//! A store without a thread of its own keeps the same promises.

use crate::wait;
use haft_core::CallId;
use haft_core::record::Kind;
use haft_store::{Entry, Mode, Store, StoreError};

fn scene() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_for_one_call(&dir.path().join("haft.db")).unwrap();
    (dir, store)
}

#[test]
fn what_nobody_waited_for_is_written_with_what_somebody_did_and_at_the_end() {
    let (dir, store) = scene();
    let other = Store::open(&dir.path().join("haft.db")).unwrap();
    store.record_later(Entry::new(Kind::Intent).with("n", 1));
    assert_eq!(wait(other.head()).unwrap().seq, 0);
    wait(store.record(Entry::new(Kind::Outcome).with("n", 2), Mode::Durable)).unwrap();
    assert_eq!(wait(other.head()).unwrap().seq, 2);
    store.record_later(Entry::new(Kind::Outcome).with("n", 3));
    drop(store);
    let records = wait(other.records(0, 10, None)).unwrap();
    assert_eq!(records.iter().map(|record| record.body["n"].as_i64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(wait(other.verify(None)).unwrap().is_ok());
}

#[test]
fn failures_are_heard() {
    let (dir, store) = scene();
    store.later(|db| db.execute("INSERT INTO nowhere VALUES (1)", &[]).map(drop));
    assert!(wait(store.flush()).unwrap_err().to_string().contains("nowhere"));
    let other = rusqlite::Connection::open(dir.path().join("haft.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let id = CallId::new(1, 1);
    let error = wait(store.open_call(&id, "file.write", Entry::new(Kind::Intent).call(&id))).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
}

#[test]
fn threads_of_one_process_share_it() {
    let (_dir, store) = scene();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..20).for_each(|n| store.record_later(Entry::new(Kind::Intent).with("n", n))));
        }
    });
    wait(store.flush()).unwrap();
    assert_eq!(wait(store.head()).unwrap().seq, 160);
    assert!(wait(store.verify(None)).unwrap().is_ok());
}
