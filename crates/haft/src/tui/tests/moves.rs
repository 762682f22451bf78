//! What comes of what happens.

use super::*;
use crate::tui::screen::{Focus, Over};
use crate::tui::talk::{Item, Tone};
use haft_runtime::{Form, Said, Written};

#[test]
fn what_is_said_goes_to_the_model_and_what_is_said_meanwhile_waits() {
    let mut screen = Screen::scene();
    assert_eq!(screen.says("hello"), [Wish::Say("hello".into())]);
    assert!(screen.works());
    assert_eq!(screen.says("and this"), [Wish::Meanwhile("and this".into())]);
    assert!(matches!(&screen.talk.entries[1].item, Item::You { waits: true, .. }));
    screen.hears(Told::Turn { number: 1, model: "m".into() });
    assert!(matches!(&screen.talk.entries[1].item, Item::You { waits: false, .. }));
    assert_eq!(screen.update(Input::Over(Over::default())), []);
    assert!(!screen.works() && !screen.spins());
}

#[test]
fn what_reached_nobody_is_said_when_the_model_has_ended() {
    let mut screen = Screen::scene();
    screen.says("one");
    screen.says("two");
    let over = |stopped: bool| Input::Over(Over { failed: None, unsaid: vec!["two".into()], stopped });
    assert_eq!(screen.update(over(false)), [Wish::Say("two".into())]);
    assert_eq!(screen.talk.entries.len(), 2, "it is shown once");
    assert!(screen.works());
    screen.says("two");
    screen.types("thr");
    assert_eq!(screen.update(over(true)), []);
    assert_eq!(screen.editor.text(), "two\nthr", "whoever stopped it decides again");
}

#[test]
fn escape_and_interrupt_stop_the_model_and_twice_leaves() {
    let mut screen = Screen::scene();
    assert_eq!(screen.press(KeyCode::Esc), [], "there is nothing to stop");
    screen.says("go");
    assert_eq!(screen.press(KeyCode::Esc), [Wish::Cancel]);
    assert_eq!(screen.control('c'), [Wish::Cancel]);
    assert_eq!(screen.control('c'), [Wish::Cancel, Wish::Quit]);

    let mut screen = Screen::scene();
    screen.types("half");
    assert_eq!(screen.control('c'), [], "it empties what is typed");
    assert!(screen.editor.is_empty() && screen.spins());
    screen.at(9_000);
    assert!(!screen.spins(), "nothing moves any more");
    assert_eq!(screen.control('c'), [], "too long ago to be meant");
    assert_eq!(screen.control('c'), [Wish::Cancel, Wish::Quit]);
    assert_eq!(Screen::scene().control('d'), [Wish::Cancel, Wish::Quit]);
    screen.types("x");
    assert_eq!(screen.control('d'), [], "something is typed");
}

#[test]
fn a_question_is_answered_by_one_key() {
    let mut screen = Screen::scene();
    screen.says("edit");
    for (ticket, key, said) in [(1, 'o', Said::Once), (2, 's', Said::Session), (3, 't', Said::Try)] {
        screen.at(ticket * 10_000);
        screen.update(Input::Ask(ticket, shell_question()));
        assert_eq!(screen.look.focus, Focus::Ask);
        screen.at(ticket * 10_000 + 400);
        assert_eq!(screen.press(KeyCode::Char(key)), [Wish::Answer(ticket, said)]);
        assert_eq!(screen.look.focus, Focus::Type);
    }
    let notes = screen
        .talk
        .entries
        .iter()
        .filter(|entry| matches!(&entry.item, Item::Note(_, text) if text.contains("touch x")));
    assert_eq!(notes.count(), 2, "it says which rule would have allowed it");
}

