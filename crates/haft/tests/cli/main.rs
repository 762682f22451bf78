//! The product as people and agents meet it: the real binary, a real project, a real store.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that cannot prove anything here says so")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod agents;
mod api;
mod approvals;
mod bad_input;
mod changes;
mod client_control;
mod confine;
mod contracts;
mod copies;
mod crash;
mod delegate;
mod differential;
mod executed;
mod files;
mod hooks;
mod hostile;
mod import;
mod interference;
mod lint;
mod log;
mod made_tools;
mod many;
mod masking;
mod media;
mod memory;
mod models;
mod names;
mod namespaces;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod operational_log;
mod own_state;
mod pipeline;
mod policy;
mod process;
mod repeats;
mod rules;
mod run;
mod script;
mod secrets;
mod session;
mod shelf;
mod shell;
mod shell_run;
mod skills;
mod task;
mod telemetry;
mod terminal;
mod tools;
mod trust;
mod trust_tools;
mod web;
mod workloads;
mod worktrees;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A home, a project, and nothing else.
struct Env {
    dir: tempfile::TempDir,
}

/// What a run gave.
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
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

    fn store(&self) -> PathBuf {
        self.dir.path().join("home/.local/share/haft/haft.db")
    }

    /// Writes a file of the project.
    fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
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

    fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// Calls a tool with JSON arguments and returns its outcome and exit code.
    fn call(&self, tool: &str, args: Value, flags: &[&str]) -> (Value, i32) {
        let args = args.to_string();
        let ran = self.run(&[&["call", tool, &args, "--json"], flags].concat());
        let outcome =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("no outcome: {} {}", ran.stdout, ran.stderr));
        (outcome, ran.code)
    }

    /// The same for a call that has to succeed.
    fn ok(&self, tool: &str, args: Value) -> Value {
        let (outcome, code) = self.call(tool, args, &["--yes"]);
        assert_eq!((code, &outcome["success"]), (0, &Value::Bool(true)), "{outcome:#}");
        outcome
    }

    /// The same for a call that has to fail: its error's kind, message and exit code.
    fn err(&self, tool: &str, args: Value, flags: &[&str]) -> (String, String, i32) {
        let (outcome, code) = self.call(tool, args, flags);
        assert_eq!(outcome["success"], false, "{outcome:#}");
        let text = |name: &str| outcome["error"][name].as_str().unwrap_or_default().to_owned();
        (text("kind"), text("message"), code)
    }

    /// The records of the log, oldest first.
    fn records(&self) -> Vec<Value> {
        let ran = self.run(&["log", "--json", "-n", "10000"]);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("no JSON: {} {}", self.stdout, self.stderr))
    }
}

/// Everything below a directory: path, mode and content, for "exactly as it was".
fn snapshot(dir: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).unwrap().map(Result::unwrap) {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            let content = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            if meta.is_dir() {
                left.push(path.clone());
            }
            found.push((path, meta.permissions().mode(), content));
        }
    }
    found.sort();
    found
}
