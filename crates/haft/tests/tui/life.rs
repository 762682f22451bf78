//! The terminal is held while the screen is shown, and is as it was when it is not.

use crate::window::Window;
use crate::{Env, Model};
use haft_stub::Reply;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// Whether the terminal is as a shell wants it.
fn is_given_back(window: &Window) {
    window.until("the terminal given back", |_| window.look(|screen| !screen.alternate_screen()));
    window.look(|screen| {
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    });
}

fn same(before: &rustix::termios::Termios, after: &rustix::termios::Termios) -> bool {
    (before.input_modes, before.output_modes, before.local_modes, before.control_modes)
        == (after.input_modes, after.output_modes, after.local_modes, after.control_modes)
}

#[test]
fn it_quits_cleanly_and_leaves_the_terminal_as_it_was() {
    let (env, model) = (Env::new(), Model::new(Vec::new()));
    for leave in ["\u{4}", "\u{3}\u{3}", "/quit\r"] {
        let mut window = env.open(&model, &[]);
        window.shows("say something");
        assert!(window.look(vt100::Screen::alternate_screen));
        let held = window.settings();
        window.types(leave);
        assert_eq!(window.ended(), 0, "{leave:?}");
        is_given_back(&window);
        let after = window.settings();
        assert!(!same(&held, &after) && after.local_modes.contains(rustix::termios::LocalModes::ECHO), "{leave:?}");
    }
}

#[test]
fn a_signal_gives_the_terminal_back_too() {
    let env = Env::new();
    let model = Model::new(vec![Reply::say("word ".repeat(500)).in_pieces(10).slow(Duration::from_millis(50))]);
    let mut window = env.open(&model, &["talk"]);
    window.shows("word word");
    let process = Pid::from_raw(i32::try_from(window.process()).unwrap()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
    window.ended();
    is_given_back(&window);
    assert!(window.settings().local_modes.contains(rustix::termios::LocalModes::ICANON));
}

#[test]
fn it_is_drawn_anew_when_the_window_changes() {
    let env = Env::new();
    let long =
        "The quick brown fox jumps over the lazy dog and goes on and on until the line has to be broken somewhere.";
    let model = Model::new(vec![Reply::say(long)]);
    let mut window = env.open(&model, &["a long line"]);
    window.shows("ready");
    let wide = window.shows("broken somewhere.");
    assert!(wide.lines().any(|line| line.contains("lazy dog and goes")), "{wide}");
    window.resize((50, 16));
    window.until("the line broken earlier", |screen| {
        screen.lines().any(|line| line.trim_end().ends_with("lazy dog and")) && screen.contains("ready")
    });
    window.resize((30, 8));
    window.shows("haft needs 40×10");
    window.resize((100, 30));
    window.shows("lazy dog and goes on and on");
    window.types("?");
    window.shows("close what is open; then, stop the model");
    window.types("q");
    window.hides("close what is open; then, stop the model");
}

#[test]
fn what_is_to_be_done_is_shown() {
    let (env, model) = (Env::new(), Model::new(Vec::new()));
    let haft = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_haft"));
        let home = env.dir.path().join("home");
        command.args(args).current_dir(env.root()).env_clear().env("HOME", home).output().unwrap()
    };
    assert!(haft(&["task", "add", "water the plants"]).status.success());
    let mut window = env.open(&model, &[]);
    window.shows("say something");
    window.types("\u{14}");
    window.shows("water the plants");
    window.types("\u{14}");
    window.hides("water the plants");
    window.types("\u{14}hello");
    window.shows("water the plants");
    window.shows("> hello");
    window.types("\u{1b}");
    let screen = window.hides("water the plants");
    assert!(screen.contains("> hello"), "{screen}");
}

#[test]
fn it_does_nothing_while_nothing_happens() {
    let env = Env::new();
    let model = Model::new(vec![Reply::say("Hello.")]);
    let mut window = env.open(&model, &["hello"]);
    window.shows("Hello.");
    window.shows("ready");
    std::thread::sleep(Duration::from_millis(500));
    let process = window.process();
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let after = stat.rsplit(')').next().unwrap();
        after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    };
    let (before, drawn) = (ticks(), window.raw().len());
    std::thread::sleep(Duration::from_secs(3));
    assert!(ticks() - before <= 6, "{} ticks in three seconds", ticks() - before);
    assert_eq!(window.raw().len(), drawn, "it drew something");
    window.types("\u{4}");
    assert_eq!(window.ended(), 0);
}

#[test]
fn without_colours_nothing_is_coloured() {
    let env = Env::new();
    let model = Model::new(vec![Reply::say("A `word`.")]);
    let coloured = |raw: &str| raw.contains("\u{1b}[36m") || raw.contains("\u{1b}[38;5;");
    let variables = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];
    let args = ["tui", "--model", "stub/stub-1", "hello"];
    model.known_to(&env);
    let window = Window::with(&env, &args, (80, 24), &variables);
    window.shows("A word.");
    assert!(!coloured(&window.raw()), "{:?}", window.raw());
}

#[test]
fn where_nothing_can_be_drawn_it_says_what_to_use() {
    let env = Env::new();
    let mut window = Window::open(&env, &["tui"], (80, 24), "dumb");
    assert_eq!(window.ended(), 2);
    let screen = window.shows("haft run");
    assert!(screen.contains("TERM is `dumb` or not set"), "{screen}");
    let home = env.dir.path().join("home");
    let piped = std::process::Command::new(env!("CARGO_BIN_EXE_haft"))
        .arg("tui")
        .current_dir(env.root())
        .env_clear()
        .env("HOME", home)
        .env("TERM", "xterm")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&piped.stderr).into_owned();
    assert!(piped.status.code() == Some(2) && said.contains("this is no terminal"), "{said}");
}
