//! Several gateways on one store: one inbox, one log; and each runs what is about its own machine.

use crate::real::Database;
use crate::{Machine, until};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn an_approval_at_one_gateway_wakes_the_call_at_another() {
    let Some(database) = Database::new() else { return };
    let here = Machine::new(database.address());
    let (one, other) = (here.serve(), here.serve());
    let mut quickest = Duration::MAX;
    for number in 0..3 {
        let path = format!("{number}.txt");
        std::thread::scope(|scope| {
            let args = json!({"path": path, "content": "hello"});
            let waits = scope.spawn(|| {
                let answer = one.call("file.write", args, 30_000);
                (answer, Instant::now())
            });
            let id = until(|| other.waiting());
            assert_eq!(one.waiting(), Some(id.clone()), "the page of both shows it");
            let decided = other.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
            let said = Instant::now();
            assert_eq!(decided.0, 200, "{decided:?}");
            let ((status, outcome), heard) = waits.join().unwrap();
            assert_eq!((status, &outcome["call_id"]), (200, &json!(id)), "{outcome:#}");
            quickest = quickest.min(heard.saturating_duration_since(said));
        });
        assert_eq!(here.read(&path), "hello");
    }
    assert!(quickest < Duration::from_millis(100), "the quickest of three heard of it after {quickest:?}");
    assert!(here.text(&["log", "verify"]).contains("the chain holds"));
}

/// Another machine, as far as names and files go, with its project where `at` has its own. None where nobody may make one.
fn elsewhere(store: &str, name: &str, at: Option<&Machine>) -> Option<Machine> {
    let mut machine = Machine::new(store);
    let (own, at) = (machine.root(), at.map_or_else(|| machine.root(), Machine::root));
    let (own, at) = (own.display(), at.display());
    let enter = format!("set -e; hostname {name}; mount --bind {own} {at}; cd {at}; exec \"$@\"");
    machine.inside = ["unshare", "--uts", "--mount", "sh", "-c", &enter, "sh"].map(str::to_owned).to_vec();
    let works = machine.run(&["--version"]).status.success();
    if !works {
        eprintln!("left out: only root may give a machine another name");
    }
    works.then_some(machine)
}

#[test]
fn a_yes_from_another_machine_is_carried_out_where_it_was_asked() {
    let Some(database) = Database::new() else { return };
    let Some(near) = elsewhere(&database.address(), "near", None) else { return };
    // It has a project at the same place, which must stay as it is.
    let Some(far) = elsewhere(&database.address(), "far", Some(&near)) else { return };
    let (asks, decides) = (near.serve(), far.serve());
    // A call that waits.
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| asks.call("file.write", json!({"path": "a.txt", "content": "near"}), 30_000));
        let id = until(|| asks.waiting());
        let said = decides.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
        assert_eq!((said.0, &said.1["success"]), (200, &json!(true)), "{said:?}");
        assert_eq!(waits.join().unwrap().0, 200);
    });
    assert_eq!(near.read("a.txt"), "near");
    assert!(!far.root().join("a.txt").exists());
    // One that nobody waits for any more: the gateway there runs it.
    let (status, asked) = asks.call("file.write", json!({"path": "b.txt", "content": "near"}), 0);
    assert_eq!(status, 202, "{asked:#}");
    let id = asked["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
    let lasting = decides.post(&format!("/v1/approvals/{id}"), json!({"decision": "session"}));
    assert_eq!(lasting.0, 409, "{lasting:?}");
    let ran = far.json(&["approvals", "approve", &id]);
    assert_eq!(ran["success"], true, "{ran:#}");
    assert_eq!(near.read("b.txt"), "near");
    // And what it changed is taken back there, and nowhere else.
    let refused = String::from_utf8(far.run(&["undo", &id]).stderr).unwrap();
    assert!(refused.contains("changed files of near") && refused.contains("this is far"), "{refused}");
    near.text(&["undo", &id]);
    assert!(!near.root().join("b.txt").exists());
}
