//! Project files that override what `haft mcp install --replace` wrote, and some that do not: what `haft doctor` says of a
//! client's own tools is what the real client offers its model.

use crate::HAFT;
use crate::client::{AgentClient, HaftEntry, scripted_model};
use crate::project::Project;
use crate::replace::install;
use crate::trials::{for_clients, for_every_client};
use haft_stub::{Reply, Stub};
use libtest_mimic::Trial;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials =
        for_every_client("doctor_knows_which_files_of_a_project_turn_native_tools_on", doctor_agrees_with_the_client);
    let clients = [AgentClient::ClaudeCode, AgentClient::GeminiCli];
    let name = "doctor_knows_whether_hooks_run_in_a_project_that_turns_them_off";
    trials.extend(for_clients(&clients, name, doctor_knows_whether_hooks_run));
    trials
}

/// A file of a project, and whether the client's own tools are on because of it.
struct ProjectFile {
    path: &'static str,
    text: &'static str,
    turns_tools_on: bool,
}

const fn turning_on(path: &'static str, text: &'static str) -> ProjectFile {
    ProjectFile { path, text, turns_tools_on: true }
}

const fn without_effect(path: &'static str, text: &'static str) -> ProjectFile {
    ProjectFile { path, text, turns_tools_on: false }
}

/// As commands name a client.
fn command_name(client: AgentClient) -> &'static str {
    match client {
        AgentClient::ClaudeCode => "claude",
        AgentClient::GeminiCli => "gemini",
        client => client.name(),
    }
}

/// A tool that acts, and that the client offers unless it is off.
fn native_tool(client: AgentClient) -> &'static str {
    match client {
        AgentClient::ClaudeCode => "Bash",
        AgentClient::Codex => "exec_command",
        AgentClient::GeminiCli => "run_shell_command",
        AgentClient::Opencode => "bash",
        AgentClient::Goose => "shell",
    }
}

fn project_files(client: AgentClient) -> &'static [ProjectFile] {
    const BYPASS: &str =
        "{\"permissions\": {\"allow\": [\"Bash\"], \"deny\": [], \"defaultMode\": \"bypassPermissions\"}}";
    const AGENT: &str = "---\ndescription: Builds\npermission:\n  bash: allow\n---\nBuild it.\n";
    match client {
        AgentClient::ClaudeCode => const { &[without_effect(".claude/settings.json", BYPASS)] },
        AgentClient::Codex => const { &[turning_on(".codex/config.toml", "[features]\nshell_tool = true\n")] },
        AgentClient::GeminiCli => {
            const {
                &[
                    // Either wall is enough: the policy of the user, or the user's list of excluded tools.
                    without_effect(".gemini/settings.json", "{\"policyPaths\": [\"none\"]}"),
                    without_effect(".gemini/settings.json", "{\"tools\": \"replaced\"}"),
                    turning_on(".gemini/settings.json", "{\"policyPaths\": [\"none\"], \"tools\": \"replaced\"}"),
                    without_effect(".gemini/settings.json", "{\"tools\": {\"allowed\": [\"run_shell_command\"]}}"),
                ]
            }
        }
        AgentClient::Opencode => {
            const {
                &[
                    turning_on("opencode.json", "{\"permission\": {\"bash\": \"allow\"}}"),
                    turning_on(".opencode/agent/build.md", AGENT),
                    without_effect("opencode.jsonc", "{\"tools\": {\"bash\": true}, /* older */}"),
                ]
            }
        }
        AgentClient::Goose => {
            const { &[without_effect(".goose/config.yaml", "extensions:\n  developer:\n    enabled: true\n")] }
        }
    }
}

/// The user trusts the project, so that its files count.
fn trust_project(client: AgentClient, project: &Project) {
    let root = project.root().canonicalize().unwrap().display().to_string();
    match client {
        AgentClient::Codex => {
            let file = project.home().join(".codex/config.toml");
            let config = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, format!("{config}\n[projects.{root:?}]\ntrust_level = \"trusted\"\n")).unwrap();
        }
        AgentClient::GeminiCli => {
            project.write("home/.gemini/trustedFolders.json", &format!("{{{root:?}: \"TRUST_FOLDER\"}}"));
        }
        _ => {}
    }
}

