//! The operational log: what a process does and waits for, on stderr when it is asked for, and in a file of processes that
//! stay.

use crate::process::until;
use crate::{Env, Ran};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const SUM: [&str; 3] = ["call", "calc.eval", "expression=6 * 7"];

#[test]
fn a_command_logs_on_stderr_when_it_is_asked_to() {
    let env = Env::new();
    let run = |more: &[&str], filter: Option<&str>| {
        let mut command = env.command(&[&SUM, more].concat());
        filter.map(|filter| command.env("HAFT_LOG", filter));
        let ran = Ran::from(command.output().unwrap());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "42\n"), "{}", ran.stderr);
        ran.stderr
    };
    assert_eq!(run(&[], None), "");
    let said = run(&["--verbose"], None);
    let begins = said.lines().find(|line| line.contains("a call begins")).unwrap();
    assert!(begins.contains(" INFO ") && begins.contains("haft::call: "), "{begins}");
    assert!(begins.contains("tool=calc.eval session=default"), "{begins}");
    assert!(said.contains("a call ends") && said.contains("success=true"), "{said}");
    assert!(run(&[], Some("haft::call=info")).contains("a call ends"));
    assert!(run(&[], Some("trace")).contains("kind=store"));
    assert_eq!(run(&["--verbose"], Some("off")), "", "what is said more closely counts");
    assert_eq!(run(&[], Some("haft::wait=debug")), "");
    let odd = run(&[], Some("haft=loudly"));
    assert!(odd.contains("HAFT_LOG cannot be read") && odd.contains("a call ends"), "{odd}");
    for typo in ["nonsense[[", "inof"] {
        let said = run(&[], Some(typo));
        assert!(said.contains("HAFT_LOG cannot be read") && said.contains(typo), "{said}");
    }
    assert!(!env.data().join("log").exists(), "a command that ends keeps no file");
}

/// A process that stays keeps a log that nobody else reads, bounded and named by the doctor.
#[test]
fn a_process_that_stays_logs_into_a_private_file() {
    let env = Env::new();
    let file = env.data().join("log/haft.log");
    let mut worker = env.command(&["worker"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(worker.stderr.take().unwrap()).lines();
    let first = said.next().unwrap().unwrap();
    assert!(first.contains("does the steps of"), "the file is no reason to say it on stderr: {first}");
    until(|| std::fs::read_to_string(&file).is_ok_and(|text| text.contains("the process begins")));
    let pid = rustix::process::Pid::from_raw(i32::try_from(worker.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(worker.wait().unwrap().success());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("role=worker") && text.lines().last().unwrap().contains("the process ends"), "{text}");
    assert!(text.lines().all(|line| line.contains(&format!(" {} ", worker.id()))), "{text}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(file.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let found = env.run(&["doctor", "--json"]).json();
    let found = found.as_array().unwrap().iter().find(|finding| finding["name"] == "log file").unwrap().clone();
    let found = found["found"].as_str().unwrap();
    assert!(found.contains(file.to_str().unwrap()) && found.contains("at most 4 files of 4 MiB"), "{found}");
}

#[test]
fn a_process_that_is_stuck_says_what_it_waits_for() {
    let env = Env::new();
    assert_eq!(env.run(&SUM).code, 0);
    let mut locked = rusqlite::Connection::open(env.store()).unwrap();
    let held = locked.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let mut command = env.command(&["call", "file.write", "path=a.txt", "content=x", "--yes", "--verbose"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("the store is locked by another process; waiting for it") {
        assert_ne!(lines.read_line(&mut said).unwrap(), 0, "{said}");
    }
    drop(held);
    lines.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert_eq!(env.read("a.txt"), "x");
}
