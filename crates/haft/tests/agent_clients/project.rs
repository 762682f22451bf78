//! The project and the home directory in which a client runs, and a web page that it can fetch.

use crate::HAFT;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A PNG image of one pixel, as base64.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A temporary project with its own home directory.
pub(crate) struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    /// A project with text files and an image, and a configuration that lets haft fetch from `port` and denies
    /// `system.info`.
    pub(crate) fn new(port: u16) -> Self {
        let project = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(project.root().join(".git")).unwrap();
        project.write("project/hello.txt", "hello from a file\n");
        project.write("project/notes.txt", "first\na needle-3381 \"here\"\n");
        let image = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, PIXEL).unwrap();
        std::fs::write(project.root().join("dot.png"), image).unwrap();
        let config =
            format!("deny: [system.info]\nmcp: {{wait_ms: 300}}\nweb: {{allow_private: ['127.0.0.1:{port}']}}\n");
        project.write("home/.config/haft/config.yml", &config);
        project
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
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
            .env("PATH", path_with_haft())
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// What a `haft` command prints as JSON.
    pub(crate) fn haft(&self, args: &[&str]) -> Value {
        let output = self.command(Path::new(HAFT)).args(args).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
    }
}

/// The search path of programs, with haft on it: a project's configuration names it without its directory.
fn path_with_haft() -> OsString {
    let own = Path::new(HAFT).parent().map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).unwrap()
}

/// A web server on loopback with one page. It ends with the test's process.
pub(crate) fn serve_page() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let _ = lines.find(String::is_empty);
            let body = "<html><body><p>a page about quokkas</p></body></html>";
            let head = format!("content-type: text/html\r\ncontent-length: {}\r\nconnection: close", body.len());
            let _ = (&stream).write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").as_bytes());
        }
    });
    port
}
