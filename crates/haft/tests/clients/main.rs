//! Real clients at the doors: the official SDKs, the inspector and the conformance suite drive the real binary.
//!
//! The programs come from `cargo xtask needs`; what they do is in `tests/real`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, clippy::print_stdout, reason = "a test that is left out says so, a suite its result")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod conformance;
mod fronted;
mod http;
mod inspector;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod questions;
mod run;
mod sessions;
mod skills;
mod stdio;
mod tasks;
mod tour;

use needs::need;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A home and a project.
struct Env {
    dir: tempfile::TempDir,
}

impl Env {
    /// With a file to read, and all tools told of.
    fn new() -> Self {
        let env = Self::thrifty();
        env.config("tools: { budget_tokens: 0 }\n");
        env
    }

    /// As it is where nothing is configured.
    fn thrifty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("home")).unwrap();
        std::fs::write(dir.path().join("project/hello.txt"), "hello from a file\n").unwrap();
        Self { dir }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn config(&self, text: &str) {
        std::fs::create_dir_all(self.home().join(".config/haft")).unwrap();
        std::fs::write(self.home().join(".config/haft/config.yml"), text).unwrap();
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// A program in the project, with an environment of its own.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        let mut command = Command::new(program);
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
}

/// The binary under test.
const HAFT: &str = env!("CARGO_BIN_EXE_haft");

/// A file of `tests/real`.
fn script(name: &str) -> PathBuf {
    repository().join("tests/real").join(name)
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}
