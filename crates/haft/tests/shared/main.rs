//! haft on one PostgreSQL server: the real binary, several machines and processes, one store.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that cannot prove anything here says so")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod commands;
mod cut;
mod gateways;
#[path = "../../../../tests/real/postgres.rs"]
mod real;
mod restart;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A home, a project, and a store that others use, too.
struct Machine {
    dir: tempfile::TempDir,
    store: String,
    /// What the program is started by, if it is to run somewhere else.
    inside: Vec<String>,
}

impl Machine {
    fn new(store: impl Into<String>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("home")).unwrap();
        Self { dir, store: store.into(), inside: Vec::new() }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
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
        let mut words = self.inside.clone();
        words.push(env!("CARGO_BIN_EXE_haft").to_owned());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(args)
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.dir.path().join("home"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TZ", "UTC")
            .env("HAFT_STORE", &self.store)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert!(ran.status.success(), "{args:?}: {ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat());
        serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("no JSON: {ran:?}"))
    }

    /// A call that has to succeed.
    fn call(&self, tool: &str, args: Value) -> Value {
        let outcome = self.json(&["call", tool, &args.to_string(), "--yes"]);
        assert_eq!(outcome["success"], true, "{outcome:#}");
        outcome
    }

    /// Starts a gateway on a free port of wherever it runs, and waits until it says where.
    fn serve(&self) -> Gateway {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0", "--print-url"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once("#token=").unwrap_or_else(|| panic!("no address: {line}"));
        let host = address.split("://").nth(1).unwrap().trim_end_matches('/').to_owned();
        Gateway { child, host, token: token.to_owned(), inside: self.inside.clone() }
    }
}

/// A gateway that runs.
struct Gateway {
    child: Child,
    host: String,
    token: String,
    inside: Vec<String>,
}

impl Gateway {
    /// One request. Its answer's status and body.
    fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        let answer = if self.inside.is_empty() { self.over_tcp(&text) } else { self.inside_out(&text) };
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = body.trim();
        // A body that comes in pieces has their lengths between them.
        let json = body.find(['{', '[']).zip(body.rfind(['}', ']'])).map_or("null", |(from, to)| &body[from..=to]);
        (status, serde_json::from_str(json).unwrap_or_else(|_| panic!("no JSON: {body}")))
    }

    fn over_tcp(&self, text: &str) -> String {
        let mut stream = std::net::TcpStream::connect(&self.host).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// From where it runs: nobody else can reach it.
    fn inside_out(&self, text: &str) -> String {
        let (host, port) = self.host.rsplit_once(':').unwrap();
        let speak = format!("exec 3<>/dev/tcp/{host}/{port}; cat >&3; cat <&3");
        let mut client = Command::new(&self.inside[0])
            .args(&self.inside[1..])
            .args(["bash", "-c", &speak])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        client.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap()
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, None).1
    }

    fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask("POST", path, Some(body))
    }

    /// Calls a tool, and waits at most so long for a person.
    fn call(&self, tool: &str, args: Value, wait_ms: u64) -> (u16, Value) {
        self.post(&format!("/v1/tools/{tool}/call"), json!({ "args": args, "wait_ms": wait_ms }))
    }

    /// The first question that waits.
    fn waiting(&self) -> Option<String> {
        self.get("/v1/approvals")["approvals"][0]["id"].as_str().map(str::to_owned)
    }

    fn health(&self) -> String {
        self.get("/health")["status"].as_str().unwrap().to_owned()
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
    let patience = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < patience, "it did not come to pass");
        std::thread::sleep(Duration::from_millis(10));
    }
}
