//! The browser tools as an agent uses them: a real Chromium, confined, on a site that the test serves.
//!
//! The browser comes from `cargo xtask needs`, or from `HAFT_TEST_CHROMIUM`. Each start costs a second or two, so a
//! scene asks many things of one browser.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

mod bounds;
mod life;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod opens;
mod reach;
mod site;
mod using;
mod whose;

use haft::{
    Approver, BoxFuture, Call, Decider, Haft, Halt, Outcome, Question, Said, SessionId, Settings, Store, Workspace,
};
use haft_core::host::HostRules;
use haft_core::outcome::Label;
use haft_runtime::browser::BrowserSettings;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A project, a haft around it, and a person who says yes.
struct Scene {
    dir: tempfile::TempDir,
    haft: Haft,
    person: Person,
    runtime: tokio::runtime::Runtime,
}

/// Says yes, and keeps what was asked.
#[derive(Default)]
struct Person(Mutex<Vec<String>>);

impl Approver for Person {
    fn decider(&self) -> Decider {
        Decider::embedder("a person")
    }
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        self.0.lock().unwrap().push(question.subject.clone());
        Box::pin(std::future::ready(Said::Once))
    }
}

impl Scene {
    /// None where somebody said that tests are to do without a browser.
    fn new(private: &[u16]) -> Option<Self> {
        let program = needs::need("HAFT_TEST_CHROMIUM")?;
        Some(Self::with(
            private,
            BrowserSettings { program: Some(program.display().to_string()), ..Default::default() },
        ))
    }

    /// The same, and every page may reach what is private.
    fn open_to_all(private: &[u16]) -> Option<Self> {
        let program = Some(needs::need("HAFT_TEST_CHROMIUM")?.display().to_string());
        let allow_private = services(private);
        Some(Self::with(private, BrowserSettings { program, allow_private, ..Default::default() }))
    }

    fn with(private: &[u16], browser: BrowserSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let mut settings = Settings::new(dir.path().join("data"));
        settings.web.allow_private = services(private);
        settings.browser = browser;
        let haft = Haft::new(Workspace::new(&dir.path().join("project")).unwrap(), store, settings);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Self { dir, haft, person: Person::default(), runtime }
    }

    fn data(&self) -> std::path::PathBuf {
        self.dir.path().join("data")
    }

    fn call_in(&self, session: &str, tool: &str, args: Value) -> Outcome {
        let mut call = Call::new(haft::new_call_id(), tool, args);
        call.session = SessionId::new(session).unwrap();
        let mut outcome = self.runtime.block_on(self.haft.call(call, &self.person, &Halt::new()));
        // What a page says comes in a wrapper; what is looked at here is what is in it.
        if outcome.labels.contains(&Label::Untrusted) && !outcome.output.is_empty() {
            let (head, rest) = outcome.output.split_once('\n').unwrap();
            let end = format!("</untrusted mark=\"{}\">", head.split('"').nth(1).unwrap());
            // Behind it may be said where the whole is.
            let (inside, after) = rest.split_once(&end).unwrap();
            outcome.output = format!("{}{after}", inside.trim_end_matches('\n'));
        }
        outcome
    }

    /// A call, however it ends.
    fn tries(&self, tool: &str, args: Value) -> Outcome {
        self.call_in("one", tool, args)
    }

    /// A call that works.
    fn call(&self, tool: &str, args: Value) -> Outcome {
        let outcome = self.tries(tool, args);
        assert!(outcome.success, "{tool}: {outcome:#?}");
        outcome
    }

    /// What a call is refused with.
    fn refused(&self, tool: &str, args: Value) -> String {
        let outcome = self.tries(tool, args);
        let error = outcome.error.unwrap_or_else(|| panic!("{tool} worked: {}", outcome.output));
        format!("{}: {}", error.kind.as_str(), error.message)
    }

    fn navigate(&self, url: &str) -> Outcome {
        self.call("browser.navigate", json!({ "url": url }))
    }

    fn evaluate(&self, expression: &str) -> Value {
        self.call("browser.evaluate", json!({ "expression": expression })).data.unwrap()["value"].take()
    }

    /// What the log says of requests: host, and how it ended.
    fn requests(&self) -> Vec<(String, Option<String>)> {
        self.runtime.block_on(async {
            self.haft.flush().await.unwrap();
            let records = self.haft.store().records(0, 10_000, None).await.unwrap();
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let requests = records.iter().filter(|record| record.body["kind"] == "request");
            requests.map(|record| (text(&record.body["host"]).unwrap(), text(&record.body["error"]))).collect()
        })
    }
}

fn services(ports: &[u16]) -> HostRules {
    let rule = |port: &u16| format!("127.0.0.1:{port}").parse().unwrap();
    ports.iter().map(rule).collect::<Vec<_>>().into()
}

/// The processes below one, their children too.
fn below(pid: u32) -> Vec<u32> {
    let (mut found, mut left) = (Vec::new(), vec![pid]);
    while let Some(pid) = left.pop() {
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children: Vec<u32> = text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
            found.extend(&children);
            left.extend(children);
        }
    }
    found
}

/// Those of them that are browsers.
fn browsers(pids: &[u32]) -> Vec<u32> {
    let is_browser = |pid: &&u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("--user-data-dir=/tmp/profile")
    };
    pids.iter().filter(is_browser).copied().collect()
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Waits until something holds that another process brings about.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < patience, "it did not come to pass: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
