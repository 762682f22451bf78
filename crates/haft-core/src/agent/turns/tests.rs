//! The loop, told stories without a model: what is asked for, and what is left when it ends.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn words(text: &str) -> Vec<Block> {
    vec![Block::Text { text: text.to_owned() }]
}

fn begun(limits: Limits) -> Turns {
    let mut turns = Turns::new(Vec::new(), limits);
    assert_eq!(turns.on(Event::Say(words("go")), 0), [Effect::Ask { model: 0 }]);
    turns
}

/// The model makes a call, whole.
fn calls(turns: &mut Turns, at: usize, id: &str, input: &str) -> Vec<Effect> {
    let mut effects = turns.on(Event::Said(Delta::Use(at, id.to_owned(), "file_read".to_owned())), 0);
    effects.extend(turns.on(Event::Said(Delta::Input(at, input.to_owned())), 0));
    effects.extend(turns.on(Event::Said(Delta::Whole(at)), 0));
    effects
}

fn stops(turns: &mut Turns, stop: Stop) -> Vec<Effect> {
    turns.on(Event::Said(Delta::Usage(Usage { input: 100, output: 10, ..Usage::default() })), 0);
    turns.on(Event::Said(Delta::Stopped(stop)), 0);
    turns.on(Event::Spoken, 0)
}

fn ended(turns: &mut Turns, id: &str, text: &str) -> Vec<Effect> {
    turns.on(
        Event::Called { id: id.to_owned(), text: text.to_owned(), images: Vec::new(), failed: false, awaits: None },
        0,
    )
}

fn says(turns: &mut Turns, text: &str, stop: Stop) -> Vec<Effect> {
    turns.on(Event::Said(Delta::Text(0, text.to_owned())), 0);
    stops(turns, stop)
}

