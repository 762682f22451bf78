//! A question of haft's on the screens of the clients, and what the keys of a person do with it.

use crate::client::{AgentClient, EDITED, NEW, NEW_COUNT, Session, SessionKind};
use crate::picture;
use libtest_mimic::Trial;
use std::path::PathBuf;
use std::time::Duration;

/// A person reads before they answer.
const READING_TIME: Duration = Duration::from_secs(1);
/// Long enough for everything here.
const LONG: u64 = 60_000;
/// The decision, as every client shows it first.
const DECISION: &str = "file_edit: src/cart.py";

/// What the model is told of an edit that was rejected.
const REJECTED: &str = "rejected by the user";

const RIGHT: &str = "\x1b[C";
const DOWN: &str = "\x1b[B";
const ESCAPE: &str = "\x1b";
const ENTER: &str = "\r";

pub(crate) fn trials() -> Vec<Trial> {
    use AgentClient::{ClaudeCode, Codex, GeminiCli, Goose, Opencode};
    vec![
        trial(ClaudeCode, "keys_approve_what_the_form_shows", approve),
        trial(ClaudeCode, "closed_form_leaves_the_question_in_the_inbox", close),
        trial(Codex, "keys_approve_what_the_form_shows", approve),
        trial(Codex, "chosen_rejection_reaches_the_model", reject),
        trial(Goose, "keys_approve_what_the_form_shows", approve),
        trial(ClaudeCode, "keys_approve_for_the_session", approve_for_session),
        trial(Codex, "keys_approve_for_the_session", approve_for_session),
        trial(Goose, "keys_approve_for_the_session", approve_for_session),
        trial(GeminiCli, "client_without_forms_says_where_to_decide", wait),
        trial(Opencode, "client_without_forms_says_where_to_decide", wait),
    ]
}

/// A test with a client. It is skipped, by name, where the client cannot run.
fn trial(client: AgentClient, name: &str, test: fn(AgentClient)) -> Trial {
    let is_left_out = std::env::var_os("HAFT_TEST_WITHOUT_MCP").is_some_and(|value| value == "1");
    let has_binaries = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let trial = Trial::test(format!("{}::{name}", client.name().replace('-', "_")), move || {
        test(client);
        Ok(())
    });
    trial.with_ignored_flag(is_left_out || !has_binaries)
}

fn pictures() -> Option<PathBuf> {
    std::env::var_os("HAFT_PICTURES").map(PathBuf::from)
}

/// Draws the screen, if pictures are wanted.
fn draw(client: AgentClient, session: &Session) {
    let Some(dir) = pictures() else { return };
    session.terminal.settles();
    let home = session.home().to_str().unwrap();
    let title = format!("haft asks for approval in {}", client.name());
    let svg = session.terminal.look(|screen| picture::svg(screen, &title, home));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(format!("client-{}.svg", client.name())), svg).unwrap();
}

/// The words of the form's last line, by which it is known to be there in full.
fn form(client: AgentClient, session: &Session) -> String {
    let last = match client {
        AgentClient::ClaudeCode => "not set",
        _ => "reject",
    };
    session.terminal.shows(last)
}

/// The line of the screen after the one that holds a text.
fn line_after<'s>(screen: &'s str, text: &str) -> &'s str {
    let mut lines = screen.lines().skip_while(|line| !line.contains(text));
    lines.nth(1).unwrap_or_default()
}

/// Chooses the first answer, which is yes, and sends it.
fn choose_first(client: AgentClient, session: &Session) {
    let terminal = &session.terminal;
    let shows = |text: &'static str| move || terminal.text().contains(text);
    if client == AgentClient::ClaudeCode {
        terminal.press(RIGHT, "the choices", shows("◯ approve once"));
        terminal.press(ENTER, "the choice", shows("Decision: approve once"));
    }
    terminal.press(ENTER, "the change", || session.file().contains(NEW));
}

