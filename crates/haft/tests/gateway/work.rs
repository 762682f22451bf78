//! Runs, tasks, workers and memory, as a client of the owner's sees and settles them.

use crate::{Env, Gateway};
use serde_json::{Value, json};

/// Begins a run that nobody has to be asked about; it waits in its second step.
fn begun(gateway: &Gateway) -> String {
    let steps = json!([
        {"id": "first", "tool": "calc.eval", "args": {"expression": "6 * 7"}},
        {"id": "rest", "wait": "1h", "needs": ["first"]},
    ]);
    let ran = gateway.call("pipeline.run", json!({"steps": steps, "background": true})).json();
    assert_eq!(ran["success"], true, "{ran:#}");
    gateway.get("/v1/runs").json()["runs"][0]["id"].as_str().unwrap().to_owned()
}

/// Waits until a run looks so.
fn until(gateway: &Gateway, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let seen = gateway.get(&format!("/v1/runs/{id}")).json();
        if holds(&seen) {
            return seen;
        }
        assert!(std::time::Instant::now() < end, "{seen:#}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_run_is_seen_with_its_order_and_cancelled_once() {
    let env = Env::new();
    let gateway = env.serve();
    assert_eq!(gateway.get("/v1/runs").json(), json!({"runs": []}));
    let id = begun(&gateway);
    let seen = until(&gateway, &id, |seen| seen["steps"][0]["state"] == "done");
    assert_eq!((&seen["needs"], &seen["steps"][0]["said"]), (&json!([[], [0]]), &json!("42")), "{seen:#}");
    assert_eq!((&seen["run"]["count"], &seen["plan"]["steps"][1]["wait"]), (&json!(2), &json!("1h")));
    let settle = format!("/v1/runs/{id}/settle");
    assert_eq!(gateway.post(&settle, json!({"step": "first", "how": "done"})).status, 409);
    assert_eq!(gateway.post(&settle, json!({"step": "first", "how": "perhaps"})).status, 400);
    let cancel = || gateway.post(&format!("/v1/runs/{id}/cancel"), json!({})).json();
    assert_eq!((cancel(), cancel()), (json!({"cancelled": true}), json!({"cancelled": false})));
    assert_eq!(gateway.get(&format!("/v1/runs/{id}")).json()["run"]["why"], "cancelled by owner token");
    assert_eq!(gateway.get("/v1/runs/run-no").status, 404);
    assert_eq!(gateway.post("/v1/runs/run-no/cancel", json!({})).status, 404);
}

#[test]
fn tasks_workers_and_memory_are_listed() {
    let env = Env::new();
    let gateway = env.serve();
    gateway.call("task.create", json!({"title": "Later", "due": "2999-01-01"}));
    let made = env.run(&["task", "add", "Water", "--schedule", "1h", "--tool", "calc.eval", "expression=1", "--json"]);
    assert!(made.is_object(), "{made:#}");
    let tasks = gateway.get("/v1/tasks").json();
    let water = tasks["tasks"].as_array().unwrap().iter().find(|task| task["title"] == "Water").unwrap();
    assert!(water["next_ms"].as_i64().is_some(), "{tasks:#}");
    let workers = gateway.get("/v1/workers").json();
    assert_eq!(workers["workers"][0]["state"], "working", "{workers:#}");
    env.run(&["memory", "store", "team", "The deploy key is in the vault", "--json"]);
    let found = gateway.get("/v1/memory/search?q=deploy+key").json();
    assert_eq!(found["results"][0]["namespace"], "team", "{found:#}");
    assert_eq!(gateway.get("/v1/memory/search").status, 400);
    let log = gateway.get("/v1/calls").json();
    assert_eq!(log["calls"][0]["tool"], "memory.search", "what is looked up is recorded");
}

#[test]
fn a_run_of_another_project_is_not_here() {
    let env = Env::new();
    let id = begun(&env.serve());
    let other = env.dir.path().join("other");
    std::fs::create_dir_all(other.join(".git")).unwrap();
    let gateway = env.serve_with(&["--root", other.to_str().unwrap()]);
    assert_eq!(gateway.get("/v1/runs").json(), json!({"runs": []}));
    assert_eq!(gateway.get(&format!("/v1/runs/{id}")).status, 404);
    assert_eq!(gateway.post(&format!("/v1/runs/{id}/cancel"), json!({})).status, 404);
}
