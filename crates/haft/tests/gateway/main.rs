//! The gateway as its clients meet it: the real binary, a real port, real sockets.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod agent;
mod agents;
mod approvals;
mod auth;
mod calls;
mod client;
mod deciders;
mod events;
mod hostile;
mod life;
mod links;
mod mcp_progress;
mod repeats;
mod sessions;
mod socket;
mod work;

use client::{Answer, Server};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A home, a project, and nothing else.
struct Env {
    dir: tempfile::TempDir,
}

/// A gateway that runs.
struct Gateway {
    child: Child,
    server: Server,
    token: String,
}

impl Env {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("home")).unwrap();
        Self { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("home/.local/share/haft")
    }

    fn file(&self, path: &str, content: &str) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn config(&self, text: &str) {
        let dir = self.dir.path().join("home/.config/haft");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.yml"), text).unwrap();
    }

    /// The command, with an environment of its own.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
        command
            .args(args)
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.dir.path().join("home"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// What a command of the same program prints as JSON.
    fn run(&self, args: &[&str]) -> Value {
        let output = self.command(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text} {output:?}"))
    }

    fn serve(&self) -> Gateway {
        self.serve_with(&[])
    }

    /// Starts a gateway on a free port, and waits until it says where.
    fn serve_with(&self, flags: &[&str]) -> Gateway {
        started(self.command(&[&["serve", "--listen", "127.0.0.1:0", "--print-url"], flags].concat()))
    }
}

/// Waits until a gateway says where it is.
fn started(mut command: Command) -> Gateway {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (address, token) = line.trim().split_once("#token=").unwrap_or_else(|| panic!("no address: {line}"));
    let host = address.split("://").nth(1).unwrap().trim_end_matches('/').to_owned();
    Gateway { child, server: Server { host }, token: token.to_owned() }
}

impl Gateway {
    fn get(&self, path: &str) -> Answer {
        self.server.ask("GET", path, &self.bearer(), None)
    }

    fn post(&self, path: &str, body: Value) -> Answer {
        self.server.ask("POST", path, &self.bearer(), Some(&body.to_string()))
    }

    fn bearer(&self) -> Vec<(&'static str, String)> {
        vec![("Authorization", format!("Bearer {}", self.token))]
    }

    fn call(&self, tool: &str, args: Value) -> Answer {
        self.post(&format!("/v1/tools/{tool}/call"), serde_json::json!({ "args": args }))
    }

    /// Asks to write a file, and returns the approval that it waits for.
    fn ask_to_write(&self, path: &str) -> String {
        let answer = self.call("file.write", serde_json::json!({"path": path, "content": "hello"}));
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["error"]["details"]["approval_id"].as_str().unwrap().to_owned()
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds that another process brings about.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < patience, "it did not come to pass");
        std::thread::sleep(Duration::from_millis(10));
    }
}
