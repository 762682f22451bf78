//! Being asked: the effect is seen, one key answers, and the file changes or does not.

use crate::window::Window;
use crate::{Env, Model};
use haft_stub::Reply;
use serde_json::json;
use std::time::Duration;

/// What it reads before it may write.
fn reads() -> Reply {
    Reply::call("file_read", json!({"path": "a.txt"}))
}

fn writes(then: &str) -> Vec<Reply> {
    let call = json!({"path": "a.txt", "content": "two\n"});
    vec![reads(), Reply::say("I change it.").and_call("file_write", call), Reply::say(then)]
}

/// Looks at a question for as long as it takes to see one. What is typed sooner answers nothing.
fn sees() {
    std::thread::sleep(Duration::from_millis(400));
}

#[test]
fn a_change_is_shown_as_a_difference_and_made_when_somebody_says_so() {
    let env = Env::new();
    env.file("a.txt", "one\n");
    let model = Model::new(writes("It is changed."));
    let mut window = env.open(&model, &["make it two"]);
    let screen = window.shows("[o]nce");
    for part in ["-one", "+two", "severity medium", "asked because"] {
        assert!(screen.contains(part), "no {part:?}: {screen}");
    }
    assert_eq!(env.read("a.txt"), "one\n", "nothing happens before the answer");
    sees();
    window.types("o");
    window.shows("It is changed.");
    assert_eq!(env.read("a.txt"), "two\n");
    let screen = window.hides("[o]nce");
    assert!(screen.contains("✓ file"), "{screen}");
    window.says("/undo");
    window.shows("undid");
    assert_eq!(env.read("a.txt"), "one\n");
}

#[test]
fn a_rejection_reaches_the_model_with_its_reason() {
    let env = Env::new();
    env.file("a.txt", "one\n");
    let model = Model::new(writes("As you wish."));
    let mut window = env.open(&model, &["make it two"]);
    window.shows("[o]nce");
    sees();
    window.types("r");
    window.shows("what should the model be told?");
    window.says("use three instead");
    window.shows("As you wish.");
    assert_eq!(env.read("a.txt"), "one\n");
    assert!(model.was_told("use three instead"));
}

#[test]
fn the_difference_is_closed_again_and_the_next_question_takes_the_keys() {
    let env = Env::new();
    env.file("a.txt", "one\n");
    let write = |text: &str| Reply::call("file_write", json!({"path": "a.txt", "content": text}));
    let model = Model::new(vec![reads(), write("two\n"), write("three\n"), Reply::say("All is changed.")]);
    let mut window = env.open(&model, &["count up"]);
    window.shows("[o]nce");
    sees();
    window.types("d");
    window.shows("esc or d goes back");
    window.types("\u{1b}");
    let screen = window.hides("esc or d goes back");
    assert!(screen.contains("[o]nce") && screen.contains("working"), "{screen}");
    window.types("o");
    let screen = window.shows("+three");
    assert!(!screen.contains("tab to answer"), "{screen}");
    sees();
    window.types("o");
    window.shows("All is changed.");
    assert_eq!(env.read("a.txt"), "three\n");
}

#[test]
fn somebody_who_types_answers_nothing_by_it() {
    let env = Env::new();
    env.file("a.txt", "one\n");
    let call = json!({"path": "a.txt", "content": "two\n"});
    let slow = Reply::say("I change it, slowly and with care.")
        .and_call("file_write", call)
        .in_pieces(10)
        .slow(Duration::from_millis(60));
    let model = Model::new(vec![reads(), slow, Reply::say("Well.")]);
    let mut window = env.open(&model, &["make it two"]);
    window.shows("I change");
    window.types("oh no");
    window.shows("tab to answer");
    window.types("ooo");
    window.shows("> oh noooo");
    assert_eq!(env.read("a.txt"), "one\n");
    window.types("\t");
    window.shows("[o]nce");
    sees();
    window.types("o");
    window.shows("Well.");
    assert_eq!(env.read("a.txt"), "two\n");
}

#[test]
fn a_question_of_the_model_is_filled_in() {
    let env = Env::new();
    let ask = json!({"question": "Which colour?", "options": ["red", "blue"]});
    let model = Model::new(vec![Reply::call("user_ask", ask), Reply::say("Blue, then.")]);
    let mut window = env.open(&model, &["paint it"]);
    let screen = window.shows("1. red");
    assert!(screen.contains("Which colour?") && screen.contains("2. blue"), "{screen}");
    sees();
    window.types("2");
    window.shows("(•) 2. blue");
    window.types("\r");
    window.shows("Blue, then.");
    assert!(model.was_told("blue"));
}

/// A child that writes a file, asks something, and reports.
fn helped() -> Vec<Reply> {
    vec![
        Reply::call("agent_spawn", json!({"name": "helper", "task": "write it down"})),
        Reply::call("file_write", json!({"path": "a.txt", "content": "hello"})),
        Reply::call("user_ask", json!({"question": "Is that all?", "confirm": true})),
        Reply::say("Written."),
        Reply::say("It is written."),
    ]
}

#[test]
fn who_asks_is_said_on_the_screen_and_at_the_terminal() {
    let env = Env::new();
    let model = Model::new(helped());
    let mut window = env.open(&model, &["have it written"]);
    window.shows("asked by main/helper");
    sees();
    window.types("o");
    window.shows("main/helper asks:");
    sees();
    window.types("y\r");
    window.shows("It is written.");
    let model = Model::new(helped());
    model.known_to(&env);
    std::fs::remove_file(env.root().join("a.txt")).unwrap();
    let mut window = Window::open(&env, &["run", "have it written"], (80, 24), "xterm");
    window.shows("asked by main/helper");
    window.types("o\r");
    window.shows("haft: main/helper asks");
    window.types("y\r");
    assert_eq!(window.ended(), 0);
}

#[test]
fn a_trial_shows_source_before_an_ignored_directory_which_can_be_opened() {
    let env = Env::new();
    env.file(".gitignore", "node_modules/\n");
    env.file("src.py", "one\n");
    let command = "mkdir node_modules; n=0; while [ $n -lt 250 ]; do echo $n > node_modules/$n.js; n=$((n+1)); done; echo two >> src.py";
    let model =
        Model::new(vec![Reply::call("shell_exec", json!({"command": command})), Reply::say("It is installed.")]);
    model.known_to(&env);
    let mut window = Window::open(&env, &["tui", "install it"], (100, 80), "xterm-256color");
    let screen = window.shows("[o]nce");
    if !screen.contains("[t]ry") {
        eprintln!("SKIPPED: this machine does not confine fully; see `haft doctor`");
        return;
    }
    sees();
    window.types("t");
    window.shows("[f]olders");
    sees();
    window.types("d");
    let screen = window.until("the changes", |screen| screen.contains("# modified src.py") && screen.contains("+two"));
    let folded = screen.find("# ignored node_modules/: 250 files");
    assert!(screen.find("# modified src.py") < folded && folded.is_some(), "{screen}");
    assert!(!screen.contains("node_modules/0.js"), "{screen}");
    window.types("f");
    window.until("the files of the directory", |screen| screen.contains("in node_modules/:"));
    window.types("o");
    window.shows("It is installed.");
    assert_eq!(env.read("src.py"), "one\ntwo\n");
}
