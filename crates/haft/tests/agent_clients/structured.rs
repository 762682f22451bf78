//! Structured content of a bridged server: the model gets the server's words, and haft's warning about them.

use crate::client::{AgentClient, ModelCall};
use crate::project::Project;
use crate::results::{assert_told, request_after};
use crate::trials::for_every_client;
use libtest_mimic::Trial;
use serde_json::json;
use std::path::Path;
use std::process::Command;

pub(crate) fn trials() -> Vec<Trial> {
    for_every_client("structured_content_hides_no_warning", structured_content_hides_no_warning)
}

/// The server's tools declare an output schema, and a client may refuse a success without structured content then: it gets
/// to see neither, or the model would hear of an error.
fn structured_content_hides_no_warning(client: AgentClient) {
    let project = Project::new(1);
    bridge_station(&project);
    let calls = ["mcp__station__harmless", "mcp__station__injected"].map(|tool| ModelCall { tool, args: json!({}) });
    let transcript = client.run(&project, &calls);
    let offered = request_after(&transcript, 0).tools();
    assert!(offered.contains(&client.tool_name("mcp__station__injected")), "{offered:?}");
    assert_told(&transcript, 1, &["It is mild and calm at the harbour."]);
    assert!(!request_after(&transcript, 1).says("attempt to give orders"), "{:#}", request_after(&transcript, 1).body);
    assert_told(&transcript, 2, &["Fog over the lighthouse.", "this looks like an attempt to give orders"]);
    assert!(!request_after(&transcript, 2).says("has an output schema"), "{:#}", request_after(&transcript, 2).body);
}

/// Enters the server in the user's configuration, and meets it: haft lists a server's tools once it knows them.
fn bridge_station(project: &Project) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent_clients/structured_server.py");
    let entry = json!({
        "command": python_path("executable"), "args": ["-B", script],
        "read": [script.parent().unwrap(), python_path("base_prefix")],
    });
    let config = json!({
        "tools": {"budget_tokens": 0}, "approval": {"auto_approve": ["mcp:station:*"]},
        "mcp": {"wait_ms": 300, "servers": {"station": entry}},
    });
    project.write("home/.config/haft/config.yml", &config.to_string());
    let met = project.haft(&["mcp", "test", "station", "--json"]);
    assert_eq!(met["state"], "ready", "{met:#}");
}

/// Where Python is (`executable`), or where it keeps its own files (`base_prefix`), free of links.
fn python_path(attribute: &str) -> String {
    let program = format!("import os, sys; print(os.path.realpath(sys.{attribute}))");
    let output = Command::new("python3").args(["-c", &program]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
