//! The inbox: what an agent asks appears, and what a person answers happens.

use crate::devtools::Browser;
use crate::visit::{Visit, named};
use crate::{Door, Env};
use serde_json::json;

/// Waits until a question is on the screen and can be answered.
pub(crate) fn ready(visit: &Visit<'_>, id: &str) {
    let pane = format!("[data-test=approval][data-id='{id}'][data-state=ready]");
    visit.see(&pane, "");
    visit.until("it can be answered", "findShown('[data-test=approve-once]')?.disabled === false");
}

/// The approval that waits, once there is one.
fn waiting(visit: &Visit<'_>) -> String {
    visit.see(&named("inbox-item"), "");
    visit.eval("findShown('[data-test=inbox-item]').dataset.key").as_str().unwrap().to_owned()
}

/// Who decided, as the log has it.
fn decided_by(door: &Door, id: &str) -> String {
    let records = door.get(&format!("/v1/log?kind=approval&call={id}"))["records"].take();
    let approved = records.as_array().unwrap().iter().find(|record| record["body"]["said"] != "asked");
    approved.unwrap_or_else(|| panic!("{records:#}"))["body"]["by"].as_str().unwrap().to_owned()
}

#[test]
fn what_an_agent_asks_appears_and_is_approved_with_the_mouse() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.see("body", "Nothing waits");
    visit.see(&named("connection-state"), "live");
    let agent = gateway.agent("file.write", json!({"path": "a.txt", "content": "hello\n"}));
    let id = waiting(&visit);
    visit.see(&named("inbox-item"), "a.txt");
    visit.until("the title counts", "document.title === '(1) haft'");
    assert!(visit.see(&named("diff"), "+hello").contains("a.txt (new)"));
    let shown = visit.see(&named("approval"), "");
    for part in ["Asked because", "session work", "Places", "Where the data came from", "would make it automatic"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!env.has("a.txt"));
    visit.click(&named("approve-once"));
    visit.see(&named("decision"), "Approved once");
    let outcome = agent.join().unwrap();
    assert_eq!((outcome.status, &outcome.json["call_id"], &outcome.json["success"]), (200, &json!(id), &json!(true)));
    assert_eq!(env.read("a.txt"), "hello\n");
    assert_eq!(decided_by(&gateway, &id), "owner token");
    visit.click(&named("next"));
    visit.see("body", "Nothing waits");
    visit.until("the title counts", "document.title === 'haft'");
    visit.leave();
}

#[test]
fn a_rejection_by_keyboard_carries_its_message() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    let agent = gateway.agent("file.write", json!({"path": "a.txt", "content": "hello"}));
    ready(&visit, &waiting(&visit));
    visit.key("r");
    visit.until("the cursor is in the field", "document.activeElement.dataset.test === 'reject-message'");
    visit.write("Put it in b.txt, please");
    visit.key("Enter");
    visit.see(&named("decision"), "Rejected");
    let outcome = agent.join().unwrap();
    assert_eq!((outcome.status, &outcome.json["error"]["kind"]), (403, &json!("rejected")), "{outcome:?}");
    assert_eq!(outcome.json["error"]["message"], "Put it in b.txt, please");
    assert!(!env.has("a.txt"));
    visit.leave();
}

#[test]
fn the_keyboard_alone_walks_the_inbox_and_the_views() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let ids = ["a.txt", "b.txt", "c.txt"].map(|path| gateway.asks_to_write(path, path));
    let visit = Visit::open(&browser, &gateway.entrance());
    ready(&visit, &ids[0]);
    for (key, place) in [("j", 1), ("j", 2), ("j", 2), ("k", 1)] {
        visit.key(key);
        ready(&visit, &ids[place]);
    }
    visit.key("a");
    visit.see(&named("decision"), "Approved once");
    assert_eq!((env.has("a.txt"), env.read("b.txt").as_str(), env.has("c.txt")), (false, "b.txt", false));
    visit.key("/");
    visit.write("c.txt");
    visit.see_no(&named("inbox-item"), "a.txt");
    // A letter in a field is a letter.
    visit.key("a");
    visit.key("Escape");
    assert_eq!(gateway.approval(&ids[2])["state"], "pending");
    for (key, view) in
        [("2", "activity"), ("3", "tools"), ("4", "log"), ("5", "work"), ("6", "settings"), ("1", "inbox")]
    {
        visit.key(key);
        visit.until("the view changes", &format!("findShown('[data-test=tab-{view}]').matches('[aria-current]')"));
    }
    visit.key("?");
    visit.see("dialog", "approve once what is shown");
    visit.key("Escape");
    visit.see_no("dialog", "");
    visit.leave();
}

