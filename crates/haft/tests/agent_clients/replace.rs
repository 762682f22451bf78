//! `haft mcp install --replace`, seen from the model: haft's tools are the only way to act, and `uninstall` restores the
//! client's configuration byte for byte.

use crate::client::{AgentClient, HaftEntry, scripted_model};
use crate::project::Project;
use crate::results::{assert_told, request_after};
use crate::trials::{for_clients, for_every_client};
use haft_stub::{Asked, Reply};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = for_every_client("replaced_tools_leave_haft_as_the_only_way_to_act", only_haft_acts);
    // goose asks about no call in the mode of these tests, and has no setting that names a server.
    let asking = AgentClient::ALL.into_iter().filter(|client| *client != AgentClient::Goose).collect::<Vec<_>>();
    let name = "haft_calls_run_without_a_question_of_the_clients";
    trials.extend(for_clients(&asking, name, haft_calls_are_not_asked_about));
    let name = "newer_models_are_offered_haft_in_full";
    trials.extend(for_clients(&[AgentClient::Codex], name, newer_models_are_offered_haft));
    trials
}

/// The file that a native tool would make.
const NATIVE_TRACE: &str = "made-by-a-native-tool";

/// As `haft mcp install` names a client.
fn install_name(client: AgentClient) -> &'static str {
    match client {
        AgentClient::ClaudeCode => "claude",
        AgentClient::Codex => "codex",
        AgentClient::GeminiCli => "gemini",
        AgentClient::Opencode => "opencode",
        AgentClient::Goose => "goose",
    }
}

/// The files that an installation may touch.
fn configuration(client: AgentClient, project: &Project) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let files = match client {
        AgentClient::ClaudeCode => {
            [project.root().join(".mcp.json"), project.root().join(".claude/settings.local.json")]
        }
        AgentClient::Codex => {
            [project.home().join(".codex/config.toml"), project.home().join(".codex/environments.toml")]
        }
        AgentClient::GeminiCli => {
            [project.home().join(".gemini/settings.json"), project.home().join(".gemini/policies/haft.toml")]
        }
        AgentClient::Opencode => {
            let dir = project.home().join(".config/opencode");
            [dir.join("opencode.json"), dir.join("opencode.jsonc")]
        }
        AgentClient::Goose => {
            let dir = project.home().join(".config/goose");
            [dir.join("config.yaml"), dir.join("permission.yaml")]
        }
    };
    files.into_iter().map(|file| (file.clone(), std::fs::read(file).ok())).collect()
}

/// The calls of native tools that a model could try from memory.
fn native_calls(client: AgentClient) -> Vec<Reply> {
    let command = format!("touch {NATIVE_TRACE}");
    match client {
        AgentClient::ClaudeCode => vec![Reply::call("Bash", json!({"command": command, "description": "x"}))],
        AgentClient::Codex => vec![Reply::call("exec_command", json!({"cmd": command})), apply_patch()],
        AgentClient::GeminiCli => vec![Reply::call("run_shell_command", json!({"command": command}))],
        AgentClient::Opencode => vec![Reply::call("bash", json!({"command": command, "description": "x"}))],
        AgentClient::Goose => {
            let enable = json!({"action": "enable", "extension_name": "developer"});
            vec![
                Reply::call("extensionmanager__manage_extensions", enable),
                Reply::call("shell", json!({"command": command})),
            ]
        }
    }
}

/// A call of Codex's `apply_patch`, which takes a text instead of JSON.
fn apply_patch() -> Reply {
    let patch = format!("*** Begin Patch\n*** Add File: {NATIVE_TRACE}\n+x\n*** End Patch");
    let item = json!({
        "type": "custom_tool_call", "id": "ctc_1", "call_id": "call_patch", "name": "apply_patch", "input": patch,
        "status": "completed",
    });
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let events = [
        json!({"type": "response.created", "response": {"id": "resp_patch"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "resp_patch", "output": [item], "usage": usage}}),
    ];
    let stream = events.iter().map(|event| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    });
    Reply::status(200, stream.collect::<String>()).header("content-type", "text/event-stream")
}

/// Runs `haft mcp install` or `uninstall` for the client.
pub(crate) fn install(client: AgentClient, project: &Project, verb: &[&str]) -> Value {
    project.haft(&[&["mcp"], verb, &[install_name(client), "--yes", "--json"]].concat())
}

