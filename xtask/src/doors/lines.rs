//! MCP over stdio: one JSON text a line.

use super::{greeting, result};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A server of which this is the client.
pub(crate) struct Lines {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
    line: String,
}

impl Lines {
    /// Starts a server and greets it. How long that took, from before the process was.
    pub(crate) fn start(command: &mut Command) -> Result<(Self, Duration)> {
        let begun = Instant::now();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.with_context(|| format!("cannot start {command:?}"))?;
        let (to, from) = (child.stdin.take().context("no stdin")?, child.stdout.take().context("no stdout")?);
        let mut lines = Self { child, to, from: BufReader::new(from), next: 0, line: String::new() };
        lines.ask("initialize", &greeting())?;
        let took = begun.elapsed();
        lines.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok((lines, took))
    }

    /// Asks and waits for the answer; what else the server says meanwhile is not for a measurement.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let message = self.receive()?;
            if message["id"] == id && message.get("method").is_none() {
                return result(message);
            }
        }
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, tool: &str, args: &Value) -> Result<Value> {
        self.ask("tools/call", &json!({ "name": tool, "arguments": args }))
    }

    /// Calls a tool many times without waiting in between. How long until the last answer.
    pub(crate) fn pipelined(&mut self, (tool, args): (&str, &Value), calls: u64) -> Result<Duration> {
        let first = self.next + 1;
        self.next += calls;
        let (to, from, line) = (&mut self.to, &mut self.from, &mut self.line);
        let params = json!({ "name": tool, "arguments": args });
        let begun = Instant::now();
        std::thread::scope(|scope| -> Result<()> {
            let writing = scope.spawn(move || -> Result<()> {
                let mut to = std::io::BufWriter::with_capacity(1 << 16, to);
                for id in first..first + calls {
                    writeln!(to, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)?;
                }
                to.flush().context("the server does not listen")
            });
            let mut left = calls;
            while left > 0 {
                let message = receive(from, line)?;
                if message.get("id").is_some() && message.get("method").is_none() {
                    result(message)?;
                    left -= 1;
                }
            }
            writing.join().unwrap_or_else(|_| bail!("the writer ended abruptly"))
        })?;
        Ok(begun.elapsed())
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        self.to.write_all(format!("{message}\n").as_bytes()).context("the server does not listen")
    }

    fn receive(&mut self) -> Result<Value> {
        receive(&mut self.from, &mut self.line)
    }
}

fn receive(from: &mut impl BufRead, line: &mut String) -> Result<Value> {
    line.clear();
    if from.read_line(line).context("the server cannot be heard")? == 0 {
        bail!("the server has gone");
    }
    serde_json::from_str(line).with_context(|| format!("this is no JSON: {line}"))
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers whatever it is asked.
    const ECHO: &str = r#"while read -r line; do
        id=${line#*\"id\":}; case $line in *\"id\":*) printf '{"method":"x"}\n{"id":%s,"result":{}}\n' "${id%%,*}";; esac
    done"#;

    #[test]
    fn calls_are_answered_one_by_one_and_all_at_once() {
        let (mut lines, _) = Lines::start(Command::new("sh").args(["-c", ECHO])).unwrap();
        assert_eq!(lines.call("any", &json!({})).unwrap(), json!({}));
        lines.pipelined(("any", &json!({})), 50).unwrap();
        assert!(Lines::start(&mut Command::new("true")).is_err());
    }
}