#[test]
fn a_question_takes_no_key_from_somebody_who_types() {
    let mut screen = Screen::scene();
    screen.says("edit");
    screen.types("no");
    screen.update(Input::Ask(1, question()));
    assert_eq!(screen.press(KeyCode::Char('o')), []);
    assert_eq!((screen.editor.text(), &screen.look.focus), ("noo", &Focus::Type));
    screen.at(2_000);
    assert_eq!(screen.press(KeyCode::Tab), []);
    assert_eq!(screen.press(KeyCode::Char('o')), [Wish::Answer(1, Said::Once)]);

    let mut screen = Screen::scene();
    screen.says("edit");
    screen.update(Input::Ask(1, question()));
    assert_eq!(screen.look.focus, Focus::Type, "somebody typed a moment ago");
    screen.press(KeyCode::Tab);
    assert_eq!(screen.update(Input::Paste("o".into())), [], "what is pasted answers nothing");
    screen.update(Input::Ask(2, question()));
    screen.at(2_000);
    assert_eq!(screen.press(KeyCode::Char('o')), [Wish::Answer(1, Said::Once)]);
    assert_eq!(screen.look.focus, Focus::Ask, "the next one is shown");
    assert_eq!(screen.press(KeyCode::Char('o')), [], "nobody can have seen it");
    screen.at(2_300);
    assert_eq!(screen.press(KeyCode::Char('o')), [Wish::Answer(2, Said::Once)]);
}

#[test]
fn escape_closes_what_is_open_before_it_stops_anything() {
    let mut screen = Screen::scene();
    screen.says("edit");
    screen.at(5_000);
    screen.update(Input::Ask(1, question()));
    screen.at(5_500);
    screen.press(KeyCode::Char('d'));
    let picture = screen.drawn(80, 24);
    assert!(picture.contains("esc or d goes back") && picture.contains("esc closes the diff"), "{picture}");
    assert_eq!(screen.press(KeyCode::Esc), []);
    assert!(!screen.drawn(80, 24).contains("goes back") && screen.asked.len() == 1, "it is still asked");
    screen.control('t');
    assert_eq!(screen.press(KeyCode::Esc), []);
    assert!(screen.look.work.is_none() && screen.look.focus == Focus::Ask);
    screen.control('f');
    assert_eq!(screen.press(KeyCode::Esc), []);
    assert_eq!(screen.look.focus, Focus::Ask, "back to what waits");
    assert_eq!(screen.press(KeyCode::Esc), [Wish::Cancel]);

    let mut screen = Screen::scene();
    screen.says("go");
    screen.control('t');
    screen.press(KeyCode::Char('?'));
    assert_eq!(screen.press(KeyCode::Esc), []);
    assert!(screen.look.work.is_some() && screen.look.focus == Focus::Type, "one thing at a time");
    assert_eq!(screen.press(KeyCode::Esc), []);
    assert!(screen.look.work.is_none());
    assert_eq!(screen.press(KeyCode::Esc), [Wish::Cancel]);
}

#[test]
fn a_question_after_another_takes_the_keys_too() {
    let mut screen = Screen::scene();
    screen.says("edit");
    screen.at(5_000);
    screen.update(Input::Ask(1, question()));
    screen.at(5_400);
    assert_eq!(screen.press(KeyCode::Char('o')), [Wish::Answer(1, Said::Once)]);
    screen.at(5_500);
    screen.update(Input::Ask(2, question()));
    assert_eq!(screen.look.focus, Focus::Ask, "an answer is not typed into the box");
    assert_eq!(screen.press(KeyCode::Char('o')), [], "nobody can have seen it");
    screen.at(5_800);
    assert_eq!(screen.press(KeyCode::Char('o')), [Wish::Answer(2, Said::Once)]);
}

