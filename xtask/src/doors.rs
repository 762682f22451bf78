//! The doors from outside, as a client meets them, with nothing between the measurement and the bytes: JSON lines
//! over pipes, HTTP/1.1 and WebSocket frames over sockets. Only as much of each as a measurement speaks.

mod http;
mod lines;
mod scene;
mod socket;

pub(crate) use http::{Address, Http};
pub(crate) use lines::Lines;
pub(crate) use scene::{Pin, Scene};
pub(crate) use socket::Socket;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than any answer takes that comes at all.
const PATIENCE: Duration = Duration::from_mins(1);

/// The call that measures a door rather than a tool.
pub(crate) fn trivial() -> (&'static str, Value) {
    ("calc_eval", json!({ "expression": "2+2" }))
}

/// The request by which a client of MCP begins.
fn greeting() -> Value {
    let client = json!({ "name": "haft-xtask", "version": "1" });
    json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client })
}

/// The result in an answer of JSON-RPC, if it is one and no failure of a tool.
fn result(mut answer: Value) -> Result<Value> {
    if answer.get("error").is_some_and(|error| !error.is_null()) {
        bail!("an error instead of a result: {answer}");
    }
    let result = answer.get_mut("result").map(Value::take).context("neither a result nor an error")?;
    if result["isError"] == true || result["success"] == false {
        bail!("the tool failed: {result}");
    }
    Ok(result)
}

/// What a process holds now, in MB.
pub(crate) fn resident_mb(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("the process is gone")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the process is gone")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_result_is_one() {
        assert_eq!(result(json!({"result": {"a": 1}})).unwrap(), json!({"a": 1}));
        assert_eq!(result(json!({"result": 3, "error": null})).unwrap(), json!(3));
        for not in [json!({"error": {"code": 1}}), json!({}), json!({"result": {"isError": true}})] {
            assert!(result(not).is_err());
        }
    }

    #[test]
    fn this_process_holds_something() {
        assert!(resident_mb(std::process::id()).unwrap() > 0.5);
        assert!(resident_mb(u32::MAX).is_err());
    }
}
