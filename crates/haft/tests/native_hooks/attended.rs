//! Claude Code at a terminal, with a person: it asks what haft leaves to a person, and haft records who decided.

use crate::client::{NativeClient, TEST_KEY, claude_code_with_hooks, scripted_model};
use crate::for_clients;
use crate::needs::need;
use crate::project::Project;
use libtest_mimic::Trial;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long something is waited for.
const PATIENCE: Duration = Duration::from_secs(40);
const ROWS: u16 = 45;
const COLUMNS: u16 = 120;

pub(crate) fn trials() -> Vec<Trial> {
    let claude = &[NativeClient::ClaudeCode];
    let mut trials = for_clients(claude, "person_is_asked_and_named_when_the_call_ran", person_agrees);
    trials.extend(for_clients(claude, "call_that_the_person_refused_did_not_run", person_refuses));
    trials
}

fn person_agrees(client: NativeClient) {
    let project = Project::new("");
    let mut terminal = Terminal::with_question(&project, client);
    terminal.types("\r");
    wait_until("an outcome", || !project.records_of("outcome").is_empty());
    let outcome = project.records_of("outcome").remove(0);
    assert_eq!(
        (outcome["success"].clone(), outcome["approved_by"].clone()),
        (json!(true), json!("the user of Claude Code"))
    );
    assert!(project.text("made.txt").is_some());
}

fn person_refuses(client: NativeClient) {
    let project = Project::new("");
    let mut terminal = Terminal::with_question(&project, client);
    terminal.types("2");
    terminal.hides("Do you want to proceed?");
    assert!(project.records_of("outcome").is_empty(), "nothing has said yet what came of it");
    drop(terminal);
    wait_until("an end in the log", || {
        project.records().iter().any(|record| record["kind"] == "outcome" || record["kind"] == "interrupted")
    });
    assert!(
        project.records_of("outcome").iter().all(|outcome| outcome["success"] == false),
        "{:#?}",
        project.records()
    );
    assert_eq!(project.text("made.txt"), None);
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "never saw {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A terminal with the client in it. The client ends with it.
struct Terminal {
    master: File,
    child: Child,
    screen: Arc<Mutex<vt100::Parser>>,
    _model: haft_stub::Stub,
}

impl Terminal {
    /// The client, asking its user about a command that haft leaves to a person.
    fn with_question(project: &Project, client: NativeClient) -> Self {
        let modules = need("HAFT_TEST_AGENTS").unwrap_or_else(|| panic!("HAFT_TEST_WITHOUT_MCP is set"));
        let model = scripted_model(vec![client.shell("touch made.txt")], |_| {});
        let trusted = json!({project.root().to_str().unwrap(): {"hasTrustDialogAccepted": true}});
        let known = json!({
            "hasCompletedOnboarding": true, "theme": "dark", "projects": trusted,
            "customApiKeyResponses": {"approved": [TEST_KEY], "rejected": []},
        });
        project.write("home/.claude.json", &known.to_string());
        let command = claude_code_with_hooks(project, &modules, &model);
        let terminal = Self::start(&command, "Go on.", model);
        terminal.shows("Do you want to proceed?");
        terminal.shows("no rule allows that unasked");
        terminal
    }

    /// Runs a command with one argument more as the leader of a session in a terminal of its own.
    fn start(command: &Command, argument: &str, model: haft_stub::Stub) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let master = File::from(master);
        tcsetwinsize(&master, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let mut leader = Command::new("setsid");
        leader.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args()).arg(argument);
        leader.current_dir(command.get_current_dir().unwrap_or(Path::new("/"))).env_clear();
        leader.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm-256color");
        let child = leader.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let (mut reader, seen) = (master.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                seen.lock().unwrap().process(&bytes[..read]);
            }
        });
        Self { master, child, screen, _model: model }
    }

    fn contents(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    fn shows(&self, text: &str) {
        self.until(text, |screen| screen.contains(text));
    }

    fn hides(&self, text: &str) {
        self.until(&format!("the end of {text}"), |screen| !screen.contains(text));
    }

    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let started = Instant::now();
        while !is_so(&self.contents()) {
            assert!(started.elapsed() < PATIENCE, "never saw {what:?}; the screen is\n{}", self.contents());
            std::thread::sleep(Duration::from_millis(50));
        }
        // What is drawn may not take keys yet.
        std::thread::sleep(Duration::from_secs(1));
    }

    fn types(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Two interrupts end the client as a person does.
        let _ = self.master.write_all(b"\x03");
        std::thread::sleep(Duration::from_millis(300));
        let _ = self.master.write_all(b"\x03");
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(5) {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