#[test]
fn a_question_takes_the_keys_when_nobody_types_any_more() {
    let asked = |between: &dyn Fn(&mut Screen)| {
        let mut screen = Screen::scene();
        screen.says("edit");
        screen.update(Input::Ask(1, question()));
        assert_eq!(screen.look.focus, Focus::Type, "somebody typed a moment ago");
        between(&mut screen);
        screen.at(9_000);
        screen
    };
    let mut screen = asked(&|_| {});
    assert_eq!(screen.look.focus, Focus::Ask);
    assert_eq!(screen.press(KeyCode::Char('o')), [], "nobody can have seen where the keys go");
    screen.at(9_300);
    assert_eq!(screen.press(KeyCode::Char('o')), [Wish::Answer(1, Said::Once)]);
    let erased = asked(&|screen| {
        screen.types("n");
        screen.press(KeyCode::Backspace);
    });
    assert_eq!(erased.look.focus, Focus::Type, "somebody is about to say something");
    let turned = asked(&|screen| {
        screen.at(3_000);
        screen.at(3_500);
        screen.press(KeyCode::Tab);
    });
    assert_eq!(turned.look.focus, Focus::Type, "somebody wants to type");
}

#[test]
fn whoever_looks_around_answers_by_tab_and_loses_no_letter() {
    let mut screen = Screen::scene();
    screen.says("edit");
    screen.hears(begins("a", "file.read: x"));
    screen.at(5_000);
    screen.press(KeyCode::Tab);
    screen.update(Input::Ask(1, question()));
    assert!(matches!(screen.look.focus, Focus::Browse(_)));
    assert!(screen.drawn(80, 24).contains("looking: tab to answer the question above"));
    screen.at(5_500);
    screen.press(KeyCode::Tab);
    assert_eq!(screen.press(KeyCode::Char('o')), [Wish::Answer(1, Said::Once)]);
    screen.press(KeyCode::Tab);
    screen.types("jog on");
    assert_eq!((screen.editor.text(), &screen.look.focus), ("jog on", &Focus::Type));
}

#[test]
fn the_cost_is_of_the_whole_conversation_and_never_falls() {
    let mut screen = Screen::scene();
    let mut prompt = |sum: u64, last: u64| {
        screen.says("go");
        let (session, model) = (SessionId::default(), "m".to_owned());
        screen.hears(Told::Start { session, model, tools: 0, deferred: 0 });
        let total = Usage { input: sum, output: 0, ..Usage::default() };
        screen.hears(Told::Usage { last: total, total, cost_micros: Some(sum), window: 200_000 });
        let during = screen.talk.tally.cost;
        let ended = Ended { cost_micros: Some(last), ..ended(End::Done) };
        screen.hears(Told::Done { ended: Box::new(ended) });
        screen.update(Input::Over(Over::default()));
        (during, screen.talk.tally.cost, screen.talk.tally.total.input)
    };
    assert_eq!(prompt(10_000, 10_000), (Some(10_000), Some(10_000), 10_000));
    assert_eq!(prompt(17_400, 7_400), (Some(17_400), Some(17_400), 17_400), "not of the last prompt");
    // A child cost 2400: only the end of what was said knows.
    assert_eq!(prompt(20_000, 5_000), (Some(20_000), Some(22_400), 20_000));
    assert_eq!(prompt(21_000, 1_000), (Some(22_400), Some(23_400), 21_000));
    screen.says("/cost");
    let picture = screen.drawn(80, 24);
    assert!(picture.contains("this conversation: $0.0234") && picture.contains("· $0.0234"), "{picture}");
}

#[test]
fn answers_that_need_words_are_checked() {
    let mut screen = Screen::scene();
    screen.says("edit");
    screen.at(5_000);
    screen.update(Input::Ask(1, question()));
    screen.at(5_500);
    screen.press(KeyCode::Char('a'));
    screen.control('u');
    screen.types("b/*");
    assert_eq!(screen.press(KeyCode::Enter), []);
    assert_eq!(screen.asked[0].problem.as_deref(), Some("that pattern does not cover this call"));
    screen.control('u');
    screen.types("a.*");
    assert_eq!(screen.press(KeyCode::Enter), [Wish::Answer(1, Said::Always("a.*".into()))]);

    screen.at(9_000);
    screen.update(Input::Ask(2, question()));
    screen.at(9_500);
    screen.press(KeyCode::Char('e'));
    screen.types("x");
    assert_eq!(screen.press(KeyCode::Enter), []);
    assert!(screen.asked[0].problem.as_ref().unwrap().starts_with("that is not JSON"));
    screen.press(KeyCode::Backspace);
    assert_eq!(screen.press(KeyCode::Enter), [Wish::Answer(2, Said::Edit(json!({"path": "a.txt"})))]);

    screen.at(19_000);
    screen.update(Input::Ask(3, question()));
    screen.at(19_500);
    screen.press(KeyCode::Char('r'));
    screen.types("use notes/");
    assert_eq!(screen.press(KeyCode::Enter), [Wish::Answer(3, Said::Reject("use notes/".into()))]);
}

