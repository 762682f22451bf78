//! A shell command: read, tried, and kept as it was tried.

use crate::Env;
use crate::decide::ready;
use crate::devtools::Browser;
use crate::visit::{Visit, named};
use serde_json::json;

#[test]
fn a_command_is_read_tried_and_kept_exactly_as_it_was_tried() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    if !env.run(&["doctor", "--json"]).contains("\"found\":\"full: ") {
        eprintln!("SKIPPED: this machine does not confine fully; see `haft doctor`");
        return;
    }
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    // What it writes is another thing each time, so only what was tried can be what is kept.
    let command = "cat /proc/sys/kernel/random/uuid > id.txt; echo said it | tr a-z A-Z";
    let agent = gateway.agent("shell.exec", json!({ "command": command }));
    visit.see(&named("inbox-item"), "shell.exec");
    let id = visit.eval("findShown('[data-test=inbox-item]').dataset.key");
    ready(&visit, id.as_str().unwrap());
    let tree = visit.see(&named("command-tree"), "tr");
    for line in ["cat /proc/sys/kernel/random/uuid >id.txt", "echo said it", "pipe 2/2", "write"] {
        assert!(tree.contains(line), "{line} in {tree}");
    }
    assert!(visit.see(&named("permissions"), "").contains("reaches the network"));
    visit.click(&named("try"));
    visit.see(".callout", "It was tried");
    let diff = visit.see(&named("diff"), "id.txt (new)");
    let tried = diff.lines().find_map(|line| line.strip_prefix('+').filter(|rest| rest.len() == 36));
    let tried = tried.unwrap_or_else(|| panic!("{diff}"));
    visit.see("[aria-label='Output of the trial']", "SAID IT");
    assert!(!env.has("id.txt"), "nothing has happened yet");
    visit.see_no(&named("try"), "");
    visit.click(&named("approve-once"));
    visit.see(&named("decision"), "Approved once");
    let outcome = agent.join().unwrap();
    assert!(outcome.json["output"].as_str().unwrap().contains("SAID IT"), "{outcome:?}");
    assert_eq!(env.read("id.txt").trim_end(), tried);
    visit.leave();
}
