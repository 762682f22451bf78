//! The queue before the store's thread: a job that panics, and more jobs than there is room for.

use crate::{Scene, wait};
use futures_util::future::join_all;
use haft_core::record::Kind;
use haft_store::{DbResult, Entry, Mode, StoreError, cells};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// What a machine that is busy with other things may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// Keeps the store's thread busy until the sender is used or dropped.
fn occupy(scene: &Scene) -> Sender<()> {
    let (release, released) = channel::<()>();
    let (begin, occupied) = channel();
    let mut first = Some((begin, released));
    scene.store.later(move |_| {
        if let Some((begin, released)) = first.take() {
            let _ = begin.send(());
            let _ = released.recv();
        }
        Ok(())
    });
    occupied.recv_timeout(PATIENCE).unwrap();
    release
}

fn trusted(scene: &Scene) -> i64 {
    let count = |db: &haft_store::Db<'_>| db.one("SELECT count(*) FROM trust", &[], |row| row.get(0));
    wait(scene.store.run(Mode::Read, count)).unwrap()
}

fn trust(db: &haft_store::Db<'_>, root: &str) -> DbResult<()> {
    let digest = vec![0_u8; 32];
    db.execute("INSERT INTO trust (root, digest, at_ms) VALUES (?1, ?2, 1)", cells![root, digest]).map(drop)
}

fn is_panic(done: Result<(), StoreError>) -> bool {
    matches!(done, Err(error) if error.to_string().contains("panicked") && error.to_string().contains("on purpose"))
}

#[test]
fn a_job_that_panics_fails_its_caller_and_nothing_else() {
    let scene = Scene::new();
    for mode in [Mode::Read, Mode::Claim, Mode::Write, Mode::Durable] {
        assert!(is_panic(wait(scene.store.run(mode, |_| panic!("on purpose")))), "{mode:?}");
        assert!(is_panic(wait(scene.store.insist(mode, |_| panic!("on purpose")))), "{mode:?}");
    }
    // What it had written is rolled back, also where it panics between the rows of an answer.
    let half = wait(scene.store.run(Mode::Write, |db| {
        trust(db, "/half")?;
        db.each("SELECT root FROM trust", &[], |_| panic!("on purpose"))
    }));
    assert!(is_panic(half));
    assert_eq!(trusted(&scene), 0);
    wait(scene.store.run(Mode::Durable, |db| trust(db, "/whole"))).unwrap();
    assert_eq!(trusted(&scene), 1);
}

#[test]
fn a_job_that_panics_undoes_nothing_of_those_that_share_its_commit() {
    let scene = Scene::new();
    let release = occupy(&scene);
    let good = |root: &'static str| scene.store.run(Mode::Write, move |db| trust(db, root));
    let again = |root: &'static str| scene.store.insist(Mode::Write, move |db| trust(db, root));
    let bad = scene.store.insist(Mode::Write, |db| {
        trust(db, "/two")?;
        panic!("on purpose")
    });
    let once = scene.store.run(Mode::Write, |db| {
        trust(db, "/three")?;
        panic!("on purpose")
    });
    scene.store.record_later(Entry::new(Kind::Intent).with("n", 1));
    let results = wait(async {
        let all = async { tokio::join!(good("/one"), bad, once, again("/four")) };
        // Polled last: all of them are queued before the thread goes on.
        tokio::join!(all, async { drop(release) }).0
    });
    assert!(results.0.is_ok() && results.3.is_ok(), "{results:?}");
    assert!(is_panic(results.1) && is_panic(results.2));
    wait(scene.store.flush()).unwrap();
    assert_eq!(trusted(&scene), 2);
}

#[test]
fn a_write_that_panics_unheard_shows_at_the_next_flush() {
    let scene = Scene::new();
    let release = occupy(&scene);
    scene.store.record_later(Entry::new(Kind::Intent).with("n", 1));
    scene.store.later(|_| panic!("on purpose"));
    scene.store.record_later(Entry::new(Kind::Outcome).with("n", 2));
    drop(release);
    assert!(is_panic(wait(scene.store.flush())));
    wait(scene.store.flush()).unwrap();
    assert_eq!(wait(scene.store.verify(None)).unwrap().unwrap().head.seq, 2);
}

/// More callers than the queue has room for, on one thread, while the store does not answer: a timer on that thread goes on,
/// and so does everything else there.
#[test]
fn callers_that_wait_for_room_do_not_block_their_thread() {
    let scene = Scene::new();
    let release = occupy(&scene);
    let store = scene.store.clone();
    let (tell, told) = channel();
    let thread = std::thread::spawn(move || {
        wait(async {
            let jobs = join_all((0..1500).map(|number| {
                let store = store.clone();
                async move {
                    store.record_later(Entry::new(Kind::Intent).with("n", number));
                    store.run(Mode::Write, move |_| Ok(number)).await
                }
            }));
            let ticks = async {
                let mut timer = tokio::time::interval(Duration::from_millis(1));
                for _ in 0..20 {
                    timer.tick().await;
                }
                let _ = tell.send(());
            };
            tokio::join!(jobs, ticks).0
        })
    });
    let ticked = told.recv_timeout(PATIENCE);
    drop(release);
    assert!(ticked.is_ok(), "the timer stood still while the store was busy");
    let answers: Vec<i32> = thread.join().unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, (0..1500).collect::<Vec<_>>());
    wait(scene.store.flush()).unwrap();
    assert_eq!(wait(scene.store.verify(None)).unwrap().unwrap().head.seq, 1500);
}

/// A caller that gives up while it waits for room leaves nothing in the queue.
#[test]
fn a_caller_that_gives_up_before_there_was_room_has_asked_for_nothing() {
    let scene = Scene::new();
    let release = occupy(&scene);
    let late = wait(async {
        let full = join_all((0..512).map(|_| scene.store.run(Mode::Read, |_| Ok(()))));
        let late = async {
            // The others are polled first, so the queue is full.
            let asked = scene.store.run(Mode::Write, |db| trust(db, "/late"));
            let late = tokio::time::timeout(Duration::from_millis(20), asked).await;
            drop(release);
            late.is_err()
        };
        let (all, late) = tokio::join!(full, late);
        for done in all {
            done.unwrap();
        }
        late
    });
    assert!(late);
    assert_eq!(trusted(&scene), 0);
}

/// Nobody waits for these, so they cannot be held up; what is too much is said not to be written.
#[test]
fn writes_that_nobody_waits_for_are_bounded_and_what_is_refused_is_said() {
    let scene = Scene::new();
    let release = occupy(&scene);
    for _ in 0..16_384 {
        scene.store.later(|_| Ok(()));
    }
    scene.store.later(|db| trust(db, "/one-more"));
    drop(release);
    let said = wait(scene.store.flush()).unwrap_err().to_string();
    assert!(said.contains("one more was not taken"), "{said}");
    wait(scene.store.flush()).unwrap();
    assert_eq!(trusted(&scene), 0);
}
