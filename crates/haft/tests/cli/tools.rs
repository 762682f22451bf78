//! What the tools are, how they are listed, and what else the program says about itself.

use crate::Env;
use serde_json::json;

#[test]
fn the_list_and_one_in_full() {
    let env = Env::new();
    let listed = env.run(&["tools"]);
    assert!(listed.stdout.lines().any(|line| line.starts_with("file.read")), "{}", listed.stdout);
    let shown = env.run(&["tools", "file.write"]);
    assert!(shown.stdout.contains("content: string"), "{}", shown.stdout);
    assert_eq!(env.run(&["tools", "Read"]).code, 0, "a foreign name is understood here, too");
    let unknown = env.run(&["tools", "file.raed"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean `file.read`?"), "{}", unknown.stderr);
}

#[test]
fn every_schema_compiles_and_every_example_of_a_default_is_valid() {
    let env = Env::new();
    let listed = env.run(&["tools", "--json"]).json();
    for tool in listed["tools"].as_array().unwrap() {
        let schema = haft::core::Schema::compile(&tool["input_schema"]).unwrap();
        if let Some(output) = tool.get("output_schema") {
            haft::core::Schema::compile(output).unwrap();
        }
        for (name, property) in tool["input_schema"]["properties"].as_object().unwrap() {
            assert!(
                property["description"].is_string() || property["enum"].is_array(),
                "{} {name} has no description",
                tool["name"]
            );
            if let Some(default) = property.get("default") {
                haft::core::Schema::compile(property).unwrap().violations(default).is_empty().then_some(()).unwrap();
            }
        }
        assert_eq!(schema.source()["additionalProperties"], false, "{}", tool["name"]);
    }
}

#[test]
fn search_respects_gitignore_marks_matches_and_orders_by_time() {
    let env = Env::new();
    env.file(".gitignore", "skipped.txt\n");
    env.file("skipped.txt", "needle");
    env.file("old.txt", "a needle here\n");
    std::thread::sleep(std::time::Duration::from_millis(20));
    env.file("new.txt", "no\nneedle needle\n");
    let found = env.ok("file.grep", json!({"pattern": "needle", "glob": "*.txt"}));
    assert_eq!(found["output"].as_str().unwrap().trim(), "new.txt:2:needle needle\nold.txt:1:a needle here");
    let found = env.ok("file.glob", json!({"pattern": "*.txt"}));
    let names: Vec<&str> =
        found["data"]["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["new.txt", "old.txt"]);
}

#[test]
fn checking_an_ignore_file_only_reads_and_is_not_asked() {
    let env = Env::new();
    env.file(".gitignore", "*.log\n");
    let (outcome, code) = env.call("file.ignore", json!({"action": "check", "path": "a.log"}), &["--no-input"]);
    assert_eq!((code, &outcome["data"]["ignored"]), (0, &json!(true)), "{outcome:#}");
    assert_eq!(env.call("file.ignore", json!({"action": "add", "patterns": ["x"]}), &["--no-input"]).1, 4);
}

#[test]
fn sessions_are_listed_and_forgotten() {
    let env = Env::new();
    env.call("calc.eval", json!({"expression": "1"}), &["--session", "work"]);
    let listed = env.ok("session.list", json!({}));
    assert_eq!(listed["data"]["sessions"][0]["id"], "work");
    env.ok("session.delete", json!({"session": "work"}));
    assert_eq!(env.err("session.delete", json!({"session": "work"}), &["--yes"]).0, "not_found");
}

#[test]
fn completions_manual_and_reference() {
    let env = Env::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(env.run(&["completions", shell]).stdout.contains("approvals"), "{shell}");
    }
    assert!(env.run(&["man"]).stdout.starts_with(".ie"), "roff");
    for kind in ["tools", "config", "cli"] {
        assert!(env.run(&["docs", kind]).stdout.starts_with("# "), "{kind}");
    }
    let help = env.run(&["--help"]);
    assert!(help.stdout.contains("Exit codes: 0 success"), "{}", help.stdout);
}

#[test]
fn usage_errors_exit_with_two() {
    let env = Env::new();
    assert_eq!(env.run(&["cal"]).code, 2);
    assert_eq!(env.run(&["call", "calc.eval", "nonsense"]).code, 2);
    assert_eq!(env.run(&["call", "calc.eval", "expression=1", "--dialect", "flyn"]).code, 2);
    let ran = env.run(&["call", "calc.eval", "{bad", "--json"]);
    assert_eq!((ran.code, ran.json()["error"]["kind"].as_str().unwrap()), (2, "invalid_input"));
}

#[test]
fn doctor_and_init() {
    let env = Env::new();
    let doctor = env.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{}", doctor.stdout);
    assert!(doctor.stdout.contains("the chain holds"), "{}", doctor.stdout);
    assert!(env.run(&["doctor", "--json"]).json().is_array());
    assert_eq!(env.run(&["init"]).code, 0);
    assert_eq!(env.run(&["init"]).code, 1, "nothing is overwritten");
    assert!(env.read(".haft/config.yml").starts_with('#'));
}

#[test]
fn no_colours_where_there_is_no_terminal() {
    let env = Env::new();
    let plain = env.run(&["tools"]);
    assert!(!plain.stdout.contains('\u{1b}'));
    assert!(env.run(&["tools", "--color", "always"]).stdout.contains('\u{1b}'));
}
