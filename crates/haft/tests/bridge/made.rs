//! Tools that are files and call those of servers: the server is met when it is needed.

use super::{Env, said};
use serde_json::json;

fn tool(env: &Env, name: &str, kind: &str, exec: &str) {
    let dir = env.dir.path().join("home/.config/haft/tools").join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let text = format!(
        "name: {name}\ndescription: Adds.\nkind: {kind}\nversion: 1\ninputs:\n  schema: {{type: object}}\noutputs: {{format: text}}\n\
         exec: {exec}\npermissions: {{network: false, fs: {{read: [], write: []}}, secrets: {{}}}}\napproval: {{required: false}}\n"
    );
    std::fs::write(dir.join("tool.yml"), text).unwrap();
}

pub(crate) fn a_tool_that_is_a_file_meets_its_server() {
    let env = Env::new().hostile("rug", "");
    tool(&env, "sum", "mcp", "{mcp: {server: rug, tool: add}}");
    tool(&env, "twice", "pipeline", "{pipeline: {steps: [{id: a, tool: sum}, {id: b, tool: sum}]}}");
    // The call of a call goes the whole path, so the server's tool is asked about.
    let (outcome, code) = env.call("sum", json!({}), &["--no-input"]);
    assert_eq!(code, 4, "{outcome:#}");
    let outcome = env.ok("twice", json!({}));
    assert_eq!(said(&outcome), "called add", "it is marked off once: {outcome:#}");
    assert_eq!(outcome["labels"], json!(["untrusted"]));
}
