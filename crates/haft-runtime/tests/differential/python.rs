//! A Python interpreter that answers one question after the other.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Reads a program that defines `answer(question)`, then answers lines of JSON with lines of JSON.
const LOOP: &str = "
import json, sys
exec(json.loads(sys.stdin.readline()))
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
";

pub(crate) struct Python {
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Python {
    /// Starts one whose `answer` is defined by this program.
    pub(crate) fn start(program: &str) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", LOOP])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start python3: {error}"));
        let pipes = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let python = Self { child, pipes: RefCell::new(pipes) };
        python.send(&json!(program));
        python
    }

    pub(crate) fn ask(&self, question: &Value) -> Value {
        self.send(question);
        let mut answer = String::new();
        self.pipes.borrow_mut().1.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("no answer to {question}: {error}"))
    }

    fn send(&self, question: &Value) {
        writeln!(self.pipes.borrow_mut().0, "{question}").unwrap();
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
