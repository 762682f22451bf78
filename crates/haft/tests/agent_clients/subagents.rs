//! Subagents of the agents that people use: what a client's own tool for subagents starts has no other way to act either.

use crate::client::{AgentClient, HaftEntry};
use crate::project::Project;
use crate::replace::install;
use crate::trials::for_clients;
use haft_stub::{Asked, Reply, Stub};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) fn trials() -> Vec<Trial> {
    let name = "native_tools_are_off_in_subagents";
    for_clients(&[AgentClient::ClaudeCode], name, native_tools_are_off_in_subagents)
}

/// What the subagent is asked to do: its conversation begins with it, and that of the main agent with another prompt.
const TASK: &str = "Count the quokkas in this project.";
const MAIN_PROMPT: &str = "Go on.";

fn native_tools_are_off_in_subagents(client: AgentClient) {
    let beside = Project::new(1);
    let offered = tools_of_a_subagent(client, &beside, &["install"]);
    for tool in client.native_tools() {
        assert!(offered.iter().any(|offered| offered == tool), "a subagent has {tool} otherwise: {offered:?}");
    }

    let replaced = Project::new(1);
    let offered = tools_of_a_subagent(client, &replaced, &["install", "--replace"]);
    assert!(offered.contains(&client.tool_name("file_read")), "a subagent has haft's tools: {offered:?}");
    let settings = std::fs::read(replaced.root().join(".claude/settings.local.json")).unwrap();
    let settings: Value = serde_json::from_slice(&settings).unwrap();
    let denied: Vec<&str> =
        settings["permissions"]["deny"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(denied.len() >= client.native_tools().len(), "{settings:#}");
    for tool in denied {
        assert!(!offered.iter().any(|offered| offered == tool), "a subagent still has {tool}: {offered:?}");
    }
}

/// The tools in the first request of a subagent that the scripted model starts.
fn tools_of_a_subagent(client: AgentClient, project: &Project, command: &[&str]) -> Vec<String> {
    let is_started = AtomicBool::new(false);
    let model = Stub::with(move |asked| {
        let can_start = asked.tools().iter().any(|tool| tool == "Agent");
        if is_main_conversation(asked) && can_start && !is_started.swap(true, Ordering::Relaxed) {
            let args = json!({"description": "Count", "prompt": TASK, "subagent_type": "general-purpose"});
            return Reply::call("Agent", args);
        }
        Reply::say("Done.")
    });
    client.configure(project, &model, HaftEntry::Installed);
    install(client, project, command);
    let transcript = client.run_configured(project, &model, &[]);
    let asked = model.asked();
    let subagent = asked.iter().find(|asked| asked.says(TASK) && !is_main_conversation(asked));
    subagent.unwrap_or_else(|| panic!("no subagent asked the model:\n{}", transcript.printed)).tools()
}

fn is_main_conversation(asked: &Asked) -> bool {
    asked.says(MAIN_PROMPT)
}
