//! One plan that every client carries out, and what must come of it, whoever asks and through whichever door.

use crate::run::within;
use crate::{Env, real_program, script};
use serde_json::{Value, json};
use std::process::Command;

/// Whose hands are at the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// The Python SDK 2.x; the word is its mode: which generation of the protocol to speak.
    Python(&'static str),
    /// The Python SDK 1.x.
    Python1,
    /// The Python SDK of 2025-06-18, from before streams had priming events.
    PythonOld,
    /// The TypeScript SDK.
    TypeScript,
}

impl Client {
    /// Carries out a plan.
    pub(crate) fn carry_out(self, env: &Env, plan: Value) -> Value {
        let over_http = plan.get("http").is_some();
        let said = within(90, &mut self.command(env, plan));
        assert_eq!(said.code, Some(0), "{self:?}: {} {}", said.stdout, said.stderr);
        // What an SDK does not understand it logs: a stream's event, the end of a session.
        assert!(!over_http || said.stderr.is_empty(), "{self:?} complains: {}", said.stderr);
        serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{self:?}: {}", said.stdout))
    }

    /// The program that carries out a plan.
    pub(crate) fn command(self, env: &Env, mut plan: Value) -> Command {
        let (program, script) = match self {
            Self::Python(mode) => {
                plan["mode"] = mode.into();
                (real_program("HAFT_TEST_PYTHON"), script("python/client.py"))
            }
            Self::Python1 => (real_program("HAFT_TEST_PYTHON1"), script("python/client_1.py")),
            Self::PythonOld => (real_program("HAFT_TEST_PYTHON_OLD"), script("python/client_old.py")),
            Self::TypeScript => (real_program("HAFT_TEST_NODE"), script("ts/client.mjs")),
        };
        let mut command = env.command(program, &[]);
        let modules = real_program("HAFT_TEST_NODE_MODULES");
        command.arg(script).arg(plan.to_string()).env("HAFT_TEST_NODE_MODULES", modules);
        command
    }
}

/// Reads, reckons, fails, waits with progress, and writes with a person's yes.
pub(crate) fn plan(door: Value) -> Value {
    let mut plan = json!({
        "answer": { "decision": "approve once" },
        "calls": [
            { "tool": "calc_eval", "args": { "expression": "6*7" } },
            { "tool": "file_read", "args": { "path": "hello.txt" } },
            { "tool": "file_read", "args": { "path": "nowhere.txt" } },
            { "tool": "calc_eval", "args": { "expression": "1+1", "delay_ms": 150 } },
            { "tool": "file_write", "args": { "path": "made.txt", "content": "by a client\n" } },
        ],
    });
    for (name, value) in door.as_object().unwrap() {
        plan[name] = value.clone();
    }
    plan
}

/// What must have come of it.
pub(crate) fn judge(env: &Env, client: Client, came: &Value) {
    let who = format!("{client:?}: {came:#}");
    let version = match client {
        Client::Python("auto") => "2026-07-28",
        Client::PythonOld => "2025-06-18",
        _ => "2025-11-25",
    };
    assert_eq!((&came["server"], &came["version"]), (&"haft".into(), &version.into()), "{who}");
    let tools = came["tools"].as_array().unwrap();
    let tool =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}: {who}"));
    assert_eq!(tool("file_read")["annotations"]["readOnlyHint"], true, "{who}");
    assert_eq!(tool("file_write")["annotations"]["readOnlyHint"], false, "{who}");
    assert_eq!(tool("calc_eval")["inputSchema"]["type"], "object", "{who}");

    let [reckoned, read, missing, slow, written] = came["calls"].as_array().unwrap().as_slice() else {
        panic!("{who}")
    };
    let text = |call: &Value| call["text"].as_str().unwrap().to_owned();
    assert_eq!((&reckoned["error"], text(reckoned).contains("42")), (&false.into(), true), "{who}");
    assert_eq!((&read["error"], text(read).contains("hello from a file")), (&false.into(), true), "{who}");
    assert!(read["data"].is_object() || tool("file_read").get("outputSchema").is_none(), "{who}");
    assert_eq!((&missing["error"], text(missing).contains("nowhere.txt")), (&true.into(), true), "{who}");
    let progress = slow["progress"].as_array().unwrap();
    assert!(progress.iter().any(|said| said.as_str().is_some_and(|said| said.contains("150 ms"))), "{who}");

    let progress = written["progress"].as_array().unwrap();
    let waits = |said: &Value| said.as_str().is_some_and(|said| said.starts_with("waiting for approval "));
    assert!(progress.iter().any(waits), "{who}");
    assert_eq!(written["error"], false, "{who}");
    let asked = came["asked"].as_array().unwrap();
    assert_eq!(asked.len(), 1, "only the write needs a yes: {who}");
    assert!(asked[0]["message"].as_str().unwrap().contains("made.txt"), "{who}");
    assert_eq!(std::fs::read_to_string(env.root().join("made.txt")).unwrap(), "by a client\n");
}
