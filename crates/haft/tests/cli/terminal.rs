//! The prompt on a real terminal, driven through a pseudo-terminal by `script`.

use crate::Env;
use serde_json::json;
use std::io::Write;
use std::process::{Command, Stdio};

/// Types `keys` at the prompt of a call and returns the screen and the exit code.
pub(crate) fn typed(env: &Env, call: &str, keys: &str) -> (String, i32) {
    shown(env, &format!("call {call}"), keys)
}

/// The same for any command.
fn shown(env: &Env, command: &str, keys: &str) -> (String, i32) {
    let command = format!("exec {} {command} --color never", env!("CARGO_BIN_EXE_haft"));
    let mut child = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .current_dir(env.root())
        .env_clear()
        .env("HOME", env.dir.path().join("home"))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap(); // `script` is part of bsdutils, which every Debian has
    let mut input = child.stdin.take().unwrap();
    if keys.starts_with(INTERRUPT) {
        // Not before there is a program to interrupt.
        std::thread::sleep(std::time::Duration::from_secs(4));
    }
    input.write_all(keys.as_bytes()).unwrap();
    // The input stays open until the program ends: its end would type a Ctrl-D.
    let output = child.wait_with_output().unwrap();
    drop(input);
    (String::from_utf8_lossy(&output.stdout).replace('\r', ""), output.status.code().unwrap_or(-1))
}

/// Ctrl-C.
const INTERRUPT: &str = "\u{3}";
const WRITE: &str = "file.write path=a.txt content=hello";

#[test]
fn the_prompt_shows_the_effect_and_once_runs_it() {
    let env = Env::new();
    let (screen, code) = typed(&env, WRITE, "o\n");
    assert_eq!((code, env.read("a.txt").as_str()), (0, "hello"), "{screen}");
    assert!(screen.contains("haft: file.write: a.txt (5B)  (severity medium)"), "{screen}");
    assert!(screen.contains("+hello"), "{screen}");
    assert!(screen.contains("[o]nce [s]ession [a]lways [r]eject [e]dit [d]iff"), "{screen}");
}

#[test]
fn a_rejection_reaches_the_model_with_its_message() {
    let env = Env::new();
    let (screen, code) = typed(&env, WRITE, "r\nplease use notes/\n");
    assert_eq!(code, 5, "{screen}");
    assert!(screen.contains("error: please use notes/"), "{screen}");
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn session_and_always_are_remembered() {
    let env = Env::new();
    let again = |session: &str| {
        env.call("file.write", json!({"path": "a.txt", "content": "2"}), &["--no-input", "--session", session]).1
    };
    typed(&env, WRITE, "s\n");
    assert_eq!(again("default"), 0);
    assert_eq!(again("other"), 4, "another session is asked");
    let (screen, code) = typed(&env, "file.write path=docs/x.md content=hi", "a\n**\na\ndocs/*\n");
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("`**` is too broad"), "{screen}");
    assert_eq!(
        env.call("file.write", json!({"path": "docs/y.md", "content": "y"}), &["--no-input", "--session", "third"]).1,
        0
    );
}

