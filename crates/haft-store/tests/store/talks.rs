//! What was said is kept as it was said, by one writer, and shortening forgets nothing.

use crate::{Scene, wait};
use haft_core::SessionId;
use haft_core::agent::{Message, Usage};
use haft_store::talks::{NewTalk, Standing, TalkTerms};
use haft_store::{Note, NoteKind};

fn new(session: &str, above: Option<&str>) -> NewTalk {
    NewTalk {
        session: SessionId::new(session).unwrap(),
        root: "/project".to_owned(),
        title: "mend it".to_owned(),
        above: above.map(str::to_owned),
        role: None,
        mode: "main",
        place: None,
        asked: above.map(|_| "{}".to_owned()),
    }
}

fn standing(turns: i64) -> Standing {
    Standing {
        model: "a/b".to_owned(),
        state: "running".to_owned(),
        usage: Usage { input: 7, ..Usage::default() },
        cost_micros: Some(11),
        turns,
        calls: 2,
        active: vec!["web.fetch".to_owned()],
        spent_micros: 9,
        told: Vec::new(),
    }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| serde_json::to_string(&Message::user(*word)).unwrap()).collect()
}

fn read(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::text).collect()
}

#[test]
fn what_a_child_had_to_say_waits_until_it_was_heard() {
    let scene = Scene::new();
    let parent = SessionId::new("talk-1").unwrap();
    let heard = |scene: &Scene| wait(scene.store.reports(&parent)).unwrap();
    for (child, text) in [("a", "first"), ("b", "second"), ("a", "third")] {
        wait(scene.store.leave_report(&parent, child, text.to_owned())).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let scene = scene.restarted();
    let two = [("b".to_owned(), "second".to_owned()), ("a".to_owned(), "third".to_owned())];
    assert_eq!(heard(&scene), two, "what it said last counts");
    wait(scene.store.drop_report(&parent, "b")).unwrap();
    assert_eq!(heard(&scene), two[1..]);
    assert_eq!(wait(scene.store.reports(&SessionId::new("other").unwrap())).unwrap(), []);
    let child = wait(scene.store.open_talk(new("agent-a", Some("talk-1")), "w".to_owned())).unwrap().0;
    assert_eq!(child.asked.as_deref(), Some("{}"), "what it was asked for is known");
}

#[test]
fn a_conversation_goes_on_from_where_it_was_left() {
    let scene = Scene::new();
    let (session, writer) = (SessionId::new("talk-1").unwrap(), "w1".to_owned());
    let (talk, said) = wait(scene.store.open_talk(new("talk-1", None), writer.clone())).unwrap();
    assert_eq!((talk.state.as_str(), said.len()), ("new", 0));
    let own = (session.clone(), writer.clone());
    assert!(
        wait(scene.store.keep_talk(own.clone(), 0, "mend it".to_owned(), texts(&["one", "two", "half"]), standing(1)))
            .unwrap()
    );
    // What was only begun is said anew, and shorter.
    assert!(
        wait(scene.store.keep_talk(own, 1, "mend it".to_owned(), texts(&["two and a half"]), standing(2))).unwrap()
    );
    let scene = scene.restarted();
    let (talk, said) = wait(scene.store.open_talk(new("talk-1", None), "w2".to_owned())).unwrap();
    assert_eq!(read(&said), ["one", "two and a half"]);
    assert_eq!((talk.turns, talk.calls, talk.cost_micros, talk.usage.input), (2, 2, Some(11), 7));
    assert_eq!((talk.active, talk.title.as_str()), (vec!["web.fetch".to_owned()], "mend it"));
    let listed = wait(scene.store.talks("/project", None, 10)).unwrap();
    assert_eq!(listed.iter().map(|talk| talk.session.as_str()).collect::<Vec<_>>(), ["talk-1"]);
    assert!(wait(scene.store.talks("/elsewhere", None, 10)).unwrap().is_empty());
}

#[test]
fn whoever_opened_it_last_writes_it() {
    let scene = Scene::new();
    let session = SessionId::new("talk-1").unwrap();
    for writer in ["w1", "w2"] {
        wait(scene.store.open_talk(new("talk-1", None), writer.to_owned())).unwrap();
    }
    let keep = |writer: &str, words: &[&str]| {
        wait(scene.store.keep_talk(
            (session.clone(), writer.to_owned()),
            0,
            "mend it".to_owned(),
            texts(words),
            standing(1),
        ))
        .unwrap()
    };
    assert!(keep("w2", &["mine"]));
    assert!(!keep("w1", &["theirs", "too"]), "an earlier writer finds out");
    let late = wait(scene.store.shorten_talk((session.clone(), "w1".to_owned()), texts(&["gone"]))).unwrap();
    assert!(!late);
    assert_eq!(read(&wait(scene.store.said(&session)).unwrap()[0]), ["mine"]);
}

#[test]
fn what_is_left_out_of_what_is_sent_is_kept() {
    let scene = Scene::new();
    let (session, own) = (SessionId::new("talk-1").unwrap(), "w".to_owned());
    wait(scene.store.open_talk(new("talk-1", None), own.clone())).unwrap();
    let by = || (session.clone(), own.clone());
    wait(scene.store.keep_talk(by(), 0, "mend it".to_owned(), texts(&["a", "b", "c"]), standing(1))).unwrap();
    assert!(wait(scene.store.shorten_talk(by(), texts(&["summary"]))).unwrap());
    wait(scene.store.keep_talk(by(), 1, "mend it".to_owned(), texts(&["d"]), standing(2))).unwrap();
    let all: Vec<Vec<String>> = wait(scene.store.said(&session)).unwrap().iter().map(|epoch| read(epoch)).collect();
    assert_eq!(all, [vec!["a", "b", "c"], vec!["summary", "d"]]);
    let (talk, said) = wait(scene.store.open_talk(new("talk-1", None), own)).unwrap();
    assert_eq!((talk.epoch, read(&said)), (1, vec!["summary".to_owned(), "d".to_owned()]));
}

#[test]
fn children_are_found_by_their_parent_and_a_session_is_forgotten_whole() {
    let scene = Scene::new();
    for (session, above) in [("p", None), ("p-a", Some("p")), ("p-b", Some("p"))] {
        wait(scene.store.open_talk(new(session, above), "w".to_owned())).unwrap();
    }
    // One in which nothing was said yet is nobody's to go on with.
    assert!(wait(scene.store.talks("/project", None, 10)).unwrap().is_empty());
    let own = (SessionId::new("p").unwrap(), "w".to_owned());
    wait(scene.store.keep_talk(own, 0, "mend it".to_owned(), texts(&["x"]), standing(1))).unwrap();
    let names = |above: Option<&str>| -> Vec<String> {
        wait(scene.store.talks("/project", above, 10)).unwrap().into_iter().map(|talk| talk.session).collect()
    };
    assert_eq!((names(None), names(Some("p"))), (vec!["p".to_owned()], vec!["p-a".to_owned(), "p-b".to_owned()]));
    let session = SessionId::new("p-a").unwrap();
    wait(scene.store.keep_talk((session.clone(), "w".to_owned()), 0, "mend it".to_owned(), texts(&["x"]), standing(1)))
        .unwrap();
    assert!(wait(scene.store.delete_session(session.clone())).unwrap());
    assert_eq!(names(Some("p")), ["p-b"]);
    assert!(wait(scene.store.said(&session)).unwrap().is_empty());
}

fn kept(scene: &Scene, session: &str, told: Vec<Note>) -> bool {
    let own = (SessionId::new(session).unwrap(), "w".to_owned());
    let standing = Standing { told, ..standing(1) };
    wait(scene.store.keep_talk(own, 0, "mend it".to_owned(), texts(&["x"]), standing)).unwrap()
}

#[test]
fn a_note_waits_until_it_is_written_down_as_a_part_of_the_conversation() {
    let scene = Scene::new();
    let (parent, child) = (SessionId::new("p").unwrap(), SessionId::new("p-a").unwrap());
    let leave = |session: &SessionId, kind, id: &str, text: &str| {
        wait(scene.store.leave_note(session, kind, id, text.to_owned())).unwrap();
    };
    leave(&parent, NoteKind::Undo, "1", "nobody converses here yet");
    for (session, above) in [("p", None), ("p-a", Some("p"))] {
        wait(scene.store.open_talk(new(session, above), "w".to_owned())).unwrap();
    }
    let notes = |session: &SessionId| wait(scene.store.notes(session)).unwrap();
    assert_eq!(notes(&parent), []);
    leave(&child, NoteKind::Undo, "1", "undone");
    leave(&child, NoteKind::Process, "bg_1", "ended");
    wait(scene.store.leave_report(&parent, "p-a", "a report".to_owned())).unwrap();
    let texts = |session: &SessionId| notes(session).into_iter().map(|note| note.text).collect::<Vec<_>>();
    let mut of_child = texts(&child);
    of_child.sort();
    assert_eq!(of_child, ["ended", "undone"]);
    assert_eq!(texts(&parent), ["undone"], "whoever a child works for knows what became of its calls, and no more");
    let told = notes(&parent);
    // Something else is left about the same before it is written down.
    leave(&parent, NoteKind::Undo, "1", "in force again");
    assert!(kept(&scene, "p", told));
    assert_eq!(texts(&parent), ["in force again"]);
    let told = notes(&parent);
    let late = Standing { told: told.clone(), ..standing(1) };
    let theirs = (parent.clone(), "another".to_owned());
    assert!(!wait(scene.store.keep_talk(theirs, 0, String::new(), Vec::new(), late)).unwrap());
    assert_eq!(texts(&parent).len(), 1, "whoever does not write the conversation takes nothing away");
    assert!(kept(&scene, "p", told));
    assert_eq!((texts(&parent).len(), wait(scene.store.reports(&parent)).unwrap().len()), (0, 1));
    scene.store.drop_note(&child, NoteKind::Process, "bg_1");
    assert_eq!(texts(&child), ["undone"]);
    wait(scene.store.delete_session(child.clone())).unwrap();
    assert_eq!(notes(&child), []);
}

#[test]
fn by_what_a_conversation_goes_is_kept_by_its_writer() {
    let scene = Scene::new();
    let session = SessionId::new("talk-1").unwrap();
    let (talk, _) = wait(scene.store.open_talk(new("talk-1", None), "w".to_owned())).unwrap();
    assert_eq!((talk.terms, talk.spent_micros), (TalkTerms::default(), None));
    let terms = TalkTerms {
        models: vec!["a/b".to_owned(), "c/d".to_owned()],
        effort: Some("high".to_owned()),
        max_micros: Some(250_000),
        max_turns: Some(7),
        max_tokens: None,
    };
    for (writer, own) in [("another", false), ("w", true)] {
        let by = (session.clone(), writer.to_owned());
        assert_eq!(wait(scene.store.keep_terms(by, terms.clone())).unwrap(), own, "{writer}");
    }
    assert!(kept(&scene, "talk-1", Vec::new()));
    let scene = scene.restarted();
    let (talk, _) = wait(scene.store.open_talk(new("talk-1", None), "w2".to_owned())).unwrap();
    assert_eq!((talk.terms, talk.spent_micros), (terms, Some(9)));
}
