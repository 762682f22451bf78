//! Who comes in, and what stays behind of the key.

use crate::Env;
use crate::devtools::Browser;
use crate::visit::{Visit, named};

#[test]
fn without_the_token_there_is_a_field_and_with_it_no_trace_in_the_address() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    gateway.asks_to_write("a.txt", "hello");
    let visit = Visit::open(&browser, &gateway.url(""));
    visit.see("h1", "Token needed");
    assert!(!visit.text().contains("a.txt"));
    visit.fill(&named("token-field"), "wrong");
    visit.key("Enter");
    visit.see(".callout", "does not accept this token");
    visit.fill(&named("token-field"), &gateway.token);
    visit.key("Enter");
    visit.see(&named("inbox-item"), "a.txt");
    let trace =
        format!("document.documentElement.outerHTML.includes('{0}') || location.href.includes('{0}')", gateway.token);
    assert_eq!(visit.eval(&trace), false);
    visit.leave();

    let visit = Visit::open(&browser, &gateway.entrance());
    visit.see(&named("inbox-item"), "a.txt");
    assert_eq!((visit.eval(&trace), visit.eval("document.cookie")), (false.into(), "".into()));
    // The tab keeps it, the next one does not.
    visit.go(&gateway.url("#/activity"));
    visit.see(&named("activity-row"), "a.txt");
    visit.click(&named("tab-settings"));
    visit.click(&named("forget"));
    visit.see("h1", "Token needed");
    assert_eq!(visit.eval("sessionStorage.length + localStorage.length"), 0);
    visit.leave();
}

#[test]
fn a_gateway_that_goes_away_is_missed_and_found_again() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.see(&named("connection-state"), "live");
    let host = gateway.host.clone();
    drop(gateway);
    visit.see("#banner", "haft does not answer");
    let again = env.serve_at(&host, &[]);
    again.asks_to_write("later.txt", "hello");
    visit.see(&named("inbox-item"), "later.txt");
    visit.see_no("#banner", "");
    visit.leave();
}
