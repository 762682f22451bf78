//! What people have kept for later, and what becomes of it.

use crate::Env;
use serde_json::{Value, json};

/// Adds a task, and gives its name.
fn add(env: &Env, args: &[&str]) -> String {
    let added = env.run(&[&["task", "add"], args, &["--json"]].concat());
    assert_eq!(added.code, 0, "{}{}", added.stdout, added.stderr);
    added.json()["id"].as_str().unwrap().to_owned()
}

fn task(env: &Env, id: &str) -> Value {
    env.run(&["task", "show", id, "--json"]).json()
}

#[test]
fn tasks_are_kept_listed_completed_and_forgotten() {
    let env = Env::new();
    let whole = add(&env, &["Release 1.0", "--priority", "urgent", "--due", "2030-01-31", "--tag", "v1"]);
    let part = add(&env, &["Write the notes", "--parent", &whole[..8]]);
    add(&env, &["Buy milk", "--user"]);
    let listed = env.run(&["task"]);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", listed.stdout);
    let first = format!("{}  pending  urgent  due 2030-01-31  Release 1.0 #v1", &whole[..8]);
    assert_eq!(lines[0], first);
    assert!(lines[1].ends_with("↳ Write the notes"), "{}", lines[1]);
    assert!(!listed.stdout.contains('\u{1b}'), "no colours into a pipe");
    let shown = env.run(&["task", "show", &whole[..8]]).stdout;
    assert!(shown.contains("Release 1.0") && shown.contains("Write the notes"), "{shown}");
    let done = env.run(&["task", "done", &whole[..8]]);
    assert!(done.stderr.contains("and 1 below it"), "{}", done.stderr);
    assert_eq!(task(&env, &part)["status"], "done");
    assert_eq!(env.run(&["task", "list", "--status", "completed", "--json"]).json().as_array().unwrap().len(), 2);
    let kept = env.run(&["task", "rm", &whole]);
    assert!(kept.code == 1 && kept.stderr.contains("--all"), "{}", kept.stderr);
    assert_eq!(env.run(&["task", "rm", &whole, "--all", "--json"]).json()["removed"], 2);
    assert_eq!(env.run(&["task", "show", &whole]).code, 1);
}

#[test]
fn what_makes_no_sense_is_said_with_what_would() {
    let env = Env::new();
    let refused = |args: &[&str]| {
        let ran = env.run(&[&["task", "add", "a"], args].concat());
        (ran.code, ran.stderr)
    };
    let (code, said) = refused(&["--schedule", "0 0 31 2 *"]);
    assert!(code == 2 && said.contains("never happens"), "{said}");
    let (code, said) = refused(&["--schedule", "now and then"]);
    assert!(code == 2 && said.contains("weekdays at 9:00"), "{said}");
    let (code, said) = refused(&["--due", "someday"]);
    assert!(code == 2 && said.contains("tomorrow"), "{said}");
    let (code, said) = refused(&["--tool", "calc.evil"]);
    assert!(code == 2 && said.contains("calc.eval"), "{said}");
    let (code, said) = refused(&["x=1"]);
    assert!(code == 2 && said.contains("--tool or --pipeline"), "{said}");
}

#[test]
fn a_task_is_run_on_demand_and_keeps_what_came_of_it() {
    let env = Env::new();
    let id =
        add(&env, &["Sums", "--schedule", "weekdays at 9:00 Europe/Vienna", "--tool", "calc.eval", "expression=6*7"]);
    let next = task(&env, &id)["next"].clone();
    let ran = env.run(&["task", "run", &id]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "42"), "{}", ran.stderr);
    let after = task(&env, &id);
    assert_eq!((&after["status"], &after["next"]), (&json!("pending"), &next), "its times stay");
    let logs = env.run(&["task", "logs", &id, "--json"]).json();
    assert_eq!((logs[0]["ok"].as_bool(), logs[0]["result"].as_str()), (Some(true), Some("42")));
    let by_hand = add(&env, &["Think"]);
    let ran = env.run(&["task", "run", &by_hand]);
    assert!(ran.code == 2 && ran.stderr.contains("for somebody to do"), "{}", ran.stderr);
}

#[test]
fn what_a_task_needs_a_person_for_waits_in_the_inbox() {
    let env = Env::new();
    let id = add(&env, &["Note", "--tool", "file.write", "path=a.txt", "content=words"]);
    let ran = env.run(&["task", "run", &id, "--no-input"]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    let waiting = task(&env, &id);
    assert_eq!(waiting["status"], "waiting");
    let question = waiting["waits_for"].as_str().unwrap();
    assert_eq!(env.run(&["approvals", "--json"]).json()[0]["id"], question);
    assert_eq!(env.run(&["approvals", "approve", question]).code, 0);
    assert_eq!(env.read("a.txt"), "words");
}

#[test]
fn what_is_over_for_long_is_forgotten_on_request() {
    let env = Env::new();
    let id = add(&env, &["Sums", "--schedule", "daily at 9:00", "--tool", "calc.eval", "expression=6*7"]);
    assert_eq!(env.run(&["task", "run", &id]).code, 0);
    let pruned = |args: &[&str]| env.run(&[&["store", "prune", "--json"], args].concat()).json();
    let young = pruned(&[]);
    assert_eq!((&young["runs"], &young["dry_run"]), (&json!(0), &json!(false)), "it is not 90 days old");
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let would = pruned(&["--older-than", "1s", "--dry-run"]);
    let expected = json!({"runs": 1, "steps": 1, "task_runs": 1, "workers": 1, "memory_versions": 0});
    let same = |found: &Value| expected.as_object().unwrap().iter().all(|(name, count)| found[name] == *count);
    assert!(same(&would), "{would}");
    let gone = pruned(&["--older-than", "1s"]);
    assert!(same(&gone), "{gone}");
    assert_eq!(pruned(&["--older-than", "1s"])["runs"], 0);
    assert_eq!(task(&env, &id)["result"], "42", "the task itself stays");
    let verified = env.run(&["log", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    let refused = env.run(&["store", "prune", "--older-than", "long"]);
    assert!(refused.code == 2 && refused.stderr.contains("30d"), "{}", refused.stderr);
}

#[test]
fn every_dialects_words_mean_the_same_tasks() {
    let env = Env::new();
    let said = |dialect: &str, tool: &str, args: Value| env.call(tool, args, &["--yes", "--dialect", dialect]).0;
    let made = said("nodyn", "task_create", json!({"title": "a", "due_date": "2030-01-31", "priority": "high"}));
    let id = made["data"]["task"]["id"].as_str().unwrap().to_owned();
    let moved = said("flyto", "TaskUpdate", json!({"id": id[..6], "status": "in_progress"}));
    assert_eq!(moved["data"]["task"]["status"], "in_progress", "{moved:#}");
    let listed = said("flyto", "TaskList", json!({}));
    assert_eq!(listed["data"]["tasks"][0]["id"], id.as_str());
    let done = said("nodyn", "task_update", json!({"task_id": id, "status": "completed"}));
    assert_eq!(done["data"]["task"]["status"], "done");
    let watch = said(
        "nodyn",
        "task_create",
        json!({"title": "b", "watch_url": "https://example.com/", "watch_interval_minutes": 1}),
    );
    assert_eq!(watch["data"]["task"]["schedule"], "5m", "{watch:#}");
}
