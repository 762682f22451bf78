//! A server that goes away and comes back: what was promised is there, once.

use crate::real::{Database, Server};
use crate::{Scene, wait};
use haft_core::record::Kind;
use haft_store::{Entry, Mode, Store, StoreError};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Numbers in the log, as they were written down.
fn numbers(store: &Store) -> Vec<i64> {
    let records = wait(store.records(0, 100_000, None)).unwrap();
    records.iter().map(|record| record.body["number"].as_i64().unwrap()).collect()
}

#[test]
fn nothing_is_lost_and_nothing_doubled_when_the_server_crashes() {
    let Some(server) = Server::start("", &[]) else { return };
    let store = Store::open(&PathBuf::from(server.address())).unwrap();
    let (stop, mut written) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 0_i64;
            while !stop.load(Ordering::Relaxed) {
                wait(store.record(Entry::new(Kind::Intent).with("number", number), Mode::Durable)).unwrap();
                store.record_later(Entry::new(Kind::Intent).with("number", number + 1));
                number += 2;
            }
            number
        });
        for _ in 0..3 {
            let before = wait(store.head()).map_or(0, |head| head.seq);
            // It is in the middle of something.
            while wait(store.head()).is_ok_and(|head| head.seq < before + 20) {}
            server.crash();
            server.up();
        }
        stop.store(true, Ordering::Relaxed);
        written = writer.join().unwrap();
    });
    wait(store.flush()).unwrap();
    assert_eq!(numbers(&store), (0..written).collect::<Vec<_>>());
    assert!(wait(store.verify(None)).unwrap().is_ok());
}

#[test]
fn a_server_that_is_away_is_said_to_be_and_waited_for() {
    let Some(server) = Server::start("", &[]) else { return };
    let store = Store::open(&PathBuf::from(server.address())).unwrap();
    assert_eq!(store.ails(), None);
    server.crash();
    std::thread::scope(|scope| {
        let write = scope.spawn(|| wait(store.record(Entry::new(Kind::Intent), Mode::Durable)));
        let until = Instant::now() + Duration::from_secs(20);
        let said = loop {
            match store.ails() {
                Some(said) => break said,
                None => assert!(Instant::now() < until, "nobody says that it is away"),
            }
            std::thread::yield_now();
        };
        assert!(said.starts_with("away for "), "{said}");
        server.up();
        assert_eq!(write.join().unwrap().unwrap().seq, 1, "it waited");
    });
    assert_eq!(store.ails(), None);
}

#[test]
fn a_connection_that_is_cut_in_the_middle_is_made_again() {
    let scene = Scene::new();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
               AND datname = current_database()";
    // While nothing is under way: nobody notices.
    wait(scene.store.record(Entry::new(Kind::Intent), Mode::Durable)).unwrap();
    scene.database.tamper(cut);
    wait(scene.store.record(Entry::new(Kind::Intent), Mode::Durable)).unwrap();
    // In the middle of a job: one that can be done again is, another fails, and nothing of it was done.
    let address = scene.database.address();
    let breaks = move |again: bool| {
        let address = address.clone();
        let mut first = true;
        move |db: &haft_store::Db<'_>| {
            db.execute(
                "INSERT INTO trust (root, digest, at_ms) VALUES (?1, ?2, 1)",
                haft_store::cells![again.to_string(), vec![0_u8]],
            )?;
            if std::mem::take(&mut first) {
                let mut other = postgres::Client::connect(&address, postgres::NoTls).unwrap();
                other.batch_execute(cut).unwrap();
            }
            Ok(())
        }
    };
    wait(scene.store.insist(Mode::Durable, breaks(true))).unwrap();
    let error = wait(scene.store.run(Mode::Durable, breaks(false))).unwrap_err();
    assert!(matches!(error, StoreError::Lost { .. }), "{error}");
    assert_eq!(scene.tamper("SELECT 1 FROM trust WHERE root = 'true'"), 1);
    assert_eq!(scene.tamper("SELECT 1 FROM trust WHERE root = 'false'"), 0);
    assert!(wait(scene.store.verify(None)).unwrap().is_ok());
}

#[test]
fn a_full_disk_is_said_to_be_one() {
    let Some(database) = Database::new() else { return };
    let store = Store::open(&PathBuf::from(database.address())).unwrap();
    // The same code that a server gives when its disk is full.
    let full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$";
    let error = wait(store.run(Mode::Durable, move |db| {
        haft_store::Db::execute(
            db,
            "INSERT INTO trust (root, digest, at_ms) VALUES ('x', ?1, 1)",
            haft_store::cells![vec![0_u8]],
        )?;
        db.batch(full)
    }))
    .unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert_eq!(wait(store.head()).unwrap().seq, 0);
    let kept =
        wait(store.run(Mode::Read, |db| db.one("SELECT count(*) FROM trust", &[], |row| row.get::<i64>(0)))).unwrap();
    assert_eq!(kept, 0, "nothing is half-written");
}
