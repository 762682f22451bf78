//! `haft mcp` as a client meets it: the real binary, lines of JSON, a real project and a real store.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod approval;
mod calls;
mod hostile;
mod install;
mod install_faults;
mod install_overrides;
mod making;
mod offers;
mod tasks;
mod versions;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A home, a project, and nothing else.
struct Env {
    dir: Arc<tempfile::TempDir>,
}

impl Env {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("home")).unwrap();
        Self { dir: Arc::new(dir) }
    }

    fn with(config: &str) -> Self {
        let env = Self::new();
        let dir = env.home().join(".config/haft");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.yml"), config).unwrap();
        env
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
        command
            .args(args)
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that prints JSON.
    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
    }

    /// The records of the log, oldest first.
    fn records(&self) -> Vec<Value> {
        let output = self.run(&["log", "--json", "-n", "10000"]);
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A server that nobody has spoken to.
    fn spawn(&self, args: &[&str]) -> Client {
        let mut command = self.command(&[&["mcp"], args].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("stdout is for messages: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let home = Arc::clone(&self.dir);
        Client { stdin: child.stdin.take(), child, lines, heard: Vec::new(), next: 0, _home: home }
    }

    /// A server and a client that have agreed on a version in which neither asks in rounds.
    fn connect(&self) -> Client {
        self.connect_as(json!({}))
    }

    /// The same, with what the client can do.
    fn connect_as(&self, capabilities: Value) -> Client {
        let mut client = self.spawn(&[]);
        client.initialize("2025-11-25", capabilities);
        client
    }
}

/// How long a person takes to read a form, at the least.
const READING_TIME: Duration = Duration::from_secs(1);

/// A client, one line at a time.
struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What came and was not waited for.
    heard: Vec<Value>,
    next: i64,
    /// Where it lives, as long as it does.
    _home: Arc<tempfile::TempDir>,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    fn line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// Sends a message. An answer to a form comes as late as a person's: an instant one does not count as theirs.
    fn send(&mut self, message: Value) {
        if message["result"].get("action").is_some() || message["params"].get("inputResponses").is_some() {
            std::thread::sleep(READING_TIME);
        }
        self.send_instantly(message);
    }

    fn send_instantly(&mut self, message: Value) {
        self.line(&message.to_string());
    }

    fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "Test Client", "version": "1"}});
        let answer = self.ask("initialize", params);
        self.notify("notifications/initialized", json!({}));
        answer["result"].clone()
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request, and gives its id.
    fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    /// The next message that is like this.
    fn wait(&mut self, what: &str, like: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.heard.iter().position(&like) {
            return self.heard.remove(at);
        }
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(message) if like(&message) => return message,
                Ok(message) => self.heard.push(message),
                Err(RecvTimeoutError::Timeout) => panic!("{what} did not come; this did: {:#?}", self.heard),
                Err(RecvTimeoutError::Disconnected) => panic!("the server ended before {what}: {:#?}", self.heard),
            }
        }
    }

    fn answer(&mut self, id: i64) -> Value {
        self.wait(&format!("the answer to {id}"), |message| message["id"] == id && message.get("method").is_none())
    }

    /// A notification or request of the server's own.
    fn hear(&mut self, method: &str) -> Value {
        self.wait(method, |message| message["method"] == method)
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Calls a tool, and gives its result.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("result").is_some(), "{answer:#}");
        answer["result"].clone()
    }

    /// Closes stdin, and waits for the end.
    fn leave(&mut self) -> i32 {
        self.stdin = None;
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

/// The text of a tool's result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result:#}"))
}

/// The metadata of a request in the version that has no handshake.
fn newest(capabilities: Value) -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "Test Client", "version": "1"}})
}
