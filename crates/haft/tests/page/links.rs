//! One approval on a phone.

use crate::Env;
use crate::decide::ready;
use crate::devtools::Browser;
use crate::visit::{Visit, named};
use serde_json::json;

#[test]
fn a_link_decides_one_approval_on_a_phone_and_works_once() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&["--links"]);
    let agent = gateway.agent("file.write", json!({"path": "a.txt", "content": "hello"}));
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.see(&named("inbox-item"), "a.txt");
    visit.click(&named("link"));
    visit.see("dialog", "It works once, for");
    visit.until("the code is drawn", "findShown('.qr').naturalWidth > 0");
    let url = visit.see(&named("link-url"), "#link=");
    visit.key("Escape");
    let other = gateway.asks_to_write("b.txt", "hello");

    let phone = Visit::blank(&browser);
    phone.screen(390, 844);
    phone.go(&url);
    phone.see(&named("approval"), "a.txt");
    phone.until("no trace in the address", "!location.href.includes('link=')");
    assert!(!phone.text().contains("b.txt"));
    phone.see_no(&named("edit-args"), "");
    phone.tap(&named("approve-once"));
    phone.see(&named("decision"), "Approved once");
    let outcome = agent.join().unwrap();
    assert_eq!((outcome.status, env.read("a.txt").as_str()), (200, "hello"), "{outcome:?}");
    let id = outcome.json["call_id"].as_str().unwrap();
    assert_eq!(gateway.approval(id)["decided_by"], "link");
    visit.see(&named("decision"), "Approved by link");
    // It was good for that, and is good for nothing more.
    let token = phone.eval("JSON.parse(sessionStorage.getItem('haft.access')).token");
    let holder = crate::Door { host: gateway.host.clone(), token: token.as_str().unwrap().to_owned() };
    assert_eq!(holder.ask("GET", &format!("/v1/approvals/{id}"), "").status, 401);
    phone.leave();

    let late = Visit::open(&browser, &url);
    late.see(".callout", "this link has been used");
    visit.click(&named("next"));
    ready(&visit, &other);
    assert!(!env.has("b.txt"));
    late.leave();
    visit.leave();
}

#[test]
fn without_the_operators_word_no_link_is_offered() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let id = gateway.asks_to_write("a.txt", "hello");
    let visit = Visit::open(&browser, &gateway.entrance());
    ready(&visit, &id);
    visit.see_no(&named("link"), "");
    visit.leave();
}
