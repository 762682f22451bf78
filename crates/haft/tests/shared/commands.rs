//! Every command works on a server as it does on a file.

use crate::Machine;
use crate::real::Database;
use serde_json::json;

#[test]
fn calls_are_made_logged_and_taken_back_on_a_server() {
    let Some(database) = Database::new() else { return };
    let here = Machine::new(database.address());
    let id =
        here.call("file.write", json!({"path": "a.txt", "content": "hello"}))["call_id"].as_str().unwrap().to_owned();
    assert_eq!(here.read("a.txt"), "hello");
    assert!(here.text(&["log"]).contains(&id));
    assert!(here.text(&["log", "verify"]).contains("the chain holds"));
    assert!(here.text(&["changes", &id]).contains("+hello"));
    here.text(&["undo", &id]);
    assert!(!here.root().join("a.txt").exists());
    assert!(!here.dir.path().join("home/.local/share/haft/haft.db").exists(), "nothing is kept in a file");
}

#[test]
fn a_task_in_the_background_finds_the_store() {
    let Some(database) = Database::new() else { return };
    let here = Machine::new(database.address());
    let args = json!({"command": "echo done > b.txt", "background": true});
    let started = here.json(&["call", "shell.exec", &args.to_string(), "--yes"]);
    assert_eq!(started["success"], true, "{started:#}");
    let id = started["call_id"].as_str().unwrap();
    crate::until(|| here.root().join("b.txt").exists().then_some(()));
    let ended = crate::until(|| {
        let log = here.text(&["log", id, "--json"]);
        log.contains("\"outcome\"").then_some(log)
    });
    assert!(ended.contains("\"success\":true"), "{ended}");
}

#[test]
fn a_question_is_decided_by_another_process() {
    let Some(database) = Database::new() else { return };
    let here = Machine::new(database.address());
    let args = json!({"path": "a.txt", "content": "hello"}).to_string();
    let asked = here.json(&["call", "file.write", &args, "--no-input"]);
    let id = asked["error"]["details"]["approval_id"].as_str().unwrap();
    assert_eq!(here.json(&["approvals"])[0]["id"], id);
    let ran = here.json(&["approvals", "approve", id]);
    assert_eq!((ran["success"].as_bool(), here.read("a.txt").as_str()), (Some(true), "hello"), "{ran:#}");
}

#[test]
fn the_doctor_and_the_store_say_where_it_is_and_not_by_which_password() {
    let Some(database) = Database::new() else { return };
    let here = Machine::new(format!("{}&password=hunter2", database.address()));
    let found = here.text(&["doctor"]);
    let line = found.lines().find(|line| line.contains(" store ")).unwrap();
    assert!(line.contains("PostgreSQL 1") && line.contains("format ") && line.contains("on this machine"), "{line}");
    let config = here.text(&["config", "show"]);
    for text in
        [found, config, here.text(&["config", "path"]), here.text(&["store"]), here.text(&["store", "path", "--json"])]
    {
        assert!(text.contains("postgres://") && !text.contains("hunter2"), "{text}");
    }
    let away = Machine::new("postgres://me:hunter2@/nothing?host=/nowhere");
    let said = away.run(&["doctor"]);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.status.code(), Some(1));
    assert!(text.contains("bad") && text.contains("the server answers") && !text.contains("hunter2"), "{text}");
}

#[test]
fn a_store_is_moved_to_a_server_and_goes_on_there() {
    let Some(database) = Database::new() else { return };
    let mut here = Machine::new("");
    let id =
        here.call("file.write", json!({"path": "a.txt", "content": "one"}))["call_id"].as_str().unwrap().to_owned();
    let file = here.dir.path().join("home/.local/share/haft/haft.db").display().to_string();
    let head = here.text(&["log", "head"]);
    let copied = here.json(&["store", "copy", &file, &database.address()]);
    assert_eq!(format!("{}:{}", copied["head"]["seq"], copied["head"]["hash"].as_str().unwrap()), head.trim());
    here.store = database.address();
    assert_eq!(here.text(&["log", "head"]), head);
    // What was done before the move is taken back after it: its files are on this machine.
    here.text(&["undo", &id]);
    assert!(!here.root().join("a.txt").exists());
    let checked = here.json(&["store", "check"]);
    assert_eq!((&checked["ok"], &checked["problems"]), (&json!(true), &json!([])), "{checked:#}");
    let full = here.run(&["store", "copy", &file, &database.address()]);
    assert_eq!(full.status.code(), Some(2), "{full:?}");
    assert!(String::from_utf8_lossy(&full.stderr).contains("is not empty"), "{full:?}");
    database.tamper("UPDATE journal SET text = replace(text, 'intent', 'intend') WHERE seq = 1");
    let broken = here.run(&["store", "check", "--json"]);
    assert_eq!(broken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&broken.stdout).contains("broken at record 1"), "{broken:?}");
    assert_eq!(here.json(&["store", "migrate"])["from"], here.json(&["store", "migrate"])["to"]);
}

#[test]
fn a_copy_that_is_killed_leaves_nothing_behind() {
    let Some(database) = Database::new() else { return };
    let mut here = Machine::new("");
    let lines: String = (0..1500).map(|_| "{\"tool\":\"calc.eval\",\"args\":{\"expression\":\"1+1\"}}\n").collect();
    let calls = here.root().join("calls");
    std::fs::write(&calls, lines).unwrap();
    let batch = here.command(&["batch"]).stdin(std::fs::File::open(&calls).unwrap()).output().unwrap();
    assert!(batch.status.success(), "{batch:?}");
    let head = here.text(&["log", "head"]);
    let file = here.dir.path().join("home/.local/share/haft/haft.db").display().to_string();
    for wait in [20, 60, 120, 200] {
        let mut copying = here.command(&["store", "copy", &file, &database.address()]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        let _ = copying.kill();
        if copying.wait().unwrap().success() {
            break;
        }
    }
    let again = here.run(&["store", "copy", &file, &database.address()]);
    // It may have come through before it was killed; by halves it never did.
    let full = String::from_utf8_lossy(&again.stderr).contains("is not empty");
    assert!(again.status.success() || full, "{again:?}");
    here.store = database.address();
    assert_eq!(here.text(&["log", "head"]), head);
    assert!(here.text(&["log", "verify"]).contains("the chain holds"));
}