fn doctor_agrees_with_the_client(client: AgentClient) {
    for file in project_files(client) {
        let project = Project::new(1);
        let model = scripted_model(Vec::new());
        client.configure(&project, &model, HaftEntry::Installed);
        install(client, &project, &["install", "--replace"]);
        trust_project(client, &project);
        project.write(&format!("project/{}", file.path), file.text);
        // Codex knows which tools a model takes by its name.
        let options = if client == AgentClient::Codex { &["-m", "gpt-5.5"] } else { client.permissive_options() };
        let transcript = client.run_configured(&project, &model, options);
        let offered: BTreeSet<String> = model.asked().iter().flat_map(haft_stub::Asked::tools).collect();
        assert!(!offered.is_empty(), "{client:?} offers nothing with {}:\n{}", file.path, transcript.printed);
        let is_offered = offered.contains(native_tool(client));
        assert_eq!(is_offered, file.turns_tools_on, "{client:?} with {}: {offered:?}", file.path);

        let findings = project.haft(&["doctor", "--json"]);
        let mut clients = findings.as_array().unwrap().iter().map(|finding| &finding["client"]);
        let found = clients.find(|found| found["client"] == command_name(client)).unwrap();
        let expected = if is_offered { ("on", Some(format!("./{}", file.path))) } else { ("off", None) };
        let said = (found["native_tools"].as_str().unwrap(), found["overridden_by"].as_str().map(str::to_owned));
        assert_eq!(said, expected, "{client:?} with {}: {found:#}", file.path);
    }
}

/// The hooks of Claude Code run all the same, because the user's local settings count more. Gemini CLI's do not, and `haft
/// doctor` says so.
fn doctor_knows_whether_hooks_run(client: AgentClient) {
    let (files, still_run): (&[(&str, &str)], bool) = match client {
        AgentClient::ClaudeCode => (&[(".claude/settings.json", "{\"disableAllHooks\": true}")], true),
        _ => (
            &[
                (".gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}"),
                (".gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"haft\"]}}"),
            ],
            false,
        ),
    };
    for (path, text) in files {
        let project = Project::new(1);
        let model = model_that_runs_a_command(native_tool(client));
        client.configure(&project, &model, HaftEntry::Installed);
        install(client, &project, &["install", "--hooks"]);
        trust_project(client, &project);
        project.write(&format!("project/{path}"), text);
        let transcript = client.run_configured(&project, &model, client.permissive_options());

        let log = project.command(Path::new(HAFT)).args(["log", "-n", "1000", "--json"]).output().unwrap();
        let observed = String::from_utf8(log.stdout).unwrap().contains("\"observed\"");
        assert_eq!(observed, still_run, "{client:?} with {text}:\n{}", transcript.printed);
        let findings = project.haft(&["doctor", "--json"]);
        let mut clients = findings.as_array().unwrap().iter().map(|finding| &finding["client"]);
        let found = clients.find(|found| found["client"] == command_name(client)).unwrap();
        let by = if still_run { None } else { Some(format!("./{path}")) };
        let expected = (if still_run { "hooked" } else { "on" }, by);
        let said = (found["native_tools"].as_str().unwrap(), found["overridden_by"].as_str().map(str::to_owned));
        assert_eq!(said, expected, "{client:?} with {text}: {found:#}");
    }
}

/// A model that calls a native tool for commands once, then ends the conversation.
fn model_that_runs_a_command(tool: &'static str) -> Stub {
    let has_called = AtomicBool::new(false);
    Stub::with(move |asked| {
        let is_offered = asked.tools().iter().any(|offered| offered == tool);
        if is_offered && !has_called.swap(true, Ordering::SeqCst) {
            Reply::call(tool, json!({"command": "cat hello.txt", "description": "x"}))
        } else {
            Reply::say("Done.")
        }
    })
}
