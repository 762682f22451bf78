//! The chain holds, and betrays whoever touches it.

use crate::{Scene, wait};
use haft_core::CallId;
use haft_core::record::Kind;
use haft_store::{Entry, Head, Mode, Store};

fn filled() -> Scene {
    let scene = Scene::new();
    for number in 0..10 {
        scene.store.record_later(Entry::new(Kind::Intent).call(&CallId::new(number, 0)).with("n", number));
    }
    wait(scene.store.flush()).unwrap();
    scene
}

fn broken(scene: &Scene, expected: Option<Head>) -> String {
    match wait(scene.store.verify(expected)).unwrap() {
        Ok(verified) => format!("holds up to {}", verified.head.seq),
        Err(broken) => format!("{}: {}", broken.seq, broken.why),
    }
}

#[test]
fn an_untouched_chain_holds() {
    let scene = filled();
    assert_eq!(broken(&scene, None), "holds up to 10");
    let head = wait(scene.store.head()).unwrap();
    assert_eq!(broken(&scene, Some(head)), "holds up to 10");
}

#[test]
fn the_first_broken_record_is_named() {
    let cases = [
        (
            "UPDATE journal SET text = replace(text, '\"intent\"', '\"outcome\"') WHERE seq = 5",
            "5: its text does not give its hash",
        ),
        (
            "UPDATE journal SET body = replace(body, '\"n\":4', '\"n\":5') WHERE seq = 5",
            "5: what stands beside it is not what was recorded",
        ),
        (
            "UPDATE journal SET body = NULL, salt = NULL WHERE seq = 6",
            "6: what it said is missing, and no later record",
        ),
        (
            "UPDATE journal SET body = (SELECT body FROM journal WHERE seq = 2) WHERE seq = 3",
            "3: what stands beside it is not what was recorded",
        ),
        (
            "UPDATE journal SET hash = (SELECT hash FROM journal WHERE seq = 1) WHERE seq = 7",
            "7: its text does not give its hash",
        ),
        ("DELETE FROM journal WHERE seq = 3", "3: it is missing; the next one is 4"),
        ("DELETE FROM journal WHERE seq = 1", "1: it is missing; the next one is 2"),
    ];
    for (sql, expected) in cases {
        let scene = filled();
        assert_eq!(scene.tamper(sql), 1, "{sql}");
        let said = broken(&scene, None);
        assert!(said.starts_with(expected), "{sql}: {said}");
    }
}

#[test]
fn a_log_that_was_cut_short_is_betrayed_by_a_noted_head() {
    let scene = filled();
    let head = wait(scene.store.head()).unwrap();
    scene.tamper("DELETE FROM journal WHERE seq > 8");
    assert_eq!(broken(&scene, None), "holds up to 8", "a chain alone cannot know its end");
    assert_eq!(broken(&scene, Some(head)), "9: it is missing: the log ends at 8, but went on to 10");
}

#[test]
fn records_of_one_call_are_found() {
    let scene = filled();
    let found = wait(scene.store.records(0, 100, Some(CallId::new(4, 0)))).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].body["n"], 4);
}

#[test]
fn many_writers_make_one_chain() {
    let scene = Scene::new();
    let path = scene.path();
    std::thread::scope(|scope| {
        for writer in 0..10 {
            let path = &path;
            scope.spawn(move || {
                // A store of its own, as another process would have.
                let store = Store::open(path).unwrap();
                for number in 0..20 {
                    let entry = Entry::new(Kind::Outcome).with("writer", writer).with("n", number);
                    wait(store.record(entry, Mode::Write)).unwrap();
                }
            });
        }
    });
    assert_eq!(broken(&scene, None), "holds up to 200");
}

#[test]
fn a_call_of_a_dead_process_is_reported_once() {
    let scene = Scene::new();
    let (mine, theirs) = (CallId::new(1, 1), CallId::new(2, 2));
    for id in [&mine, &theirs] {
        wait(scene.store.open_call(id, "file.write", Entry::new(Kind::Intent).call(id))).unwrap();
    }
    // As if a process had opened it that has ended: its number may be another's by now, its lock and its row are gone.
    scene.tamper(&format!("UPDATE open_calls SET lock = '00aa', process = 'h/00/1/1' WHERE call_id = '{theirs}'"));
    let taken = wait(scene.store.take_interrupted()).unwrap();
    assert_eq!(taken.iter().map(|call| &call.call_id).collect::<Vec<_>>(), [&theirs]);
    assert!(wait(scene.store.take_interrupted()).unwrap().is_empty());
    let last = wait(scene.store.records(2, 10, None)).unwrap();
    assert_eq!(last[0].body["kind"], "interrupted");
}

/// A batch has a limit, and what comes after it waits for the next one.
#[test]
fn nothing_is_lost_however_much_is_queued() {
    let scene = Scene::new();
    // Its thread is busy while the others come.
    scene.store.later(|_| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        Ok(())
    });
    for number in 0..1500 {
        scene.store.record_later(Entry::new(Kind::Intent).with("n", number));
    }
    wait(scene.store.flush()).unwrap();
    assert_eq!(broken(&scene, None), "holds up to 1500");
}
