//! What a client hears of a call that takes long: what it waits for, then that it runs.

use crate::approval::pending;
use crate::{Client, Env, newest, text};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often a client is told.
const INTERVAL: Duration = Duration::from_secs(5);

/// The messages of one call's progress, each with its number.
struct Progress {
    sent_at: Instant,
    numbers: Vec<f64>,
}

impl Progress {
    fn new() -> Self {
        Self { sent_at: Instant::now(), numbers: Vec::new() }
    }

    /// The text of the next message.
    fn next(&mut self, client: &mut Client) -> String {
        let heard = client.hear("notifications/progress");
        assert_eq!(heard["params"]["progressToken"], "mine", "{heard:#}");
        let number = heard["params"]["progress"].as_f64().unwrap();
        assert!(self.numbers.last().is_none_or(|last| number > *last), "{number} after {:?}", self.numbers);
        self.numbers.push(number);
        heard["params"]["message"].as_str().unwrap().to_owned()
    }

    /// The text of the next message, which is not due before so many intervals have passed.
    fn next_due(&mut self, client: &mut Client, intervals: u32) -> String {
        let message = self.next(client);
        let (at, due) = (self.sent_at.elapsed(), INTERVAL * intervals);
        assert!(at >= due, "`{message}` came after {at:?} instead of {due:?}");
        message
    }
}

/// How many seconds a message says that a state has lasted.
fn seconds(message: &str, state: &str) -> u64 {
    let rest = message.strip_prefix(state).unwrap_or_else(|| panic!("`{message}` does not begin with `{state}`"));
    let duration = rest.rsplit_once(" (").and_then(|(_, duration)| duration.strip_suffix(" s)"));
    duration.and_then(|duration| duration.parse().ok()).unwrap_or_else(|| panic!("no duration: `{message}`"))
}

/// A command that is asked about, and runs for two intervals and more: so long that two messages come while it runs, however
/// late it begins. `meta` is what every request says.
fn heartbeats(client: &mut Client, env: &Env, mut meta: Value) {
    meta["progressToken"] = "mine".into();
    let arguments = json!({"command": "touch begun; sleep 13; echo slept-well"});
    let mut progress = Progress::new();
    let id = client.request("tools/call", json!({"name": "shell_exec", "arguments": arguments, "_meta": meta}));
    // Only what is told at once says nothing of a duration.
    let at_once = progress.next(client);
    let waits = format!("waiting for approval {}: shell_exec: $ touch begun", pending(env));
    assert!(at_once.starts_with(&waits) && !at_once.ends_with(" s)"), "{at_once}");
    let waited = progress.next_due(client, 1);
    assert!(seconds(&waited, &waits) <= progress.sent_at.elapsed().as_secs(), "{waited}");
    assert!(env.run(&["approvals", "approve", &pending(env)]).status.success());
    let running = "running: shell_exec: $ touch begun";
    // It may still have waited when the second was due.
    let mut intervals = 2;
    let mut message = progress.next_due(client, intervals);
    while message.starts_with(&waits) {
        intervals += 1;
        message = progress.next_due(client, intervals);
    }
    let first = seconds(&message, running);
    let second = seconds(&progress.next_due(client, intervals + 1), running);
    assert!(first < second, "{first} s, then {second} s");
    let result = client.answer(id)["result"].clone();
    assert!(text(&result).contains("slept-well"), "{result:#}");
    assert!(progress.numbers.len() >= 4, "{:?}", progress.numbers);
}

#[test]
fn progress_tells_of_waiting_and_running_every_five_seconds() {
    let env = Env::with("mcp: {wait_ms: 60000}\n");
    let mut client = env.connect();
    heartbeats(&mut client, &env, json!({}));
}

#[test]
fn progress_tells_of_waiting_and_running_in_the_newest_version_too() {
    let env = Env::with("mcp: {wait_ms: 60000}\n");
    let mut client = env.spawn(&[]);
    heartbeats(&mut client, &env, newest(json!({})));
}