#[test]
fn edited_arguments_are_checked_and_asked_again() {
    let env = Env::new();
    let (screen, code) = typed(&env, WRITE, "e\n{\"path\": 5}\n");
    assert_eq!(code, 2, "bad arguments are bad input: {screen}");
    let (screen, code) = typed(&env, WRITE, "e\n{\"path\": \"b.txt\", \"content\": \"edited\"}\no\n");
    assert_eq!(code, 0, "{screen}");
    assert_eq!(env.read("b.txt"), "edited");
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn what_a_file_says_cannot_act_on_the_terminal() {
    let env = Env::new();
    env.file("evil.txt", "before\u{1b}]0;owned\u{7}\u{1b}[2Jafter\n");
    let (screen, code) = typed(&env, "file.read path=evil.txt", "");
    assert_eq!(code, 0);
    assert!(!screen.contains('\u{1b}') && screen.contains("\\u{1b}[2Jafter"), "{screen:?}");
    let piped = env.run(&["call", "file.read", "path=evil.txt"]);
    assert!(piped.stdout.contains('\u{1b}'), "into a pipe it goes as it is");
}

#[test]
fn an_interrupt_at_the_prompt_ends_the_program() {
    let env = Env::new();
    let begun = std::time::Instant::now();
    let (screen, code) = typed(&env, &format!("{WRITE} --timeout-ms 500"), "");
    assert_eq!(code, 6, "{screen}");
    assert!(begun.elapsed().as_secs() < 10, "it waited {:?} for a key", begun.elapsed());
    let (screen, code) = typed(&env, WRITE, INTERRUPT);
    assert_eq!(code, 1, "{screen}");
    assert!(screen.contains("the call was cancelled"), "{screen}");
}

#[test]
fn a_long_run_is_one_line_that_is_kept_up_to_date_and_out_of_the_way_of_questions() {
    let env = Env::new();
    env.file(".haft/workflows/nap.yml", "steps:\n  - {id: nap, tool: shell.exec, args: {command: sleep 2}}\n");
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    let (screen, code) = shown(&env, "pipeline run nap --yes", "");
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("\u{1b}[2K0/1 steps, 0:01, running nap"), "{screen:?}");
    let put = "  - {id: put, tool: file.write, args: {path: a.txt, content: hello}, needs: [nap]}\n";
    env.file(".haft/workflows/put.yml", format!("{}{put}", env.read(".haft/workflows/nap.yml")));
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    let (screen, code) = shown(&env, "pipeline run put", "o\n");
    assert_eq!(code, 0, "{screen}");
    let (before, asked) = screen.split_once("haft: file.write").unwrap_or_else(|| panic!("{screen:?}"));
    assert!(before.contains("running nap") && before.trim_end().ends_with("\u{1b}[2K"), "{screen:?}");
    assert_eq!(env.read("a.txt"), "hello");
    let question = asked.split_once("[o]nce").map_or("", |(question, _)| question);
    assert!(!question.is_empty() && !question.contains("\u{1b}[2K"), "{screen:?}");
    let ran = env.run(&["pipeline", "run", "nap", "--yes"]);
    assert!(ran.code == 0 && !ran.stderr.contains("steps,"), "{}", ran.stderr);
}

#[test]
fn a_question_of_an_agents_is_answered_by_number_by_word_and_by_text() {
    let env = Env::new();
    let several = r#"user.ask '{"questions": [{"question": "Which?", "options": ["sqlite", "postgres"]}, {"question": "Parts?", "options": ["api", "page", "docs"], "multiple": true}, {"question": "Sure?", "confirm": true}, {"question": "Name?"}]}'"#;
    let (screen, code) = typed(&env, several, "7\n2\napi, 3\ny\nhaft\n");
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("   2. postgres") && screen.contains("choose a number from 1 to 2"), "{screen}");
    let said = "Which?: postgres\nParts?: api, docs\nSure?: yes\nName?: haft";
    assert!(screen.contains(said), "{screen}");
}

#[test]
fn enter_declines_a_question_and_its_words_cannot_act() {
    let env = Env::new();
    let args = r#"user.ask '{"question": "Which\u001b[2J?", "options": ["a\u001b]0;x\u0007"]}'"#;
    let (screen, code) = typed(&env, args, "\n");
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("The user declined to answer"), "{screen}");
    assert!(!screen.contains('\u{1b}') && screen.contains("Which\\u{1b}[2J?"), "{screen:?}");
}

#[test]
fn without_a_terminal_a_question_is_not_asked_and_the_call_succeeds() {
    let env = Env::new();
    let (outcome, code) = env.call("user.ask", json!({"question": "Go?", "confirm": true, "default": true}), &[]);
    assert_eq!((code, &outcome["data"]["answered"]), (0, &json!(false)), "{outcome:#}");
    assert!(outcome["output"].as_str().unwrap().contains("Go?: yes (default)"), "{outcome:#}");
}
