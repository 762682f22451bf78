//! Many processes and machines on one server: they hear of one another, and miss whoever is gone.

use crate::{Scene, wait};
use haft_core::approval::{Decision, Verdict};
use haft_core::record::{Digest, Kind};
use haft_core::{CallError, CallId, Outcome};
use haft_store::{Claim, ClaimedCall, Entry, Mode, Store, Topic};
use std::time::{Duration, Instant};

/// What is heard at all is heard in no time; this is for a machine that has much else to do.
const SOON: Duration = Duration::from_secs(5);

#[test]
fn who_waits_hears_what_others_write() {
    let scene = Scene::new();
    let other = Store::open(&scene.path()).unwrap();
    wait(async {
        let mut heard = scene.store.changed_elsewhere(Topic::Records);
        let mut any = scene.store.changed(Topic::Records);
        let mut work = scene.store.changed(Topic::Work);
        // Whoever begins to listen looks once.
        tokio::time::timeout(SOON, heard.changed()).await.unwrap().unwrap();
        scene.store.record(Entry::new(Kind::Intent), Mode::Durable).await.unwrap();
        any.mark_unchanged();
        work.mark_unchanged();
        assert!(!heard.has_changed().unwrap(), "its own is no news from elsewhere");
        let begun = Instant::now();
        other.record(Entry::new(Kind::Intent), Mode::Durable).await.unwrap();
        tokio::time::timeout(SOON, heard.changed()).await.unwrap().unwrap();
        assert!(any.has_changed().unwrap(), "heard after {:?}", begun.elapsed());
        assert!(!work.has_changed().unwrap(), "nothing of the kind was written");
        other
            .run(Mode::Write, |db| {
                db.notify(Topic::Work);
                Ok(())
            })
            .await
            .unwrap();
        tokio::time::timeout(SOON, work.changed()).await.unwrap().unwrap();
    });
}

#[test]
fn claimed_call_of_another_process_is_heard_to_end() {
    let scene = Scene::new();
    let other = Store::open(&scene.path()).unwrap();
    let (id, content) = (CallId::chosen("mine-1").unwrap(), Digest::of(b"what is asked for"));
    wait(async {
        let mut heard = scene.store.changed(Topic::Calls);
        assert_eq!(other.claim_call(&id, content, "other").await.unwrap(), Claim::New);
        let standing = scene.store.claim_call(&id, content, "mine").await.unwrap();
        assert_eq!(standing, Claim::Known(ClaimedCall::Running));
        let verdict = Verdict::new(Decision::Allow, "policy", "allowed");
        let outcome = Outcome::failure(id.clone(), "file.write", CallError::failed("no"), verdict);
        other.end_claim("other", &outcome);
        other.flush().await.unwrap();
        // Whoever begins to listen looks once, and may do so after the end.
        loop {
            if let Some(ClaimedCall::Ended(kept)) = scene.store.claimed_call(&id, content).await.unwrap() {
                assert_eq!(*kept, outcome);
                break;
            }
            tokio::time::timeout(SOON, heard.changed()).await.unwrap().unwrap();
        }
    });
}

#[test]
fn a_listener_whose_connection_was_cut_listens_again() {
    let scene = Scene::new();
    let other = Store::open(&scene.path()).unwrap();
    wait(async {
        let mut heard = scene.store.changed_elsewhere(Topic::Approvals);
        tokio::time::timeout(SOON, heard.changed()).await.unwrap().unwrap();
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE query LIKE 'LISTEN%' AND datname = current_database()";
        std::thread::scope(|scope| scope.spawn(|| scene.database.tamper(cut)).join().unwrap());
        // It looks once more, because something may have been missed, and then hears as before.
        tokio::time::timeout(SOON, heard.changed()).await.unwrap().unwrap();
        other
            .run(Mode::Write, |db| {
                db.notify(Topic::Approvals);
                Ok(())
            })
            .await
            .unwrap();
        tokio::time::timeout(SOON, heard.changed()).await.unwrap().unwrap();
    });
}

