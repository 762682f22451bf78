//! The page as a person meets it: the real binary serves it, a real Chromium shows it, and the mouse, the keys and a
//! finger use it. Each scene asserts what is seen and what has really happened.
//!
//! The browser comes from `cargo xtask needs`, or from `HAFT_TEST_CHROMIUM`. With `HAFT_SCREENSHOTS=1` the pictures in
//! `docs/images` are made anew.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod command;
mod decide;
mod devtools;
mod gate;
mod inert;
mod links;
mod look;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod stale;
mod views;
mod visit;
mod work;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A home, a project, and nothing else.
struct Env {
    dir: tempfile::TempDir,
}

/// A gateway that runs.
struct Gateway {
    child: Child,
    door: Door,
}

/// Where it is and how one comes in: what an agent knows.
#[derive(Clone)]
struct Door {
    host: String,
    token: String,
}

/// What it said.
#[derive(Debug)]
struct Answer {
    status: u16,
    json: Value,
}

impl Env {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("work/greeter/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("home")).unwrap();
        Self { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("work/greeter")
    }

    fn has(&self, path: &str) -> bool {
        self.root().join(path).exists()
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn file(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
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

    /// What a command of the same program prints.
    fn run(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn serve(&self, flags: &[&str]) -> Gateway {
        self.serve_at("127.0.0.1:0", flags)
    }

    /// Starts a gateway, and waits until it says where it is.
    fn serve_at(&self, address: &str, flags: &[&str]) -> Gateway {
        let mut command = self.command(&[&["serve", "--listen", address, "--print-url"], flags].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once("#token=").unwrap_or_else(|| panic!("no address: {line}"));
        let host = address.split("://").nth(1).unwrap().trim_end_matches('/').to_owned();
        Gateway { child, door: Door { host, token: token.to_owned() } }
    }
}

impl std::ops::Deref for Gateway {
    type Target = Door;
    fn deref(&self) -> &Door {
        &self.door
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Door {
    /// The address of the page; with what comes after it.
    fn url(&self, rest: &str) -> String {
        format!("http://{}/{rest}", self.host)
    }

    /// The address that `haft serve` prints.
    fn entrance(&self) -> String {
        self.url(&format!("#token={}", self.token))
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json
    }

    fn post(&self, path: &str, body: Value) -> Answer {
        self.ask("POST", path, &body.to_string())
    }

    /// One request on a connection of its own.
    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        let Self { host, token } = self;
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n");
        let about =
            format!("Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        stream.write_all(format!("{head}{about}\r\n{body}").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, json: serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {text}")) }
    }

    /// An agent that calls a tool and waits for the outcome, however long somebody takes to decide.
    fn agent(&self, tool: &str, args: Value) -> JoinHandle<Answer> {
        let (door, path) = (self.clone(), format!("/v1/tools/{tool}/call"));
        std::thread::spawn(move || door.post(&path, json!({ "args": args, "session": "work", "wait_ms": 60_000 })))
    }

    /// A call that nobody waits for. Returns the approval that it needs.
    fn asks(&self, tool: &str, args: Value) -> String {
        let answer = self.post(&format!("/v1/tools/{tool}/call"), json!({ "args": args, "session": "work" }));
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json["error"]["details"]["approval_id"].as_str().unwrap().to_owned()
    }

    fn asks_to_write(&self, path: &str, content: &str) -> String {
        self.asks("file.write", json!({ "path": path, "content": content }))
    }

    /// The agent has seen a file: what it has not seen it cannot overwrite.
    fn reads(&self, path: &str) {
        let answer = self.post("/v1/tools/file.read/call", json!({ "args": { "path": path }, "session": "work" }));
        assert_eq!((answer.status, &answer.json["success"]), (200, &json!(true)), "{answer:?}");
    }

    /// How a stored question stands.
    fn approval(&self, id: &str) -> Value {
        self.get(&format!("/v1/approvals/{id}"))["approval"].take()
    }
}

/// Waits until something holds that another process brings about.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < patience, "it did not come to pass: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
