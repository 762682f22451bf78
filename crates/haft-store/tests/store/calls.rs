//! The log by calls: what is latest, what fits, and what others have added.

use crate::{Scene, wait};
use haft_core::change::State;
use haft_core::record::Kind;
use haft_core::{CallId, SessionId};
use haft_store::{Entry, Mode, Store, UndoCall, UndoSelection, UndoStep, Wanted};

fn call(number: u64) -> CallId {
    CallId::new(number, number)
}

fn record(store: &Store, number: u64, kind: Kind, session: &str) {
    let entry = Entry::new(kind).call(&call(number)).with("tool", "calc.eval").with("session", session);
    wait(store.record(entry, Mode::Write)).unwrap();
}

#[test]
fn the_latest_calls_come_first_with_all_their_records() {
    let scene = Scene::new();
    for number in 1..=3 {
        record(&scene.store, number, Kind::Intent, if number == 2 { "mine" } else { "other" });
    }
    // The first one ends last.
    for number in [3, 2, 1] {
        record(&scene.store, number, Kind::Outcome, if number == 2 { "mine" } else { "other" });
    }
    let latest = wait(scene.store.latest_calls(2, None)).unwrap();
    let ids: Vec<_> = latest.iter().map(|traced| (traced.call_id.clone(), traced.records.len())).collect();
    assert_eq!(ids, [(call(1), 2), (call(2), 2)]);
    let mine = wait(scene.store.latest_calls(9, Some("mine".to_owned()))).unwrap();
    assert_eq!(mine.len(), 1);
    assert!(wait(scene.store.traced(call(9))).unwrap().is_none());
}

#[test]
fn records_are_found_by_call_kind_and_words() {
    let scene = Scene::new();
    for number in 1..=5 {
        record(&scene.store, number, Kind::Intent, &format!("session {number}"));
    }
    record(&scene.store, 2, Kind::Outcome, "x");
    let seqs = |wanted: Wanted| {
        let (records, head) = wait(scene.store.search(wanted)).unwrap();
        assert_eq!(head.seq, 6);
        records.iter().map(|record| record.seq).collect::<Vec<_>>()
    };
    let all = Wanted { limit: 100, ..Wanted::default() };
    assert_eq!(seqs(Wanted { limit: 2, ..all.clone() }), [6, 5], "the latest first");
    assert_eq!(seqs(Wanted { after: Some(3), limit: 2, ..all.clone() }), [4, 5], "or what follows");
    assert_eq!(seqs(Wanted { call: Some(call(2).to_string()), ..all.clone() }), [6, 2]);
    assert_eq!(seqs(Wanted { kind: Some("outcome".to_owned()), ..all.clone() }), [6]);
    assert_eq!(seqs(Wanted { text: Some("SESSION 4".to_owned()), ..all.clone() }), [4]);
    assert_eq!(seqs(Wanted { text: Some("%".to_owned()), ..all }), [0_i64; 0]);
}

#[test]
fn only_what_others_write_is_news() {
    let scene = Scene::new();
    record(&scene.store, 1, Kind::Intent, "mine");
    let start = wait(scene.store.news(0, -1, 100)).unwrap();
    record(&scene.store, 2, Kind::Intent, "mine");
    let quiet = wait(scene.store.news(start.head, start.mark, 100)).unwrap();
    assert!(quiet.records.is_empty());
    assert_eq!(quiet.head, 2, "and its own is passed over");
    let other = Store::open(&scene.path()).unwrap();
    for number in 3..=5 {
        record(&other, number, Kind::Intent, "theirs");
    }
    let part = wait(scene.store.news(quiet.head, quiet.mark, 2)).unwrap();
    let rest = wait(scene.store.news(part.head, part.mark, 2)).unwrap();
    let seqs: Vec<i64> = part.records.iter().chain(&rest.records).map(|record| record.seq).collect();
    assert_eq!(seqs, [3, 4, 5], "in parts, if it is much");
    assert!(wait(scene.store.news(rest.head, rest.mark, 2)).unwrap().records.is_empty());
}

#[test]
fn a_session_is_made_once() {
    let scene = Scene::new();
    let mine = SessionId::new("mine").unwrap();
    assert!(wait(scene.store.create_session(mine.clone())).unwrap());
    assert!(!wait(scene.store.create_session(mine)).unwrap());
    assert_eq!(wait(scene.store.sessions()).unwrap()[0].calls, 0);
}

#[test]
fn calls_that_changed_files_are_selected_by_session_turn_and_time() {
    let scene = Scene::new();
    let root = std::path::Path::new("/project");
    let mut times = Vec::new();
    for (number, session, turn) in [(1, "x", Some(1)), (2, "y", Some(1)), (3, "x", Some(2)), (4, "x", None)] {
        let entry = Entry::new(Kind::Intent).call(&call(number)).with("tool", "file.write").with("session", session);
        let entry = entry.with("args", serde_json::json!({"path": "a"})).with_some("turn", turn);
        wait(scene.store.record(entry, Mode::Write)).unwrap();
        let kept = UndoCall {
            call_id: call(number),
            at_ms: 0,
            root: root.display().to_string(),
            bytes: 0,
            dirs: Vec::new(),
            gap: None,
            undoes: None,
            undone_by: None,
            host: None,
        };
        let step = |name: &str| UndoStep {
            action: "write".to_owned(),
            path: root.join(name),
            target: None,
            before: State::Absent,
            after: State::Absent,
            image: None,
        };
        let store = scene.store.clone();
        // From a thread that may block.
        std::thread::scope(|scope| {
            scope.spawn(|| store.keep_undo_blocking(kept, vec![step("a"), step("b")]).unwrap()).join().unwrap();
        });
        let all = wait(scene.store.undoable(root, UndoSelection::default(), 9)).unwrap();
        times.push(all.iter().find(|kept| kept.call_id == call(number)).unwrap().at_ms);
        // No two at the same time.
        while now_ms() <= *times.last().unwrap() {
            std::thread::yield_now();
        }
    }
    let select = |selection: UndoSelection| {
        let found = wait(scene.store.undoable(root, selection, 9)).unwrap();
        found.into_iter().map(|kept| kept.call_id).collect::<Vec<_>>()
    };
    let session = |name: &str| SessionId::new(name);
    let any = UndoSelection::default();
    assert_eq!(select(any.clone()), [call(4), call(3), call(2), call(1)], "the latest first");
    assert_eq!(select(UndoSelection { session: session("x"), ..any.clone() }), [call(4), call(3), call(1)]);
    assert_eq!(select(UndoSelection { session: session("x"), turn: Some(1), ..any.clone() }), [call(1)]);
    assert_eq!(select(UndoSelection { since_ms: Some(times[2]), ..any.clone() }), [call(4), call(3)]);
    assert!(select(UndoSelection { session: session("z"), ..any.clone() }).is_empty());
    let described = wait(scene.store.changing_calls(root, any, (2, 1))).unwrap();
    assert_eq!(described.len(), 2);
    let third = &described[1];
    assert_eq!((third.tool.as_deref(), third.session.as_deref(), third.turn), (Some("file.write"), Some("x"), Some(2)));
    assert_eq!(
        (&third.args["path"], third.paths.as_slice(), third.path_count),
        (&"a".into(), &[root.join("a")][..], 2)
    );
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