#[test]
fn a_call_of_a_machine_that_is_gone_is_reported_once() {
    let scene = Scene::new();
    let id = CallId::parse("01K00000000000000000000001").unwrap();
    wait(scene.store.open_call(&id, "shell.exec", Entry::new(Kind::Intent).call(&id))).unwrap();
    // As if it had been opened elsewhere.
    scene.tamper("UPDATE open_calls SET pid = 1, born = 'x', process = 'faraway/00/1/1'");
    let now = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
    scene.tamper(&format!("INSERT INTO processes VALUES ('faraway/00/1/1', 'faraway/00', 1, 'x', {now}, 1)"));
    assert_eq!(wait(scene.store.take_interrupted()).unwrap(), [], "it was heard of just now");
    assert!(wait(scene.store.traced(id.clone())).unwrap().is_some_and(|traced| traced.records.len() == 1));
    scene.tamper("UPDATE processes SET seen_ms = seen_ms - 21000 WHERE host = 'faraway/00'");
    let server_is_young =
        scene.tamper("SELECT 1 WHERE clock_timestamp() - pg_postmaster_start_time() < interval '31 seconds'");
    if server_is_young == 1 {
        eprintln!("left out: the server was started just now, and nobody can be missed yet");
        return;
    }
    let missed = wait(scene.store.take_interrupted()).unwrap();
    assert_eq!((missed.len(), missed[0].host.as_deref()), (1, Some("faraway")));
    assert_eq!(wait(scene.store.take_interrupted()).unwrap(), [], "once");
    let records = wait(scene.store.records(0, 10, Some(id))).unwrap();
    assert_eq!(
        (records.last().unwrap().body["kind"].as_str(), records.last().unwrap().body["host"].as_str()),
        (Some("interrupted"), Some("faraway"))
    );
}

#[test]
fn lock_in_a_shared_data_directory_says_at_once_who_lives() {
    let scene = Scene::new();
    let data = tempfile::tempdir().unwrap();
    scene.store.keep_lock_in(data.path());
    let other = Store::open(&scene.path()).unwrap();
    other.keep_lock_in(data.path());
    let ids = ["01K00000000000000000000001", "01K00000000000000000000002"].map(|id| CallId::parse(id).unwrap());
    let [lives, ended] = &ids;
    for id in &ids {
        wait(scene.store.open_call(id, "shell.exec", Entry::new(Kind::Intent).call(id))).unwrap();
    }
    // The lock of a process that was killed: heard of just now, and released by the kernel.
    std::fs::write(data.path().join("locks/00aa"), "").unwrap();
    scene.tamper(&format!("UPDATE open_calls SET lock = '00aa' WHERE call_id = '{ended}'"));
    // And one that lives, though the server has not heard of it for long.
    scene.tamper("UPDATE processes SET seen_ms = 0");
    let missed = wait(other.take_interrupted()).unwrap();
    assert_eq!(missed.iter().map(|call| &call.call_id).collect::<Vec<_>>(), [ended]);
    assert!(wait(other.traced(lives.clone())).unwrap().unwrap().open);
}

#[test]
fn format_before_the_locks_is_brought_up_to_date_and_its_calls_go_by_the_server() {
    let scene = Scene::new();
    let id = CallId::parse("01K00000000000000000000001").unwrap();
    wait(scene.store.open_call(&id, "shell.exec", Entry::new(Kind::Intent).call(&id))).unwrap();
    scene.tamper("ALTER TABLE open_calls DROP COLUMN lock");
    scene.tamper("ALTER TABLE approvals DROP COLUMN executed, DROP COLUMN trial");
    scene.tamper("ALTER TABLE grants DROP COLUMN executed");
    scene.tamper("UPDATE haft_format SET version = 19");
    let other = Store::open(&scene.path()).unwrap();
    assert_eq!(wait(other.take_interrupted()).unwrap(), [], "its process is heard of");
    let _again = scene.restarted();
    let missed = wait(other.take_interrupted()).unwrap();
    assert_eq!(missed.iter().map(|call| &call.call_id).collect::<Vec<_>>(), [&id], "it has said goodbye");
}

#[test]
fn who_leaves_is_not_missed() {
    let scene = Scene::new();
    let other = Store::open(&scene.path()).unwrap();
    wait(other.record(Entry::new(Kind::Intent), Mode::Durable)).unwrap();
    assert_eq!(scene.tamper("SELECT 1 FROM processes"), 1);
    drop(other);
    assert_eq!(scene.tamper("SELECT 1 FROM processes"), 0);
}
