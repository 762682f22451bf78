//! Whether judgements are true. The product judges the whole corpus on a real project; and what it calls
//! read-only is run, confined but free to write the project, and watched: none of it may write, run a program
//! that the judgement does not name, or open a socket.

mod corpus;
mod project;
mod trace;

use crate::Env;
use crate::shell::confines;
use corpus::Entry;
use haft::{Call, Haft, Settings, Store, Workspace, new_call_id};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Fewer would prove less than was promised.
const LEAST: usize = 300;

/// What the product says of each command under its careful defaults, in order. Asked of the library: thousands
/// of processes would take minutes.
fn explained(env: &Env, commands: &[String]) -> Vec<Value> {
    // Where no pattern of the corpus leads: what names haft's own state is denied.
    let data = env.dir.path().join("home/.local/share/haft");
    let store = Store::open(&data.join("haft.db")).unwrap();
    let haft = Haft::new(Workspace::new(&env.root()).unwrap(), store, Settings::new(&data));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let explain = |command: &String| {
        let call = Call::new(new_call_id(), "shell.exec", json!({"command": command}));
        match runtime.block_on(haft.explain(call)) {
            Ok(explained) => serde_json::to_value(explained).unwrap(),
            Err(error) => json!({"error": error.message}),
        }
    };
    commands.iter().map(explain).collect()
}

fn decision(said: &Value) -> &str {
    said["verdict"]["decision"].as_str().unwrap_or_else(|| panic!("no verdict: {said:#}"))
}

/// The programs that a judgement names.
fn programs(said: &Value) -> BTreeSet<String> {
    let commands = said["shell"]["commands"].as_array().unwrap_or_else(|| panic!("no commands: {said:#}"));
    commands.iter().filter_map(|command| command["name"].as_str()).map(str::to_owned).collect()
}

#[test]
fn the_product_says_of_every_command_what_the_corpus_says() {
    let env = Env::new();
    project::make(&env);
    let entries = corpus::entries();
    let mut wanted: Vec<(&str, String)> = Vec::new();
    for Entry { command, verdict, twin, .. } in &entries {
        wanted.push((verdict, command.clone()));
        wanted.extend(twin.clone().map(|twin| ("allow", twin)));
    }
    let commands: Vec<String> = wanted.iter().map(|(_, command)| command.clone()).collect();
    let mut wrong = Vec::new();
    for ((wanted, command), said) in wanted.iter().zip(explained(&env, &commands)) {
        // A command that is no command at all is refused before anybody decides.
        let found = if said["error"].is_null() { decision(&said).to_owned() } else { "ask".to_owned() };
        let right = if *wanted == "stop" { found != "allow" } else { found == *wanted };
        if !right {
            wrong.push(format!("{command:?} is {found}, wanted {wanted}: {}", said["verdict"]["reason"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), commands.len(), wrong.join("\n"));
}

#[test]
fn what_is_called_read_only_neither_writes_nor_runs_nor_sends() {
    let env = Env::new();
    if !confines(&env) || !trace::works() {
        eprintln!("SKIPPED: without strace nobody sees what commands really do");
        return;
    }
    project::make(&env);
    let candidates: Vec<String> = corpus::harmless().into_iter().collect();
    let said = explained(&env, &candidates);
    // Only what the product would run unasked is ever run here.
    let allowed = candidates.into_iter().zip(said).filter(|(_, said)| decision(said) == "allow");
    let runs: Vec<(String, BTreeSet<String>)> = allowed.map(|(command, said)| (command, programs(&said))).collect();
    assert!(runs.len() >= LEAST, "only {} commands are called read-only", runs.len());

    let before = crate::snapshot(&env.root());
    // Two at a time, as machines have at least two cores.
    let (first, second) = runs.split_at(runs.len() / 2);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let other = scope.spawn(|| trace::run(&env, "second", second));
        let mut wrong = trace::run(&env, "first", first);
        wrong.extend(other.join().unwrap());
        wrong
    });
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), runs.len(), wrong.join("\n"));
    assert_eq!(crate::snapshot(&env.root()), before, "the project is as it was");
}

/// The watch sees what it is there to see: commands that are not read-only, in a project of their own.
#[test]
fn the_watch_would_notice() {
    let env = Env::new();
    if !confines(&env) || !trace::works() {
        return;
    }
    project::make(&env);
    let cases = [
        ("echo hi > new.txt", "echo", "writes new.txt"),
        ("rm a.txt", "rm", "a.txt"),
        ("mkdir made", "mkdir", "mkdir"),
        ("cat a.txt | sort", "cat", "runs sort"),
        ("ls; chmod 700 b.txt", "ls", "runs chmod"),
        ("bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'", "bash", "socket"),
    ];
    let runs: Vec<(String, BTreeSet<String>)> =
        cases.iter().map(|(command, name, _)| ((*command).to_owned(), BTreeSet::from([(*name).to_owned()]))).collect();
    let wrong = trace::run(&env, "watch", &runs);
    for (command, _, seen) in cases {
        let noticed = wrong.iter().any(|line| line.contains(command) && line.contains(seen));
        assert!(noticed, "{command}: {seen} is not in\n{}", wrong.join("\n"));
    }
}
