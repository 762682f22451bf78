//! A call that waits for a decision, as a task of the client: Claude Code lists it under `/tasks`, and tells its model when
//! it is over.

use crate::client::{AgentClient, FILE, NEW, Session};
use libtest_mimic::Trial;
use std::time::Duration;

/// A person reads before they answer.
const READING_TIME: Duration = Duration::from_secs(1);
/// Longer than everything here.
const LONG: u64 = 600_000;
/// The form's last line in Claude Code.
const FORM: &str = "not set";
/// The last line of the list of all tasks.
const LIST: &str = "Esc to close";
const ESCAPE: &str = "\x1b";
const ENTER: &str = "\r";

pub(crate) fn trials() -> Vec<Trial> {
    let is_left_out = std::env::var_os("HAFT_TEST_WITHOUT_MCP").is_some_and(|value| value == "1");
    let has_binaries = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let trial = Trial::test("claude_code::call_that_waits_is_listed_as_a_task", || {
        waiting_call_is_listed(&AgentClient::ClaudeCode.open(LONG));
        Ok(())
    });
    vec![trial.with_ignored_flag(is_left_out || !has_binaries)]
}

fn waiting_call_is_listed(session: &Session) {
    let terminal = &session.terminal;
    terminal.shows(FORM);
    std::thread::sleep(READING_TIME);
    terminal.press(ESCAPE, "the form to close", || !terminal.text().contains(FORM));
    let id = session.haft(&["approvals", "--json"])[0]["id"].as_str().unwrap().to_owned();

    terminal.settles();
    terminal.types("/tasks");
    terminal.shows("/tasks");
    terminal.settles();
    let waits = format!("waiting for approval {id}");
    terminal.press(ENTER, "the list of tasks", || terminal.text().contains(&waits));
    let screen = terminal.text();
    assert!(screen.contains("haft/file_edit") && screen.contains(&format!("file_edit: {FILE}")), "{screen}");

    // The model is told nothing while the list is open.
    terminal.press(ESCAPE, "the list of all tasks", || terminal.text().contains(LIST));
    terminal.press(ESCAPE, "the list to close", || !terminal.text().contains(LIST));
    assert!(!session.told("Edited src/cart.py") && !session.file().contains(NEW), "nobody has answered yet");
    session.haft(&["approvals", "approve", &id, "--json"]);
    terminal.until("the model to be told of the edit", || session.told("Edited src/cart.py"));
    assert_eq!(session.file().matches("prices =").count(), 1, "it ran once");
}