#[test]
fn calls_are_made_as_they_come_and_told_in_their_order() {
    let mut turns = begun(Limits::default());
    let made = calls(&mut turns, 0, "a", r#"{"path": "x"}"#);
    assert_eq!(
        made,
        [Effect::Call { id: "a".into(), name: "file_read".into(), input: json!({"path": "x"}) }],
        "while it speaks"
    );
    calls(&mut turns, 1, "b", "");
    assert!(ended(&mut turns, "b", "second").is_empty());
    assert!(stops(&mut turns, Stop::Calls).is_empty(), "a call is still under way");
    assert_eq!(ended(&mut turns, "a", "first"), [Effect::Ask { model: 0 }]);
    let told: Vec<&str> = turns.history()[2].results().collect();
    assert_eq!(told, ["a", "b"]);
    assert_eq!(says(&mut turns, "All read.", Stop::End), [Effect::End(End::Done)]);
    assert_eq!(check(turns.history()), Ok(()));
    assert_eq!((turns.asked(), turns.usage().input), (2, 200));
    assert_eq!(turns.on(Event::Say(words("and now?")), 0), [Effect::Ask { model: 0 }], "and it goes on from there");
}

#[test]
fn what_is_said_meanwhile_is_told_with_the_results() {
    let mut turns = begun(Limits::default());
    calls(&mut turns, 0, "a", "{}");
    assert!(turns.on(Event::Say(words("stop reading")), 0).is_empty());
    stops(&mut turns, Stop::Calls);
    ended(&mut turns, "a", "text");
    let last = turns.history().last().unwrap();
    assert_eq!((last.results().count(), last.text().as_str()), (1, "stop reading"));
}

#[test]
fn what_was_said_meanwhile_is_not_said_if_it_is_stopped_before() {
    let mut turns = begun(Limits::default());
    calls(&mut turns, 0, "a", "{}");
    turns.on(Event::Say(words("stop reading")), 0);
    turns.on(Event::Cancel, 0);
    assert!(turns.history().iter().all(|message| !message.text().contains("stop reading")));
    turns.keep_unsaid();
    assert_eq!(turns.history().last().unwrap().text(), "stop reading", "unless somebody wants it kept");
    assert_eq!(check(turns.history()), Ok(()));
    let mut turns = begun(Limits { turns: Some(1), ..Limits::default() });
    turns.on(Event::Say(words("and more")), 0);
    assert_eq!(says(&mut turns, "Done.", Stop::End), [Effect::End(End::Turns)]);
    assert!(turns.history().iter().all(|message| !message.text().contains("and more")), "nor at a limit");
}

#[test]
fn what_a_call_gave_before_it_was_stopped_is_told() {
    let mut turns = begun(Limits::default());
    calls(&mut turns, 0, "a", "{}");
    calls(&mut turns, 1, "b", "{}");
    turns.on(Event::Cancel, 0);
    let late = |id: &str, failed| Event::Called {
        id: id.to_owned(),
        text: format!("{id} gave this"),
        images: Vec::new(),
        failed,
        awaits: None,
    };
    for _ in 0..2 {
        assert_eq!(turns.on(late("a", true), 0), []);
        turns.on(late("b", false), 0);
    }
    let told = |at: usize| match &turns.history()[2].blocks[at] {
        Block::Result { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((told(0), told(1)), (format!("a gave this\n\n{CUT_OFF}"), "b gave this".to_owned()));
    assert_eq!(check(turns.history()), Ok(()));
}

#[test]
fn a_question_that_was_decided_is_not_open_any_more() {
    let (mut turns, question) = (begun(Limits::default()), CallId::new(1, 1));
    calls(&mut turns, 0, "a", "{}");
    let awaits = Some(question.clone());
    let text = "approval_required".to_owned();
    turns.on(Event::Called { id: "a".to_owned(), text, images: Vec::new(), failed: true, awaits }, 0);
    assert_eq!(stops(&mut turns, Stop::Calls), [Effect::Ask { model: 0 }]);
    assert_eq!(turns.decided(&CallId::new(1, 2), "another"), None);
    assert_eq!(turns.decided(&question, "decided since"), Some(2));
    assert_eq!(turns.decided(&question, "again"), None, "once");
    assert!(turns.takes_notes());
    turns.note(words("it ran"));
    let last = turns.history().last().unwrap();
    let result = matches!(&last.blocks[0], Block::Result { text, awaits: None, .. } if text == "decided since");
    assert!(result && last.text() == "it ran", "{last:?}");
}

#[test]
fn arguments_that_are_no_object_are_told_and_not_called() {
    let mut turns = begun(Limits::default());
    assert!(calls(&mut turns, 0, "a", r#"{"path": "#).is_empty());
    assert!(calls(&mut turns, 1, "b", "[1]").is_empty());
    assert_eq!(stops(&mut turns, Stop::Calls), [Effect::Ask { model: 0 }]);
    assert_eq!(turns.history()[2].results().count(), 2);
}

fn failure(kind: FailureKind) -> Event {
    Event::Failed(Failure { kind, message: "no".to_owned() })
}

/// Until when it rests.
fn rests(effects: &[Effect]) -> i64 {
    match effects {
        [Effect::Rest(until)] => *until,
        other => panic!("it does not rest: {other:?}"),
    }
}

#[test]
fn a_model_that_is_busy_is_asked_again_and_then_another_one() {
    let mut turns = begun(Limits { fallbacks: 1, ..Limits::default() });
    for pause in [1000, 2000, 4000, 8000] {
        let until = rests(&turns.on(failure(FailureKind::Away), 0));
        assert!((pause / 2..=pause).contains(&until), "{until} of {pause}");
        assert_eq!(turns.on(Event::Rested, until), [Effect::Ask { model: 0 }]);
    }
    assert_eq!(turns.on(failure(FailureKind::Away), 0), [Effect::Ask { model: 1 }]);
    let denied = Failure { kind: FailureKind::Denied, message: "no".to_owned() };
    assert_eq!(
        turns.on(Event::Failed(denied.clone()), 0),
        [Effect::End(End::Failed(denied))],
        "a key is not tried twice"
    );
    assert_eq!(turns.history().len(), 1, "and what was said is still there");
}

#[test]
fn a_wait_that_the_provider_asks_for_uses_up_no_try_and_is_not_cut_short() {
    let mut turns = begun(Limits::default());
    let hour = 3_600_000;
    for after in [7000, 0, 0, 0, 30_000, 0, 0, 30_000, hour, 20 * hour] {
        let until = rests(&turns.on(failure(FailureKind::Busy(Some(after))), 50));
        assert!(until >= 50 + after && until <= 50 + after + 65_000, "{until} for {after}");
        assert_eq!(turns.on(Event::Rested, until), [Effect::Ask { model: 0 }]);
    }
    let until = rests(&turns.on(failure(FailureKind::Away), 0));
    assert!(until <= 1000, "the first try is still there: {until}");
    turns.on(Event::Rested, until);
    assert_eq!(says(&mut turns, "Here.", Stop::End), [Effect::End(End::Done)]);
}

#[test]
fn a_wait_without_end_is_left_for_the_next_model_or_ends() {
    let busy = || failure(FailureKind::Busy(Some(400_000)));
    let mut turns = begun(Limits { fallbacks: 1, ..Limits::default() });
    rests(&turns.on(busy(), 0));
    turns.on(Event::Rested, 0);
    assert_eq!(turns.on(busy(), 0), [Effect::Ask { model: 1 }], "ten minutes are up");
    let mut ended = Vec::new();
    for _ in 0..1000 {
        ended = turns.on(busy(), 0);
        if !matches!(ended.as_slice(), [Effect::Rest(_)]) {
            break;
        }
        turns.on(Event::Rested, 0);
    }
    assert!(matches!(ended.as_slice(), [Effect::End(End::Failed(_))]), "{ended:?}");
    let mut turns = begun(Limits::default());
    let waits = (0..1000).take_while(|_| {
        let rests = matches!(turns.on(failure(FailureKind::Busy(Some(0))), 0).as_slice(), [Effect::Rest(_)]);
        turns.on(Event::Rested, 0);
        rests
    });
    assert!(waits.count() == 1000, "who says at once is asked again, more and more slowly");
}

#[test]
fn jitter_is_what_the_seed_makes_it() {
    let waits = |seed: u64| {
        let mut turns = begun(Limits { seed, ..Limits::default() });
        let mut all = Vec::new();
        for kind in [FailureKind::Away, FailureKind::Busy(Some(60_000)), FailureKind::Odd, FailureKind::Busy(None)] {
            all.push(rests(&turns.on(failure(kind), 0)));
            turns.on(Event::Rested, 0);
        }
        all
    };
    assert_eq!(waits(7), waits(7));
    let different: std::collections::BTreeSet<Vec<i64>> = (0..20).map(waits).collect();
    assert!(different.len() > 15, "those who fail together do not come back together");
}

#[test]
fn a_stream_that_breaks_off_after_a_call_goes_on_with_it() {
    let mut turns = begun(Limits::default());
    calls(&mut turns, 0, "a", "{}");
    turns.on(Event::Said(Delta::Use(1, "half".into(), "file_write".into())), 0);
    turns.on(Event::Said(Delta::Input(1, r#"{"pa"#.into())), 0);
    assert!(turns.on(failure(FailureKind::Away), 0).is_empty());
    assert_eq!(ended(&mut turns, "a", "text"), [Effect::Ask { model: 0 }]);
    let uses: Vec<&str> = turns.history()[1].uses().map(|(id, ..)| id).collect();
    assert_eq!(uses, ["a"], "half a call is none");
}

#[test]
fn what_is_too_much_is_made_shorter_once() {
    let mut turns = begun(Limits { window: Some(120), ..Limits::default() });
    calls(&mut turns, 0, "a", "{}");
    stops(&mut turns, Stop::Calls);
    assert_eq!(ended(&mut turns, "a", "text"), [Effect::Shorten]);
    assert_eq!(turns.on(Event::Shortened(vec![Message::user("in short")]), 0), [Effect::Ask { model: 0 }]);
    assert_eq!(turns.on(failure(FailureKind::Overflow), 0), [Effect::End(End::Overflow)]);
    let mut turns = begun(Limits::default());
    assert_eq!(turns.on(failure(FailureKind::Overflow), 0), [Effect::Shorten]);
    assert_eq!(turns.on(Event::NotShortened, 0), [Effect::End(End::Overflow)]);
}

#[test]
fn the_same_again_and_again_is_told_and_then_stopped() {
    let mut turns = begun(Limits::default());
    for round in 1.. {
        calls(&mut turns, 0, &format!("c{round}"), "{}");
        stops(&mut turns, Stop::Calls);
        let effects = ended(&mut turns, &format!("c{round}"), "same");
        let Some(Message { blocks, .. }) = turns.history().last() else { panic!("nothing was said") };
        let told = matches!(&blocks[0], Block::Result { text, .. } if text.contains("very call"));
        assert_eq!(told, round >= 3, "{round}");
        if effects == [Effect::End(End::Loop)] {
            assert_eq!(round, 5);
            break;
        }
    }
    let mut turns = begun(Limits::default());
    for round in 1..20 {
        calls(&mut turns, 0, &format!("c{round}"), "{}");
        stops(&mut turns, Stop::Calls);
        let effects = ended(&mut turns, &format!("c{round}"), &format!("{round} % done"));
        assert_eq!(effects, [Effect::Ask { model: 0 }], "who looks whether something moves is in no loop");
    }
}

#[test]
fn a_circle_of_calls_is_told_and_then_stopped() {
    let mut turns = begun(Limits::default());
    let (mut told, mut round) = (Vec::new(), 0);
    loop {
        let (id, input) = (format!("c{round}"), format!(r#"{{"path": "{}"}}"#, round % 2));
        round += 1;
        calls(&mut turns, 0, &id, &input);
        stops(&mut turns, Stop::Calls);
        let effects = ended(&mut turns, &id, "same");
        let Some(Message { blocks, .. }) = turns.history().last() else { panic!("nothing was said") };
        if matches!(&blocks[0], Block::Result { text, .. } if text.contains("in a circle")) {
            told.push(round);
        }
        if effects == [Effect::End(End::Loop)] {
            break;
        }
    }
    assert_eq!((told, round), (vec![6, 8, 10], 10));
}

#[test]
fn limits_end_it_before_they_are_passed() {
    let mut turns = begun(Limits { turns: Some(1), ..Limits::default() });
    calls(&mut turns, 0, "a", "{}");
    stops(&mut turns, Stop::Calls);
    assert_eq!(ended(&mut turns, "a", "text"), [Effect::End(End::Turns)]);
    assert_eq!(check(turns.history()), Ok(()));
    let mut turns = Turns::new(Vec::new(), Limits { until_ms: Some(10), ..Limits::default() });
    assert_eq!(turns.on(Event::Say(words("go")), 10), [Effect::End(End::Time)]);
    for (event, end) in [(Event::NoFunds, End::Funds), (Event::NoTokens, End::Tokens)] {
        let mut turns = begun(Limits::default());
        assert_eq!(turns.on(event, 0), [Effect::HangUp, Effect::End(end)]);
    }
}

#[test]
fn a_model_that_is_cut_short_goes_on_for_a_while() {
    let mut turns = begun(Limits::default());
    assert_eq!(says(&mut turns, "once upon", Stop::Length), [Effect::Ask { model: 0 }]);
    assert_eq!(says(&mut turns, "a time", Stop::Length), [Effect::Ask { model: 0 }]);
    assert_eq!(says(&mut turns, "there was", Stop::Length), [Effect::End(End::Length)]);
    let mut turns = begun(Limits::default());
    assert_eq!(says(&mut turns, "", Stop::Refused), [Effect::End(End::Refused)]);
}

fn any_event() -> impl Strategy<Value = Event> {
    let at = 0..3_usize;
    let id = "[a-d]";
    prop_oneof![
        3 => (at.clone(), id).prop_map(|(at, id)| Event::Said(Delta::Use(at, id, "t".into()))),
        3 => (at.clone(), "[{}a]{0,2}").prop_map(|(at, text)| Event::Said(Delta::Input(at, text))),
        4 => at.clone().prop_map(|at| Event::Said(Delta::Whole(at))),
        2 => (at, "[x-z]").prop_map(|(at, text)| Event::Said(Delta::Text(at, text))),
        2 => prop_oneof![Just(Stop::End), Just(Stop::Calls), Just(Stop::Length), Just(Stop::Paused)]
            .prop_map(|stop| Event::Said(Delta::Stopped(stop))),
        3 => Just(Event::Spoken),
        4 => id.prop_map(|id| Event::Called { id, text: "r".into(), images: vec![], failed: false, awaits: None }),
        1 => Just(Event::Say(words("more"))),
        1 => Just(Event::Rested),
        1 => Just(failure(FailureKind::Away)),
        1 => Just(failure(FailureKind::Overflow)),
        1 => Just(Event::Shortened(vec![Message::user("short")])),
        1 => Just(Event::NoFunds),
        1 => Just(Event::NoTokens),
    ]
}

proptest! {
    #[test]
    fn whenever_it_is_stopped_what_was_said_can_be_sent(events in proptest::collection::vec(any_event(), 0..60)) {
        let mut turns = Turns::new(Vec::new(), Limits::default());
        turns.on(Event::Say(words("go")), 0);
        let mut made = std::collections::BTreeSet::new();
        for event in events {
            for effect in turns.on(event, 0) {
                match effect {
                    Effect::Ask { .. } => prop_assert_eq!(check(turns.history()), Ok(()), "before every send"),
                    Effect::Call { id, .. } => prop_assert!(made.insert(id), "no call is made twice under one name"),
                    _ => {}
                }
            }
        }
        turns.on(Event::Cancel, 0);
        prop_assert_eq!(check(turns.history()), Ok(()));
        // Every call that was made is in what was said: nothing happened that the model does not know of.
        let known: std::collections::BTreeSet<String> =
            turns.history().iter().flat_map(Message::uses).map(|(id, ..)| id.to_owned()).collect();
        let short = turns.history().first().is_some_and(|first| first.text().contains("short"));
        prop_assert!(short || made.is_subset(&known), "{made:?} {known:?}");
    }
}
