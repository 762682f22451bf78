//! `haft run` on a terminal: a sign of life while nothing is said.

use crate::window::Window;
use crate::{Env, Model};
use haft_stub::Reply;
use serde_json::json;
use std::time::Duration;

/// A model that says nothing for a while, calls something that takes a while, and speaks.
fn slow() -> Model {
    Model::new(vec![
        Reply::call("shell_exec", json!({"command": "sleep 2"})).slow(Duration::from_millis(300)),
        Reply::say("Slept well."),
    ])
}

const RUN: [&str; 4] = ["run", "--yes", "--allow=sleep", "sleep"];

#[test]
fn what_is_waited_for_is_said_until_something_comes() {
    let (env, model) = (Env::new(), slow());
    model.known_to(&env);
    let mut window = Window::open(&env, &RUN, (80, 24), "xterm");
    window.until("who is waited for", |screen| screen.contains(" s  waiting for stub/stub-1"));
    let screen = window.until("what is waited for", |screen| screen.contains(" 1 s  shell.exec: $ sleep 2"));
    assert!(!screen.contains("waiting for stub"), "{screen}");
    assert_eq!(window.ended(), 0);
    let screen = window.shows("Slept well.");
    assert!(!screen.contains(" s  "), "it is gone in the end: {screen}");
    assert!(window.raw().contains("\r\u{1b}[2K"));
}

#[test]
fn where_nothing_can_be_drawn_there_is_none_and_without_colours_it_has_none() {
    let env = Env::new();
    let model = slow();
    model.known_to(&env);
    let mut window = Window::open(&env, &RUN, (80, 24), "dumb");
    assert_eq!(window.ended(), 0);
    window.shows("Slept well.");
    assert!(!window.raw().contains('\u{1b}') && !window.raw().contains("waiting"), "{:?}", window.raw());
    let model = slow();
    model.known_to(&env);
    let mut window = Window::with(&env, &RUN, (80, 24), &[("TERM", "xterm"), ("NO_COLOR", "1")]);
    assert_eq!(window.ended(), 0);
    window.shows("Slept well.");
    let raw = window.raw();
    assert!(raw.contains(" 1 s  shell.exec: $ sleep 2"), "{raw:?}");
    assert!(!raw.replace("\u{1b}[2K", "").contains('\u{1b}'), "{raw:?}");
}

#[test]
fn a_question_is_asked_without_it() {
    let env = Env::new();
    let model = Model::new(vec![
        Reply::call("file_write", json!({"path": "a.txt", "content": "hello"})),
        Reply::say("Written."),
    ]);
    model.known_to(&env);
    let mut window = Window::open(&env, &["run", "write"], (80, 24), "xterm");
    window.shows("[o]nce");
    std::thread::sleep(Duration::from_secs(1));
    let raw = window.raw();
    let (_, asked) = raw.split_once("severity").unwrap();
    assert!(!asked.contains("\u{1b}[2K"), "{raw:?}");
    window.types("o\r");
    assert_eq!(window.ended(), 0);
    assert_eq!(env.read("a.txt"), "hello");
}

#[test]
fn what_is_written_into_a_file_is_waited_for_with_a_sign_of_life() {
    let env = Env::new();
    let model = Model::new(vec![Reply::say("word ".repeat(40)).in_pieces(40).slow(Duration::from_millis(60))]);
    model.known_to(&env);
    let mut window = Window::into_file(&env, &["run", "talk"], "out.txt");
    window.until("a sign of life while it writes", |screen| screen.contains(" s  the model writes"));
    assert_eq!(window.ended(), 0);
    assert!(env.read("out.txt").starts_with("word word") && !env.read("out.txt").contains('\u{1b}'));
}