#[test]
fn escape_at_a_question_stops_and_a_withdrawn_one_goes() {
    let mut screen = Screen::scene();
    screen.says("edit");
    screen.at(5_000);
    screen.update(Input::Ask(1, question()));
    screen.at(5_500);
    assert_eq!(screen.press(KeyCode::Char('r')), []);
    assert_eq!(screen.press(KeyCode::Esc), [], "back to the answers");
    assert_eq!(screen.press(KeyCode::Esc), [Wish::Cancel]);
    screen.update(Input::Withdrawn(1));
    assert!(screen.asked.is_empty() && screen.look.focus == Focus::Type);
}

#[test]
fn a_form_is_filled_in() {
    let mut screen = Screen::scene();
    screen.says("ask me");
    screen.at(5_000);
    let schema = json!({"type": "object", "properties": {"which": {"type": "string", "enum": ["red", "blue"]}}});
    screen.update(Input::Fill(7, Form { from: "user.ask".into(), message: "Which?".into(), schema }));
    screen.at(5_500);
    screen.press(KeyCode::Down);
    screen.control('t');
    assert!(screen.drawn(80, 24).contains("esc: close the tasks"));
    assert_eq!(screen.press(KeyCode::Esc), [], "the form stays");
    let answer = Written::Answer(json!({"which": "blue"}));
    assert_eq!(screen.press(KeyCode::Enter), [Wish::Filled(7, answer)]);
}

#[test]
fn calls_and_children_unfold() {
    let mut screen = Screen::scene();
    screen.says("go");
    screen.hears(begins("a", "file.read: x"));
    screen.hears(child("k", "scout", "look around"));
    screen.hears(within("k", begins("b", "file.read: y")));
    screen.press(KeyCode::Tab);
    assert_eq!(screen.look.focus, Focus::Browse(vec![2]), "the newest");
    screen.press(KeyCode::Up);
    screen.press(KeyCode::Enter);
    assert!(screen.talk.entries[1].open);
    screen.press(KeyCode::Down);
    assert_eq!(screen.look.focus, Focus::Browse(vec![2]), "{:?}", screen.talk.foldable());
    screen.press(KeyCode::Char(' '));
    screen.press(KeyCode::Down);
    assert_eq!(screen.look.focus, Focus::Browse(vec![2, 0]));
    screen.press(KeyCode::Esc);
    assert_eq!(screen.look.focus, Focus::Type);
}

#[test]
fn commands_wish_for_what_they_name() {
    let mut screen = Screen::scene();
    assert_eq!(screen.says("/model a/b"), [Wish::Model("a/b".into())]);
    assert_eq!(screen.says("/models"), [Wish::Models]);
    assert_eq!(screen.says("/clear"), [Wish::Clear]);
    assert_eq!(screen.says("/resume chat-2"), [Wish::Resume(Some("chat-2".into()))]);
    assert_eq!(screen.says("/quit"), [Wish::Cancel, Wish::Quit]);
    assert_eq!(screen.says("/undo"), [Wish::Undo]);
    screen.types("/co");
    screen.press(KeyCode::Tab);
    assert_eq!(screen.editor.text(), "/cost");
    screen.press(KeyCode::Enter);
    assert_eq!(screen.says("/help"), []);
    assert_eq!(screen.look.focus, Focus::Help(0));
    screen.press(KeyCode::Char('q'));
    screen.says("go");
    assert_eq!(screen.says("/clear"), [], "not while the model works");
}

