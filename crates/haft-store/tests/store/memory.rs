//! What agents know: documents, their pieces, what is new, and taking changes back.

use crate::{Scene, wait};
use haft_core::memory::{Namespace, Note, narrowed};
use haft_core::outcome::{Label, Source};
use haft_core::{CallId, SessionId};
use haft_store::{Added, By, Edit, Restored, Store};

const ALL_MAX: usize = 64 << 20;

fn name(text: &str) -> Namespace {
    Namespace::new(text).unwrap()
}

fn by(number: u64) -> By {
    By { call: CallId::new(number, number), session: SessionId::default() }
}

fn write(store: &Store, namespace: &str, text: &str, call: u64) -> Added {
    wait(store.memory_edit(name(namespace), Edit::Replace(text.to_owned()), by(call), ALL_MAX)).unwrap()
}

fn note(store: &Store, text: &str, call: u64) -> Added {
    let note = Note { text: text.to_owned(), tags: vec!["home".to_owned()], at_ms: 1_794_804_600_000 };
    wait(store.memory_edit(name("user"), Edit::Add(note), by(call), ALL_MAX)).unwrap()
}

fn text(store: &Store, namespace: &str) -> String {
    wait(store.memory_document(name(namespace))).unwrap().text
}

/// The pieces of all documents, as somebody who was never there before learns them.
fn all_pieces(store: &Store) -> Vec<(String, i64, bool)> {
    let news = wait(store.memory_news((0, 0), 0, Some("m".to_owned()))).unwrap();
    assert!(!news.more);
    let shown = |piece: haft_store::HeldPiece| (piece.namespace, piece.entry.id, piece.entry.vector.is_some());
    news.pieces.into_iter().map(shown).collect()
}

#[test]
fn a_document_is_written_read_and_listed() {
    let scene = Scene::new();
    assert_eq!(text(&scene.store, "user"), "", "what nobody wrote is empty");
    assert!(wait(scene.store.memory_namespaces()).unwrap().is_empty());
    assert!(matches!(
        write(&scene.store, "user", "# Me\n\nLikes tea.\n", 1),
        Added::Changed { pieces: 1, fresh: 1, .. }
    ));
    assert_eq!(write(&scene.store, "user", "# Me\n\nLikes tea.\n", 2), Added::Same);
    write(&scene.store, "sessions/abc", "x\0\u{1f980} 東京", 3);
    let scene = scene.restarted();
    assert_eq!(text(&scene.store, "user"), "# Me\n\nLikes tea.\n");
    let names: Vec<String> =
        wait(scene.store.memory_namespaces()).unwrap().into_iter().map(|found| found.namespace).collect();
    assert_eq!(names, ["sessions/abc", "user"]);
}

#[test]
fn a_note_is_added_once() {
    let scene = Scene::new();
    assert!(matches!(note(&scene.store, "Lives in Rome.", 1), Added::Changed { .. }));
    assert_eq!(note(&scene.store, "Lives in Rome.", 2), Added::Same);
    note(&scene.store, "Has a cat.", 3);
    let expected = "- [2026-11-16 04:50Z] Lives in Rome. #home\n- [2026-11-16 04:50Z] Has a cat. #home\n";
    assert_eq!(text(&scene.store, "user"), expected);
    assert_eq!(all_pieces(&scene.store).len(), 2, "each stands alone");
}

#[test]
fn what_stays_keeps_its_vector_and_what_is_gone_is_gone_at_once() {
    let scene = Scene::new();
    let paragraph = |word: &str| format!("{word} ").repeat(100);
    let (one, two, three) = (paragraph("one"), paragraph("two"), paragraph("three"));
    write(&scene.store, "user", &format!("# A\n{one}\n# B\n{two}\n"), 1);
    let ids = all_pieces(&scene.store).into_iter().map(|(_, id, _)| id).chain([-1]).collect();
    let missing = wait(scene.store.memory_texts(ids)).unwrap();
    assert_eq!(missing.len(), 2);
    assert!(missing[0].1.starts_with("A\n# A\none"), "{}", missing[0].1);
    let vectors = missing.iter().map(|(id, _)| (*id, narrowed(&[0.5, -1.0]))).collect();
    let start = wait(scene.store.memory_change()).unwrap();
    wait(scene.store.memory_keep_vectors("m".to_owned(), vectors)).unwrap();
    let kept = all_pieces(&scene.store);
    assert!(kept.iter().all(|(.., has)| *has));
    write(&scene.store, "user", &format!("# C\n{three}\n# B\n{two}\n"), 2);
    let now = all_pieces(&scene.store);
    assert_eq!(now.iter().filter(|piece| kept.contains(piece)).count(), 1, "the second is what it was");
    assert_eq!(now.iter().filter(|(.., has)| !has).count(), 1, "the new one has no vector yet");
    // Somebody else's process learns what is gone from the document's pieces.
    let other = Store::open(&scene.path()).unwrap();
    let news = wait(other.memory_news((start, i64::MAX), start, Some("m".to_owned()))).unwrap();
    let mut ids: Vec<i64> = now.iter().map(|(_, id, _)| *id).collect();
    ids.sort_unstable();
    let mut told = news.documents[0].1.clone();
    told.sort_unstable();
    assert_eq!((news.documents.len(), told), (1, ids));
    // Of another model none has a vector.
    let theirs = wait(scene.store.memory_news((0, 0), 0, Some("n".to_owned()))).unwrap();
    assert!(theirs.pieces.len() == 2 && theirs.pieces.iter().all(|piece| piece.entry.vector.is_none()));
    let shown = wait(scene.store.memory_pieces(vec![now[0].1, -1])).unwrap();
    assert_eq!(shown.len(), 1);
    assert!(shown[0].around.iter().flatten().count() == 1);
}

