//! Secrets in commands: they run, and they are written down and shown nowhere.

use crate::Env;
use serde_json::{Value, json};

/// The bytes of the database and of its write-ahead log.
fn stored(env: &Env) -> String {
    let read = |end: &str| {
        let mut path = env.store().into_os_string();
        path.push(end);
        std::fs::read(path).unwrap_or_default()
    };
    String::from_utf8_lossy(&[read(""), read("-wal")].concat()).into_owned()
}

fn wait_for_person(env: &Env, tool: &str, args: Value) -> (String, Value) {
    let (outcome, code) = env.call(tool, args, &["--no-input"]);
    assert_eq!(code, 4, "{outcome:#}");
    (outcome["error"]["details"]["approval_id"].as_str().unwrap().to_owned(), outcome)
}

#[test]
fn secrets_in_commands_are_not_in_the_log() {
    let env = Env::new();
    let commands = [
        ("PGPASSWORD=hunter2one psql -h db -c 'select 1'", "hunter2one"),
        ("curl -u alice:hunter2two https://a.example/", "hunter2two"),
        ("mysql -uroot -phunter2three shop", "hunter2three"),
        ("docker login -u alice -p hunter2four r.example", "hunter2four"),
        ("curl https://a.example/ -d sk_live_a1b2c3d4e5f6g7h8", "sk_live_a1b2"),
        ("hf auth login --token hf_AbCdEfGhIjKlMnOpQrStUvWx", "hf_AbCdEf"),
        ("aws configure set aws_access_key_id ASIAIOSFODNN7EXAMPLE", "ASIAIOSF"),
        ("aws configure set aws_secret_access_key hunter2eight", "hunter2eight"),
    ];
    for (command, secret) in commands {
        let (id, _) = wait_for_person(&env, "shell.exec", json!({"command": command}));
        let shown = [
            env.run(&["approvals", "show", &id]).stdout,
            env.run(&["approvals", "show", &id, "--json"]).stdout,
            env.run(&["approvals", "--json"]).stdout,
            env.run(&["explain", "shell.exec", &json!({"command": command}).to_string()]).stdout,
        ];
        assert!(shown[0].contains("[secret]"), "{}", shown[0]);
        for text in shown {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert_eq!(env.run(&["approvals", "reject", &id]).code, 0);
    }
    let log: String = env.records().iter().map(ToString::to_string).collect();
    let database = stored(&env);
    for (command, secret) in commands {
        let program = command.split(' ').find(|word| !word.contains('=')).unwrap();
        assert!(log.contains(program) && !log.contains(secret), "{secret} in {log}");
        assert!(!database.contains(secret), "{secret} is in the database file");
    }
}

#[test]
fn waiting_command_with_a_secret_runs_as_it_was_asked() {
    let env = Env::new();
    let command = "X_TOKEN=hunter2waiting sh -c 'printf %s \"$X_TOKEN\" > out.txt'";
    let (id, _) = wait_for_person(&env, "shell.exec", json!({"command": command}));
    let ran = env.run(&["approvals", "approve", &id, "--json"]);
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    assert_eq!(env.read("out.txt"), "hunter2waiting");
    let log: String = env.records().iter().map(ToString::to_string).collect();
    assert!(log.contains("X_TOKEN=[secret] sh -c") && !log.contains("hunter2waiting"), "{log}");
    assert!(!stored(&env).contains("hunter2waiting"), "what waited is not kept once it is decided");
}

#[test]
fn question_is_about_the_true_command() {
    let env = Env::new();
    let ask = |secret: &str| {
        let command = format!("X_TOKEN={secret} sh -c 'touch x'");
        let (id, _) = wait_for_person(&env, "shell.exec", json!({"command": command}));
        let shown = env.run(&["approvals", "--json"]).json();
        let found = shown.as_array().unwrap().iter().find(|one| one["id"] == id.as_str()).unwrap().clone();
        (found["preview"].clone(), found["basis"].clone())
    };
    let (first, second) = (ask("hunter2a"), ask("hunter2b"));
    assert_eq!(first.0, second.0, "both are shown alike");
    assert_ne!(first.1, second.1, "a yes to one is none to the other");
}

#[test]
fn words_of_a_program_are_masked() {
    let env = Env::new();
    let args = json!({"command": "mysql", "args": ["-phunter2words", "-e", "select 1"]});
    let (id, _) = wait_for_person(&env, "process.start", args);
    let shown = env.run(&["approvals", "show", &id]).stdout;
    assert!(shown.contains("-p[secret]") && !shown.contains("hunter2words"), "{shown}");
    let log: String = env.records().iter().map(ToString::to_string).collect();
    assert!(!log.contains("hunter2words"), "{log}");
}