fn only_haft_acts(client: AgentClient) {
    let project = Project::new(1);
    let native = native_calls(client);
    let natives = native.len();
    let mut replies = vec![Reply::call(&client.tool_name("file_read"), json!({"path": "hello.txt"}))];
    replies.extend(native);
    let model = scripted_model(replies);
    client.configure(&project, &model, HaftEntry::Installed);
    let before = configuration(client, &project);
    let installed = install(client, &project, &["install", "--replace"]);
    assert_eq!((&installed["state"], &installed["native_tools"]), (&json!("written"), &json!("off")), "{installed:#}");
    assert!(installed["files"][0]["diff"].as_str().unwrap().contains("haft"), "{installed:#}");

    // Codex knows which tools a model takes by its name. What is off stays off in the weakest of the user's settings.
    let options = if client == AgentClient::Codex { &["-m", "gpt-5.5"] } else { client.permissive_options() };
    let transcript = client.run_configured(&project, &model, options);
    let first = request_after(&transcript, 0);
    let offered = first.tools();
    for tool in ["file_read", "file_edit", "shell_exec", "tool_search"] {
        let tool = client.tool_name(tool);
        assert!(offered.contains(&tool), "{client:?} does not offer {tool}: {offered:?}");
    }
    let own = client.tool_name("");
    let remaining: Vec<_> = offered.iter().filter(|tool| !tool.starts_with(&own)).collect();
    let unknown: Vec<_> = remaining.iter().filter(|tool| !client.remaining_tools().contains(&tool.as_str())).collect();
    assert!(unknown.is_empty(), "{client:?} still offers {unknown:?}");
    assert_names_of_deferred_tools(client, first);
    assert_told(&transcript, 1, &["hello from a file"]);
    // The run goes on after native calls, which had no effect.
    request_after(&transcript, 1 + natives);
    assert!(!project.root().join(NATIVE_TRACE).exists(), "a native tool of {client:?} acted:\n{}", transcript.printed);
    if client == AgentClient::Codex {
        assert_told(&transcript, 1 + natives, &["patch rejected"]);
    }

    let restored = install(client, &project, &["uninstall"]);
    assert_eq!(restored["state"], "restored", "{restored:#}");
    assert_eq!(configuration(client, &project), before, "{restored:#}");
}

/// Claude Code names the tools that it would load later, a line each, in the first message.
fn assert_names_of_deferred_tools(client: AgentClient, first: &Asked) {
    if client == AgentClient::ClaudeCode {
        assert!(!first.says("\nWebFetch\n") && !first.says("\nNotebookEdit\n"), "{:#}", first.body);
    }
}

/// The user's own settings ask about every call, or ask unless they are told otherwise: haft's calls run all the same,
/// because haft asks.
fn haft_calls_are_not_asked_about(client: AgentClient) {
    let project = Project::new(1);
    let model = scripted_model(vec![Reply::call(&client.tool_name("file_read"), json!({"path": "hello.txt"}))]);
    client.configure(&project, &model, HaftEntry::Installed);
    if client == AgentClient::Opencode {
        let file = project.home().join(".config/opencode/opencode.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        config["permission"] = json!({"*": "ask"});
        std::fs::write(&file, config.to_string()).unwrap();
    }
    install(client, &project, &["install", "--replace"]);
    let transcript = client.run_configured(&project, &model, &[]);
    assert_told(&transcript, 1, &["hello from a file"]);
}

/// Codex gives its newer models tools through scripts, and others only when they search for them. haft's stand in full.
fn newer_models_are_offered_haft(client: AgentClient) {
    let project = Project::new(1);
    let call = Reply::call(&client.tool_name("file_read"), json!({"path": "hello.txt"}));
    let model = scripted_model(vec![call]);
    client.configure(&project, &model, HaftEntry::Installed);
    install(client, &project, &["install", "--replace"]);
    let transcript = client.run_configured(&project, &model, &["-m", "gpt-5.6-sol"]);
    let offered = request_after(&transcript, 0).tools();
    assert!(offered.contains(&client.tool_name("shell_exec")), "{offered:?}");
    let shell = "declare const tools: { exec_command(";
    assert!(!request_after(&transcript, 0).says(shell), "the shell is not to be had in scripts either");
    assert_told(&transcript, 1, &["hello from a file"]);
}