#[test]
fn what_is_to_be_done_is_looked_up_again_when_something_ended() {
    let mut screen = Screen::scene();
    screen.says("go");
    assert_eq!(screen.hears(gives("a", "x")), []);
    assert_eq!(screen.control('t'), [Wish::Look]);
    assert_eq!(screen.hears(gives("a", "x")), [Wish::Look]);
    assert_eq!(screen.control('t'), []);
}

#[test]
fn a_conversation_that_goes_on_shows_what_was_said() {
    let messages: Vec<haft_core::agent::Message> = serde_json::from_value(json!([
        {"role": "user", "blocks": [{"type": "text", "text": "first"}]},
        {"role": "assistant", "blocks": [{"type": "text", "text": "I look."}, {"type": "use", "id": "1", "name": "file_read", "input": {"path": "x"}}]},
        {"role": "user", "blocks": [{"type": "result", "id": "1", "text": "gone", "failed": true}]},
    ]))
    .unwrap();
    let mut screen = Screen::scene();
    let used = crate::tui::talk::Tally { cost: Some(5), ..Default::default() };
    let opened =
        crate::tui::screen::Opened { session: "chat-9".into(), model: "m".into(), kept: Some((messages, used)) };
    screen.update(Input::Opened(opened));
    assert_eq!((screen.about.session.as_str(), screen.talk.tally.cost), ("chat-9", Some(5)));
    assert_eq!(screen.talk.entries.len(), 3);
    assert!(matches!(&screen.talk.entries[2].item, Item::Tool(tool) if tool.end.as_ref().is_some_and(|end| !end.well)));
    screen.press(KeyCode::Up);
    assert_eq!(screen.editor.text(), "first");
}

#[test]
fn scrolling_goes_up_and_comes_back_to_the_end() {
    let mut screen = Screen::scene();
    for number in 0..100 {
        screen.update(Input::Note(Tone::Plain, format!("line {number}")));
    }
    screen.drawn(80, 24);
    screen.press(KeyCode::PageUp);
    let top = screen.look.top.unwrap();
    screen.hears(words("more"));
    screen.drawn(80, 24);
    assert_eq!(screen.look.top, Some(top), "what is read stays where it is");
    screen.update(Input::Wheel(1_000));
    assert_eq!(screen.look.top, None);
    screen.press(KeyCode::PageUp);
    screen.says("x");
    assert_eq!(screen.look.top, None, "whoever speaks looks at the end");
}

#[test]
fn something_is_found_and_gone_between() {
    let mut screen = Screen::scene();
    for number in 0..100 {
        screen.update(Input::Note(Tone::Plain, format!("line {number}")));
    }
    screen.drawn(80, 24);
    screen.control('f');
    screen.types("LINE 1");
    let picture = screen.drawn(80, 24);
    assert!(picture.contains("search: 1 of 11") && picture.contains("line 19"), "{picture}");
    (0..10).for_each(|_| drop(screen.press(KeyCode::Up)));
    let picture = screen.drawn(80, 24);
    assert!(picture.contains("search: 11 of 11") && picture.contains("· line 1\n"), "{picture}");
    screen.press(KeyCode::Esc);
    assert!(screen.look.search.is_none());
}

#[test]
fn what_is_cut_off_is_over_and_says_why() {
    let mut screen = Screen::scene();
    screen.says("go");
    screen.hears(begins("a", "shell.exec: $ sleep 9"));
    assert!(screen.talk.moves());
    screen.hears(ends(End::Cancelled));
    assert!(!screen.talk.moves());
    assert!(
        matches!(&screen.talk.entries.last().unwrap().item, Item::Note(Tone::Plain, text) if text.starts_with("stopped"))
    );
}
