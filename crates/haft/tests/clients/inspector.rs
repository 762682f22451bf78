//! Both doors in the hands of the inspector's command line.

use crate::run::{Said, gateway, within};
use crate::{Env, HAFT, real_program};
use serde_json::Value;

/// Runs it.
fn inspect(env: &Env, door: &[&str], method: &[&str]) -> Said {
    let mut command = env.command(real_program("HAFT_TEST_NODE"), &[]);
    command.arg(real_program("HAFT_TEST_INSPECTOR")).arg("--cli").args(door);
    within(60, command.args(method).args(["--format", "json", "-q"]))
}

fn result(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{} {}", said.stdout, said.stderr);
    let line = said.stdout.lines().last().unwrap_or_default();
    serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{} {}", said.stdout, said.stderr))["result"].take()
}

fn reads_and_reckons(env: &Env, door: &[&str]) {
    let listed = result(&inspect(env, door, &["--method", "tools/list"]));
    let named = |name: &str| listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name);
    assert!(named("calc_eval") && named("file_read"), "{listed:#}");

    let call = |tool: &str, args: &str| {
        let method = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", args];
        inspect(env, door, &method)
    };
    let reckoned = result(&call("calc_eval", r#"{"expression":"6*7"}"#));
    assert!(reckoned["content"][0]["text"].as_str().unwrap().contains("42"), "{reckoned:#}");
    let read = result(&call("file_read", r#"{"path":"hello.txt"}"#));
    assert!(read["content"][0]["text"].as_str().unwrap().contains("hello from a file"), "{read:#}");
    assert_eq!(call("no_such_tool", "{}").code, Some(5), "an unknown tool has a code of its own");
}

pub(crate) fn the_inspector_reads_and_reckons_over_stdio() {
    reads_and_reckons(&Env::new(), &[HAFT, "mcp"]);
}

pub(crate) fn the_inspector_reads_and_reckons_over_http() {
    let env = Env::new();
    let (_server, url, token) = gateway(&env);
    let header = format!("Authorization: Bearer {token}");
    reads_and_reckons(&env, &[&url, "--transport", "http", "--header", &header]);
}
