//! The project and the home directory in which a client runs, and haft beside it.

use crate::HAFT;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A temporary project with its own home directory.
pub(crate) struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    /// A project with a text file, under a configuration of haft's.
    pub(crate) fn new(config: &str) -> Self {
        let project = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(project.root().join(".git")).unwrap();
        project.write("project/hello.txt", "hello from a file\n");
        project.write("home/.config/haft/config.yml", config);
        project
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A file of the project, as the model names it.
    pub(crate) fn file(&self, name: &str) -> String {
        self.root().join(name).to_str().unwrap().to_owned()
    }

    /// What a file of the project says; none if it is not there.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.root().join(name)).ok()
    }

    /// Writes a file below the temporary directory.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let file = self.dir.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// A program in the project, with an environment of its own.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("SHELL", "/bin/bash")
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// What a `haft` command did.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(Path::new(HAFT)).args(args).output().unwrap()
    }

    /// What a `haft` command prints as JSON.
    pub(crate) fn haft(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
    }

    /// What a hook answers to an event, as a client would call it.
    pub(crate) fn hook(&self, args: &[&str], event: &str) -> Output {
        let mut command = self.command(Path::new(HAFT));
        command.arg("hook").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A hook that refuses its input may end before it has read it.
        let _ = child.stdin.take().unwrap().write_all(event.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// The records of the log about calls, as JSON, oldest first.
    pub(crate) fn records(&self) -> Vec<Value> {
        let output = self.run(&["log", "-n", "1000", "--json"]);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].clone()).collect()
    }

    /// The records of one kind.
    pub(crate) fn records_of(&self, kind: &str) -> Vec<Value> {
        self.records().into_iter().filter(|record| record["kind"] == kind).collect()
    }

    /// Asserts that the log is one unbroken chain.
    pub(crate) fn assert_log_holds(&self) {
        let output = self.run(&["log", "verify"]);
        assert!(output.status.success(), "{output:?}");
    }
}