#[test]
fn what_is_written_is_what_a_person_made_of_the_arguments() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    let agent = gateway.agent("file.write", json!({"path": "a.txt", "content": "hello"}));
    ready(&visit, &waiting(&visit));
    visit.click(&named("edit-args"));
    visit.see(&named("args-editor"), "Edit the arguments");
    visit.until("no answer meanwhile", "findShown('[data-test=approve-once]').disabled");
    visit.fill(&named("args-text"), "{\"path\": ");
    visit.see(&named("args-problem"), "Not JSON");
    visit.until("nothing to save", "findShown('[data-test=save-args]').disabled");
    visit.fill(&named("args-text"), r#"{"path": "b.txt", "content": "bye"}"#);
    visit.click(&named("save-args"));
    visit.see(".callout", "New: the arguments");
    visit.see(&named("diff"), "+bye");
    visit.click(&named("approve-once"));
    visit.see(&named("decision"), "Approved once");
    let outcome = agent.join().unwrap();
    assert_eq!((outcome.status, &outcome.json["success"]), (200, &json!(true)), "{outcome:?}");
    assert_eq!((env.has("a.txt"), env.read("b.txt").as_str()), (false, "bye"));
    visit.leave();
}

#[test]
fn always_for_a_pattern_is_remembered_and_the_rest_can_still_be_decided() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let id = gateway.asks_to_write("notes/a.md", "one");
    let other = gateway.asks_to_write("notes/b.md", "two");
    let visit = Visit::open(&browser, &gateway.entrance());
    ready(&visit, &id);
    visit.fill(&named("pattern"), "**");
    visit.click(&named("approve-always"));
    visit.see(".callout", "name a narrower pattern");
    visit.fill(&named("pattern"), "notes/*.md");
    visit.click(&named("approve-always"));
    visit.see(&named("decision"), "remembered for the pattern");
    assert_eq!(env.read("notes/a.md"), "one");
    let next = gateway.post("/v1/tools/file.write/call", json!({"args": {"path": "notes/c.md", "content": "three"}}));
    assert_eq!((next.status, &next.json["verdict"]["by"]), (200, &json!("grant")), "{next:?}");
    assert_eq!(env.read("notes/c.md"), "three");
    assert!(env.run(&["approvals", "grants"]).contains("notes/*.md"));
    visit.click(&named("next"));
    ready(&visit, &other);
    visit.click(&named("approve-once"));
    visit.see(&named("decision"), "Approved once");
    assert_eq!(env.read("notes/b.md"), "two");
    visit.leave();
}

#[test]
fn a_yes_whose_run_fails_says_why() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    env.file("a.txt", "one");
    let gateway = env.serve(&[]);
    let edit = json!({"path": "a.txt", "old_string": "three", "new_string": "two"});
    let id = gateway.asks("file.edit", edit);
    let visit = Visit::open(&browser, &gateway.entrance());
    ready(&visit, &id);
    visit.see(".callout", "It would fail");
    visit.click(&named("approve-once"));
    visit.see(&named("decision"), "but it did not work");
    assert!(visit.see(&named("outcome"), "failed").contains("a.txt"));
    assert_eq!(env.read("a.txt"), "one");
    visit.leave();
}

/// A desktop that shows notifications to somebody who looks elsewhere, and writes down what it showed.
const DESKTOP: &str = "
window.told = [];
document.hasFocus = () => false;
window.Notification = class {
  static permission = 'granted';
  constructor(title, { body }) { this.body = body; this.open = true; window.told.push(this); }
  close() { this.open = false; }
};
true";

#[test]
fn somebody_who_looks_elsewhere_is_told_what_waits_and_only_as_long_as_it_does() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.see(&named("connection-state"), "live");
    visit.eval(DESKTOP);
    visit.key("3");
    let id = gateway.asks_to_write("a\u{202e}.txt", "hello");
    let told = visit.until("it is told", "told.length > 0 && told.map((note) => [note.body, note.open])");
    let body = told[0][0].as_str().unwrap();
    assert!(body.starts_with("file.write: a") && !body.contains('\u{202e}'), "{told}");
    visit.eval("told[0].onclick()");
    ready(&visit, &id);
    let other = gateway.asks_to_write("b.txt", "hello");
    visit.until("it is told", "told.length === 2 && told[1].open");
    gateway.post(&format!("/v1/approvals/{other}"), json!({"decision": "reject"}));
    visit.until("it is over", "!told[1].open");
    visit.click(&named("approve-once"));
    visit.see(&named("decision"), "Approved once");
    assert_eq!(visit.eval("told.length"), 2, "an answer is no new question");
    visit.leave();
}

#[test]
fn a_question_of_an_agents_is_a_form_on_the_page() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    let args = json!({"questions": [
        {"question": "Which <b>database</b>?", "options": ["sqlite", "postgres"]},
        {"question": "Which parts?", "options": ["api", "page", "docs"], "multiple": true},
        {"question": "Why?"}
    ]});
    let agent = gateway.agent("user.ask", args);
    waiting(&visit);
    visit.see(&named("form"), "Which <b>database</b>?");
    visit.until("it can be answered", "findShown('[data-test=answer]')?.disabled === false");
    visit.click(&named("answer"));
    visit.see("[data-name=q1] .problem", "Choose one.");
    visit.click_on("[data-name=q1] label", "postgres");
    visit.click_on("[data-name=q2] label", "api");
    visit.click_on("[data-name=q2] label", "docs");
    visit.fill("[data-name=q3] textarea", "speed");
    visit.click(&named("answer"));
    visit.see(&named("decision"), "Answered");
    let outcome = agent.join().unwrap();
    let said = "Which <b>database</b>?: postgres\nWhich parts?: api, docs\nWhy?: speed";
    assert_eq!((outcome.status, outcome.json["output"].as_str()), (200, Some(said)));
    visit.leave();
}
