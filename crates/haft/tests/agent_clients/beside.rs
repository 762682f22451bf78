//! What runs beside a client: the page on which a person decides, and a haft that keeps what it hears and says.

use crate::HAFT;
use crate::project::Project;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// A `haft serve` over the project's data that runs until it is dropped.
pub(crate) struct Page {
    child: Child,
    /// Where its page is.
    pub(crate) address: String,
}

impl Page {
    pub(crate) fn serve(project: &Project) -> Self {
        let mut command = project.command(Path::new(HAFT));
        command.args(["serve", "--listen", "127.0.0.1:0", "--print-url"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split('#').next().unwrap_or_default().to_owned();
        assert!(address.starts_with("http://127.0.0.1:"), "{line:?} is no address");
        Self { child, address }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file beside the project and the home directory.
fn beside(project: &Project, name: &str) -> PathBuf {
    project.root().with_file_name(name)
}

/// A program that is `haft` and keeps what goes in and out of it.
pub(crate) fn recording_haft(project: &Project) -> PathBuf {
    let program = beside(project, "recording-haft");
    let (sent, received) = (beside(project, "to-haft"), beside(project, "from-haft"));
    let script =
        format!("#!/bin/sh\ntee -a '{}' | '{HAFT}' \"$@\" | tee -a '{}'\n", sent.display(), received.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// The messages that a client sent to the recording haft, and those that it got.
pub(crate) fn recorded(project: &Project) -> (Vec<Value>, Vec<Value>) {
    let read = |name: &str| {
        let text = std::fs::read_to_string(beside(project, name)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    (read("to-haft"), read("from-haft"))
}