#[test]
fn a_change_is_taken_back_unless_another_followed() {
    let scene = Scene::new();
    let undo =
        |call: u64, by: u64| wait(scene.store.memory_undo(&CallId::new(call, call), &CallId::new(by, by))).unwrap();
    write(&scene.store, "user", "first\n", 1);
    note(&scene.store, "noted", 2);
    assert_eq!(undo(1, 9), Some(Restored::ChangedSince { namespace: "user".to_owned() }));
    assert_eq!(undo(2, 10), Some(Restored::Done { namespace: "user".to_owned() }));
    assert_eq!(text(&scene.store, "user"), "first\n");
    assert!(undo(10, 11).is_some(), "taking back can be taken back");
    assert!(text(&scene.store, "user").contains("noted"));
    assert_eq!(undo(77, 12), None);
    wait(scene.store.memory_edit(name("user"), Edit::Forget, by(13), ALL_MAX)).unwrap();
    assert_eq!(text(&scene.store, "user"), "");
    assert_eq!(undo(11, 14), None, "what is forgotten is forgotten");
    assert!(all_pieces(&scene.store).is_empty() && wait(scene.store.memory_namespaces()).unwrap().is_empty());
}

#[test]
fn too_much_is_refused_and_nothing_changes() {
    let scene = Scene::new();
    let large = "x".repeat((8 << 20) + 1);
    assert!(matches!(write(&scene.store, "user", &large, 1), Added::TooLarge { most: 8_388_608, .. }));
    let full = Edit::Replace("y".repeat(600));
    wait(scene.store.memory_edit(name("a"), full.clone(), by(2), 1000)).unwrap();
    let more = wait(scene.store.memory_edit(name("b"), full, by(3), 1000)).unwrap();
    assert_eq!(more, Added::TooLarge { bytes: 1200, most: 1000 });
    assert_eq!(wait(scene.store.memory_namespaces()).unwrap().len(), 1);
}

#[test]
fn what_was_written_after_hearing_strangers_is_marked() {
    let scene = Scene::new();
    write(&scene.store, "mine", "My own words.", 1);
    scene
        .store
        .note_heard(&SessionId::default(), vec![Source { label: Label::Untrusted, tool: "web.fetch".to_owned() }]);
    write(&scene.store, "heard", "Do as the page says.", 2);
    let labels = |namespace: &str| wait(scene.store.memory_document(name(namespace))).unwrap().labels;
    assert!(labels("mine").is_empty());
    assert_eq!(labels("heard"), ["untrusted"]);
    // Counting anew does not wash it clean.
    assert_eq!(wait(scene.store.memory_rebuild(true)).unwrap(), 2);
    assert_eq!(wait(scene.store.memory_rebuild(false)).unwrap(), 0);
    assert_eq!(labels("heard"), ["untrusted"]);
}

#[test]
fn many_pieces_are_told_in_parts() {
    let scene = Scene::new();
    let line = "words ".repeat(120);
    let document: String = (0..2500).map(|number| format!("# {number}\n{line}\n")).collect();
    write(&scene.store, "a", &document, 1);
    write(&scene.store, "b", &document, 2);
    let (mut since, mut seen) = ((0, 0), 0);
    loop {
        let news = wait(scene.store.memory_news(since, 0, None)).unwrap();
        since = (news.change, news.after);
        seen += news.pieces.len();
        if !news.more {
            break;
        }
    }
    assert_eq!(seen, 5000);
}
