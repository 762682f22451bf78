//! More than one who decides: nobody approves what they were not shown.

use crate::Env;
use crate::decide::ready;
use crate::devtools::Browser;
use crate::visit::{Visit, named};
use serde_json::json;

/// A connection on which nothing comes in until it is let, and everything goes out.
const DEAF: &str = "
window.held = [];
const real = window.fetch;
window.fetch = (path, how = {}) => {
  const go = () => real.call(window, path, how);
  return (how.method ?? 'GET') === 'GET' && window.held ? new Promise((done) => window.held.push(() => done(go()))) : go();
};
true";

#[test]
fn a_page_that_is_behind_cannot_approve_what_it_never_showed() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let id = gateway.asks_to_write("a.txt", "harmless");
    let (quick, slow) = (Visit::open(&browser, &gateway.entrance()), Visit::open(&browser, &gateway.entrance()));
    ready(&quick, &id);
    ready(&slow, &id);
    slow.eval(DEAF);
    quick.click(&named("edit-args"));
    quick.fill(&named("args-text"), r#"{"path": "a.txt", "content": "something else"}"#);
    quick.click(&named("save-args"));
    quick.see(&named("diff"), "+something else");
    // Somebody has seen the new form, so the store knows no other; but not this one.
    assert!(slow.see(&named("diff"), "").contains("+harmless"));
    slow.click(&named("approve-once"));
    slow.see(".callout", "is not what you saw any more");
    assert_eq!((gateway.approval(&id)["state"].as_str(), env.has("a.txt")), (Some("pending"), false));
    slow.eval("{ const held = window.held; window.held = null; held.forEach((go) => go()); }");
    slow.see(".callout", "Your answer was not taken, because it changed: the arguments");
    slow.see(&named("diff"), "+something else");
    slow.click(&named("approve-once"));
    slow.see(&named("decision"), "Approved once");
    assert_eq!(env.read("a.txt"), "something else");
    quick.see(&named("decision"), "Approved by owner token");
    quick.leave();
    slow.leave();
}

#[test]
fn an_edit_shows_on_every_page() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let id = gateway.asks_to_write("a.txt", "one");
    let visit = Visit::open(&browser, &gateway.entrance());
    ready(&visit, &id);
    let edited =
        gateway.post(&format!("/v1/approvals/{id}/edit"), json!({"args": {"path": "a.txt", "content": "two"}}));
    assert_eq!(edited.status, 200, "{edited:?}");
    visit.see(".callout", "It changed while you looked: the arguments");
    visit.see(&named("diff"), "+two");
    visit.leave();
}

#[test]
fn what_a_terminal_decides_says_so_here() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let ids = ["a.txt", "b.txt", "c.txt"].map(|path| gateway.asks_to_write(path, path));
    let visit = Visit::open(&browser, &gateway.entrance());
    ready(&visit, &ids[0]);
    env.run(&["approvals", "reject", &ids[1], "-m", "no"]);
    visit.see_no(&named("inbox-item"), "b.txt");
    visit.see(&named("inbox-item"), "a.txt");
    env.run(&["approvals", "reject", &ids[0], "-m", "no"]);
    visit.see(&named("decision"), "Rejected by");
    visit.see_no(&named("approve-once"), "");
    visit.click(&named("next"));
    ready(&visit, &ids[2]);
    visit.see_no(&named("inbox-item"), "a.txt");
    visit.leave();
}

#[test]
fn an_answer_is_for_what_its_giver_saw_whoever_else_has_looked() {
    let env = Env::new();
    let gateway = env.serve(&[]);
    let id = gateway.asks_to_write("a.txt", "one");
    let path = format!("/v1/approvals/{id}");
    let basis = || gateway.get(&path)["question"]["basis"].clone();
    let first = basis();
    assert_eq!(first, basis(), "to look changes nothing");
    let edited = gateway.post(&format!("{path}/edit"), json!({"args": {"path": "a.txt", "content": "two"}}));
    assert_eq!((edited.status, &edited.json["question"]["basis"]), (200, &basis()));
    // The file comes to be after somebody looked, and somebody else looks then.
    env.file("a.txt", "mine");
    let second = basis();
    for stale in [&first, &edited.json["question"]["basis"], &json!("")] {
        assert_ne!(stale, &second);
        for decision in ["once", "session", "reject"] {
            let late = gateway.post(&path, json!({"decision": decision, "basis": stale}));
            assert_eq!((late.status, &late.json["error"]["kind"]), (409, &json!("conflict")), "{late:?}");
        }
    }
    assert_eq!((gateway.approval(&id)["state"].as_str(), env.read("a.txt").as_str()), (Some("pending"), "mine"));
    assert_eq!(gateway.post(&path, json!({"decision": "reject", "basis": second})).status, 200);
}
