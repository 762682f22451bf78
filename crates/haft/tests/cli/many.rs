//! Many calls at once: in one batch, and from many processes.

use crate::{Env, Ran};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Instant;

fn batch(env: &Env, lines: &[Value]) -> (Vec<Value>, i32) {
    let mut child = env
        .command(&["batch", "-", "--yes"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    (ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), ran.code)
}

#[test]
fn outcomes_come_in_call_order_whatever_finished_first() {
    let env = Env::new();
    let wait = |ms: u64| json!({"tool": "calc.eval", "args": {"expression": ms.to_string(), "delay_ms": ms}});
    let begun = Instant::now();
    let (outcomes, code) = batch(&env, &[wait(2500), wait(1), wait(2000)]);
    assert_eq!(code, 0);
    let said: Vec<&str> = outcomes.iter().map(|outcome| outcome["output"].as_str().unwrap()).collect();
    assert_eq!(said, ["2500", "1", "2000"]);
    assert!(begun.elapsed().as_millis() < 4400, "they ran together: {:?}", begun.elapsed());
}

#[test]
fn a_program_holds_a_conversation_through_a_batch() {
    let env = Env::new();
    let mut child = env.command(&["batch", "--yes"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |line: &str| -> Value {
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    };
    let sum = |text: &str| json!({"tool": "calc.eval", "args": {"expression": text}}).to_string();
    // Each answer is the ground of the next question: nothing waits for the end of the input.
    let two = ask(&sum("1 + 1"));
    let four = ask(&sum(&format!("{0} + {0}", two["output"].as_str().unwrap())));
    assert_eq!(four["output"], "4");
    ask(&json!({"tool": "file.write", "args": {"path": "a.txt", "content": "4"}}).to_string());
    assert_eq!(std::fs::read_to_string(env.root().join("a.txt")).unwrap(), "4");
    // A line that makes no sense has its own outcome, and the conversation goes on.
    for bad in [r#"{"tool":"#, r#"{"tool": "calc.eval", "more": 1}"#, "5", "\u{ff}"] {
        let said = ask(bad);
        assert_eq!((&said["success"], &said["error"]["kind"]), (&json!(false), &json!("invalid_input")), "{said:#}");
        assert!(said["error"]["message"].as_str().unwrap().starts_with("line "), "{said:#}");
    }
    assert_eq!(ask(&json!({"tool": "nonsense"}).to_string())["error"]["kind"], "unknown_tool");
    assert_eq!(ask(&sum("2 * 4"))["output"], "8");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(2), "the first failure's");
}

#[test]
fn calls_with_effects_run_alone_and_in_order() {
    let env = Env::new();
    let (outcomes, code) = batch(
        &env,
        &[
            json!({"tool": "file.write", "args": {"path": "a.txt", "content": "1"}}),
            json!({"tool": "file.read", "args": {"path": "a.txt"}}),
            json!({"tool": "file.edit", "args": {"path": "a.txt", "old_string": "1", "new_string": "2"}}),
            json!({"tool": "Read", "dialect": "flyto", "args": {"file_path": env.root().join("a.txt")}}),
            json!({"tool": "file.read", "args": {"path": "missing"}}),
        ],
    );
    let said: Vec<&str> = outcomes.iter().map(|outcome| outcome["output"].as_str().unwrap().trim()).collect();
    assert_eq!(said, ["Created a.txt (1B, 1 lines)", "1\t1", "Edited a.txt: 1 replacement at line 1", "1\t2", ""]);
    assert_eq!(outcomes[4]["error"]["kind"], "not_found");
    assert_eq!(code, 1);
}

#[test]
fn ten_processes_at_once_make_one_unbroken_log() {
    let env = Env::new();
    std::thread::scope(|scope| {
        for number in 0..10 {
            let env = &env;
            scope.spawn(move || {
                for turn in 0..3 {
                    env.ok("file.write", json!({"path": format!("{number}-{turn}.txt"), "content": "x"}));
                }
            });
        }
    });
    assert_eq!(std::fs::read_dir(env.root()).unwrap().count(), 31);
    let verified = env.run(&["log", "verify", "--json"]).json();
    assert_eq!((verified["ok"].as_bool(), verified["head"]["seq"].as_i64()), (Some(true), Some(60)));
}

#[test]
fn a_call_that_takes_too_long_times_out() {
    let env = Env::new();
    let (kind, message, code) =
        env.err("calc.eval", json!({"expression": "1", "delay_ms": 30_000}), &["--timeout-ms", "200"]);
    assert_eq!((kind.as_str(), code), ("timeout", 6));
    assert!(message.contains("200 ms"), "{message}");
}

/// Waits until a process catches SIGINT.
fn wait_until_it_listens(pid: u32) {
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
    };
    for _ in 0..1000 {
        if listens() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it never caught SIGINT");
}

#[test]
fn an_interrupt_cancels_the_call_and_closes_its_record() {
    let env = Env::new();
    let args = json!({"expression": "1", "delay_ms": 30_000}).to_string();
    let child = env
        .command(&["call", "calc.eval", &args, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_it_listens(child.id());
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.json()["error"]["kind"].as_str().unwrap(), ran.code), ("cancelled", 1));
    assert_eq!(env.records().last().unwrap()["body"]["error"]["kind"], "cancelled");
}
