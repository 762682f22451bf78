//! Work: runs with their graph as it moves, a step that nobody knows about, tasks, workers, and memory.

use crate::devtools::Browser;
use crate::visit::{Visit, named};
use crate::{Env, Gateway, until};
use serde_json::{Value, json};

/// A pipeline that asks a person on its way.
const BUILD: &str = "\
name: build
steps:
  - {id: fetch, tool: calc.eval, args: {expression: '20 + 1'}}
  - {id: left, tool: calc.eval, args: {expression: '{{fetch}} * 2'}}
  - {id: right, ask: Go on?, needs: [fetch]}
  - {id: join, tool: calc.eval, args: {expression: '{{left}} + 1'}, needs: [right]}
";

impl Gateway {
    /// Begins a run that this gateway goes on with.
    fn begins(&self, pipeline: &str) {
        let args = json!({"pipeline_id": pipeline, "background": true});
        let begun = self.post("/v1/tools/pipeline.run/call", json!({ "args": args }));
        assert_eq!(begun.json["success"], true, "{begun:?}");
    }
}

fn stands(visit: &Visit<'_>, step: &str, state: &str) {
    let script =
        format!("document.querySelector('[data-test=graph-step][data-step={step}][data-state={state}]') !== null");
    visit.until("the step stands so", &script);
}

#[test]
fn a_run_is_drawn_and_moves_as_its_steps_do() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    env.file(".haft/workflows/build.yml", BUILD);
    env.run(&["trust", "--yes"]);
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-work"));
    visit.see(&named("work-runs"), "Nothing was run yet");
    visit.see(&named("work-tasks"), "Nothing is promised");
    visit.see(&named("work-workers"), "working");
    env.run(&["task", "add", "Water the plants", "--schedule", "1h", "--tool", "calc.eval", "expression=1"]);
    gateway.begins("build");
    visit.see(&named("work-tasks"), "Water the plants");
    visit.click_on(&named("run-open"), "build");
    stands(&visit, "left", "done");
    stands(&visit, "right", "asking");
    stands(&visit, "join", "waiting");
    let columns = visit.eval(
        "[...document.querySelectorAll('.graph rect')].map((box) => Number(box.getAttribute('x')))
           .map((x, _, all) => [...new Set(all)].sort((a, b) => a - b).indexOf(x))",
    );
    assert_eq!(columns, json!([0, 1, 1, 2]), "by depth, from left to right");
    assert_eq!(visit.eval("document.querySelectorAll('.graph .edge').length"), 4);
    visit.click(&named("step-decide"));
    visit.click(&named("approve-once"));
    visit.see(&named("decision"), "Approved once");
    visit.click(&named("tab-work"));
    visit.click_on(&named("run-open"), "build");
    stands(&visit, "join", "done");
    visit.see(&named("run-state"), "4 of 4 steps over");
    visit.see(&named("run-steps"), "43");
    visit.key("Escape");
    visit.see(&named("work-runs"), "4 of 4");
    visit.leave();
}

#[test]
fn a_run_that_nobody_wants_any_more_is_cancelled() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    env.file(
        ".haft/workflows/long.yml",
        "name: <b>long</b>\nsteps:\n  - {id: first, tool: calc.eval, args: {expression: '1'}}\n  - {id: rest, wait: 1h, needs: [first]}\n",
    );
    env.run(&["trust", "--yes"]);
    gateway.begins("long");
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-work"));
    visit.click_on(&named("run-open"), "<b>long</b>");
    stands(&visit, "first", "done");
    visit.click(&named("run-cancel"));
    visit.see(&named("notice"), "Cancelled");
    visit.see(&named("run-state"), "cancelled");
    let runs = gateway.get("/v1/runs");
    assert_eq!(
        (&runs["runs"][0]["state"], &runs["runs"][0]["why"]),
        (&json!("cancelled"), &json!("cancelled by owner token"))
    );
    visit.leave();
}

#[test]
fn a_step_that_nobody_knows_about_is_settled_by_a_person() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    env.file(".haft/workflows/build.yml", &BUILD.replace("ask: Go on?", "tool: shell.exec, args: {command: sleep 60}"));
    env.run(&["trust", "--yes"]);
    let mut lost = env.command(&["pipeline", "run", "build", "--yes"]).spawn().unwrap();
    let db = env.dir.path().join("home/.local/share/haft/haft.db");
    until("the step runs", || {
        let db = rusqlite::Connection::open(&db).ok()?;
        let call = "SELECT call_id FROM steps WHERE id = 'right' AND state = 'running'";
        let call: String = db.query_row(call, [], |row| row.get(0)).ok()?;
        let log = env.command(&["log", &call, "--json"]).output().unwrap();
        String::from_utf8_lossy(&log.stdout).contains("intent").then_some(())
    });
    lost.kill().unwrap();
    lost.wait().unwrap();
    // Its lease would end in a while.
    rusqlite::Connection::open(&db)
        .unwrap()
        .execute("UPDATE steps SET lease_ms = 1 WHERE state = 'running'", [])
        .unwrap();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-work"));
    visit.click_on(&named("run-open"), "build");
    visit.see(&named("uncertain"), "nobody knows what came of it");
    stands(&visit, "right", "uncertain");
    visit.picture("page-run");
    visit.click(&named("settle-done"));
    visit.see(&named("notice"), "Settled");
    stands(&visit, "join", "done");
    visit.see(&named("run-state"), "done");
    visit.see_no(&named("uncertain"), "");
    visit.leave();
}

#[test]
fn a_large_graph_is_drawn_by_layer() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let step = |at: usize| format!("  - {{id: s{at}, tool: calc.eval, args: {{expression: '{at}'}}, needs: [root]}}\n");
    let steps: String = (0..400).map(step).collect();
    let root = "  - {id: root, tool: calc.eval, args: {expression: '1'}}\n";
    env.file(".haft/workflows/wide.yml", &format!("name: wide\nsteps:\n{root}{steps}"));
    env.run(&["trust", "--yes"]);
    env.run(&["pipeline", "run", "wide"]);
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-work"));
    visit.click_on(&named("run-open"), "wide");
    visit.until("two layers", "document.querySelectorAll('[data-test=graph-layer]').length === 2");
    let told = visit.eval("[...document.querySelectorAll('.graph text')].map((node) => node.textContent)");
    assert_eq!(told, json!(["layer 1", "1 steps", "1 done", "layer 2", "400 steps", "400 done"]));
    visit.leave();
}

#[test]
fn memory_is_searched_and_what_it_says_stays_text() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    env.run(&["memory", "store", "team", "The deploy key lives in <img src=x onerror=window.hit=1> the vault"]);
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-work"));
    // What stands above it is there: it does not move any more.
    visit.see(&named("work-runs"), "Nothing was run yet");
    visit.see(&named("work-workers"), "working");
    visit.fill(&named("memory-field"), "deploy key");
    visit.key("Enter");
    let hit = visit.see(&named("memory-hit"), "<img src=x");
    assert!(hit.contains("team:"), "{hit}");
    visit.fill(&named("memory-field"), "zebra");
    visit.click(&named("memory-search"));
    visit.see(".found", "Nothing was found");
    assert_eq!(visit.eval("window.hit ?? null"), Value::Null);
    visit.leave();
}
