//! Talking to a model: words as they come, calls as they are made.

use crate::{Env, Model};
use haft_stub::{Counted, Reply};
use serde_json::json;
use std::time::Duration;

/// Escape.
const ESC: &str = "\u{1b}";

#[test]
fn words_come_as_they_are_said() {
    let env = Env::new();
    let words = "One two three four five six seven eight nine ten.";
    let model = Model::new(vec![Reply::say(words).in_pieces(12).slow(Duration::from_millis(40))]);
    let mut window = env.open(&model, &[]);
    let first = window.shows("model    stub/stub-1");
    assert!(first.contains("project  ") && first.contains("say something"), "{first}");
    window.says("count for me");
    let early = window.shows("One two");
    assert!(early.contains("> count for me") && early.contains("working"), "{early}");
    assert!(!early.contains("nine ten"), "it came at once: {early}");
    let whole = window.shows("nine ten.");
    assert!(whole.contains("stub/stub-1"), "{whole}");
    window.shows("ready");
    assert_eq!(model.faults(), Vec::<String>::new());
}

#[test]
fn a_call_is_a_row_with_what_came_of_it() {
    let env = Env::new();
    env.file("a.txt", "first line\nsecond line\n");
    let call = Reply::say("I read it.").and_call("file_read", json!({"path": "a.txt"}));
    let model = Model::new(vec![call, Reply::say("It has two lines.")]);
    let mut window = env.open(&model, &["what is in a.txt?"]);
    let screen = window.shows("It has two lines.");
    assert!(screen.contains("✓ file_read a.txt") || screen.contains("✓ file.read a.txt"), "{screen}");
    assert!(!screen.contains("second line"), "folded: {screen}");
    window.types("\u{f}");
    window.shows("second line");
    assert!(model.was_told("second line"));
}

#[test]
fn the_cost_is_that_of_the_whole_conversation() {
    let env = Env::new();
    let costs = |text: &str, input: u64| {
        Reply::say(text).counted(Counted { input, cache_read: 0, cache_write: 0, output: 0, thinking: 0 })
    };
    let model = Model::new(vec![costs("One.", 6_000), costs("Two.", 3_000)]);
    let mut window = env.open(&model, &["first"]);
    window.shows("One.");
    window.until("the cost of the first", |screen| screen.contains("ready") && screen.contains("$0.0060"));
    window.says("second");
    window.shows("Two.");
    window.until("the cost of both", |screen| screen.contains("ready") && screen.contains("$0.0090"));
    window.says("/cost");
    window.shows("this conversation: $0.0090; 2 turns; 9.0k tokens read");
}

#[test]
fn escape_stops_it_and_it_can_be_gone_on_with() {
    let env = Env::new();
    let long = "word ".repeat(2_000);
    let slow = Reply::say(long).in_pieces(20).slow(Duration::from_millis(50));
    let model = Model::new(vec![slow, Reply::say("Here I am again.")]);
    let mut window = env.open(&model, &["talk and talk"]);
    window.shows("word word");
    window.types(ESC);
    window.shows("stopped. What was said stays");
    window.shows("ready");
    window.says("go on");
    window.shows("Here I am again.");
    assert_eq!(model.faults(), Vec::<String>::new());
}

#[test]
fn what_is_said_meanwhile_is_told_with_the_next_results() {
    let env = Env::new();
    let slow = Reply::say("I think about it for a while.").in_pieces(8).slow(Duration::from_millis(150));
    let model = Model::new(vec![slow, Reply::say("Green it is.")]);
    let mut window = env.open(&model, &["paint it red"]);
    window.shows("I think");
    window.says("no, green");
    window.shows("told with the next results");
    let screen = window.shows("Green it is.");
    assert!(!screen.contains("told with"), "{screen}");
    assert!(model.was_told("no, green"));
}

#[test]
fn nothing_a_model_or_a_tool_says_acts_on_the_terminal() {
    let env = Env::new();
    env.file("evil.txt", "\u{1b}]0;owned\u{7}\u{1b}[2Jgone\n");
    let call = Reply::say("\u{1b}]0;owned\u{7}Look:\u{9b}2J").and_call("file_read", json!({"path": "evil.txt"}));
    let model = Model::new(vec![call, Reply::say("That was \u{1b}[31mit.")]);
    let mut window = env.open(&model, &["read evil.txt"]);
    window.shows("it.");
    window.shows("ready");
    window.types("\u{f}");
    let screen = window.shows("gone");
    assert!(screen.contains("\\u{1b}]0;owned\\u{7}Look:"), "{screen}");
    assert!(!window.raw().contains("\u{1b}]0;owned") && !window.raw().contains("\u{9b}"), "it acted");
}

#[test]
fn a_conversation_is_found_again() {
    let env = Env::new();
    let model = Model::new(vec![Reply::say("The word is **kumquat**."), Reply::say("Kumquat, as I said.")]);
    let mut window = env.open(&model, &["tell me a word"]);
    window.shows("The word is kumquat.");
    window.shows("ready");
    window.says("/quit");
    assert_eq!(window.ended(), 0);
    assert!(window.screen().contains("go on with: haft tui --resume=chat-"), "{}", window.screen());
    let mut window = env.open(&model, &["--resume"]);
    let screen = window.shows("The word is kumquat.");
    assert!(screen.contains("> tell me a word"), "{screen}");
    window.says("which word?");
    window.shows("Kumquat, as I said.");
    assert!(model.was_told("The word is **kumquat**."));
}

#[test]
fn what_was_queued_comes_back_to_the_box_when_the_model_is_stopped() {
    let env = Env::new();
    let long = format!("I think about it. {}", "word ".repeat(200));
    let slow = Reply::say(long).in_pieces(8).slow(Duration::from_millis(150));
    let model = Model::new(vec![slow, Reply::say("As you like.")]);
    let mut window = env.open(&model, &["paint it red"]);
    window.shows("I think");
    window.says("no, green");
    window.shows("told with the next results");
    window.types(ESC);
    window.shows("stopped. What was said stays");
    window.hides("told with the next results");
    window.shows("no, green");
    // It is in the box: there it can be wiped out.
    window.types("\u{15}");
    window.hides("no, green");
    window.says("go on");
    window.shows("As you like.");
    assert!(!model.was_told("no, green"), "it was said all the same");
}
