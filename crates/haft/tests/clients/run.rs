//! Programs that must end, and servers that must not.

use crate::{Env, HAFT};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a program said, and whether it was content.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end; one that is not done in time is killed and has failed.
pub(crate) fn within(seconds: u64, command: &mut Command) -> Said {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |pipe: &mut dyn Read| {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    std::thread::scope(|scope| {
        let stdout = scope.spawn(move || read(&mut out));
        let stderr = scope.spawn(move || read(&mut err));
        let until = Instant::now() + Duration::from_secs(seconds);
        let code = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if Instant::now() > until => {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        Said { code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    })
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    child: Child,
    /// The line it printed when it was ready.
    pub(crate) line: String,
}

impl Server {
    /// Starts a program that prints one line when it is ready.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{command:?} ended before it was ready");
        Self { child, line: line.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `haft serve`: the server, the address of its MCP door, and the token.
pub(crate) fn gateway(env: &Env) -> (Server, String, String) {
    let server = Server::start(&mut env.command(HAFT, &["serve", "--listen", "127.0.0.1:0", "--print-url"]));
    let (url, token) = server.line.split_once("#token=").unwrap_or_else(|| panic!("no token in {}", server.line));
    let (mcp, token) = (format!("{}/mcp", url.trim_end_matches('/')), token.to_owned());
    (server, mcp, token)
}

/// The token that agents show at a gateway.
pub(crate) fn agent_token(env: &Env) -> String {
    let file = env.home().join(".local/share/haft/gateway-agent-token");
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// What a `haft` command prints as JSON.
pub(crate) fn haft(env: &Env, args: &[&str]) -> serde_json::Value {
    let said = within(60, &mut env.command(HAFT, args));
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("no JSON: {} {}", said.stdout, said.stderr))
}