/// Chooses the second answer, which holds for the session, and sends it.
fn choose_second(client: AgentClient, session: &Session) {
    let terminal = &session.terminal;
    let shows = |text: &'static str| move || terminal.text().contains(text);
    if client == AgentClient::ClaudeCode {
        terminal.press(RIGHT, "the choices", shows("◯ approve once"));
        terminal.types(DOWN);
        terminal.settles();
        terminal.press(ENTER, "the choice", shows("Decision: approve for this session"));
    } else {
        terminal.types(DOWN);
        terminal.settles();
    }
    terminal.press(ENTER, "the change", || session.file().contains(NEW));
}

fn approve(client: AgentClient) {
    let session = client.open(LONG);
    let screen = form(client, &session);
    let first =
        screen.lines().rfind(|line| line.contains(DECISION)).unwrap_or_else(|| panic!("no decision:\n{screen}"));
    assert!(first.contains("medium severity: "), "{screen}");
    let id = session.haft(&["approvals", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let reference = line_after(&screen, first);
    assert!(reference.contains(&format!("haft approvals show {id}")), "{screen}");
    assert!(line_after(&screen, reference).contains("-    return sum(items)"), "{screen}");
    draw(client, &session);
    std::thread::sleep(READING_TIME);
    choose_first(client, &session);
    session.tells_model(EDITED);
    assert_eq!(session.file().matches("prices =").count(), 1, "it ran once");
    assert_eq!(session.haft(&["approvals", "--json"]), serde_json::json!([]));
}

/// The person chooses the second answer: the call runs, and so does the next one of its kind, without a question. The form
/// leads to the question on the page.
fn approve_for_session(client: AgentClient) {
    let session = client.open_as(SessionKind::TwoEditsWithPage, LONG);
    let screen = form(client, &session);
    let id = session.haft(&["approvals", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let page = format!("{}#/inbox/{id}", session.page.as_ref().unwrap().address);
    assert!(screen.contains(&page), "{page} is not in the form:\n{screen}");
    std::thread::sleep(READING_TIME);
    choose_second(client, &session);
    session.terminal.until("the second change", || session.file().contains(NEW_COUNT));
    session.terminal.until("the model's last words", || session.terminal.unwrapped().contains("That is all."));
    assert_eq!(session.file().matches("prices =").count(), 1, "it ran once");
    assert_eq!(session.haft(&["approvals", "--json"]), serde_json::json!([]));
}

fn reject(client: AgentClient) {
    let session = client.open(LONG);
    form(client, &session);
    std::thread::sleep(READING_TIME);
    session.terminal.types(DOWN);
    session.terminal.types(DOWN);
    session.terminal.settles();
    session.terminal.press(ENTER, "the rejection", || session.told(REJECTED));
    assert!(!session.file().contains(NEW));
    assert_eq!(session.haft(&["approvals", "--json"]), serde_json::json!([]));
}

/// Claude Code has put the call into the background as a task by then, and its model knows that. Somebody decides in the
/// inbox instead, and the model hears what became of it.
fn close(client: AgentClient) {
    let session = client.open(2000);
    form(client, &session);
    std::thread::sleep(READING_TIME);
    session.terminal.press(ESCAPE, "the form to close", || !session.terminal.text().contains("not set"));
    let waiting = session.haft(&["approvals", "--json"]);
    assert_eq!(waiting[0]["state"], "pending");
    let id = waiting[0]["id"].as_str().unwrap().to_owned();
    session.tells_model(&format!("started server-side task {id}"));
    assert!(!session.file().contains(NEW));
    session.haft(&["approvals", "approve", &id, "--json"]);
    session.tells_model(EDITED);
    assert_eq!(session.file().matches("prices =").count(), 1, "it ran once");
}

/// A client without forms: the model hears where a person decides.
fn wait(client: AgentClient) {
    let session = client.open(2000);
    // The model's last words may be broken into lines.
    session.terminal.until("the model's last words", || session.terminal.unwrapped().contains("That is all."));
    let id = session.haft(&["approvals", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert!(session.told(&format!("It waits as approval {id}")), "{}", session.terminal.text());
    assert!(!session.file().contains(NEW));
    draw(client, &session);
}
