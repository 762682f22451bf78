//! Opening: private, patient, and honest about what it cannot read.

use crate::{Scene, wait};
use haft_core::grant::{Grant, GrantScope};
use haft_core::record::Kind;
use haft_core::{SessionId, ToolName};
use haft_store::{Entry, Mode, RedactionScope, Store, StoreError};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

#[test]
fn the_file_is_the_users_alone() {
    let scene = Scene::new();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&scene.path()), 0o600);
    assert_eq!(mode(scene.path().parent().unwrap()), 0o700);
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let scene = Scene::new();
    scene.raw().pragma_update(None, "user_version", 99).unwrap();
    let error = Store::open(&scene.path()).err().unwrap();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(error.hint().contains("upgrade haft"));
}

#[test]
fn what_is_no_database_is_called_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("haft.db");
    std::fs::write(&path, "this is not a database, but it is long enough to look like one".repeat(100)).unwrap();
    let error = Store::open(&path).err().unwrap();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn a_locked_store_fails_after_a_while_and_says_so() {
    let scene = Scene::new();
    let other = scene.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let error = wait(scene.store.record(Entry::new(Kind::Intent), Mode::Durable)).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(begun.elapsed().as_secs() >= 4, "it waited {:?}", begun.elapsed());
    other.execute_batch("ROLLBACK").unwrap();
    wait(scene.store.record(Entry::new(Kind::Intent), Mode::Durable)).unwrap();
}

#[test]
fn a_write_that_nobody_waited_for_is_reported_at_the_next_flush() {
    let scene = Scene::new();
    scene.store.later(|db| db.execute("INSERT INTO nowhere VALUES (1)", &[]).map(drop));
    let error = wait(scene.store.flush()).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    wait(scene.store.flush()).unwrap();
}

#[test]
fn one_failing_job_leaves_its_neighbours_alone() {
    let scene = Scene::new();
    scene.store.record_later(Entry::new(Kind::Intent));
    scene.store.later(|db| db.execute("INSERT INTO nowhere VALUES (1)", &[]).map(drop));
    scene.store.record_later(Entry::new(Kind::Outcome));
    wait(scene.store.flush()).unwrap_err();
    assert_eq!(wait(scene.store.head()).unwrap().seq, 2);
}

#[test]
fn many_may_make_the_store_at_once() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("haft.db");
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope
                    .spawn(|| wait(Store::open(&path).unwrap().record(Entry::new(Kind::Intent), Mode::Write)).unwrap());
            }
        });
        assert_eq!(wait(Store::open(&path).unwrap().head()).unwrap().seq, 12);
    }
}

#[test]
fn grant_of_the_previous_format_is_for_guarded_calls() {
    let scene = Scene::new();
    let previous = "ALTER TABLE grants DROP COLUMN scope; ALTER TABLE journal DROP COLUMN body;
        ALTER TABLE journal DROP COLUMN salt; ALTER TABLE open_calls DROP COLUMN lock; DROP TABLE notes;
        DROP TABLE idempotency_keys; ALTER TABLE approvals DROP COLUMN is_deferred; ALTER TABLE approvals DROP COLUMN executed;
        ALTER TABLE approvals DROP COLUMN trial; ALTER TABLE grants DROP COLUMN executed;
        ALTER TABLE sightings DROP COLUMN told; ALTER TABLE talks DROP COLUMN models; ALTER TABLE talks DROP COLUMN effort;
        ALTER TABLE talks DROP COLUMN max_micros; ALTER TABLE talks DROP COLUMN spent_micros;
        ALTER TABLE talks DROP COLUMN max_turns; ALTER TABLE talks DROP COLUMN max_tokens;
        CREATE TABLE reports (
            session TEXT NOT NULL, child TEXT NOT NULL, at_ms INTEGER NOT NULL, text TEXT NOT NULL,
            PRIMARY KEY (session, child)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO reports VALUES ('talk-1', 'child-1', 5, 'It is done.');
        PRAGMA user_version = 15;
        INSERT INTO grants (id, root, tool, pattern) VALUES ('g-old', '/p', 'shell.exec', 'make x');";
    scene.raw().execute_batch(previous).unwrap();
    let scene = scene.restarted();
    let new = Grant {
        id: "g-new".into(),
        tool: ToolName::new("shell.exec").unwrap(),
        pattern: "make x".into(),
        session: None,
        uses_left: None,
        expires_ms: None,
        scope: GrantScope::Unguarded,
        executed: None,
    };
    wait(scene.store.grant(Path::new("/p"), new)).unwrap();
    let grants = wait(scene.store.grants(Path::new("/p"), None)).unwrap();
    let scopes: Vec<_> = grants.iter().map(|grant| (grant.id.as_str(), grant.scope)).collect();
    assert_eq!(scopes, [("g-new", GrantScope::Unguarded), ("g-old", GrantScope::Guarded)]);
    let parent = SessionId::new("talk-1").unwrap();
    let report = ("child-1".to_owned(), "It is done.".to_owned());
    assert_eq!(wait(scene.store.reports(&parent)).unwrap(), [report], "what nobody has heard yet is not lost");
}

#[test]
fn redacted_text_is_gone_from_the_file() {
    const TEXT: &str = "correct horse battery staple";
    let scene = Scene::new();
    for _ in 0..50 {
        scene.store.record_later(Entry::new(Kind::Refused).with("args", TEXT));
    }
    wait(scene.store.flush()).unwrap();
    assert_eq!(wait(scene.store.redact(RedactionScope::Before(i64::MAX), "ada", None)).unwrap().records, 50);
    let Scene { dir, store } = scene;
    drop(store);
    for file in std::fs::read_dir(dir.path().join("data")).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(TEXT.len()).any(|window| window == TEXT.as_bytes()), "{}", file.display());
    }
}
