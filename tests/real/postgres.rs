//! A real PostgreSQL for tests: a database of one's own on the server that `cargo xtask test` started, or a whole server
//! of one's own for tests that stop it, cut it off or give it a certificate.

use postgres::{Client, NoTls};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether whoever runs the tests said that they do without. What is missing must not look like what passed.
pub(crate) fn left_out() -> bool {
    let without = std::env::var_os("HAFT_TEST_WITHOUT_POSTGRES").is_some_and(|value| value == "1");
    if without {
        eprintln!("left out: HAFT_TEST_WITHOUT_POSTGRES is set");
    }
    without
}

fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("haft_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A database of one's own on the server of all tests.
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Makes one; none where tests do without.
    pub(crate) fn new() -> Option<Self> {
        if left_out() {
            return None;
        }
        let server = std::env::var("HAFT_TEST_POSTGRES");
        let server = server.unwrap_or_else(|_| {
            panic!("HAFT_TEST_POSTGRES names no server: `cargo xtask test` starts one, HAFT_TEST_WITHOUT_POSTGRES=1 leaves this out")
        });
        let made = Self { server, name: unique() };
        made.admin(&format!("CREATE DATABASE {}", made.name));
        Some(made)
    }

    pub(crate) fn address(&self) -> String {
        format!("{}&dbname={}", self.server, self.name)
    }

    /// What somebody does to it behind everybody's back.
    pub(crate) fn tamper(&self, sql: &str) {
        Client::connect(&self.address(), NoTls).unwrap().batch_execute(sql).unwrap();
    }

    fn admin(&self, sql: &str) {
        Client::connect(&format!("{}&dbname=postgres", self.server), NoTls).unwrap().batch_execute(sql).unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.admin(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// A server of one's own.
pub(crate) struct Server {
    pub(crate) dir: tempfile::TempDir,
    bin: PathBuf,
    /// What it is started with.
    pub(crate) options: String,
    /// Runs it where a test wants it to be.
    inside: Vec<String>,
}

impl Server {
    /// Starts one with these options, in a network namespace if one is entered by these words; none where tests do
    /// without.
    pub(crate) fn start(options: &str, inside: &[&str]) -> Option<Self> {
        if left_out() {
            return None;
        }
        // A socket's path has to be short.
        let dir = tempfile::Builder::new().prefix("haft-pg-").tempdir_in("/tmp").unwrap();
        let inside = inside.iter().map(ToString::to_string).collect();
        let server = Self { dir, bin: bin(), options: options.to_owned(), inside };
        if is_root() {
            let owned = Command::new("chown").arg("nobody").arg(server.dir.path()).status().unwrap();
            assert!(owned.success(), "a server refuses to be run by root");
        }
        let mut make = server.command("initdb");
        make.args(["-A", "trust", "-U", "haft", "-E", "UTF8", "-N", "-D"]).arg(server.data());
        assert!(make.status().unwrap().success(), "initdb failed");
        // Whom it listens to is for a test to say; where it listens is a network of the test's own.
        let rules = "local all all trust\nhost all all samenet trust\n";
        std::fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
        server.up();
        Some(server)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn address(&self) -> String {
        format!("postgres://haft@/postgres?host={}", self.dir.path().display())
    }

    /// Starts it, and waits until it answers.
    pub(crate) fn up(&self) {
        let socket = self.dir.path().display();
        let network = if self.options.contains("listen_addresses") { "" } else { "-c listen_addresses=" };
        let options = format!("-k {socket} {network} {}", self.options);
        let log = self.dir.path().join("log");
        let mut start = self.command("pg_ctl");
        start.arg("-D").arg(self.data()).args(["-w", "-s", "-o", &options, "-l"]).arg(&log).arg("start");
        let started = start.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(started.success(), "{}", std::fs::read_to_string(&log).unwrap_or_default());
    }

    /// Stops it as a crash would.
    pub(crate) fn crash(&self) {
        self.stop("immediate");
    }

    pub(crate) fn stop(&self, how: &str) {
        let _ = self.command("pg_ctl").arg("-D").arg(self.data()).args(["-s", "-w", "-m", how, "stop"]).status();
    }

    /// One of its programs, as somebody who may run it, where it is to run.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut words = self.inside.clone();
        if is_root() {
            words.extend(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"].map(str::to_owned));
        }
        words.push(self.bin.join(program).display().to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop("immediate");
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

/// Where the programs are: where `cargo xtask test` says, on the PATH, or where Debian keeps those of each version.
fn bin() -> PathBuf {
    let said = std::env::var_os("HAFT_TEST_POSTGRES_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(|dir| dir.join("initdb").is_file());
    let kept = || {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
        versions.filter(|bin| bin.join("initdb").is_file()).max()
    };
    said.or(on_path).or_else(kept).unwrap_or_else(|| panic!("there is no PostgreSQL: `cargo xtask test` brings one"))
}
