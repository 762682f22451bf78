//! Activity, tools, log and settings.

use crate::Env;
use crate::devtools::Browser;
use crate::visit::{Visit, named};
use serde_json::json;

#[test]
fn a_call_appears_as_it_happens_and_is_taken_back() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    env.file("a.txt", "before\n");
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-activity"));
    visit.see("section.activity", "No calls yet");
    gateway.reads("a.txt");
    visit.see(&named("activity-row"), "file.read");
    let id = gateway.asks_to_write("a.txt", "after\n");
    visit.click_on(&named("activity-row"), "waiting");
    visit.see(&named("call"), "Decide");
    assert!(!visit.see(&named("call"), "").contains("failed"), "what waits has not failed");
    let done = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
    assert_eq!((done.status, env.read("a.txt").as_str()), (200, "after\n"), "{done:?}");
    visit.see_no(&named("activity-row"), "waiting");
    visit.click_on(&named("activity-row"), "file.write");
    visit.see(&named("why"), "allow");
    let diff = visit.see(&named("diff"), "+after");
    assert!(diff.contains("-before"), "{diff}");
    visit.click(&named("undo"));
    visit.see(&named("notice"), "Taken back");
    assert_eq!(env.read("a.txt"), "before\n");
    visit.see(&named("activity-row"), "undone");
    assert_eq!(gateway.get(&format!("/v1/calls/{id}"))["state"], "undone");
    visit.leave();
}

#[test]
fn a_call_of_another_process_appears_and_one_that_runs_is_cancelled() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    env.file("a.txt", "hello\n");
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-activity"));
    visit.see(&named("connection-state"), "live");
    env.run(&["call", "file.read", r#"{"path": "a.txt"}"#]);
    visit.see(&named("activity-row"), "file.read");
    let agent = gateway.agent("shell.exec", json!({"command": "sleep 300"}));
    visit.see(&named("activity-row"), "running");
    visit.click_on(&named("activity-row"), "shell.exec");
    visit.click(&named("cancel"));
    visit.see(&named("notice"), "Cancelled");
    assert_eq!(agent.join().unwrap().json["error"]["kind"], "cancelled");
    visit.see(&named("activity-row"), "failed");
    visit.leave();
}

#[test]
fn a_tool_is_found_and_tried_with_a_form_made_from_its_schema() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-tools"));
    visit.see(&named("tool-item"), "file.write");
    visit.key("/");
    visit.write("calc");
    visit.see_no(&named("tool-item"), "file.write");
    visit.click_on(&named("tool-item"), "calc.eval");
    visit.see(&named("tool-form"), "required");
    visit.fill("[data-name=expression]", "6 * 7");
    visit.click(&named("tool-run"));
    visit.see(&named("outcome"), "42");
    visit.fill("section.tools input[type=search]", "file.write");
    visit.click_on(&named("tool-item"), "file.write");
    visit.fill("[data-name=path]", "a.txt");
    visit.fill("[data-name=content]", "hello");
    visit.click(&named("tool-explain"));
    visit.see(".result", "What would happen");
    visit.see(&named("diff"), "+hello");
    visit.click(&named("tool-dry-run"));
    visit.see(".result", "Outcome");
    assert!(!env.has("a.txt"));
    visit.click(&named("tool-run"));
    visit.see(".result", "It waits for an answer");
    visit.click_on(".result button", "Open in the inbox");
    visit.click(&named("approve-once"));
    visit.see(&named("decision"), "Approved once");
    assert_eq!(env.read("a.txt"), "hello");
    let calls = gateway.get("/v1/calls");
    assert_eq!(calls["calls"][0]["origin"], "approval", "{calls:#}");
    visit.leave();
}

#[test]
fn the_log_is_filtered_verified_and_taken_away() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    for number in 0..205 {
        let call = json!({"args": {"expression": format!("{number} + 1")}});
        assert_eq!(gateway.post("/v1/tools/calc.eval/call", call).status, 200);
    }
    gateway.asks_to_write("needle.txt", "hello");
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-log"));
    let head = gateway.get("/v1/log?limit=1")["head"].take();
    let state = visit.see(&named("log-verify-state"), "chain holds");
    assert!(state.contains(&head["hash"].as_str().unwrap()[..12]), "{state}");
    let count = "document.querySelectorAll('[data-test=log-row]').length";
    visit.until("a page of it", &format!("{count} === 200"));
    visit.click_on("section.log button", "Show older");
    visit.until("more of it", &format!("{count} === {}", head["seq"].as_i64().unwrap().min(400)));
    assert_eq!(
        visit.eval("new Set([...document.querySelectorAll('.seq')].map((node) => node.innerText)).size"),
        visit.eval(count)
    );
    visit.fill("[aria-label='Filter by text']", "needle.txt");
    visit.until("what fits", &format!("{count} === 1"));
    visit.click(&named("log-row"));
    visit.see("[aria-label^=Record]", "needle.txt");
    // What is added while one looks comes on top.
    gateway.asks_to_write("needle.txt", "again");
    visit.until("what is new", &format!("{count} === 2"));
    visit.fill("[aria-label='Filter by text']", "nothing like it");
    visit.see("section.log", "No record fits the filter");
    visit.click(&named("log-export"));
    visit.see(&named("notice"), "Exported");
    visit.leave();
}

#[test]
fn a_log_that_somebody_changed_does_not_verify() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    gateway.asks_to_write("a.txt", "hello");
    drop(gateway);
    let store = rusqlite::Connection::open(env.dir.path().join("home/.local/share/haft/haft.db")).unwrap();
    let sql = r#"UPDATE journal SET text = replace(text, '"asked"', '"none"') WHERE text LIKE '%"asked"%'"#;
    assert_eq!(store.execute(sql, []).unwrap(), 1);
    drop(store);
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-log"));
    visit.see(&named("log-verify-state"), "chain broken at record");
    visit.leave();
}

#[test]
fn the_settings_show_what_is_in_force() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    env.file("../../home/.config/haft/config.yml", "tools: { budget_tokens: 1234 }\n");
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.click(&named("tab-settings"));
    let config = visit.see(&named("settings-config"), "tools.budget_tokens");
    let line = config.lines().find(|line| line.contains("tools.budget_tokens")).unwrap();
    assert!(line.contains("1,234") && line.contains("user"), "{line}");
    assert!(visit.see(&named("settings-confinement"), "").contains("landlock"), "{}", visit.text());
    visit.see("section.settings", env!("CARGO_PKG_VERSION"));
    visit.leave();
}

#[test]
fn a_file_that_a_call_sends_is_offered() {
    let Some(browser) = Browser::start() else { return };
    let env = Env::new();
    let gateway = env.serve(&[]);
    let visit = Visit::open(&browser, &gateway.entrance());
    visit.see("body", "live");
    let sent =
        gateway.post("/v1/tools/media.send/call", json!({"args": {"data": "aGVsbG8=", "filename": "<b>note.txt"}}));
    assert_eq!(sent.status, 200, "{sent:?}");
    visit.see(&named("notice"), "note.txt was sent to you");
    // What it is called is text, whatever it looks like; and saving fetches it with the token.
    visit.eval("window.saved = null; const real = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return real.call(URL, blob); }; true");
    visit.eval(
        "[...document.querySelectorAll('[data-test=notice] button')].find((one) => one.innerText === 'Save').click()",
    );
    visit.until("it is fetched", "window.saved === 'hello'");
    visit.leave();
}
